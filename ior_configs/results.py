"""`IorResult`: one measured operation, made from one line of results."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ioncast_base.errors import InputError
from ior_configs.config import IorConfig

_MIB = 1 << 20
_NUMBER = re.compile(r"[0-9]{1,30}(?:\.[0-9]{1,30})?")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_CTIME = re.compile(r"\w{3} (\w{3}) +(\d{1,2}) (\d\d:\d\d:\d\d) (\d{4})", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class IorResult:
    """One operation of one repetition, measured by IOR.

    Attributes
    ----------
    config : IorConfig
        The run as a whole, with tasks and nodes where known.
    operation : {"write", "read"}
        What was measured.
    repetition : int
        From 0.
    bandwidth_mib_s : float
        All bytes over the time of the slowest process, in MiB/s; positive and finite.
    bytes : int or None
        Bytes really moved by all processes; None if the output does not say exactly.
    time_s : float or None
        Seconds of the slowest process; None if printed as zero.
    started : str or None
        ISO 8601 without zone, as IOR prints local time: of the operation where
        the output holds that (``-v``), else of the test.
    ior_version : str or None
        Such as ``4.1.0+dev``.
    command : str or None
        IOR's command line.
    stonewalled : bool
        Whether other bytes were moved than the configuration asks for.
    warnings : tuple of str
        IOR's warnings on this result, and what was left out of the output it is from.
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


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of results as printed, not judged yet.

    Attributes
    ----------
    operation, repetition
        As in `IorResult`.
    bandwidth, time : str
        Bandwidth in MiB/s and seconds, with the digits that were printed.
    bytes : int or None
        Bytes moved where the output states them.
    started, warnings
        As in `IorResult`.
    """

    operation: str
    repetition: int
    bandwidth: str
    time: str
    bytes: int | None = None
    started: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Printed:
    """A number of which only some digits are printed.

    Attributes
    ----------
    value : float
        As printed.
    half_unit : float
        Half a unit of the last printed digit: how far off the truth can be.
    """

    value: float
    half_unit: float


def results_of(
    config: IorConfig, rows: Iterable[Row], *, version: str | None, command: str | None
) -> list[IorResult]:
    """Judge the rows of one test.

    A row whose bandwidth is no positive finite number (IOR divides by a time
    of zero, or moved nothing) is left out, because a repetition that measured
    nothing must not enter a mean; the other results of the test carry a
    warning that says so. If no row is left the output is refused.

    Parameters
    ----------
    config : IorConfig
        What was run.
    rows : iterable of Row
        The printed results.
    version, command : str or None
        As in `IorResult`.

    Returns
    -------
    list of IorResult
        At least one.

    Raises
    ------
    InputError
        If there is no row, or none with a usable bandwidth.
    """
    judged = [(row, read_number(row.bandwidth)) for row in rows]
    left_out = tuple(
        f"left out {row.operation} of repetition {row.repetition}: its bandwidth is {row.bandwidth}"
        for row, bandwidth in judged
        if bandwidth is None
    )
    results = [
        _result(config, row, bandwidth, version=version, command=command)
        for row, bandwidth in judged
        if bandwidth is not None
    ]
    if not results:
        raise InputError(
            left_out[0] if left_out else "there is no line of results",
            remedy="the run failed or was cut off: repeat it",
        )
    return [replace(result, warnings=result.warnings + left_out) for result in results]


def _result(
    config: IorConfig, row: Row, bandwidth: Printed, *, version: str | None, command: str | None
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
    """Read a positive finite number with its precision; None for anything else."""
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
    """Tell the bytes moved from bounds on them, if the bounds leave no choice.

    What was asked for is taken where it lies between the bounds. Otherwise the
    bytes are the one multiple of the transfer size between them, if it is one.
    """
    if expected is not None and low <= expected <= high:
        return expected
    smallest = math.ceil(low / transfer) * transfer
    return smallest if smallest <= high < smallest + transfer else None


def parse_started(text: str) -> str | None:
    """Turn IOR's ``Sat Nov 21 03:01:33 2026`` into ISO 8601; None for anything else."""
    match = _CTIME.search(text)
    if match is None or match[1] not in _MONTHS:
        return None
    month = _MONTHS.index(match[1]) + 1
    return f"{match[4]}-{month:02d}-{int(match[2]):02d}T{match[3]}"
