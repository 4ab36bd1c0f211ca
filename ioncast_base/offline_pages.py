"""HTML pages that need no network, because they contain Plotly."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from ioncast_base.files import write_file

if TYPE_CHECKING:
    import plotly.graph_objects as go

# The style of tables that `table` writes.
TABLE_STYLE = """\
.wide { overflow-x: auto; margin: 0.6rem 0; }
table { border-collapse: collapse; font-size: 0.85rem; }
th, td { padding: 0.2rem 0.6rem; text-align: right; white-space: nowrap; }
th { border-bottom: 1px solid #2a3f5f; vertical-align: bottom; white-space: normal; }
th:first-child, td:first-child { text-align: left; }
tr:nth-child(even) td { background: #f4f6f9; }
"""


def write_page(path: str | Path, *, title: str, body: str, style: str = "") -> None:
    """Write a page with one heading.

    Parameters
    ----------
    path : str or Path
        The page; about 5 MB with Plotly in `body`.
    title : str
        The title and the heading, as plain text.
    body, style : str
        HTML and CSS.

    Raises
    ------
    InputError
        When the page cannot be written; an older page stays.
    """
    write_file(path, _PAGE.substitute(title=html.escape(title), body=body, style=style))


def bullets(heading: str, lines: Sequence[str]) -> str:
    """Write plain texts as an HTML list under a heading; without texts, an empty string."""
    if not lines:
        return ""
    items = "".join(f"<li>{html.escape(line)}</li>\n" for line in lines)
    return f"<h2>{heading}</h2>\n<ul>\n{items}</ul>\n"


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write rows as an HTML table; their keys are the headings. A wide table scrolls."""
    made = tabulate(rows, headers="keys", disable_numparse=True, tablefmt="html")
    return f'<div class="wide">{made}</div>'


def drawn(figure: go.Figure, plotly: bool = False) -> str:
    """Write a figure as HTML; `plotly` adds Plotly itself, once for each page."""
    text: str = figure.to_html(
        full_html=False,
        include_plotlyjs=plotly,
        config={"responsive": True, "displayModeBar": False},
    )
    return text


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
p { margin: 0.4rem 0; }
li { margin: 0.3rem 0; overflow-wrap: anywhere; }
$style</style>
</head>
<body>
<h1>$title</h1>
$body
</body>
</html>
""")
