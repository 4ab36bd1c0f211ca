"""Commands with several logs of one run."""

import gzip
import json
import shutil
from pathlib import Path

import pytest

from experiments.applications.darshan_writer import Dxt, write_log
from summario.phases.many import FEW, extract_all, find_runs
from summario.reading.sources import find_sources
from tests.summario.phases.test_rules import MIB, posix
from tests.summario.test_phases_command import run
from tests.support.command import run_ioncast

FIXTURES = Path(__file__).parent / "fixtures"
ONE_JOB = FIXTURES / "programs"
FORKED = sorted(ONE_JOB.glob("fork-workers-*.darshan"))
SPAWNED = sorted(ONE_JOB.glob("spawn-workers-*.darshan"))


def steps(folder: Path, *spans: tuple[int, int], job: int = 7) -> list[Path]:
    """Logs of one job, each of which writes a file of 10 MiB in its first second."""
    return [
        write_log(
            folder / f"{job}-{number}.darshan",
            nprocs=1,
            records=[posix(f"/{job}/{number}", 0, 1)],
            jobid=job,
            start=(1_700_000_000 + start, 0),
            end=(1_700_000_000 + end, 0),
        )
        for number, (start, end) in enumerate(spans)
    ]


def phases(*args: str | Path) -> list[dict[str, object]]:
    done = run_ioncast("phases", *args, "--format", "json")
    assert done.returncode == 0
    found: list[dict[str, object]] = json.loads(done.stdout)
    return found


def test_logs_are_listed_apart_with_a_hint() -> None:
    done = run_ioncast("phases", *FORKED, "--format", "json")
    assert done.returncode == 0
    assert {record["log"] for record in json.loads(done.stdout)} == set(map(str, FORKED))
    assert done.stderr == (
        "ioncast: hint: 4 logs belong to one run (job id 4711): --join steps joins such logs\n"
    )


def test_steps_of_a_job_have_a_hint_of_their_own(tmp_path: Path) -> None:
    done = run_ioncast("phases", *steps(tmp_path, (0, 10), (20, 30), (40, 50)))
    assert done.stderr == (
        "ioncast: hint: 3 logs belong to one job (job id 7): --join job joins such logs\n"
    )


def test_without_logs_of_one_job_and_with_copies_there_is_no_hint(tmp_path: Path) -> None:
    shutil.copy(FORKED[0], tmp_path / "copy.darshan")
    assert run_ioncast("phases", FORKED[0], tmp_path, SPAWNED[0]).stderr == ""


def test_a_warning_quotes_the_name_of_a_log_with_control_characters(tmp_path: Path) -> None:
    copy = shutil.copy(FORKED[0], tmp_path / "a\n\x1b[31m.darshan")
    done = run_ioncast("phases", *FORKED, copy, "--join", "steps", "--format", "json")
    [warning] = done.stderr.splitlines()
    assert warning.endswith(r"'a\n\x1b[31m.darshan': a copy is not counted")


def test_an_error_quotes_the_names_of_logs_with_control_characters(tmp_path: Path) -> None:
    one = shutil.copy(FORKED[0], tmp_path / "a\x1b[31m.darshan")
    done = run_ioncast("match", one, SPAWNED[0])
    [error] = done.stderr.splitlines()
    assert r"a\x1b[31m.darshan': their job ids are" in error
    assert error.isprintable()


def test_joined_logs_are_one_run_with_a_name() -> None:
    done = run_ioncast("phases", *SPAWNED, *FORKED, "--join", "steps", "--format", "json")
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert {record["log"]: record["nprocs"] for record in found} == {
        f"{SPAWNED[0]} and 4 more logs": 5,
        f"{FORKED[0]} and 3 more logs": 4,
    }
    written = [record for record in found if record["type"] == "write"]
    assert [record["bytes"] for record in written] == [3_001_000, 3_001_000]


