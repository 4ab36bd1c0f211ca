"""The template of all pages that need no network."""

from __future__ import annotations

import re
from pathlib import Path

from ioncast_base.offline_pages import paragraph, table, write_page


def test_a_screen_reader_finds_all_parts_in_the_main_landmark(tmp_path: Path) -> None:
    """WAI-ARIA 1.2, landmark regions: all perceivable content is in a landmark."""
    page = tmp_path / "page.html"
    write_page(page, title="I/O of <one> run", parts=[paragraph("first"), paragraph("last")])
    [body] = re.findall(r"<body>(.*)</body>", page.read_text(encoding="utf-8"), re.DOTALL)
    [main] = re.findall(r"<main>(.*)</main>", body, re.DOTALL)
    assert main.split("\n") == [
        "",
        "<h1>I/O of &lt;one&gt; run</h1>",
        "<p>first</p>",
        "<p>last</p>",
        "",
    ]
    assert body.strip() == f"<main>{main}</main>"


def test_the_keyboard_scrolls_a_wide_table() -> None:
    """WCAG 2.2, success criterion 2.1.1: only an element with the focus scrolls by keys."""
    assert table([{"file": "/a"}]).startswith('<div class="wide" tabindex="0"><table>')


def test_a_sheet_of_paper_cuts_neither_figures_nor_wide_tables(tmp_path: Path) -> None:
    """CSS Fragmentation 3: `break-inside`; a printed table cannot scroll, so it must wrap."""
    write_page(tmp_path / "page.html", title="a", parts=[])
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert re.search(r"\.plotly-graph-div[^{]*{ break-inside: avoid; }", text)
    assert "@media print { .wide { overflow: visible; }" in text
