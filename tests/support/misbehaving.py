"""Functions that fail in ways that must not harm the process that asked for them."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from ioncast_base.errors import DamagedLogError


class UnpicklableError(Exception):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


def doubled(number: int) -> int:
    return 2 * number


def parts(end: str) -> Iterator[str]:
    """Yield a part, and fail in the second one."""
    yield "first"
    if end == "late":
        time.sleep(600)
    if end == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if end == "damaged":
        raise DamagedLogError("torn")
    yield "second"


def ids() -> tuple[int, int]:
    return os.getpid(), os.getppid()


def open_files() -> list[str]:
    folder = Path("/proc/self/fd")
    return [str(path.readlink()) for path in folder.iterdir() if path.is_symlink()]


def slow(path: str, seconds: float) -> str:
    """Write the process's id to a file and wait."""
    _write_as_a_whole(path, os.getpid())
    time.sleep(seconds)
    return path


def slow_until(path: str, awaited: str) -> str:
    """Write the process's id to a file and wait until another file exists."""
    _write_as_a_whole(path, os.getpid())
    while not Path(awaited).exists():
        time.sleep(0.01)
    return path


def refuse() -> NoReturn:
    raise DamagedLogError("it is damaged", where="app.darshan", remedy="fetch it again")


def fail() -> NoReturn:
    raise ZeroDivisionError("a secret of the process")


def raise_what_cannot_be_sent() -> NoReturn:
    raise UnpicklableError


def return_what_cannot_be_sent() -> object:
    return threading.Lock()


def be_killed(number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(60)


def read_address_0() -> None:
    ctypes.string_at(0)


def end_at_once(code: int) -> None:
    os._exit(code)


def loop() -> NoReturn:
    while True:
        pass


def loop_deaf() -> NoReturn:
    for number in {*range(1, 32)} - {signal.SIGKILL, signal.SIGSTOP, signal.SIGXCPU}:
        signal.signal(number, signal.SIG_IGN)
    signal.alarm(0)
    while True:
        time.sleep(1)


def take_memory() -> int:
    taken = []
    while True:
        taken.append(bytes(1 << 20))


def blow_the_stack() -> object:
    nested: list[object] = []
    for _ in range(200_000):
        nested = [nested]
    return nested


def return_bytes(count: int) -> bytes:
    return bytes(count)


def leave_a_process(path: str) -> None:
    """Start a program that outlives this process."""
    program = subprocess.Popen(["sleep", "600"])
    _write_as_a_whole(path, program.pid)


def _write_as_a_whole(path: str, pid: int) -> None:
    begun = Path(f"{path}.begun")
    begun.write_text(str(pid), encoding="ascii")
    begun.rename(path)


def modules() -> set[str]:
    return set(sys.modules)
