"""The roof, which is built on the rooms: the `ioncast` command and the service."""
