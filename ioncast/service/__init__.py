"""The service: a scheduler's questions over HTTP, and pages for people."""
