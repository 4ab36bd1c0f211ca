"""The checks on processes, traces and servers of genuine logs whose programs are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from ioncast.insights.checks.registry import run_checks
from ioncast.insights.checks.values import Case, Checked, Finding
from summario.reading.log import read_log
from tests.support.checking import check_log, facts_in

PROCESS_CHECKS = {"P17", "P18", "P19", "P21", "P22", "D01", "D02", "D03", "I05", "I07"}
# Every process does the same, by the commands in the manifests.
BALANCED = (
    *(
        f"runs/logs/{name}{suffix}.darshan"
        for name in ("single-a", "single-a-fsync", "single-a-read", "single-b", "random-write")
        for suffix in ("", "-dxt")
    ),
    *(
        f"runs/logs/{name}{suffix}.darshan"
        for name in ("wr-shared", "mpiio-indep-contig", "mpiio-indep-strided")
        for suffix in ("", "-dxt")
    ),
    *(f"runs/logs/{name}.darshan" for name in ("periodic-a", "periodic-b", "stdio-fpp")),
    *(f"runs/logs/hacc-posix-fpp-64x100k{suffix}.darshan" for suffix in ("", "-dxt")),
    *(
        f"live/{name}.darshan"
        for name in ("fsync-each", "fsync-each-fpp", "mpiio-random", "posix-read", "multi-rep")
    ),
)
COLLECTIVE = [("mpiio-coll-contig", "INFO"), ("mpiio-coll-strided", "WARN")]
AGGREGATED = ("mpiio-coll-strided-cb1", "mpiio-coll-contig-cb4", "mpiio-coll-strided-read-cb4")


def checked(shared_data: Path, log: str) -> Checked:
    return check_log(shared_data / log)


def findings(shared_data: Path, log: str) -> dict[str, Finding]:
    return {each.check.code: each.finding for each in checked(shared_data, log).findings}


@pytest.mark.parametrize("log", BALANCED)
def test_balanced_programs_are_clean(shared_data: Path, log: str) -> None:
    assert not PROCESS_CHECKS & findings(shared_data, log).keys()


@pytest.mark.parametrize("suffix", ["", "-dxt"])
def test_a_program_with_one_busy_process_is_told_so(shared_data: Path, suffix: str) -> None:
    found = findings(shared_data, f"runs/logs/rank0-only{suffix}.darshan")
    assert found["D01"].variant == "writes_alone"
    assert found["D02"].ranks == (0,)


@pytest.mark.parametrize("suffix", ["", "-dxt"])
def test_a_program_whose_ranks_write_more_and_more_is_unbalanced(
    shared_data: Path, suffix: str
) -> None:
    """Rank r of 24 writes r MiB: the mean is 11.5, the standard deviation 6.9."""
    found = findings(shared_data, f"runs/logs/imbalance-shared{suffix}.darshan")
    assert "D01" not in found
    assert found["D02"].ranks[:3] == (23, 22, 21)
    assert set(found["D02"].ranks) <= {19, 20, 21, 22, 23}
    assert (found["P21"].numbers["most_bytes"], found["P21"].numbers["fewest_bytes"]) == (
        23 << 20,
        1 << 20,
    )


def test_the_header_of_hacc_io_is_on_rank_0(shared_data: Path) -> None:
    """It has 24 MiB, and each of 8 processes writes 3.6 MiB."""
    found = findings(shared_data, "runs/logs/hacc-mpiio-ssf-8x100k.darshan")
    assert found["D01"].numbers["factor"] == pytest.approx((25_165_824 + 3_800_000) / 3_800_000)
    assert found["P18"].numbers["slowest_bytes"] == 3_800_000


@pytest.mark.parametrize(("name", "level"), COLLECTIVE)
@pytest.mark.parametrize("suffix", ["", "-dxt"])
def test_collective_calls_without_collective_buffering_ran_alone(
    shared_data: Path, name: str, level: str, suffix: str
) -> None:
    """ROMIO leaves it out where the requests of the processes do not interleave.

    That is right for contiguous requests of 1 MiB. Those of 256 KiB lie in turn.
    """
    found = findings(shared_data, f"runs/logs/{name}{suffix}.darshan")
    assert (found["I07"].numbers["share"], found["I07"].level) == (1, level)
    assert not {"M08", "M09", "M10"} & found.keys()


@pytest.mark.parametrize("name", AGGREGATED)
@pytest.mark.parametrize("suffix", ["", "-dxt"])
def test_collective_calls_with_aggregators_did_not(
    shared_data: Path, name: str, suffix: str
) -> None:
    assert "I07" not in findings(shared_data, f"runs/logs/{name}{suffix}.darshan")


def test_aggregators_that_change_regions_with_gaps_are_no_data_sieving(shared_data: Path) -> None:
    """16 processes write contiguous parts with romio_cb_write=enable: 3.3 GB for 256 MiB."""
    found = findings(shared_data, "runs/logs/mpiio-coll-contig-cb4.darshan")
    assert found["P09"].variant == "buffering_of_writes"
    assert found["P10"].variant == "buffering"


@pytest.mark.parametrize(
    ("name", "code", "aggregators"),
    [("strided-cb1", "M10", 1), ("contig-cb4", None, 4), ("strided-read-cb4", None, 4)],
)
def test_aggregators_are_those_of_the_hint_cb_nodes(
    shared_data: Path, name: str, code: str | None, aggregators: int
) -> None:
    """16 processes on one node, which a trace names: no traffic between nodes can be saved."""
    path = shared_data / f"runs/logs/mpiio-coll-{name}-dxt.darshan"
    case = Case(facts_in(path))
    assert case.aggregators is not None
    assert len(case.aggregators.rank) == aggregators
    found = {each.check.code for each in run_checks(case).findings}
    assert {"M08", "M09", "M10"} & found == ({code} - {None})
    unknown = checked(shared_data, f"runs/logs/mpiio-coll-{name}.darshan").unknown
    assert unknown["M09"] == "the number of compute nodes is not known"


def test_aggregators_of_e3sm_are_in_its_heat_map(shared_data: Path) -> None:
    """512 processes on 8 nodes of Theta, whose file system has 56 OSTs: one for each."""
    log = "darshan-logs/e3sm_io_heatmaps_and_dxt/e3sm_io_heatmap_only.darshan"
    assert findings(shared_data, log)["M09"].numbers == {"aggregators": 56, "nodes": 8}


def test_a_balanced_file_of_mpiio_on_one_ost(shared_data: Path) -> None:
    """Its README: MPI-IO is balanced, POSIX is not, because the file is on one server only."""
    path = shared_data / "darshan-logs/imbalanced_io/imbalanced-io.darshan"
    found = findings(shared_data, str(path))
    name = read_log(path, modules=()).names[15708535418621378501]
    assert name in [file.path for file in found["I03"].files]
    assert found["P18"].variant == "below"
    assert [file.path for file in found["P18"].files] == [name]
    assert "D02" not in found


def test_a_trace_with_missing_requests_tells_no_phases(shared_data: Path) -> None:
    unknown = checked(shared_data, "darshan-logs/partial_data_dxt/partial_data_dxt.darshan").unknown
    assert {"D03", "I05"} <= unknown.keys()
