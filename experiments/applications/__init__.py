"""Applications of the case studies: programs that do I/O, and the Darshan logs of their runs."""
