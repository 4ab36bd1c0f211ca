"""Order, aggregators and fsync of genuine runs, as the commands of IOR say."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ior_configs import IorConfig
from summario.phases.extract import extract_phases
from summario.phases.values import Phase
from summario.reading.log import read_log

IOR = Path(__file__).parents[1] / "fixtures" / "ior"
# Two aggregators, and each of them goes back in every second call; requests that a view spreads.
NOT_TOLD = {
    "write-segments-cb2",
    "write-strided-view-interleaved-cb2-dxt",
    "write-independent-strided-view",
    "blocks-4-cb2",
}


def manifest(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def phases_of(path: Path) -> list[Phase]:
    phases = extract_phases(read_log(path))
    assert phases
    return phases


@pytest.fixture(params=manifest(IOR / "manifest.csv"), ids=lambda run: run["name"])
def run(request: pytest.FixtureRequest) -> dict[str, str]:
    return request.param


def test_the_order_is_that_of_the_command_or_not_known(run: Mapping[str, str]) -> None:
    expected = None if run["name"] in NOT_TOLD else run["order"]
    found = {phase.order for phase in phases_of(IOR / f"{run['name']}.darshan")}
    assert found == {expected}


def test_fsync_is_that_of_the_command_and_reads_have_none(run: Mapping[str, str]) -> None:
    for phase in phases_of(IOR / f"{run['name']}.darshan"):
        assert phase.fsync == (run["fsync"] if phase.operation == "write" else "none")


def test_the_aggregators_are_those_that_romio_was_told(run: Mapping[str, str]) -> None:
    hints = dict(hint.split("=") for hint in run["hints"].split(";") if hint)
    expected = int(hints.get("cb_nodes", run["processes"])) if " -c " in run["command"] else None
    found = {phase.aggregators for phase in phases_of(IOR / f"{run['name']}.darshan")}
    assert found == {expected}


def test_blocks_are_those_of_the_command_or_not_known(run: Mapping[str, str]) -> None:
    """Two-phase I/O of a block for each process does not tell blocks of many requests.

    Darshan does not tell whether a process goes on where it was when it opens a file again.
    """
    config = IorConfig.from_command_line(run["command"])
    expected = config.requests_per_block or config.requests_per_process
    again = config.repetitions if not config.multi_file else 1
    for phase in phases_of(IOR / f"{run['name']}.darshan"):
        if phase.block_requests is None:
            assert phase.order is None or " -c " in run["command"]
        elif not config.random_offsets:
            assert round(phase.block_requests) in {expected, expected * again}


def orders_of(command: str) -> str:
    """The order of a command whose segments have one transfer each, if it has segments."""
    if " -z" in command:
        return "random"
    return "sequential" if " -s " in command else "contiguous"


def fsync_of(command: str) -> str:
    if " -Y" in command:
        return "each"
    return "end" if " -e" in command else "none"


def test_every_command_of_the_live_runs_comes_back(shared_data: Path) -> None:
    for run in manifest(shared_data / "live" / "manifest.csv"):
        for phase in phases_of(shared_data / "live" / f"{run['name']}.darshan"):
            fsync = fsync_of(run["command"]) if phase.operation == "write" else "none"
            expected = (orders_of(run["command"]), fsync)
            assert (phase.order, phase.fsync) == expected, run["name"]
            assert (phase.aggregators is not None) == (" -c " in run["command"]), run["name"]


def test_the_order_of_mpi_io_is_the_layout_of_the_runs(shared_data: Path) -> None:
    layouts = {"contiguous": "contiguous", "1d-strided": "sequential"}
    for run in manifest(shared_data / "runs" / "manifest.csv"):
        if run["api"] == "MPIIO":
            [phase] = phases_of(shared_data / "runs" / run["log"])
            assert phase.order == layouts[run["layout"]], run["name"]
            assert phase.fsync == "none", run["name"]


@pytest.mark.parametrize(
    ("name", "aggregators"),
    [
        ("mpiio-coll-contig", 16),
        ("mpiio-coll-strided-cb1", 1),
        ("mpiio-coll-contig-cb4", 4),
        ("mpiio-coll-strided-read-cb4", 4),
        ("mpiio-indep-contig", None),
    ],
)
@pytest.mark.parametrize("dxt", ["", "-dxt"])
def test_the_aggregators_are_those_of_the_runs(
    name: str, dxt: str, aggregators: int | None, shared_data: Path
) -> None:
    [phase] = phases_of(shared_data / "runs" / "logs" / f"{name}{dxt}.darshan")
    assert phase.aggregators == aggregators
