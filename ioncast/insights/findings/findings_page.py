"""The findings of runs as a page that needs no network."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from pathlib import Path

from ioncast.insights.findings.text import (
    LIBRARY_NAMES,
    Record,
    all_files,
    by_reason,
    details_of,
    stake_in_words,
    verdict_in_words,
)
from ioncast_base.offline_pages import bullets, heading, paragraph, table, write_page
from ioncast_base.visible_text import visible
from ioncast_base.wording import counted, sentence

_STYLE = """
pre { background: #f4f6f9; padding: 0.5rem; overflow-x: auto; font-size: 0.8rem; margin: 0.3rem 0; }
details { display: inline-block; margin: 0 1.5rem 0.3rem 0; vertical-align: top; }
details[open] { display: block; }
summary { cursor: pointer; }
.importance { display: inline-block; min-width: 5rem; font-weight: bold; }
.major { color: #b3261e; } .minor { color: #8a5a00; } .unknown, .negligible { color: #2a3f5f; }
"""


def write_findings(path: str | Path, records: Sequence[Record]) -> None:
    """Write the page of runs, as `ioncast.insights.checks.record.to_record` makes them."""
    parts = [part for record in records for part in _run(record)]
    write_page(path, title="Findings about I/O", parts=parts, style=_STYLE)


def _run(record: Record) -> Iterator[str]:
    yield heading(visible(record["log"]))
    yield paragraph(f"Job {record['job']}, {counted(record['processes'], 'process')}")
    yield paragraph(verdict_in_words(record["verdict"]))
    by_code = {finding["code"]: finding for finding in record["findings"]}
    for cause in record["causes"]:
        importance, name = cause["importance"], html.escape(cause["cause"])
        yield (
            f'<h3><span class="importance {importance}">{importance.upper()}</span>'
            f" {name[:1].upper()}{name[1:]}: {html.escape(stake_in_words(cause))}</h3>"
        )
        for code in cause["codes"]:
            yield from _finding(by_code[code])
    others = [each for each in record["findings"] if each["importance"] == "none"]
    yield bullets(
        "Good practice and facts",
        [f"{other['code']} {other['title']}: {other['sentence']}" for other in others],
    )
    not_checked = by_reason(record["unknown"])
    yield bullets("Not checked", [f"{codes}: {reason}" for reason, codes in not_checked.items()])
    yield bullets("Warnings", record["warnings"])


def _finding(finding: Record) -> Iterator[str]:
    yield f"<h4>{html.escape(finding['code'])} {html.escape(finding['title'])}</h4>"
    yield paragraph(sentence(finding["sentence"]))
    yield paragraph(" ".join(details_of(finding)))
    if finding["files"]:
        files = [
            {"file": visible(each["path"]), "number": each["words"]} for each in finding["files"]
        ]
        yield table(files)
        if (more := all_files(finding) - len(files)) > 0:
            yield paragraph(f"and {counted(more, 'other file')}")
    for advice in finding["advice"]:
        yield paragraph(sentence(advice["sentence"]))
        yield from map(_snippet, advice["snippets"].items())


def _snippet(snippet: tuple[str, str]) -> str:
    library, text = snippet
    name = html.escape(LIBRARY_NAMES.get(library, library))
    code = f'<pre tabindex="0">{html.escape(text)}</pre>'
    return f"<details><summary>{name}</summary>{code}</details>"