def test_a_damaged_log_among_logs_of_impossible_bytes_together_loses_no_other_log(
    tmp_path: Path,
) -> None:
    for number in range(9):
        requests = -1 if number == 0 else 1 << 38
        write_log(
            tmp_path / f"{number}.darshan",
            nprocs=1,
            records=[posix(f"/{number}", 0, 1, requests=requests, size=4 * MIB)],
            jobid=7,
        )
    done = run_ioncast("phases", tmp_path, *FORKED, "--join", "steps", "--format", "json")
    assert done.returncode == 2
    first, second = done.stderr.splitlines()
    assert f"{tmp_path / '0.darshan'}: a POSIX record has an impossible number" in first
    assert "1.darshan and 7 more logs: a POSIX record has an impossible number of bytes" in second
    assert {record["log"] for record in json.loads(done.stdout)} == {f"{FORKED[0]} and 3 more logs"}


def test_traces_of_impossible_bytes_together_are_left_out(tmp_path: Path) -> None:
    for number in range(9):
        dxt = Dxt("DXT_POSIX", f"/{number}", 0, "host", writes=[(0, 1 << 60, 0, 1)])
        write_log(tmp_path / f"{number}.darshan", nprocs=1, dxt=[dxt], jobid=7)
    done = run_ioncast("phases", tmp_path, "--trace", "--join", "steps")
    assert (done.returncode, done.stdout) == (0, "no trace phases\n")
    [warning] = done.stderr.splitlines()
    assert "the traces are left out: " in warning


def test_the_table_names_the_runs() -> None:
    done = run_ioncast("phases", ONE_JOB, "--join", "job")
    assert "spawn-workers-0.darshan and 4 more logs" in done.stdout


def test_steps_are_runs_of_their_own_and_a_job_is_one(tmp_path: Path) -> None:
    logs = steps(tmp_path, (0, 10), (5, 15), (20, 30))
    assert [(record["start"], record["bytes"]) for record in phases(*logs, "--join", "steps")] == [
        (0, 10 * MIB),
        (5, 10 * MIB),
        (0, 10 * MIB),
    ]
    assert [record["start"] for record in phases(*logs, "--join", "job")] == [0, 5, 20]


def test_runs_come_in_the_order_of_their_first_logs(tmp_path: Path) -> None:
    b = steps(tmp_path, (0, 10), (1, 11), job=8)
    a = steps(tmp_path, (50, 60), (49, 59), job=9)
    names = [record["log"] for record in phases(a[0], b[0], a[1], b[1], "--join", "steps")]
    assert list(dict.fromkeys(names)) == [f"{a[1]} and 1 more log", f"{b[0]} and 1 more log"]


@pytest.mark.slow
def test_many_runs_are_joined_on_all_cores(tmp_path: Path) -> None:
    for job in range(2 * FEW):
        steps(tmp_path, (0, 10), (1, 9), job=job)
    found = phases(tmp_path, "--join", "steps")
    assert len(found) == 2 * FEW
    assert {record["nprocs"] for record in found} == {2}
    assert {record["bytes"] for record in found} == {20 * MIB}


def test_logs_of_gzip_and_standard_input_are_joined(tmp_path: Path) -> None:
    packed = tmp_path / "packed.darshan.gz"
    packed.write_bytes(gzip.compress(FORKED[0].read_bytes()))
    done = run(
        "phases",
        packed,
        "-",
        FORKED[2],
        "--join",
        "steps",
        "--format",
        "json",
        given=FORKED[1].read_bytes(),
    )
    written = [record for record in json.loads(done.stdout) if record["type"] == "write"]
    assert [(record["bytes"], record["nprocs"]) for record in written] == [(2_001_000, 3)]
    assert {record["log"] for record in written} == {f"{packed} and 2 more logs"}


