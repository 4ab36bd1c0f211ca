"""Extracts from accounting. The fixture is the output of Slurm 22.05.8, slurmdbd and MariaDB.

    sacct --allusers --parsable2 --starttime=now-1hour \\
        --format=JobID,User,JobName,Submit,Start,End,NNodes,NTasks,Timelimit,State
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ioncast.worth.queued_jobs import QueuedJob
from ioncast.worth.sacct import Extract, LeftOut, read_extract
from ioncast_base.errors import InputError

GENUINE = Path(__file__).parent / "fixtures" / "sacct.txt"
HEADER = "JobID|User|JobName|Submit|Start|End|NNodes|Timelimit|State"


def read(folder: Path, *lines: str) -> Extract:
    file = folder / "queue.txt"
    file.write_text("\n".join(lines) + "\n")
    return read_extract(file)


def a_line(**told: str) -> str:
    values = {
        "JobID": "7",
        "User": "ann",
        "JobName": "app",
        "Submit": "2026-03-01T10:00:00",
        "Start": "2026-03-01T10:05:00",
        "End": "2026-03-01T11:05:00",
        "NNodes": "4",
        "Timelimit": "02:00:00",
        "State": "COMPLETED",
    }
    return "|".join((values | told).values())


def the_job(folder: Path, **told: str) -> QueuedJob:
    [job] = read(folder, HEADER, a_line(**told)).jobs
    return job


def test_a_genuine_extract_is_read() -> None:
    found = read_extract(GENUINE)
    # 16 lines are jobs: 7 and 17 were still running, and 9 was cancelled in the queue.
    assert dict(found.left_out) == {LeftOut.NOT_ENDED: 2, LeftOut.NO_TIME: 1}
    by_name = {job.application: job for job in found.jobs}
    assert [job.application for job in found.jobs].count("root render") == 4
    assert [job.application for job in found.jobs].count("root het") == 2
    assert len(found.jobs) == 16 - 3
    climate = by_name["root climate"]
    assert (climate.run_s, climate.limit_s, climate.nodes) == (4, 180, 4)
    assert by_name["nobody checkpoint"].nodes == 2
    # The partition's limit, because the job has no limit of its own.
    assert by_name["root no limit"].limit_s == 600
    # A job that is cancelled after its start did run.
    assert by_name["root stopped"].run_s == 4


def test_a_name_with_the_separator_of_columns_is_read() -> None:
    found = read_extract(GENUINE)
    [odd] = [job for job in found.jobs if job.application == "root a|b"]
    assert (odd.run_s, odd.limit_s, odd.nodes) == (1, 300, 1)


def test_jobs_are_in_the_order_of_their_submission() -> None:
    submits = [job.submit_s for job in read_extract(GENUINE).jobs]
    assert submits == sorted(submits)


def test_submission_run_time_limit_and_nodes_are_read(tmp_path: Path) -> None:
    job = the_job(tmp_path)
    assert (job.run_s, job.limit_s, job.nodes, job.application) == (3600, 7200, 4, "ann app")
    assert job.curve is None
    assert job.bytes is None


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [
        ("1-12:00:00", 129_600),
        ("00:01:30", 90),
        # The limit of a job without one is its run time, an hour.
        ("UNLIMITED", 3600),
        ("Partition_Limit", 3600),
        ("", 3600),
    ],
)
def test_limits_are_read_as_sacct_writes_them(tmp_path: Path, limit: str, seconds: float) -> None:
    assert the_job(tmp_path, Timelimit=limit).limit_s == seconds


def test_times_in_seconds_and_shortened_numbers_are_read(tmp_path: Path) -> None:
    # SLURM_TIME_FORMAT=%s; 1,536 nodes.
    job = the_job(tmp_path, Submit="100", Start="160", End="260", NNodes="1.50K")
    assert (job.submit_s, job.run_s, job.nodes) == (100, 100, 1536)


def test_the_trailing_separator_of_parsable_is_not_a_column(tmp_path: Path) -> None:
    [job] = read(tmp_path, f"{HEADER}|", f"{a_line(JobName='a|b')}|").jobs
    assert job.application == "ann a|b"


def test_columns_may_be_in_any_order_and_case(tmp_path: Path) -> None:
    [job] = read(
        tmp_path,
        "nnodes|end|START|submit|jobid",
        "2|2026-03-01T11:00:00|2026-03-01T10:00:00|2026-03-01T10:00:00|1",
    ).jobs
    assert (job.nodes, job.run_s, job.limit_s) == (2, 3600, 3600)


def test_a_csv_may_have_curve_and_bytes(tmp_path: Path) -> None:
    [known, unknown] = read(
        tmp_path,
        "JobID,JobName,Submit,Start,End,NNodes,Curve,Bytes",
        '1,"a, b",100,100,200,4,w-fpp-contig-1m,1.5e9',
        "2,c,100,100,200,4,,",
    ).jobs
    assert (known.curve, known.bytes, known.application) == ("w-fpp-contig-1m", 1.5e9, " a, b")
    assert (unknown.curve, unknown.bytes) == (None, None)


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"Start": "Unknown", "End": "Unknown", "State": "PENDING"}, LeftOut.NOT_STARTED),
        ({"Start": "None"}, LeftOut.NOT_STARTED),
        ({"End": "Unknown", "State": "RUNNING"}, LeftOut.NOT_ENDED),
        ({"Start": "2026-03-01T11:05:00", "State": "CANCELLED by 0"}, LeftOut.NO_TIME),
    ],
)
def test_jobs_that_did_not_run_are_left_out_and_counted(
    tmp_path: Path, told: dict[str, str], reason: LeftOut
) -> None:
    found = read(tmp_path, HEADER, a_line(), a_line(**told))
    assert len(found.jobs) == 1
    assert dict(found.left_out) == {reason: 1}


def test_steps_are_not_jobs(tmp_path: Path) -> None:
    steps = [a_line(JobID=step) for step in ("7.batch", "7.extern", "7.0", "7_1.0", "7+1.batch")]
    found = read(tmp_path, HEADER, a_line(), *steps)
    assert len(found.jobs) == 1
    assert not found.left_out


def test_a_line_cut_short_is_left_out_and_counted(tmp_path: Path) -> None:
    found = read(tmp_path, HEADER, a_line(), a_line()[:40])
    assert dict(found.left_out) == {LeftOut.CUT_SHORT: 1}


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ((), "missing columns: JobID, Submit, Start, End, NNodes; make it with `sacct "),
        (("hello",), "missing columns: JobID, Submit, Start, End, NNodes; make it with `sacct "),
        (("JobID|Submit|Start|NNodes", "1|2|3|4"), "missing columns: End; make it with `sacct "),
        ((HEADER,), "no job in it ran"),
        ((HEADER, a_line(End="Unknown")), "no job in it ran: jobs that have not ended (1)"),
        ((HEADER, a_line(NNodes="x")), "NNodes: 'x' is not a number of nodes"),
        ((HEADER, a_line(NNodes="9" * 400)), "is not a number of nodes"),
        ((HEADER, a_line(NNodes="0")), "NNodes: '0' is not a number of nodes"),
        (("JobID,Submit,Start,End,NNodes", "1" * 200_000), "field larger than field limit"),
        (
            (HEADER, a_line(Timelimit="soon")),
            "Timelimit: 'soon' is not a duration such as 1-12:00:00",
        ),
    ],
)
def test_an_unusable_file_is_an_error_of_one_line(
    tmp_path: Path, lines: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(InputError) as refused:
        read(tmp_path, *lines)
    assert complaint in str(refused.value)
    assert "queue.txt" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("bytes_", ["many", "-1", "nan", "inf"])
def test_impossible_bytes_are_rejected_with_their_line(tmp_path: Path, bytes_: str) -> None:
    with pytest.raises(InputError, match="Bytes") as refused:
        read(tmp_path, "JobID,Submit,Start,End,NNodes,Bytes", f"1,1,1,2,1,{bytes_}")
    assert "queue.txt:2: " in str(refused.value)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_extract(tmp_path / "none.txt")
