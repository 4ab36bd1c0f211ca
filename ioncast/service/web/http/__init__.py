"""Shared parts of all operations over HTTP: access, typed requests, uploads, problem documents."""
