"""Rules that tell which logs belong to one run."""

import dataclasses
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.applications.darshan_writer import write_log
from summario.reading.job import DarshanJob
from summario.reading.log import read_log
from summario.runs.joining import Join, runs_among
from summario.runs.logs_of_run import run_of

ONE_JOB = Path(__file__).parents[1] / "fixtures" / "programs"
JOINS: tuple[Join, ...] = ("steps", "job")
DAY = 86_400.0


def job(start: float, end: float, **different: object) -> DarshanJob:
    return dataclasses.replace(DarshanJob(7, 1000, 1, start, end, "app"), **different)


def grouped(*jobs: DarshanJob, join: Join = "steps") -> list[list[int]]:
    return runs_among(jobs, join)


@pytest.mark.parametrize("join", JOINS)
def test_the_18_logs_of_dlios_processes_are_one_run(shared_data: Path, join: Join) -> None:
    folder = shared_data / "darshan-logs" / "dlio_logs"
    jobs = [read_log(path).job for path in sorted(folder.glob("*.darshan"))]
    [run] = runs_among(jobs, join)
    assert sorted(run) == list(range(18))
    # The two processes that mpiexec started are the first ones.
    assert {jobs[place].executable.split()[1].rpartition("/")[2] for place in run[:2]} == {
        "dlio_benchmark"
    }


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize(("method", "processes"), [("fork", 4), ("spawn", 5)])
def test_processes_of_python_are_one_run(join: Join, method: str, processes: int) -> None:
    logs = [read_log(path) for path in sorted(ONE_JOB.glob(f"{method}-workers-*.darshan"))]
    [run] = runs_among([log.job for log in logs], join)
    assert len(run) == processes
    assert run_of([logs[place] for place in run]).nprocs == processes


def test_logs_of_two_jobs_are_two_runs() -> None:
    paths = sorted(ONE_JOB.glob("*-workers-*.darshan"))
    assert runs_among([read_log(path).job for path in paths], "job") == [
        [0, 1, 2, 3],
        [4, 6, 5, 7, 8],
    ]


@pytest.mark.parametrize("different", [{"id": 8}, {"uid": 1001}])
@pytest.mark.parametrize("join", JOINS)
def test_another_job_or_user_is_another_run(join: Join, different: dict[str, int]) -> None:
    assert grouped(job(0, 10), job(0, 10, **different), join=join) == [[0], [1]]


def test_programs_one_after_the_other_are_steps_of_one_job() -> None:
    steps = [job(0, 10), job(10.5, 20), job(10.6, 30)]
    assert grouped(*steps) == [[0], [1, 2]]
    assert grouped(*steps, join="job") == [[0, 1, 2]]


def test_processes_that_overlap_only_with_their_parent_are_one_run() -> None:
    assert grouped(job(1, 2), job(3, 4), job(0, 10)) == [[2, 0, 1]]


def test_a_program_that_starts_in_the_second_in_which_another_ends_comes_after_it() -> None:
    assert grouped(job(100, 105), job(105, 110)) == [[0], [1]]


def test_programs_that_start_and_end_in_the_same_second_are_one_run() -> None:
    assert grouped(job(100, 100), job(100, 100), job(101, 101)) == [[0, 1], [2]]


def test_an_end_before_the_start_is_ignored() -> None:
    assert grouped(job(100, 0), job(100, 110), job(105, 0)) == [[0, 1, 2]]


def test_an_id_that_was_used_again_after_weeks_is_another_job() -> None:
    assert grouped(job(0, 10), job(8 * DAY, 9 * DAY), join="job") == [[0], [1]]
    assert grouped(job(0, 10), job(6 * DAY, 7 * DAY), join="job") == [[0, 1]]


@pytest.mark.parametrize("join", JOINS)
def test_impossible_times_join_nothing(join: Join) -> None:
    assert grouped(job(0, 2.0**62), job(2.0**61, 2.0**62), job(5, 9), join=join) == [[0, 2], [1]]


def on(*mounts: str) -> dict[str, str]:
    return {"mount_table": "\n".join(mounts)}


@pytest.mark.parametrize("join", JOINS)
def test_logs_of_different_parallel_file_systems_are_of_different_systems(join: Join) -> None:
    here, there = on("lustre\t/scratch", "ext4\t/"), on("gpfs\t/gpfs/work", "ext4\t/")
    jobs = [job(0, 10, **here), job(1, 9, **there), job(2, 8, **here), job(3, 7, **there)]
    assert grouped(*jobs, join=join) == [[0, 2], [1, 3]]


@pytest.mark.parametrize(
    "mounts", [on(), on("ext4\t/"), on("gpfs\t/home", "lustre\t/scratch"), on("lustre")]
)
def test_logs_that_may_be_of_one_system_are_one_run(mounts: dict[str, str]) -> None:
    assert grouped(job(0, 10, **on("lustre\t/scratch")), job(1, 9, **mounts)) == [[0, 1]]


def test_file_systems_are_read_from_the_log(tmp_path: Path) -> None:
    mounts = [("/scratch", "lustre"), ("/", "ext4")]
    path = write_log(tmp_path / "a.darshan", nprocs=1, mounts=mounts)
    assert sorted(read_log(path).job.mounts()) == sorted(mounts)


times = st.tuples(st.integers(0, 20), st.integers(0, 20))


def sets(runs: Sequence[Sequence[int]], names: Sequence[int]) -> set[frozenset[int]]:
    return {frozenset(names[place] for place in run) for run in runs}


@given(st.lists(times, max_size=12), st.randoms())
def test_the_order_of_logs_does_not_matter_and_each_is_in_one_run(
    spans: list[tuple[int, int]], chance: random.Random
) -> None:
    jobs = [job(start, end) for start, end in spans]
    order = list(range(len(jobs)))
    chance.shuffle(order)
    for join in JOINS:
        runs = runs_among(jobs, join)
        assert sorted(place for run in runs for place in run) == list(range(len(jobs)))
        shuffled = runs_among([jobs[place] for place in order], join)
        assert sets(runs, range(len(jobs))) == sets(shuffled, order)


@given(st.lists(times, max_size=12))
def test_logs_that_overlap_are_in_one_run(spans: list[tuple[int, int]]) -> None:
    jobs = [job(min(span), max(span)) for span in spans]
    run_of_log = {place: index for index, run in enumerate(grouped(*jobs)) for place in run}
    for a, one in enumerate(jobs):
        for b, other in enumerate(jobs):
            if max(one.start_seconds, other.start_seconds) < min(
                one.end_seconds, other.end_seconds
            ):
                assert run_of_log[a] == run_of_log[b]
