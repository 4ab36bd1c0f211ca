"""The applications of the case studies: programs that do I/O, and Darshan logs of their runs."""
