"""The survey of planted logs, counted by hand, and of shared logs against PyDarshan's counts."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from experiments.applications.darshan_writer import Record, write_log
from ioncast.warehouse import engine
from ioncast.warehouse.bundles import IngestOptions, write_bundle
from ioncast.warehouse.engine import asking
from ioncast.warehouse.ingest import open_store
from ioncast.warehouse.inputs import LogFile, find_logs
from ioncast.warehouse.queries import query_of, text_query
from ioncast.warehouse.survey import QUESTIONS, by_name, survey_of, survey_queries
from ioncast.warehouse.survey_texts import cell
from tests.ioncast.warehouse.test_rows import rows_of
from tests.support.command import run_ioncast

KIB, MIB = 1 << 10, 1 << 20
# Seconds since 1970 of the first second of a month in UTC, as `date -u -d 2026-01-01 +%s` says.
JANUARY, FEBRUARY = 1767225600, 1769904000
_PYDARSHAN = """
import gc, json, sys; gc.disable(); import darshan
for path in sys.argv[1:]:
    report = darshan.DarshanReport(path, read_all=True)
    moved = {}
    # A file counts at its highest layer that moved bytes; a lower one moved the same bytes.
    for module, prefix in (("POSIX", "POSIX"), ("STDIO", "STDIO"), ("MPI-IO", "MPIIO")):
        found = {}
        if module in report.records:
            table = report.records[module].to_df()["counters"]
            names = [f"{prefix}_BYTES_READ", f"{prefix}_BYTES_WRITTEN"]
            for file, read, written in zip(table["id"], *(table[name] for name in names)):
                before = found.get(f"{file:016x}", (0, 0))
                found[f"{file:016x}"] = before[0] + int(read), before[1] + int(written)
        moved |= {file: both for file, both in found.items() if any(both)}
    job = report.metadata["job"]
    ends = [job[f"{end}_time_sec"] + job[f"{end}_time_nsec"] / 1e9 for end in ("start", "end")]
    numbers = job["uid"], job["jobid"], job["nprocs"], ends[1] - ends[0], moved
    print(json.dumps([path, *numbers]), flush=True)
