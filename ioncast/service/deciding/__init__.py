"""Answers schedulers' questions over HTTP, without a database, Flask or files of counts."""
