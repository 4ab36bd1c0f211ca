"""Room in which the workers of a service count together, made before any of them counts.

prometheus_client has processes share their counts in files that are mapped into memory. Where such
a file grows on a full disk, the kernel ends the process that touches it (SIGBUS). So each file has
its blocks from the beginning, no worker counts without one, and none makes it grow.
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
# More than the buckets of one more series take.
_RESERVE_BYTES = 16 << 10


class SharedCounts:
    """The files of one service: a slot for each worker, which its successor goes on with.

    Parameters
    ----------
    folder : Path
        Where the files are; emptied by `prepare`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._slot: int | None = None

    def prepare(self) -> None:
        """Have workers that are forked from this process count in the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)
        # Without the folder there is no slot in it either.
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True)
        os.environ[_FOLDER_VARIABLE] = str(self._folder)
        values.ValueClass = values.MultiProcessValue(lambda: self._slot)  # type: ignore[no-untyped-call]

    def free_slot(self, taken: Iterable[int | None]) -> int | None:
        """The first slot that no other worker has; None where there is no room for another one."""
        found = set(taken)
        slot = next(number for number in range(len(found) + 1) if number not in found)
        try:
            self._make_room(slot)
        except OSError as error:
            _LOG.error("a worker counts nothing, there is no room for its counts: %s", error)
            return None
        return slot

    def enter(self, slot: int | None) -> None:
        """Count in a slot from now on; without one, nothing is counted."""
        self._slot = slot

    @property
    def is_open(self) -> bool:
        """Whether this process may count."""
        return self._slot is not None

    def takes_another_series(self) -> bool:
        """Whether its file need not grow for one more histogram."""
        with self._file("histogram", self._slot).open("rb") as file:
            used = int.from_bytes(file.read(4), "little")
        return used + _RESERVE_BYTES < _BYTES["histogram"]

    def registry(self) -> CollectorRegistry:
        """The counts of all workers."""
        found = CollectorRegistry()
        if self._folder.is_dir():
            MultiProcessCollector(found, str(self._folder))  # type: ignore[no-untyped-call]
        return found

    def _make_room(self, slot: int) -> None:
        for kind, size in _BYTES.items():
            path = self._file(kind, slot)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                if os.fstat(descriptor).st_size < size:
                    os.posix_fallocate(descriptor, 0, size)
            except OSError:
                # Nobody can read a file without its first bytes.
                path.unlink()
                raise
            finally:
                os.close(descriptor)

    def _file(self, kind: str, slot: int | None) -> Path:
        return self._folder / f"{kind}_{slot}.db"
