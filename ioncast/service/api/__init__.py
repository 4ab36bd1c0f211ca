"""The HTTP interface: its operations, what they take, who may use them, and its errors."""
