"""The log of all processes of the service: lines on standard error."""

from __future__ import annotations

import logging
import sys


def begin_log() -> None:
    """Write log messages to standard error."""
    logging.basicConfig(level=logging.INFO, format="ioncast: %(message)s", stream=sys.stderr)
    # The driver logs a warning for each error that it also raises.
    logging.getLogger("psycopg").setLevel(logging.ERROR)
