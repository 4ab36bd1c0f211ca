"""The watch: it follows jobs and sends their Darshan logs to the service."""
