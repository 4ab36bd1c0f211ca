"""Readers of IOR's two kinds of CSV: results of a run, and results of each rank."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ioncast_base.errors import InputError, Remedy
from ioncast_base.sizes import parse_count
from ioncast_base.wording import counted
from ior_configs.config import IorConfig
from ior_configs.outputs import reader
from ior_configs.results import (
    IorResult,
    PrintedRow,
    UnfinishedRunError,
    expected_bytes,
    read_number,
    results_of,
)

_MIB = 1 << 20
_PRECISION = 1e-9
_RESULT_COLUMNS = frozenset({"bw(MiB/s)", "block(KiB)", "xfer(KiB)", "total(s)", "iter"})
# IOR of autumn 2020 to spring 2021 does not print this column.
_TASKS = "numTasks"
_RANK_COLUMNS = frozenset({"rank", "runtime-with-openclose", "throughput-withopenclose"})
_SCIENTIFIC = re.compile(r"[0-9]\.[0-9]{1,20}e[+-][0-9]{2}")


@reader("ior-csv")
def read_csv(lines: Iterable[str], given: IorConfig | None) -> list[IorResult]:
    """Read the CSV of ``-O summaryFormat=CSV``, which has no option but sizes and mostly tasks."""
    asked = _needed(given)
    config, rows = asked, list[PrintedRow]()
    for cells in _cells(lines, _RESULT_COLUMNS):
        if not rows:
            config = replace(asked, tasks=_tasks(cells, asked))
        _check_sizes(cells, config)
        rows.append(
            PrintedRow(
                operation=cells["access"],
                repetition=parse_count(cells["iter"]),
                bandwidth=cells["bw(MiB/s)"],
                time=cells["total(s)"],
            )
        )
    if not rows:
        raise _no_line()
    return results_of(config, rows, version=None, command=None)


@reader("ior-rank-csv")
def read_rank_csv(lines: Iterable[str], given: IorConfig | None) -> list[IorResult]:
    """Read the CSV of ``-O saveRankPerformanceDetailsCSV=``; all ranks and their bytes are needed.

    The bandwidth is the bytes of all ranks over the time of the slowest rank, with opening and
    closing.
    """
    asked = _needed(given)
    seen: Counter[str] = Counter()
    results = []
    for operation, ranks in _repetitions(_cells(lines, _RANK_COLUMNS)):
        results.append(_rank_result(asked, operation, seen[operation], ranks))
        seen[operation] += 1
    if not results:
        raise _no_line()
    return results


@dataclass(frozen=True)
class _Rank:
    """The bytes and the time of one rank in one operation."""

    number: int
    bytes: float
    time_s: float


def _needed(given: IorConfig | None) -> IorConfig:
    if given is None:
        raise InputError(
            "IOR's CSV does not contain the configuration",
            remedy=Remedy('give the command line with {} "ior ..."', ("command",)),
        )
    return given


def _no_line() -> InputError:
    return UnfinishedRunError(
        "there is no line of results", remedy="the run may have failed: repeat it"
    )


def _cells(lines: Iterable[str], needed: frozenset[str]) -> Iterator[dict[str, str]]:
    """Yield the result lines by column; skip the header and messages that IOR prints among them."""
    columns: list[str] = []
    for line in lines:
        words = [word.strip() for word in line.split(",")]
        if words[0] == "access":
            columns = words
            if not needed <= set(columns):
                raise InputError(
                    "columns that IOR prints are missing", remedy="give the whole file"
                )
        elif words[0] in {"write", "read"}:
            if len(words) != len(columns):
                raise InputError(
                    f"a {words[0]} line is cut off", remedy="the run may have failed: repeat it"
                )
            yield dict(zip(columns, words, strict=True))


def _check_sizes(row: Mapping[str, str], config: IorConfig) -> None:
    sizes = {"block(KiB)": config.block_size, "xfer(KiB)": config.transfer_size}
    for column, size in sizes.items():
        printed = read_number(row[column])
        if printed is None or abs(printed.value - size / 1024) > printed.half_unit:
            raise InputError(
                f"{column} is {row[column]} but the command line says {size} bytes",
                remedy=Remedy("give the command line of this run with {}", ("command",)),
            )
    if _tasks(row, config) != config.tasks:
        raise InputError("the number of tasks changes within the file")


def _tasks(row: Mapping[str, str], asked: IorConfig) -> int:
    if _TASKS in row:
        return parse_count(row[_TASKS])
    if asked.tasks is None:
        raise InputError(
            "this CSV does not contain the number of tasks",
            remedy=Remedy(
                'give it with {}, or in {} "mpiexec -n TASKS ior ..."', ("tasks", "command")
            ),
        )
    return asked.tasks


def _repetitions(
    cells: Iterable[Mapping[str, str]],
) -> Iterator[tuple[str, Sequence[_Rank]]]:
    """Group lines by repetition: it ends when the operation changes or a rank is repeated."""
    operation, ranks = "", dict[int, _Rank]()
    for row in cells:
        rank = _rank(row)
        if ranks and (row["access"] != operation or rank.number in ranks):
            yield operation, list(ranks.values())
            ranks = {}
        operation = row["access"]
        ranks[rank.number] = rank
    if ranks:
        yield operation, list(ranks.values())


def _rank(row: Mapping[str, str]) -> _Rank:
    throughput, time = row["throughput-withopenclose"], row["runtime-with-openclose"]
    number = parse_count(row["rank"])
    if not (_SCIENTIFIC.fullmatch(throughput) and _SCIENTIFIC.fullmatch(time)):
        raise InputError(f"rank {number} has no usable time or throughput")
    return _Rank(number, float(throughput) * float(time), float(time))


def _rank_result(
    asked: IorConfig, operation: str, repetition: int, ranks: Sequence[_Rank]
) -> IorResult:
    if {rank.number for rank in ranks} != set(range(len(ranks))):
        raise InputError("lines of some ranks are missing", remedy="give the whole file")
    if asked.tasks is not None and asked.tasks != len(ranks):
        raise InputError(
            f"the file has {counted(len(ranks), 'rank')}, but the command line says"
            f" {counted(asked.tasks, 'task')}"
        )
    config = replace(asked, tasks=len(ranks))
    slowest = max(rank.time_s for rank in ranks)
    moved = sum(_whole_transfers(rank, config.transfer_size) for rank in ranks)
    if not moved or not slowest:
        raise InputError(f"the {operation} of repetition {repetition} moved nothing")
    return IorResult(
        config=config,
        operation=operation,
        repetition=repetition,
        bandwidth_mib_s=moved / slowest / _MIB,
        bytes=moved,
        time_s=slowest,
        stonewalled=moved != expected_bytes(config),
    )


def _whole_transfers(rank: _Rank, transfer_size: int) -> int:
    """Compute the bytes of a rank; IOR prints eleven digits, enough for the exact number."""
    whole = round(rank.bytes / transfer_size) * transfer_size
    if abs(rank.bytes - whole) > max(1.0, rank.bytes * _PRECISION):
        raise InputError(
            f"rank {rank.number} did not move whole transfers of {transfer_size} bytes",
            remedy=Remedy("give the command line of this run with {}", ("command",)),
        )
    return whole
