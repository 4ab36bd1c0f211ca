"""One set of tables for the facts of one log or of many, and SQL on them."""
