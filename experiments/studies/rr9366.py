"""The results of Inria RR-9366, to show beside the results of a study.

The report's Tables 2, 5 and 7 list the phases of its applications, Tables 3, 6 and 8 the errors of
the benchmarks, and Table 9 single runs of HACC-IO. Figures 2 to 6 show the bandwidths.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ReportedPhase:
    """A row of Tables 2, 5 and 7; for a periodic application the first phase.

    `time` is the I/O time. `start`, `end` and `time` are in seconds. The names are those of
    `summario.phases.tables.to_record`.
    """

    start: float
    end: float
    bytes: int
    time: float
    requests: int
    spatiality: str
    files: str
    n_files: int
    mode_processes: int
    type: str = "write"
    rank: str = "all"
    api: str = "POSIX"


@dataclass(frozen=True)
class ReportedErrors:
    """A row of Tables 3, 6 and 8: |Bw - Ba| / Ba for each run Ba and the mean Bw of a benchmark.

    `benchmark` names the benchmark if there are several.
    """

    minimum: float
    mean: float
    median: float
    maximum: float
    benchmark: str = "benchmark"


@dataclass(frozen=True)
class ReportedApplication:
    """An application of the report, with the places of its results.

    Attributes
    ----------
    name : str
        Name as the report spells it.
    nodes, processes : int
        Number of compute nodes and of processes.
    phase : ReportedPhase
        The only phase, or the first of `n_phases`.
    errors : tuple of ReportedErrors
        Errors of one benchmark or several.
    phases_table, errors_table, figure : int
        Numbers of its tables and its figure in the report.
    """

    name: str
    nodes: int
    processes: int
    phase: ReportedPhase
    errors: tuple[ReportedErrors, ...]
    phases_table: int
    errors_table: int
    figure: int
    n_phases: int = 1


SINGLE_A = ReportedApplication(
    name="SINGLE-A",
    nodes=16,
    processes=128,
    phase=ReportedPhase(
        start=0.026459,
        end=71.625603,
        bytes=17179869184,
        time=47.51776984375,
        requests=8192,
        spatiality="contiguous",
        files="shared",
        n_files=1,
        mode_processes=128,
    ),
    errors=(ReportedErrors(0.1, 0.25, 0.26, 0.45),),
    phases_table=2,
    errors_table=3,
    figure=2,
)

SINGLE_B = ReportedApplication(
    name="SINGLE-B",
    nodes=64,
    processes=512,
    phase=ReportedPhase(
        start=0.064315,
        end=99.164715,
        bytes=34359738368,
        time=99.092545,
        requests=8192,
        spatiality="contiguous",
        files="unique",
        n_files=512,
        mode_processes=1,
    ),
    errors=(ReportedErrors(0.0, 0.14, 0.16, 0.33),),
    phases_table=2,
    errors_table=3,
    figure=3,
)

PERIODIC_A = ReportedApplication(
    name="PERIODIC-A",
    nodes=24,
    processes=24,
    phase=ReportedPhase(
        start=10.031531,
        end=24.02671,
        bytes=3221225472,
        time=11.1388105416667,
        requests=6144,
        spatiality="sequential",
        files="shared",
        n_files=1,
        mode_processes=24,
    ),
    errors=(ReportedErrors(0.1, 0.2, 0.16, 0.44),),
    phases_table=5,
    errors_table=6,
    figure=4,
    n_phases=8,
)

PERIODIC_B = ReportedApplication(
    name="PERIODIC-B",
    nodes=24,
    processes=24,
    phase=ReportedPhase(
        start=10.030157,
        end=20.391011,
        bytes=3221225472,
        time=10.334366,
        requests=786432,
        spatiality="contiguous",
        files="unique",
        n_files=24,
        mode_processes=1,
    ),
    errors=(ReportedErrors(0.0, 0.2, 0.2, 0.98),),
    phases_table=5,
    errors_table=6,
    figure=5,
    n_phases=8,
)

HACC_IO = ReportedApplication(
    name="HACC-IO",
    nodes=8,
    processes=64,
    phase=ReportedPhase(
        start=0.032241,
        end=2.386244,
        bytes=1853812736,
        time=2.337255,
        requests=640,
        spatiality="contiguous",
        files="unique",
        n_files=64,
        mode_processes=1,
    ),
    errors=(
        ReportedErrors(0.1, 0.22, 0.12, 0.99, "10 requests of 3 MB"),
        ReportedErrors(0.1, 7.77, 0.15, 61.47, "1 request of 24 MB"),
    ),
    phases_table=7,
    errors_table=8,
    figure=6,
)

APPLICATIONS = (SINGLE_A, SINGLE_B, PERIODIC_A, PERIODIC_B, HACC_IO)

TABLE_9_MIB_S: Mapping[str, tuple[float, ...]] = {
    "HACC-IO": (488.3, 526.2, 331.5, 41971.4, 409.7),
    "benchmark": (370.1, 287.1, 52145.5, 50370.5, 383.0),
}
"""Bandwidth of each run with direct access.

The report writes MB/s, as HACC-IO prints it. HACC-IO's MB, like IOR's, have 2**20 bytes.
"""


def reported(application: str) -> ReportedApplication | None:
    """The report's results for an application of a study; None if the report does not have it."""
    return next((one for one in APPLICATIONS if one.name.lower() == application), None)
