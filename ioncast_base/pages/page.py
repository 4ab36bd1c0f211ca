"""Pages in files: headings, texts, tables and figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ioncast_base.pages.figures import Figure
from ioncast_base.pages.rendering import environment, write_template
from ioncast_base.pages.svg import drawing


def write_page(path: str | Path, *, title: str, parts: Iterable[str]) -> None:
    """Write a page that needs no network. On an error an older page stays.

    Parameters
    ----------
    parts : iterable of str
        HTML as the functions of this module make it; any other text is escaped.
    """
    write_template(path, "offline.html", environment(), title=title, parts=parts)


def heading(text: str, level: int = 2) -> Markup:
    """Write a heading."""
    return Markup("<h{0}>{1}</h{0}>").format(level, text)


def paragraph(text: str) -> Markup:
    """Write a paragraph."""
    return Markup("<p>{}</p>").format(text)


def bullets(title: str, lines: Sequence[str]) -> Markup:
    """Write a list under a heading; nothing without lines."""
    if not lines:
        return Markup()
    items = Markup().join(Markup("<li>{}</li>\n").format(line) for line in lines)
    return Markup("{}\n<ul>\n{}</ul>").format(heading(title), items)


def table(rows: Sequence[Mapping[str, Any]], texts: int = 1) -> Markup:
    """Write rows as a table; keys are headings, and the first `texts` columns are no numbers.

    A cell may be `Markup`.
    """
    head = _cells("th", list(rows[0]) if rows else [], texts)
    body = Markup("\n").join(_cells("td", list(row.values()), texts) for row in rows)
    # The keyboard scrolls only elements that can have the focus.
    return Markup(
        '<div class="wide" tabindex="0"><table>\n<thead>{}</thead>\n<tbody>\n{}\n</tbody>'
        "</table></div>"
    ).format(head, body)


def drawn(figure: Figure, said: str) -> Markup:
    """Write a figure, with a name for screen readers."""
    return Markup("<figure>{}</figure>").format(drawing(figure, said=said))


def _cells(tag: str, cells: Sequence[Any], texts: int) -> Markup:
    written = (
        Markup("<{0}{1}>{2}</{0}>").format(
            tag, "" if place < texts else Markup(' class="num"'), "" if cell is None else cell
        )
        for place, cell in enumerate(cells)
    )
    return Markup("<tr>{}</tr>").format(Markup().join(written))
