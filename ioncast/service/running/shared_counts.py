"""Files in which the workers of a service count together, allocated before a worker counts.

prometheus_client lets processes share their counts in files that are mapped into memory. If such a
file grows on a full disk, the kernel ends the process that touches it (SIGBUS). Therefore each file
has all its blocks from the beginning, a worker without a file does not count, and no file grows.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from prometheus_client import CollectorRegistry, values
from prometheus_client.multiprocess import MultiProcessCollector

_LOG = logging.getLogger("ioncast.service")
_FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
_BYTES = {"counter": 64 << 10, "histogram": 1 << 20}
# More than one series of a histogram takes.
_RESERVE_BYTES = 16 << 10


class SharedCounts:
    """The files of one service: each worker has a slot, and its successor takes the slot over."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._slot: int | None = None

    def prepare(self) -> None:
        """Let workers that are forked from this process count in the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)
        # If the folder cannot be created, `free_slot` finds no slot, and nothing is counted.
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True)
        os.environ[_FOLDER_VARIABLE] = str(self._folder)
        values.ValueClass = values.MultiProcessValue(lambda: self._slot)  # type: ignore[no-untyped-call]

    def free_slot(self, taken: Iterable[int | None]) -> int | None:
        """Return the first slot that no other worker has; None if its files do not fit."""
        found = set(taken)
        slot = next(number for number in range(len(found) + 1) if number not in found)
        try:
            self._make_room(slot)
        except OSError as error:
            _LOG.error("a worker counts nothing, its files cannot be created: %s", error)
            return None
        return slot

    def enter(self, slot: int | None) -> None:
        """Count in a slot from now on; with None, count nothing."""
        self._slot = slot

    @property
    def is_open(self) -> bool:
        """Whether this process may count."""
        return self._slot is not None

    def takes_another_series(self) -> bool:
        """Tell whether one more series of a histogram fits into its file."""
        with self._file("histogram", self._slot).open("rb") as file:
            used = int.from_bytes(file.read(4), "little")
        return used + _RESERVE_BYTES < _BYTES["histogram"]

    def registry(self) -> CollectorRegistry:
        """Return the counts of all workers."""
        collector_registry = CollectorRegistry()
        if self._folder.is_dir():
            MultiProcessCollector(collector_registry, str(self._folder))  # type: ignore[no-untyped-call]
        return collector_registry

    def _make_room(self, slot: int) -> None:
        for kind, size in _BYTES.items():
            path = self._file(kind, slot)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                if os.fstat(descriptor).st_size < size:
                    os.posix_fallocate(descriptor, 0, size)
            except OSError:
                # A file without its first bytes would make reading the counts fail.
                path.unlink()
                raise
            finally:
                os.close(descriptor)

    def _file(self, kind: str, slot: int | None) -> Path:
        return self._folder / f"{kind}_{slot}.db"