"""


def of_pydarshan(paths: Sequence[str]) -> dict[str, Any]:
    """The user, job, processes, seconds, and bytes of each file, as PyDarshan reads logs.

    PyDarshan ends the process on some logs, which are left out.
    """
    known: dict[str, Any] = {}
    left = list(paths)
    while left:
        done = subprocess.run(
            [sys.executable, "-c", _PYDARSHAN, *left], capture_output=True, check=False, timeout=600
        )
        read = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"[")]
        known |= {path: numbers for path, *numbers in read}
        left = left[len(read) + 1 :]
    return known


def asked(*words: str | Path) -> dict[str, Any]:
    done = run_ioncast("survey", *words, "--format", "json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def posix(path: str, written: int, read: int = 0, seconds: float = 1.0) -> Record:
    """A file of rank 0 that is written, or also read, in requests of 4 KiB."""
    counters = {
        "POSIX_OPENS": 1,
        "POSIX_WRITES": written // (4 * KIB),
        "POSIX_READS": read // (4 * KIB),
        "POSIX_BYTES_WRITTEN": written,
        "POSIX_BYTES_READ": read,
        "POSIX_SIZE_WRITE_1K_10K": written // (4 * KIB),
        "POSIX_SIZE_READ_1K_10K": read // (4 * KIB),
        "POSIX_MAX_BYTE_WRITTEN": max(written, 1) - 1,
    }
    return Record("POSIX", path, 0, counters, {"POSIX_F_WRITE_TIME": seconds})


def mpiio(path: str, written: int, collective: int) -> Record:
    """A file that all ranks write through MPI-IO in requests of 1 MiB."""
    writes = written // MIB
    counters = {
        "MPIIO_COLL_WRITES": collective,
        "MPIIO_INDEP_WRITES": writes - collective,
        "MPIIO_BYTES_WRITTEN": written,
        "MPIIO_SIZE_WRITE_AGG_100K_1M": writes,
    }
    return Record("MPI-IO", path, -1, counters, {"MPIIO_F_WRITE_TIME": 6.0})


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four runs of three users with two programs in two months, and a fifth without I/O.

    Each takes 10 seconds.
    """
    folder = tmp_path_factory.mktemp("survey")
    by_mpiio = [mpiio("/slow/c", 8 * MIB, collective=8), posix("/slow/c", 8 * MIB)]
    by_both = [mpiio("/slow/d", 4 * MIB, collective=0), posix("/slow/e", 2 * MIB)]
    runs: list[tuple[int, int, str, int, int, list[Record], list[str]]] = [
        (1, 100, "solver", 1, JANUARY, [posix("/fast/a", 8 * KIB, read=4 * KIB)], []),
        # Of the same job as the first one, and a second before February.
        (1, 100, "solver", 4, FEBRUARY - 1, [posix("/slow/b", MIB, seconds=3.0)], ["POSIX"]),
        (2, 200, "writer", 8, FEBRUARY, by_mpiio, []),
        (3, 300, "writer", 8, FEBRUARY, by_both, []),
        (3, 400, "writer", 2, FEBRUARY, [posix("/slow/f", 0, seconds=0.0)], []),
    ]
    for number, (uid, job, program, processes, start, records, partial) in enumerate(runs):
        write_log(
            folder / f"{number}.darshan",
            nprocs=processes,
            jobid=job,
            uid=uid,
            exe=f"/opt/bin/{program} -x",
            start=(start, 0),
            end=(start + 10, 0),
            records=records,
            mounts=(("/", "ext4"), ("/fast", "xfs"), ("/slow", "lustre")),
            partial_modules=partial,
        )
    return folder


@pytest.fixture(scope="module")
def found(planted: Path) -> dict[str, Any]:
    return asked(planted, "--system", "mysite")


def test_the_survey_counts_logs_jobs_users_and_bytes(found: Mapping[str, Any]) -> None:
    [totals] = found["totals"]
    assert (totals["logs"], totals["jobs"], totals["users"], totals["programs"]) == (5, 4, 3, 2)
    # Of the file that MPI-IO and POSIX wrote, MPI-IO's bytes count.
    assert totals["written_bytes"] == 8 * KIB + (1 + 8 + 4 + 2) * MIB
    assert totals["read_bytes"] == 4 * KIB
    assert totals["first_start_us"] == JANUARY * 10**6
    assert [(row["month"], row["jobs"]) for row in found["by_month"]] == [
        ("2026-01", 2),
        ("2026-02", 3),
    ]
    [system] = found["by_system"]
    assert (system["system"], system["jobs"]) == ("mysite", 5)


def test_the_share_of_time_in_io_is_that_of_all_processes(found: Mapping[str, Any]) -> None:
    [share] = found["io_share"]
    seconds = 10 * (1 + 4 + 8 + 8 + 2)
    assert share["io_share"] == pytest.approx((1 + 3 + 6 + (6 + 1)) / seconds)
    assert share["core_hours"] == pytest.approx(seconds / 3600)


def test_users_and_programs_are_those_with_most(found: Mapping[str, Any]) -> None:
    assert [row["user_id"] for row in found["users_by_bytes"]] == [2, 3, 1]
    assert [row["user_id"] for row in found["users_by_io"]] == [3, 2, 1]
    assert found["users_by_io"][0]["share"] == pytest.approx(7 / 17)
    assert [(row["program"], row["jobs"]) for row in found["programs_by_jobs"]] == [
        ("writer", 3),
        ("solver", 2),
    ]


