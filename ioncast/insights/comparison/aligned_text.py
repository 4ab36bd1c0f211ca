"""Tables as aligned text: of one run, of some side by side, or a line for each of many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ioncast.insights.comparison.comparing import compare
from ioncast.insights.comparison.in_words import (
    DIFFERS,
    command_text,
    difference_texts,
    missing_texts,
    short_names,
)
from ioncast.insights.comparison.job_rows import job_rows
from ioncast.insights.comparison.shown import NOTHING, Texts, file_rows, overview_rows, shown_rows
from ioncast.insights.tables.characterising import Characterisation
from ioncast_base.text_tables import text_table
from ioncast_base.visible_text import visible
from ioncast_base.wording import counted

# More columns do not fit on a terminal.
MOST_SIDE_BY_SIDE = 6
MOST_FILES = 20
# All other columns are numbers.
_TEXTS = ("log", "layer", "characteristic", "of", "note", "file", "access")

# Columns that a narrow terminal lacks, the last ones first.
_OPTIONAL_OF_RUN = ("of", "note")
_OPTIONAL_OF_FILES = ("access", "processes", "size", "its time", "slowest rank")


def to_text(runs: Sequence[Characterisation], tolerance: float) -> str:
    """Write the tables of at least one run for people."""
    parts = _side_by_side(runs, tolerance) if len(runs) <= MOST_SIDE_BY_SIDE else _overview(runs)
    files = (
        part
        for title, rows, more in files_of(runs, tolerance)
        for part in (f"{title}\n{_table(rows, _OPTIONAL_OF_FILES) if rows else 'no file'}", more)
    )
    return "\n\n".join(part for part in (*parts, *files) if part)


def differences(runs: Sequence[Characterisation], tolerance: float) -> list[str]:
    """Say how the runs differ from the first one; nothing of a single run."""
    if len(runs) < 2:
        return []
    names = short_names(runs)
    sign = f"{DIFFERS} marks values that differ from those of {names[0]} by more than"
    return [
        f"{sign} {100 * tolerance:.3g} %",
        *difference_texts(compare(runs, tolerance), names),
    ]


def _side_by_side(runs: Sequence[Characterisation], tolerance: float) -> Iterator[str]:
    names = short_names(runs)
    yield "\n".join(command_texts(runs))
    yield "\n".join(differences(runs, tolerance))
    yield f"Job\n{_table(list(job_rows(runs, names, tolerance)))}"
    for table in compare(runs, tolerance):
        rows = list(shown_rows(table, names))
        if rows:
            yield f"{table.title}\n{_table(rows, _OPTIONAL_OF_RUN)}"
    missing = missing_texts(runs)
    yield "\n".join(["Not recorded", *(f"- {each}" for each in missing)]) if missing else ""


def _overview(runs: Sequence[Characterisation]) -> Iterator[str]:
    rows = list(overview_rows(runs))
    # Log, processes, run time, files, and bytes are the first six columns.
    yield _table(rows, list(rows[0])[6:])
    yield (
        f"More than {MOST_SIDE_BY_SIDE} runs have a line each. --format csv and --format json have"
        " all tables of each run."
    )


def files_of(
    runs: Sequence[Characterisation], tolerance: float
) -> Iterator[tuple[str, list[Texts], str]]:
    """Yield for each run with tables of its files a title, rows, and a sentence about the rest."""
    for run in runs:
        if run.files is not None:
            rows = list(file_rows(run.files, MOST_FILES, runs[0].files, tolerance))
            more = len(run.files.paths) - len(rows)
            yield (
                "Each file" if len(runs) == 1 else f"Each file of {visible(run.log)}",
                rows,
                f"{counted(more, 'more file')} moved fewer bytes. --only PATTERN selects files;"
                " --format csv and --format json have all tables of each file."
                if more
                else "",
            )


def command_texts(runs: Sequence[Characterisation]) -> list[str]:
    """Write the log and the command of each run, and its name in the heads of columns."""
    names = short_names(runs)
    starts = [""] if len(runs) == 1 else [f"{name}: " for name in names]
    return [f"{start}{command_text(run)}" for start, run in zip(starts, runs, strict=True)]


def filled(rows: Sequence[Texts]) -> list[Texts]:
    """Leave out columns that tell nothing in any row."""
    heads = [
        name
        for name in (rows[0] if rows else ())
        if any(row[name] not in ("", NOTHING) for row in rows)
    ]
    return [{name: row[name] for name in heads} for row in rows]


def _table(rows: Sequence[Texts], optional: Sequence[str] = ()) -> str:
    rows = filled(rows)
    return text_table(
        rows,
        right=[name for name in rows[0] if name not in _TEXTS],
        optional=optional,
    )
