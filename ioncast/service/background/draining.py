"""Reads the decisions that workers appended to the spool, for the database."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ioncast.service.decide.spool import spool_files
from ioncast.service.store.decisions import DecisionRow
from ioncast_base.errors import InputError

# Some hundred decisions each second; after a burst the rest follows. Reading more would take a core
# from the workers, and nobody waits for it.
_MOST_BYTES = 512 << 10
# A worker creates its file before it locks it, so a new file without a lock may still be in use.
_NEW_S = 60.0

# Exceptions of a line that is not a decision.
_NO_DECISION = (AttributeError, InputError, KeyError, RecursionError, TypeError, ValueError)


@dataclass(frozen=True)
class Drained:
    """Decisions that were read, and by file the end of the lines that were read, in bytes."""

    rows: tuple[DecisionRow, ...]
    unusable: tuple[str, ...]
    places: Mapping[str, int]
    gone: tuple[str, ...]


@dataclass
class Drain:
    """Reads the files of a spool, each line once; `places` tells how far before a restart."""

    folder: Path
    places: dict[str, int] = field(default_factory=dict)
    _gone: list[str] = field(default_factory=list)
    # How far the files are blank.
    _blank: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def batch(self, now_s: float) -> Iterator[Drained]:
        """Read the new lines; after the block they are blanked, and ended files are deleted.

        If the block raises, the next batch reads the same lines again.
        """
        rows: list[DecisionRow] = []
        unusable: list[str] = []
        read: dict[str, int] = {}
        finished, left = [], _MOST_BYTES
        for path in spool_files(self.folder):
            start = self.places.get(path.name, 0)
            text, has_ended = _text(path, start, left, now_s)
            left -= len(text)
            read[path.name] = start + len(text)
            for line in text.splitlines():
                if line.isspace():
                    continue
                try:
                    rows.append(decision_in(json.loads(line)))
                except _NO_DECISION as error:
                    unusable.append(f"{path.name}: {type(error).__name__}: {error}")
            if has_ended:
                finished.append(path)
        yield Drained(tuple(rows), tuple(unusable), read, tuple(self._gone))
        if rows:
            self._gone.clear()
        self.places = dict(read)
        for path in spool_files(self.folder):
            self._blank_lines(path)
        for path in finished:
            # On a read-only disk the file stays, and the database knows that it was read.
            with suppress(OSError):
                path.unlink(missing_ok=True)
                del self.places[path.name]
                self._gone.append(path.name)

    def _blank_lines(self, path: Path) -> None:
        """Remove the names of users from the lines of a file that were read.

        A worker uses its file until it has 16 MiB. A disk that rejects the change keeps the lines.
        For another database a keeper reads the file from its start and passes over the blanks.
        """
        start, end = self._blank.get(path.name, 0), self.places.get(path.name, 0)
        if start < end:
            with suppress(OSError), path.open("r+b") as file:
                file.seek(start)
                file.write(b" " * (end - start - 1) + b"\n")
                self._blank[path.name] = end


def _text(path: Path, start: int, most: int, now_s: float) -> tuple[bytes, bool]:
    """Return the next whole lines of a file, and whether no more will follow."""
    with path.open("rb") as file:
        has_ended = _has_no_writer(file.fileno())
        found = os.fstat(file.fileno())
        file.seek(start)
        text = file.read(most)
        end = start + len(text) >= found.st_size
        if not has_ended or not end:
            return text[: text.rfind(b"\n") + 1], False
        return text, bool(found.st_size) or found.st_mtime < now_s - _NEW_S


def _has_no_writer(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def decision_in(record: Mapping[str, Any]) -> DecisionRow:
    """Read the decision in a line of the spool, as JSON; an unusable one raises any error."""
    query, told = record["query"], record["answer"]
    return DecisionRow(
        id=record["id"],
        asked_at=record["at"],
        system=query["system"],
        **{
            name: query.get(name)
            for name in ("user", "executable", "name", "job_id", "nodes", "tasks", "available")
        },
        **{
            name: told[name]
            for name in ("io_nodes", "source", "expected_mib_s", "confidence", "application_id")
        },
        why=told["why"],
        curve=tuple(sorted(_points(told))),
        explored=told["explored"],
    )


def _points(told: dict[str, Any]) -> Iterator[tuple[int, float, float, float]]:
    for point in [told, *told["alternatives"]]:
        if point["expected_mib_s"] is not None:
            yield (
                point["io_nodes"],
                point["expected_mib_s"],
                point["p10_mib_s"],
                point["p90_mib_s"],
            )
