"""The templates of pages about runs: the same in the service and in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ioncast.insights.comparison.shown import Marked
from ioncast_base.pages.rendering import environment, write_template

TEMPLATES = Path(__file__).parent / "templates"
STATIC = Path(__file__).parent / "static"


def is_marked(text: object) -> bool:
    """Whether a value of one of two runs differs from that of the other run."""
    return isinstance(text, Marked)


def write_offline(path: str | Path, template: str, **values: Any) -> None:
    """Write a page that needs no network. On an error an older page stays."""
    made = environment(TEMPLATES)
    made.tests["marked"] = is_marked
    write_template(path, template, made, **values)
