"""The HTTP interface: its operations, their parameters and roles, and its errors."""
