"""Tables as aligned text: of one run, of some side by side, or a line for each of many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ioncast.insights.comparison.comparing import compare
from ioncast.insights.comparison.in_words import (
    DIFFERS,
    difference_texts,
    missing_texts,
    run_text,
    short_names,
)
from ioncast.insights.comparison.shown import file_rows, overview_rows, shown_rows
from ioncast.insights.tables.characterising import Characterisation
from ioncast_base.visible_text import visible
from ioncast_base.wording import counted
from summario.phases.tables import aligned

# More columns do not fit on a terminal.
MOST_SIDE_BY_SIDE = 6
MOST_FILES = 20
# All other columns are numbers.
_TEXTS = ("log", "layer", "characteristic", "of", "note", "file", "access")


def to_text(runs: Sequence[Characterisation], tolerance: float) -> str:
    """Write the tables of at least one run for people."""
    parts = _side_by_side(runs, tolerance) if len(runs) <= MOST_SIDE_BY_SIDE else _overview(runs)
    files = (part for run in runs for part in _files(run, is_only_one=len(runs) == 1))
    return "\n\n".join(part for part in (*parts, *files) if part)


def differences(runs: Sequence[Characterisation], tolerance: float) -> list[str]:
    """Say how the runs differ from the first one; nothing of a single run."""
    if len(runs) < 2:
        return []
    names = short_names(runs)
    sign = f"{DIFFERS} marks values that differ from those of {names[0]} by more than"
    return [
        f"{sign} {tolerance:.3g} of the larger value",
        *difference_texts(compare(runs, tolerance), names),
    ]


def _side_by_side(runs: Sequence[Characterisation], tolerance: float) -> Iterator[str]:
    names = short_names(runs)
    yield "\n".join(run_texts(runs))
    yield "\n".join(differences(runs, tolerance))
    for table in compare(runs, tolerance):
        rows = list(shown_rows(table, names))
        if rows:
            yield f"{table.title}\n{_table(rows)}"
    yield "\n".join(missing_texts(runs))


def _overview(runs: Sequence[Characterisation]) -> Iterator[str]:
    yield _table(list(overview_rows(runs)))
    yield (
        f"More than {MOST_SIDE_BY_SIDE} runs have a line each. --format csv and --format json have"
        " all tables of each run."
    )


def _files(run: Characterisation, *, is_only_one: bool) -> Iterator[str]:
    if run.files is None:
        return
    title = "Each file" if is_only_one else f"Each file of {visible(run.log)}"
    rows = list(file_rows(run.files, MOST_FILES))
    more = len(run.files.paths) - len(rows)
    yield f"{title}\n{_table(rows) if rows else 'no file'}"
    if more:
        yield (
            f"{counted(more, 'more file')} moved fewer bytes. --only PATTERN selects files;"
            " --format csv and --format json have all tables of each file."
        )


def run_texts(runs: Sequence[Characterisation]) -> list[str]:
    """Describe each run in a line; with its name in the heads of columns, if there are several."""
    names = short_names(runs)
    starts = [""] if len(runs) == 1 else [f"{name}: " for name in names]
    return [
        f"{start}{visible(run.log)}: {run_text(run)}"
        for start, run in zip(starts, runs, strict=True)
    ]


def _table(rows: Sequence[Mapping[str, str]]) -> str:
    heads = [name for name in rows[0] if any(row[name] for row in rows)]
    filled = [{name: row[name] for name in heads} for row in rows]
    return aligned(filled, right=[name for name in heads if name not in _TEXTS])
