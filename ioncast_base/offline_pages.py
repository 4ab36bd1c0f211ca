"""HTML pages that need no network, because they contain Plotly."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from ioncast_base.files import write_file

if TYPE_CHECKING:
    import plotly.graph_objects as go


def write_page(
    path: str | Path, *, title: str, parts: Iterable[str | go.Figure], style: str = ""
) -> None:
    """Write a page with one heading; about 5 MB with figures. On an error an older page stays."""
    body = "\n".join(_in_html(parts))
    text = _PAGE.substitute(title=html.escape(title), body=body, style=style)
    # The name of a file may have bytes that are not UTF-8, which Python keeps as lone surrogates.
    write_file(path, text.encode(errors="backslashreplace").decode())


def heading(text: str, level: int = 2) -> str:
    """Write a plain text as an HTML heading."""
    return f"<h{level}>{html.escape(text)}</h{level}>"


def paragraph(text: str) -> str:
    """Write a plain text as an HTML paragraph."""
    return f"<p>{html.escape(text)}</p>"


def bullets(title: str, lines: Sequence[str]) -> str:
    """Write plain texts as an HTML list under a heading; without texts, an empty string."""
    if not lines:
        return ""
    items = "".join(f"<li>{html.escape(line)}</li>\n" for line in lines)
    return f"{heading(title)}\n<ul>\n{items}</ul>"


def table(rows: Sequence[Mapping[str, Any]], *, is_html: bool = False) -> str:
    """Write rows of texts, or of HTML if `is_html`, as an HTML table; keys are headings."""
    kind = "unsafehtml" if is_html else "html"
    made = tabulate(rows, headers="keys", disable_numparse=True, tablefmt=kind)
    # The keyboard scrolls only elements that can have the focus.
    return f'<div class="wide" tabindex="0">{made}</div>'


def laid_out(figure: go.Figure, *, height: int | None = 380, **layout: Any) -> go.Figure:
    """Give a figure the look of all pages; `height` is in pixels, None for most of the window."""
    common = {
        "template": "plotly_white",
        "margin": {"t": 30, "r": 10, "l": 70, "b": 60},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "dragmode": False,
    }
    return figure.update_layout(height=height, **(common | layout))


def _in_html(parts: Iterable[str | go.Figure]) -> Iterator[str]:
    needs_plotly = True
    for part in parts:
        if isinstance(part, str):
            yield part
            continue
        yield part.to_html(
            full_html=False,
            include_plotlyjs=needs_plotly,
            default_height="70vh",
            config={"responsive": True, "displayModeBar": False},
        )
        needs_plotly = False


_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
body { font: 0.9rem "Open Sans", verdana, arial, sans-serif; color: #2a3f5f; margin: 1rem auto;
       padding: 0 1rem; max-width: 60rem; }
h1 { font-size: 1.3rem; margin: 0; }
h2 { font-size: 1.1rem; margin: 1.5rem 0 0; }
h3 { font-size: 0.95rem; margin: 1rem 0 0; }
h2, h3, p, li { overflow-wrap: anywhere; }
p { margin: 0.4rem 0; }
li { margin: 0.3rem 0; }
.wide { overflow-x: auto; margin: 0.6rem 0; }
table { border-collapse: collapse; font-size: 0.85rem; }
th, td { padding: 0.2rem 0.6rem; text-align: right; white-space: nowrap; }
th { border-bottom: 1px solid #2a3f5f; vertical-align: bottom; white-space: normal; }
th:first-child, td:first-child { text-align: left; }
tr:nth-child(even) td { background: #f4f6f9; }
h2, h3 { break-after: avoid; }
.plotly-graph-div, tr { break-inside: avoid; }
@media print { .wide { overflow: visible; } th, td { white-space: normal; } }
$style</style>
</head>
<body>
<main>
<h1>$title</h1>
$body
</main>
</body>
</html>
""")
