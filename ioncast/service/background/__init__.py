"""The keeper: the one process that prepares answers and moves decisions into the database."""
