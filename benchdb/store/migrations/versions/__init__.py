"""The migrations, one in each module."""
