"""Pages in files need no network, and their texts are no HTML."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ioncast_base.errors import InputError
from ioncast_base.pages.page import bullets, heading, paragraph, table, write_page

EVIL = "<script>alert(1)</script>"


def test_a_screen_reader_finds_all_parts_in_the_main_landmark(tmp_path: Path) -> None:
    """WAI-ARIA 1.2, landmark regions: all perceivable content is in a landmark."""
    page = tmp_path / "page.html"
    write_page(page, title="I/O of <one> run", parts=[paragraph("first"), paragraph("last")])
    [body] = re.findall(r"<body>(.*)</body>", page.read_text(encoding="utf-8"), re.DOTALL)
    [main] = re.findall(r"<main>(.*)</main>", body, re.DOTALL)
    assert main.split("\n") == [
        *("", "<h1>I/O of &lt;one&gt; run</h1>", '<div class="card">'),
        *("<p>first</p>", "<p>last</p>", "</div>", ""),
    ]
    assert body.strip() == f"<main>{main}</main>"


def test_a_page_loads_nothing(tmp_path: Path) -> None:
    write_page(tmp_path / "page.html", title="a", parts=[])
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not re.findall(r"<script|<link|<img|<iframe|@import|url\(", text)


def test_the_keyboard_scrolls_a_wide_table() -> None:
    """WCAG 2.2, success criterion 2.1.1: only an element with the focus scrolls by keys."""
    assert table([{"file": "/a"}]).startswith('<div class="wide" tabindex="0"><table>')


def test_a_table_has_numbers_on_the_right() -> None:
    assert '<tr><td>/a</td><td class="num">4</td></tr>' in table([{"file": "/a", "bytes": 4}])
    assert 'class="num"' not in table([{"file": "/a", "layer": "POSIX"}], texts=2)


def test_texts_are_no_html(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    parts = [heading(EVIL), paragraph(EVIL), bullets(EVIL, [EVIL]), table([{EVIL: EVIL}]), EVIL]
    write_page(page, title=EVIL, parts=parts)
    text = page.read_text(encoding="utf-8")
    assert "<script" not in text
    assert text.count("&lt;script&gt;") == 9


def test_a_name_with_bytes_that_are_no_utf_8_can_be_written(tmp_path: Path) -> None:
    write_page(tmp_path / "page.html", title="\udcff", parts=[])
    assert "<h1>\\udcff</h1>" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_sheet_of_paper_cuts_no_figures() -> None:
    """CSS Fragmentation 3: `break-inside`."""
    style = (Path(__file__).parents[3] / "ioncast_base/pages/style.css").read_text("utf-8")
    assert re.search(r"\.plot \{[^}]*break-inside: avoid;", style)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="missing"):
        write_page(tmp_path / "missing/page.html", title="a", parts=[])
