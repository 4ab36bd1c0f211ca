"""The phases of many logs, which are read on all cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from signal import SIGKILL
from typing import TypeVar

from ioncast_base.errors import InputError, IoncastError
from ioncast_base.workers import Killed, results_in_order, usable_cores
from summario.phases.extract import extract
from summario.phases.settings import DEFAULTS, ExtractionSettings
from summario.phases.values import Extraction
from summario.reading.log import DarshanLog
from summario.reading.sources import Source, read_source

Result = TypeVar("Result")

# While other processes start, this one reads as many logs, or as many bytes.
FEW = 20
_FEW_BYTES = 1 << 20


def extract_all(
    sources: Sequence[Source | IoncastError], settings: ExtractionSettings = DEFAULTS
) -> Iterator[tuple[str, Extraction] | IoncastError]:
    """Extract the phases of logs, in processes on all cores if there are many.

    Parameters
    ----------
    sources : sequence of Source or IoncastError
        The logs; an error is in the place of logs that were not found.
    settings : ExtractionSettings
        The user's choices.

    Yields
    ------
    (str, Extraction) or IoncastError
        The name and the phases of each log, or the error instead of them, in the order of the
        logs.
    """
    return from_all(sources, partial(extract, settings=settings))


def from_all(
    sources: Sequence[Source | IoncastError], result_of: Callable[[DarshanLog], Result]
) -> Iterator[tuple[str, Result] | IoncastError]:
    """Compute something from each log, as `extract_all` computes phases."""
    compute = partial(_compute, result_of=result_of)
    if _are_few(sources):
        yield from map(compute, sources)
        return
    results = results_in_order(compute, sources, usable_cores())
    for source, result in zip(sources, results, strict=True):
        yield _lost(source, result) if isinstance(result, Killed) else result


def _compute(
    source: Source | IoncastError, result_of: Callable[[DarshanLog], Result]
) -> tuple[str, Result] | IoncastError:
    if isinstance(source, IoncastError):
        return source
    try:
        return source.name, result_of(read_source(source))
    except IoncastError as error:
        return error
    except MemoryError:
        return _out_of_memory(source.name, "the memory is not enough to read it")


def _are_few(sources: Sequence[Source | IoncastError]) -> bool:
    return len(sources) < 2 or (
        len(sources) <= FEW and sum(map(_file_bytes, sources)) <= _FEW_BYTES
    )


def _file_bytes(source: Source | IoncastError) -> int:
    if isinstance(source, IoncastError):
        return 0
    try:
        return Path(source.name).stat().st_size
    except OSError:
        return 0


def _lost(source: Source | IoncastError, killed: Killed) -> IoncastError:
    if isinstance(source, IoncastError):
        return source
    if killed.signal == SIGKILL:
        return _out_of_memory(source.name, "the process that read it was killed")
    how = f"ended by signal {killed.signal}" if killed.signal else "failed"
    return InputError(
        f"the process that read it {how}", where=source.name, remedy="use the log of another run"
    )


def _out_of_memory(name: str, what: str) -> InputError:
    return InputError(what, where=name, remedy="read it alone, or on a computer with more memory")