def test_a_copy_of_a_log_counts_once(tmp_path: Path) -> None:
    copy = Path(shutil.copy(FORKED[1], tmp_path / "copy.darshan"))
    done = run_ioncast("phases", *FORKED, copy, "--join", "steps", "--format", "json")
    assert "copy.darshan: a copy is not counted" in done.stderr
    assert sum(r["bytes"] for r in json.loads(done.stdout) if r["type"] == "write") == 3_001_000


def test_processes_with_equal_job_records_all_count(tmp_path: Path) -> None:
    """Before Darshan 3.4.1 times are whole seconds, so many processes have the same ones."""
    logs = steps(tmp_path, *[(0, 10)] * 3)
    [phase] = phases(*logs, "--join", "steps")
    assert (phase["bytes"], phase["nprocs"]) == (30 * MIB, 3)


@pytest.mark.parametrize("damage", ["header", "records", "counters"])
def test_a_damaged_log_is_reported_and_the_others_of_its_run_are_joined(
    tmp_path: Path, damage: str
) -> None:
    bad = tmp_path / "bad.darshan"
    content = bytearray(FORKED[2].read_bytes())
    if damage == "header":
        content = content[:1000]
    elif damage == "records":
        content[-200] ^= 255
    bad.write_bytes(content)
    if damage == "counters":
        started, ended = (1795417262, 550_000_000), (1795417262, 560_000_000)
        record = posix("/a", 0, 1, requests=-1)
        write_log(bad, nprocs=1, records=[record], jobid=4711, uid=0, start=started, end=ended)
    others = [FORKED[0], FORKED[1], FORKED[3]]
    done = run_ioncast("phases", *others, bad, "--join", "steps", "--format", "json")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert str(bad) in done.stderr
    found = json.loads(done.stdout)
    assert {record["nprocs"] for record in found} == {3}
    assert sum(r["bytes"] for r in found if r["type"] == "write") == 2_001_000


def test_logs_that_cannot_be_found_keep_their_place(tmp_path: Path) -> None:
    names = [str(FORKED[0]), str(tmp_path / "gone"), str(SPAWNED[0]), str(FORKED[1])]
    runs = list(extract_all(find_runs(list(find_sources(names)), "job")))
    assert [(run.name, len(run.errors)) for run in runs] == [
        (f"{FORKED[0]} and 1 more log", 0),
        ("", 1),
        (str(SPAWNED[0]), 0),
    ]


@pytest.mark.parametrize("given", [FORKED, [str(ONE_JOB / "fork-workers-*.darshan")]])
def test_match_joins_the_logs_of_one_run(given: list[Path | str]) -> None:
    done = run_ioncast("match", *given, "--min-share", "0.1", "--format", "json")
    assert (done.returncode, len(done.stderr.splitlines())) == (0, 1)
    # Three workers wrote 10 x 100,000 bytes each, the parent 1,000 bytes, to a file each.
    assert [row["requests"] for row in json.loads(done.stdout)] == [
        "30 × 97.7 KiB",
        "1 × 1,000 bytes",
    ]
    assert all("-n 4 " in row["ior"] and " -F " in row["ior"] for row in json.loads(done.stdout))


def test_match_rejects_logs_of_different_runs(tmp_path: Path) -> None:
    done = run_ioncast("match", FORKED[0], SPAWNED[0])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"ioncast: {SPAWNED[0]}: not a log of the run of {FORKED[0]}: their job ids are 4711 and"
        " 4713; give the logs of one run\n"
    )
    apart = steps(tmp_path, (0, 10), (20, 30))
    assert "they do not overlap in time" in run_ioncast("match", *apart).stderr
    assert run_ioncast("match", *apart, "--join", "job").returncode == 0


def test_match_reports_a_damaged_log_of_the_run(tmp_path: Path) -> None:
    bad = tmp_path / "bad.darshan"
    bad.write_bytes(FORKED[1].read_bytes()[:1000])
    done = run_ioncast("match", *FORKED, bad)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert str(bad) in done.stderr