def test_files_are_counted_by_size_job_and_file_system(found: Mapping[str, Any]) -> None:
    # MPI-IO records have no offsets, so of the file that only MPI-IO wrote no size is known.
    sizes = [8 * KIB, 1 * MIB, 2 * MIB, 8 * MIB]
    [all_sizes] = found["sizes_all"]
    assert (all_sizes["files"], all_sizes["mean_bytes"]) == (4, sum(sizes) / 4)
    assert (all_sizes["median_bytes"], all_sizes["largest_bytes"]) == (1.5 * MIB, 8 * MIB)
    assert [(row["file_system"], row["files"]) for row in found["sizes"]] == [
        ("lustre", 3),
        ("xfs", 1),
    ]
    bins = {row["least_bytes"]: row["files"] for row in found["sizes_histogram"]}
    assert bins == {4 * KIB: 1, 1 * MIB: 3}
    [files] = found["files_per_job"]
    assert (files["jobs"], files["mean"], files["median"], files["most"]) == (5, 6 / 5, 1, 2)
    by_processes = {row["least_processes"]: row["mean"] for row in found["files_by_processes"]}
    assert by_processes == {1: 1, 2: 1, 5: 1.5}


def test_reads_writes_and_their_sizes(found: Mapping[str, Any]) -> None:
    january, february = found["reads_writes_by_month"]
    assert (january["reads"], january["writes"]) == (1, 2 + 256)
    assert (january["reading_jobs"], january["writing_jobs"]) == (1, 2)
    # 8 and 4 requests of MPI-IO, and those of the file without MPI-IO.
    assert (february["writes"], february["writing_jobs"]) == (8 + 4 + 512, 2)
    bins = {(row["api"], row["bin"]): row["requests"] for row in found["access_sizes"]}
    assert bins["MPIIO", "100K_1M"] == 12
    assert ("POSIX", "1M_4M") not in bins


def test_mpiio_is_adopted_by_jobs_with_several_processes(found: Mapping[str, Any]) -> None:
    [mpiio] = found["mpiio"]
    assert (mpiio["jobs"], mpiio["mpiio_share"], mpiio["collective_share"]) == (4, 2 / 4, 1 / 2)
    assert mpiio["mpiio_bytes_share"] == pytest.approx(14 / 15)
    january, february = found["mpiio_by_month"]
    assert (january["jobs"], january["mpiio_share"], january["collective_share"]) == (1, 0, None)
    assert (february["jobs"], february["mpiio_share"]) == (3, 2 / 3)


