"""`IorResult`: one measured operation, from one line of IOR's results."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ioncast_base.errors import InputError
from ior_configs.config import IorConfig

_MIB = 1 << 20
# The most results whose leaving out is told one by one.
_NAMED_ROWS = 5
_NUMBER = re.compile(r"[0-9]{1,30}(?:\.[0-9]{1,30})?")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_CTIME = re.compile(r"\w{3} (\w{3}) +(\d{1,2}) (\d\d:\d\d:\d\d) (\d{4})", re.ASCII)


class UnfinishedRunError(InputError):
    """A run that was killed, or failed, before it printed a whole result."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IorResult:
    """One operation of one repetition, measured by IOR.

    Attributes
    ----------
    config : IorConfig
        The configuration of the whole run, with tasks and nodes if they are known.
    repetition : int
        The number of the repetition, from 0.
    bandwidth_mib_s : float
        All bytes over the time of the slowest process; positive and finite.
    bytes, time_s : int or None, float or None
        Moved bytes, None without an exact number; seconds of the slowest process, None for zero.
    started : str or None
        The start in ISO 8601 without a zone, because IOR prints local time. It is the start of
        the operation if the output has it (``-v``), else of the test.
    stonewalled : bool
        Whether the run moved other bytes than the configuration asks for.
    warnings : tuple of str
        A warning for each result that was left out, then IOR's warnings on this result.
    maybe_cached : bool
        Whether the page cache of the nodes that wrote the data may have answered the reads.
    """

    config: IorConfig
    operation: str
    repetition: int
    bandwidth_mib_s: float
    bytes: int | None = None
    time_s: float | None = None
    started: str | None = None
    ior_version: str | None = None
    command: str | None = None
    stonewalled: bool = False
    warnings: tuple[str, ...] = ()
    maybe_cached: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PrintedRow:
    """A line of results as IOR printed it, with its digits, in MiB/s and seconds; not checked."""

    operation: str
    repetition: int
    bandwidth: str
    time: str
    bytes: int | None = None
    started: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Printed:
    """A number that was rounded when it was printed."""

    value: float
    half_unit: float


def results_of(
    config: IorConfig, rows: Iterable[PrintedRow], *, version: str | None, command: str | None
) -> list[IorResult]:
    """Check the rows of one test, and warn in all results of each row that is left out.

    If the bandwidth of a row is not positive and finite, IOR moved nothing or divided by a time
    of zero. Such a repetition must not enter a mean.
    """
    judged = [(row, read_number(row.bandwidth)) for row in rows]
    _check_one_run(config, [row for row, _ in judged])
    without = [row for row, bandwidth in judged if bandwidth is None]
    left_out = tuple(
        f"left out {row.operation} of repetition {row.repetition}: its bandwidth is {row.bandwidth}"
        for row in without[:_NAMED_ROWS]
    )
    if without[_NAMED_ROWS:]:
        left_out += (f"left out {len(without) - _NAMED_ROWS} more such results",)
    results = [
        _result(config, row, bandwidth, version=version, command=command)
        for row, bandwidth in judged
        if bandwidth is not None
    ]
    if not results:
        raise UnfinishedRunError(
            left_out[0] if left_out else "there is no line of results",
            remedy="the run failed or was cut off: repeat it",
        )
    if not left_out:
        return results
    return [replace(result, warnings=left_out + result.warnings) for result in results]


def mixed_runs(evidence: str) -> InputError:
    """Return the error for lines of several runs that cannot be told apart."""
    return InputError(
        f"lines of several runs are mixed: {evidence}",
        remedy="let each run write to a file of its own",
    )


def _check_one_run(config: IorConfig, rows: Iterable[PrintedRow]) -> None:
    """Reject rows that one run under this configuration cannot have printed."""
    printed = set()
    for row in rows:
        if row.operation not in config.operation:
            raise mixed_runs(f"there is a {row.operation}, but the command has no {row.operation}")
        if (row.operation, row.repetition) in printed:
            raise mixed_runs(f"there are two of {row.operation} {row.repetition}")
        printed.add((row.operation, row.repetition))


def _result(
    config: IorConfig,
    row: PrintedRow,
    bandwidth: Printed,
    *,
    version: str | None,
    command: str | None,
) -> IorResult:
    time = read_number(row.time)
    expected = expected_bytes(config)
    moved = row.bytes
    if moved is None and time is not None:
        moved = _bytes_between(*_product_bounds(bandwidth, time), expected, config.transfer_size)
    return IorResult(
        config=config,
        operation=row.operation,
        repetition=row.repetition,
        bandwidth_mib_s=bandwidth.value,
        bytes=moved,
        time_s=time.value if time else None,
        started=row.started,
        ior_version=version,
        command=command,
        stonewalled=expected is not None and moved != expected and time is not None,
        warnings=row.warnings,
    )


def expected_bytes(config: IorConfig) -> int | None:
    """Bytes that all processes move in one operation; None if the tasks are unknown."""
    return None if config.tasks is None else config.tasks * config.bytes_per_process


def read_number(text: str) -> Printed | None:
    """Read a positive finite number with its precision; None for any other text."""
    if _NUMBER.fullmatch(text) is None:
        return None
    decimals = len(text.partition(".")[2])
    value = float(text)
    return Printed(value, 0.5 * 10.0**-decimals) if value > 0 else None


def _product_bounds(bandwidth: Printed, time: Printed) -> tuple[float, float]:
    low = (bandwidth.value - bandwidth.half_unit) * (time.value - time.half_unit)
    high = (bandwidth.value + bandwidth.half_unit) * (time.value + time.half_unit)
    return low * _MIB, high * _MIB


def _bytes_between(low: float, high: float, expected: int | None, transfer: int) -> int | None:
    """Compute the moved bytes from their bounds; None if several numbers are possible.

    The bytes that the configuration asks for are preferred to a multiple of the transfer size.
    """
    if expected is not None and low <= expected <= high:
        return expected
    smallest = math.ceil(low / transfer) * transfer
    return smallest if smallest <= high < smallest + transfer else None


def parse_started(text: str) -> str | None:
    """Convert IOR's ``Sat Nov 21 03:01:33 2026`` to ISO 8601; None for any other text."""
    match = _CTIME.search(text)
    if match is None or match[1] not in _MONTHS:
        return None
    month = _MONTHS.index(match[1]) + 1
    return f"{match[4]}-{month:02d}-{int(match[2]):02d}T{match[3]}"
