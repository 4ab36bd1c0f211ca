"""The web process: the API, pages, uploads and kept results."""