def test_unusable_logs_have_reasons(planted: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.darshan"
    bad.write_bytes(b"no log")
    done = run_ioncast("survey", planted, bad, "--format", "json")
    assert done.returncode == 2
    assert f"{bad}: " in done.stderr
    reasons = {
        row["reason"].partition(":")[0]: row["logs"] for row in json.loads(done.stdout)["unusable"]
    }
    assert len(reasons) == 3
    assert (reasons["partial"], reasons["no I/O"]) == (1, 1)


@pytest.mark.slow
def test_months_select_jobs(planted: Path) -> None:
    assert asked(planted, "--month", "2026-02")["totals"][0]["logs"] == 3
    assert asked(planted, "--month", "2026-01-2026-02")["totals"][0]["logs"] == 5
    found = asked(planted, "--month", "2025-12")
    assert found["totals"][0]["logs"] == 0
    assert found["users_by_io"] == []


@pytest.mark.slow
def test_columns_in_memory_give_the_same_answers_and_columns_that_need_too_much_stay_on_the_disk(
    planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    logs = [each for each in find_logs([str(planted)]) if isinstance(each, LogFile)]
    for some in (logs, logs[::2]):
        write_bundle(some, IngestOptions(open_store(str(store)), "mysite", requests=False))
    queries = [*survey_queries(), query_of("phases")]
    count = "select count(*) as n from duckdb_tables() where table_name like 'raw_%'"
    with asking(store) as ask:
        expected = survey_of(by_name(ask))
        phases = ask(query_of("phases"), query_of("phases").values({}))
    assert expected.only("totals")["logs"] == 5
    # The table of failures is empty, so it takes no memory.
    for most_bytes, kept in ((1 << 30, {"n": 5}), (0, {"n": 1})):
        monkeypatch.setattr(engine, "_KEPT_BYTES", most_bytes)
        with asking(store, queries=queries) as ask:
            assert survey_of(by_name(ask)) == expected
            found = ask(query_of("phases"), query_of("phases").values({}))
            assert len(found) == len(phases)
            assert ask(text_query(count), {}).to_pylist() == [kept]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--month", "2026-1"), "month: '2026-1' is not a month such as 2026-01"),
        (("--month", "2026-02-2026-01"), "month: 2026-02-2026-01 ends before it begins"),
    ],
)
def test_an_error_is_one_line(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    # The logs are not read before: an unreadable one would be a line of its own.
    bad = tmp_path / "bad.darshan"
    bad.write_bytes(b"no log")
    done = run_ioncast("survey", bad, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_csv_and_tables_have_the_values_of_json(planted: Path, found: Mapping[str, Any]) -> None:
    done = run_ioncast("survey", planted, "--system", "mysite", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    values = {(row["question"], int(row["row"]), row["name"]): row["value"] for row in rows}
    expected = {
        (key, number, name): "" if value is None else str(value)
        for key in QUESTIONS
        for number, row in enumerate(found[key], start=1)
        for name, value in row.items()
    }
    assert values == expected
    table = run_ioncast("survey", planted).stdout
    for key, question in QUESTIONS.items():
        if found[key]:
            assert f"{question.title}\n" in table


def test_the_page_has_every_answer_and_no_script(
    planted: Path, found: Mapping[str, Any], tmp_path: Path
) -> None:
    page = tmp_path / "survey.html"
    done = run_ioncast("survey", planted, "--system", "mysite", "--html", page)
    assert done.returncode == 0, done.stderr
    html = page.read_text("utf-8")
    assert "<script" not in html
    assert "http" not in html.replace("http://www.w3.org", "")
    for key in ("by_month", "sizes", "mpiio_by_month", "unusable", "users_by_io", "worst_runs"):
        for row in found[key]:
            for name, value in row.items():
                if name not in ("path", "reason"):
                    assert f">{cell(name, value)}</t" in html, (key, name)


def test_a_page_without_jobs_says_so(planted: Path, tmp_path: Path) -> None:
    page = tmp_path / "survey.html"
    done = run_ioncast("survey", planted, "--month", "1999-12", "--html", page)
    assert done.returncode == 0, done.stderr
    assert "No logs can be used." in page.read_text("utf-8")


@pytest.mark.slow
def test_numbers_of_all_shared_logs_are_those_of_pydarshan(
    shared_data: Path, tmp_path: Path
) -> None:
    if importlib.util.find_spec("darshan") is None:
        pytest.skip("PyDarshan has no wheel for this Python")
    rows = rows_of(shared_data)
    logs = {job["path"]: job["log"] for job in rows["jobs"]}
    known = {logs[path]: numbers for path, numbers in of_pydarshan(list(logs)).items()}
    assert len(known) > 100
    ours = {(row["log"], row["file"]) for row in rows["files"]}
    for path, log in logs.items():
        if log in known:
            (tmp_path / f"{log}.darshan").symlink_to(path)
    found = asked(tmp_path)
    [totals], [share] = found["totals"], found["io_share"]
    assert totals["logs"] == len(known)
    assert totals["users"] == len({uid for uid, *_ in known.values()})
    assert totals["jobs"] == len({job for _, job, *_ in known.values()})
    for place, name in enumerate(("read_bytes", "written_bytes")):
        assert totals[name] == sum(
            moved[place]
            for log, (*_, of_files) in known.items()
            for file, moved in of_files.items()
            if (log, file) in ours
        )
    seconds = sum(processes * run for _, _, processes, run, _ in known.values())
    assert share["core_hours"] == pytest.approx(seconds / 3600, rel=1e-6)
