"""One process of a bundled application: `python rank.py FOLDER` follows the plan in FOLDER.

It runs on compute nodes, so it imports only the standard library, and mpi4py if the plan needs
MPI. It reads ``plan.RANK.json``, which has an entry for each file, meets the other ranks at the
socket ``barrier`` before the first file of each step, and writes ``result.RANK.json``: start and
end of each open, request and close, on the monotonic clock that all processes of a machine share.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ERROR_PREFIX = "ioncast: "
"""The beginning of every line in which a program of ioncast prints its error."""

_now = time.monotonic


def main(folder: Path) -> None:
    """Do the steps of this rank."""
    communicator = _communicator() if (folder / "mpi").exists() else None
    rank = communicator.Get_rank() if communicator else int(os.environ["IONCAST_RANK"])
    with socket.socket(socket.AF_UNIX) as barrier:
        try:
            # An address is at most 107 bytes long, and the path of the folder may be longer.
            os.chdir(folder)
            barrier.connect("barrier")
            steps = json.loads((folder / f"plan.{rank}.json").read_text())
            results = _do_all(steps, barrier, communicator)
            (folder / f"result.{rank}.json").write_text(json.dumps(results))
        except Exception as error:
            # Print the reason before the socket closes: then the other ranks end, and with the
            # first of them the launcher ends all.
            reason = " ".join(str(error).split())
            print(f"{ERROR_PREFIX}{type(error).__name__}: {reason}", file=sys.stderr, flush=True)
            if communicator:
                # MPI_Finalize would wait for ranks that wait for this one in collective I/O.
                communicator.Abort(1)
            sys.exit(1)


def _do_all(
    steps: list[dict[str, Any]], barrier: socket.socket, communicator: Any
) -> list[dict[str, Any] | None]:
    largest = max((size for step in steps for _, size in step["accesses"]), default=0)
    buffer = page_aligned(largest)
    results = []
    for step in steps:
        if step["begins"]:
            _meet(barrier)
            time.sleep(step["pause_s"])
            _meet(barrier)
        results.append(_do(step, buffer, communicator) if step["accesses"] else None)
    return results


def page_aligned(size: int) -> memoryview:
    """Make a buffer that begins with a page, like those of IOR and fio.

    A request of 128 KiB from any other buffer touches 33 pages, and FUSE sends it in two.
    """
    return memoryview(mmap.mmap(-1, max(1, size)))


def _communicator() -> Any:
    from mpi4py import MPI  # noqa: PLC0415  # ranks without MPI start much faster

    return MPI.COMM_WORLD


def _meet(barrier: socket.socket) -> None:
    """Wait for all ranks; waiting in MPI would use the cores that working ranks need."""
    with contextlib.suppress(ConnectionError):
        barrier.sendall(b".")
        if barrier.recv(1):
            return
    # The rank that failed has printed the reason.
    sys.exit(1)


def _do(step: dict[str, Any], buffer: memoryview, communicator: Any) -> dict[str, Any]:
    views = {size: buffer[:size] for _, size in step["accesses"]}
    open_file = _open_mpiio if step["api"] == "MPIIO" else _open_posix
    writes = step["operation"] == "write"
    open_start = _now()
    move, close = open_file(step["path"], writes, communicator, step["hints"])
    open_end = _now()
    requests = []
    for offset, size in step["accesses"]:
        start = _now()
        moved = move(offset, views[size])
        requests.append((start, _now()))
        if moved != size:
            raise OSError(f"{step['path']}: {moved} of {size} bytes at offset {offset}")
    close_start = _now()
    close()
    return {"opened": (open_start, open_end), "closed": (close_start, _now()), "requests": requests}


Move = Callable[[int, memoryview], int]


def _open_posix(path: str, writes: bool, *_: Any) -> tuple[Move, Callable[[], None]]:
    if writes:
        file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o664)
        return lambda offset, view: os.pwrite(file, view, offset), lambda: os.close(file)
    file = os.open(path, os.O_RDONLY)
    return lambda offset, view: os.preadv(file, [view], offset), lambda: os.close(file)


def _open_mpiio(
    path: str, writes: bool, communicator: Any, hints: dict[str, str]
) -> tuple[Move, Callable[[], None]]:
    from mpi4py import MPI  # noqa: PLC0415  # as above

    mode = MPI.MODE_WRONLY | MPI.MODE_CREATE if writes else MPI.MODE_RDONLY
    info = MPI.Info.Create()
    for name, value in hints.items():
        info.Set(name, value)
    file = MPI.File.Open(communicator, path, mode, info)
    transfer = file.Write_at_all if writes else file.Read_at_all
    status = MPI.Status()

    def move(offset: int, view: memoryview) -> int:
        transfer(offset, view, status)
        return int(status.Get_count())

    return move, file.Close


if __name__ == "__main__":
    main(Path(sys.argv[1]))
