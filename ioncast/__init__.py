"""The roof: the `ioncast` command, and the service, which are built on the rooms."""
