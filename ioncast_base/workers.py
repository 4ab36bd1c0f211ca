"""A function that is applied to many items by processes of its own, one of which may be killed."""

from __future__ import annotations

import gc
import os
import selectors
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from ioncast_base.errors import BusyError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_T = TypeVar("_T")
_R = TypeVar("_R")

# While the result of an item travels, the process already has the next one.
_SENT_AHEAD = 2
# Results of each process that may wait for an earlier one.
_MOST_WAITING = 32


@dataclass(frozen=True)
class Killed:
    """In place of a result: `signal`, or a printed exception (None), ended the process."""

    signal: int | None


def usable_cores() -> int:
    """Count the cores that this process may use, which a batch system may have limited."""
    return len(os.sched_getaffinity(0))


def results_in_order(
    function: Callable[[_T], _R], items: Sequence[_T], processes: int
) -> Iterator[_R | Killed]:
    """Apply a function to each item, in forked processes, at most one for each item.

    A fork has the function and the items, so it needs neither pickle nor imports.
    A process with threads should not fork, so call this before other threads start. The results
    come in the order of the items, and a bounded number of them is in memory. A BusyError says
    that the system starts no process.
    """
    with closing(_Team(function, items, processes)) as team:
        for number in range(len(items)):
            yield team.result(number)


class _Team(Generic[_T, _R]):
    def __init__(self, function: Callable[[_T], _R], items: Sequence[_T], processes: int) -> None:
        self._function = function
        self._items = items
        self._size = min(processes, len(items))
        self._workers: list[_Worker[_T, _R]] = []
        self._selector = selectors.DefaultSelector()
        self._unsent = deque(range(len(items)))
        self._results: dict[int, _R | Killed] = {}

    def result(self, number: int) -> _R | Killed:
        while number not in self._results:
            self._start()
            self._send(until=number + _MOST_WAITING * self._size)
            self._receive()
        return self._results.pop(number)

    def close(self) -> None:
        """End all processes; they have nothing to save."""
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.close()
        self._selector.close()

    def _start(self) -> None:
        while self._unsent and len(self._workers) < self._size:
            try:
                worker = _Worker(self._function, self._items)
            except OSError as error:
                if not self._workers:
                    raise BusyError(
                        f"the system starts no process: {error.strerror}",
                        remedy="end other programs, or raise the limit (`ulimit -u`)",
                    ) from error
                return
            self._workers.append(worker)
            self._selector.register(worker.connection, selectors.EVENT_READ, worker)

    def _send(self, until: int) -> None:
        for ahead in range(_SENT_AHEAD):
            for worker in self._workers:
                if len(worker.numbers) == ahead and self._unsent and self._unsent[0] < until:
                    worker.send(self._unsent.popleft())

    def _receive(self) -> None:
        for key, _ in self._selector.select():
            worker: _Worker[_T, _R] = key.data
            try:
                result = worker.connection.recv()
            except (EOFError, OSError):
                self._bury(worker)
            else:
                self._results[worker.numbers.popleft()] = result

    def _bury(self, worker: _Worker[_T, _R]) -> None:
        self._selector.unregister(worker.connection)
        self._workers.remove(worker)
        worker.close()
        if worker.numbers:
            exit_code = worker.process.exitcode or 0
            self._results[worker.numbers.popleft()] = Killed(-exit_code if exit_code < 0 else None)
            self._unsent.extendleft(reversed(worker.numbers))


class _Worker(Generic[_T, _R]):
    """A process, and the numbers of the items that it was sent, the one it works on first."""

    def __init__(self, function: Callable[[_T], _R], items: Sequence[_T]) -> None:
        # Its import takes as long as reading ten logs, and most commands read one.
        import multiprocessing  # noqa: PLC0415

        self.numbers: deque[int] = deque()
        self.connection, other = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("fork").Process(
            target=_serve, args=(function, items, other, self.connection), daemon=True
        )
        # A fork inherits the mask. So Ctrl-C interrupts only this process, which then kills it.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            self.process.start()
        except OSError:
            self.connection.close()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            other.close()

    def send(self, number: int) -> None:
        self.numbers.append(number)
        # Reading the connection tells that the process has ended.
        with suppress(OSError):
            self.connection.send(number)

    def close(self) -> None:
        self.connection.close()
        self.process.join()


def _serve(
    function: Callable[[_T], _R], items: Sequence[_T], connection: Connection, other: Connection
) -> None:
    """Work until the process with the other end closes it or is killed."""
    other.close()
    # Otherwise the garbage collector goes through all imported modules, and so copies their memory.
    gc.freeze()
    while True:
        try:
            number = connection.recv()
        except (EOFError, OSError):
            return
        result = function(items[number])
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.send(result)
