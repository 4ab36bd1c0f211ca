"""The web pages: views, figures, templates and style."""
