"""Reading Darshan logs, whatever is in them."""
