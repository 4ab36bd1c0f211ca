"""The numbers of processes: by rank or range of ranks, or the slowest one of each file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ioncast.insights.figures.drawn import Column, Document, Drawn, in_seconds, number
from ioncast.insights.figures.file_figure import seconds
from ioncast_base.visible_text import visible
from ioncast_base.wording import in_digits, size

Values = Mapping[str, Any]

_MOST_FILES = 10
_NOT_TOLD = (
    "The log does not tell what each process did. Darshan adds up the records of a file that all"
    " processes opened, and names only the slowest process of it."
)
_HEADS = {
    "bytes_read": "Bytes read",
    "bytes_written": "Bytes written",
    "bytes": "Bytes",
    "requests": "Requests",
    "read_seconds": "Read",
    "write_seconds": "Write",
    "metadata_seconds": "Metadata",
    "transfer_seconds": "Reads and writes",
    "io_seconds": "Read, write and metadata",
}


def has_ranges(ranks: Values) -> bool:
    """Whether the processes are so many that ranges of ranks stand for them."""
    return bool(len(ranks["first_ranks"]) < ranks["processes"])


def ends_of(ranks: Values) -> list[tuple[int, int]]:
    """List the first and the last rank of each range."""
    first = ranks["first_ranks"]
    return [
        (low, high - 1) for low, high in zip(first, [*first[1:], ranks["processes"]], strict=True)
    ]


def in_words(low: int, high: int) -> str:
    """Name a range of ranks."""
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def columns_of(ranks: Values) -> Iterator[Column]:
    """Name the columns of the known quantities."""
    yield Column("Ranks" if has_ranges(ranks) else "Rank", True)
    for name, head in _HEADS.items():
        if name in ranks["values"]:
            yield Column(head)


def rows_of(ranks: Values) -> Iterator[tuple[str, ...]]:
    """Write the quantities of each rank, or of each range of ranks."""
    columns = [
        list(_cells(name, ranks["values"][name])) for name in _HEADS if name in ranks["values"]
    ]
    for place, ends in enumerate(ends_of(ranks)):
        yield in_words(*ends), *(column[place] for column in columns)


def _cells(name: str, found: Values) -> Iterator[str]:
    """Write the mean of each range; where processes differ, between the least and the most."""
    write = in_seconds if name.endswith("seconds") else _count if name == "requests" else size
    means = map(number, found["mean"])
    if "min" not in found:
        yield from map(write, means)
        return
    for mean, least, most in zip(means, found["min"], found["max"], strict=True):
        low, high = write(number(least)), write(number(most))
        yield high if low == high else f"{low} · {write(mean)} · {high}"


def _count(value: float) -> str:
    return f"{round(value):,}"


def slowest_of_files(run: Document) -> Drawn | None:
    """List the slowest process of each shared file, which is all that the log tells."""
    shared = [
        file
        for file in sorted(run["files"], key=seconds, reverse=True)
        if number(file["processes"]) > 1 and seconds(file) and file["slowest_rank"] is not None
    ]
    if not shared:
        return None
    return Drawn(
        key="ranks",
        title="Balance of the processes",
        said=_NOT_TOLD,
        figure=None,
        caption="The slowest process of each shared file",
        columns=(
            Column("File", True),
            *map(Column, ("Processes", "Mean", "Slowest", "Its rank", "Slowest over mean")),
        ),
        rows=tuple(_slowest_row(file) for file in shared[:_MOST_FILES]),
        is_wide=True,
    )


def _slowest_row(file: Mapping[str, Any]) -> tuple[str, ...]:
    processes, slowest = int(number(file["processes"])), number(file["slowest_seconds"])
    mean = seconds(file) / processes
    return (
        visible(file["path"]),
        f"{processes:,}",
        in_seconds(mean),
        in_seconds(slowest),
        f"{file['slowest_rank']:,}",
        f"{in_digits(slowest / mean)} ×",
    )
