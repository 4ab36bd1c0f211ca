"""Slow I/O nodes: those on which jobs get less of their usual bandwidth than on the others."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from ioncast.diagnosis.normal import Bandwidths, Ints, normals_of
from ioncast.diagnosis.slow_servers import slow_of_units, units_of_jobs

_KIND = "ION"


@dataclass(frozen=True)
class NamedOutcome:
    """The bandwidth of a job, and the names of its I/O nodes.

    Attributes
    ----------
    id : int
        Its number, different from all others.
    variant : str
        The application with the kind of its I/O. Jobs are compared with others of the variant that
        have as many processes, compute nodes and I/O nodes, and about as many bytes.
    processes, nodes : int or None
        None if unknown.
    """

    id: int
    system: str
    job_id: str
    variant: str
    processes: int
    nodes: int | None
    io_nodes: int
    moved_bytes: int
    bandwidth_mib_s: float
    names: tuple[str, ...]


@dataclass(frozen=True)
class SlowIoNode:
    """An I/O node on which jobs get less of their usual bandwidth than on others."""

    system: str
    name: str
    jobs: Annotated[int, Field(description="Jobs that had it.")]
    elsewhere: Annotated[int, Field(description="Jobs that did not have it.")]
    ratio: Annotated[
        float,
        Field(
            description="The median of the jobs' bandwidths, each relative to its usual one,"
            " elsewhere by that on the I/O node."
        ),
    ]
    p: Annotated[
        float,
        Field(description="The probability that chance makes any of the I/O nodes as slow."),
    ]


def slow_io_nodes(outcomes: Sequence[NamedOutcome]) -> list[SlowIoNode]:
    """Name the slow I/O nodes of each system, the slowest first, by the rule of `slow_servers`.

    The usual bandwidth of a job is the median of at least five others (`ioncast.diagnosis.normal`).
    Jobs without a usual bandwidth do not count.
    """
    found: list[SlowIoNode] = []
    for system in dict.fromkeys(each.system for each in outcomes):
        found += _slow_on(system, [each for each in outcomes if each.system == system])
    return sorted(found, key=lambda each: (each.p, -each.ratio))


def _slow_on(system: str, outcomes: Sequence[NamedOutcome]) -> Iterator[SlowIoNode]:
    like = [(each.variant, each.processes, each.nodes, each.io_nodes) for each in outcomes]
    variant = _numbers(like)
    moved = np.array([each.moved_bytes for each in outcomes], float)
    order = np.lexsort((moved, variant))
    ordered = [outcomes[place] for place in order.tolist()]
    bandwidths = Bandwidths(
        variant=variant[order],
        job=_numbers([each.job_id for each in ordered]),
        moved_bytes=moved[order],
        log_mib_s=np.log([each.bandwidth_mib_s for each in ordered]),
    )
    names = [name for each in ordered for name in each.names]
    server = _numbers(names)
    run = np.repeat(np.arange(len(ordered)), [len(each.names) for each in ordered])
    value = -normals_of(bandwidths).log_ratio[run]
    # The bandwidth of a job is that of all its I/O nodes together.
    units = units_of_jobs(bandwidths, run, server, value, np.ones(len(run), bool))
    for each in slow_of_units(system, _KIND, units):
        numbers = each.here, each.elsewhere, each.ratio, each.p
        yield SlowIoNode(system, names[server.tolist().index(each.server)], *numbers)


def _numbers(values: Sequence[Hashable]) -> Ints:
    """Number the different values."""
    number: dict[Hashable, int] = {}
    return np.array([number.setdefault(value, len(number)) for value in values], np.int64)
