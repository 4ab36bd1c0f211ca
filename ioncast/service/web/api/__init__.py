"""The operations of the HTTP interface: their parameters, roles and answers."""
