"""Pages of templates: the same in the service and in files."""

from __future__ import annotations

import re
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from ioncast.insights.comparison.shown import Marked
from ioncast_base.files import program_of, write_file
from ioncast_base.times import instant
from ioncast_base.visible_text import visible
from ioncast_base.wording import bandwidth, counted, in_digits, in_words, sentence, size

TEMPLATES = Path(__file__).parent / "templates"
STATIC = Path(__file__).parent / "static"
_TICKED = re.compile(r"`([^`]+)`")


def write_offline(path: str | Path, template: str, **values: Any) -> None:
    """Write a page that needs no network. On an error an older page stays."""
    text = _environment().get_template(template).render(values)
    # The name of a file may have bytes that are not UTF-8, which Python keeps as lone surrogates.
    write_file(path, text.encode(errors="backslashreplace").decode())


def prepare(environment: Environment) -> None:
    """Add the filters of the templates to an environment."""
    environment.trim_blocks = environment.lstrip_blocks = True
    environment.filters.update(
        bandwidth=bandwidth,
        bytes=size,
        counted=counted,
        digits=in_digits,
        io_nodes=in_words,
        percent=_percent,
        when=_when,
        seconds=_seconds,
        thousands=_thousands,
        code=code,
        lower_first=lambda text: text[:1].lower() + text[1:],
        upper_first=lambda text: text[:1].upper() + text[1:],
        program=program_of,
        sentence=sentence,
        visible=visible,
    )
    environment.tests["marked"] = lambda text: isinstance(text, Marked)


def code(text: str) -> Markup:
    """Mark the parts of a text between backticks as code."""
    return Markup(_TICKED.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined
    )
    prepare(environment)
    environment.globals["asset"] = _asset
    return environment


def _asset(name: str) -> Markup:
    """The text of a style sheet or script of ours."""
    return Markup((STATIC / name).read_text(encoding="utf-8"))  # noqa: S704 - ours


def _percent(value: float, digits: int = 0) -> str:
    return f"{value:.{digits}%}"


def _seconds(value: float) -> str:
    return f"{value:,.2f}"


def _thousands(number: int) -> str:
    return f"{number:,}"


def _when(text: str | datetime | None) -> Markup:
    """A time as HTML, readable for people and programs."""
    moment = instant(text) if isinstance(text, str) else text
    if moment is None:
        return Markup('<span class="muted">unknown</span>')
    shown = moment.strftime("%Y-%m-%d %H:%M")
    return Markup('<time class="nowrap" datetime="{}">{} UTC</time>').format(
        moment.isoformat(), shown
    )
