"""Templates of pages: the same in the service and in files."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from ioncast_base.files import program_of, write_file
from ioncast_base.pages.svg import drawing
from ioncast_base.times import instant
from ioncast_base.visible_text import visible
from ioncast_base.wording import bandwidth, counted, duration, in_digits, in_words, sentence, size

TEMPLATES = Path(__file__).parent / "templates"
STYLE = Path(__file__).parent / "style.css"
_COLOUR = re.compile(r"(--[\w-]+): ([^;]+);")
_USED_COLOUR = re.compile(r"var\((--[\w-]+)\)")
_COLOURED = re.compile(r'"var\((--[\w-]+)\)"')
_TICKED = re.compile(r"`([^`]+)`")


def environment(*folders: Path) -> Environment:
    """Make an environment for the templates in some folders and those of all pages."""
    made = Environment(
        loader=FileSystemLoader([*folders, TEMPLATES]), autoescape=True, undefined=StrictUndefined
    )
    prepare(made)
    return made


def write_template(
    path: str | Path, template: str, environment: Environment, **values: Any
) -> None:
    """Write a page that needs no network. On an error an older page stays."""
    style = Markup(STYLE.read_text(encoding="utf-8"))  # noqa: S704 - ours
    text = environment.get_template(template).render(values, style=style)
    # The name of a file may have bytes that are not UTF-8, which Python keeps as lone surrogates.
    write_file(path, text.encode(errors="backslashreplace").decode())


def in_light_colours(picture: str) -> str:
    """Replace the colours that the style sheet names by those of light pages.

    Texts of a picture may look like such a colour, but they are not in quotation marks.
    """
    root = STYLE.read_text(encoding="utf-8").partition("}")[0]
    colours = dict(_COLOUR.findall(root))
    style, end, drawn = picture.partition("</style>")
    style = _USED_COLOUR.sub(lambda found: colours[found[1]], style)
    return style + end + _COLOURED.sub(lambda found: f'"{colours[found[1]]}"', drawn)


def prepare(environment: Environment) -> None:
    """Add the filters of all templates to an environment."""
    environment.trim_blocks = environment.lstrip_blocks = True
    environment.filters.update(
        bandwidth=bandwidth,
        bytes=size,
        counted=counted,
        digits=in_digits,
        duration=duration,
        io_nodes=in_words,
        percent=_percent,
        when=_when,
        seconds=_seconds,
        thousands=_thousands,
        code=code,
        drawing=drawing,
        lower_first=lambda text: text[:1].lower() + text[1:],
        upper_first=lambda text: text[:1].upper() + text[1:],
        program=program_of,
        sentence=sentence,
        visible=visible,
    )


def code(text: str) -> Markup:
    """Mark the parts of a text between backticks as code."""
    return Markup(_TICKED.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped


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
