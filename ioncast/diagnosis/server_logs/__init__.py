"""Reads logs of servers, of several programs, into rows of the table `server_samples`."""
