"""A store: what is ingested is there once, whatever was ingested before, beside or again."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tarfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ioncast.warehouse import bundles, ingest, job_rows, rows, schema, views
from ioncast.warehouse.bundles import divided
from ioncast.warehouse.copies import unique_tables_of
from ioncast.warehouse.engine import asking
from ioncast.warehouse.inputs import LogFile
from ioncast.warehouse.queries import text_query
from ioncast.warehouse.schema import SCHEMAS
from summario.reading.sources import find_sources
from tests.ioncast.warehouse.test_rows import FIXTURES, planted
from tests.support.command import run_ioncast
from tests.support.disks import fill, small_disk

LOGS = sorted(FIXTURES.glob("*.darshan"))[:6]


def ingested(
    store: Path, *words: str | Path, system: str = "here", code: int = 0
) -> dict[str, Any]:
    done = run_ioncast("ingest", *words, "--store", store, "--system", "here", "--format", "json")
    assert done.returncode == code, done.stderr
    numbers: dict[str, Any] = json.loads(done.stdout) if done.stdout else {}
    return numbers


def stored(store: Path) -> dict[str, list[dict[str, Any]]]:
    """All rows of a store, sorted; two rows of a log, or a failed file twice, would show."""
    with asking(store) as ask:
        return {
            name: sorted(ask(text_query(f"select * from {name}"), {}).to_pylist(), key=repr)
            for name in SCHEMAS
        }


def in_memory(*logs: Path, system: str = "here", requests: bool = False) -> dict[str, Any]:
    tables = unique_tables_of(
        find_sources([str(log.absolute()) for log in logs]), system=system, requests=requests
    )
    return {name: sorted(table.to_pylist(), key=repr) for name, table in tables.items()}


def folder_of(folder: Path, *logs: Path) -> Path:
    folder.mkdir(parents=True)
    for log in logs:
        shutil.copy2(log, folder)
    return folder


@pytest.mark.slow
def test_a_store_has_the_rows_of_its_logs_and_the_same_folder_twice_changes_nothing(
    tmp_path: Path,
) -> None:
    logs, store = folder_of(tmp_path / "logs", *LOGS), tmp_path / "store"
    numbers = ingested(store, logs)
    assert (numbers["logs"], numbers["known"], numbers["failed"]) == (len(LOGS), 0, 0)
    assert stored(store) == in_memory(*logs.iterdir())
    before = {path: path.stat().st_mtime_ns for path in store.rglob("*")}
    assert ingested(store, logs) == {
        **dict.fromkeys(("logs", "copies", "failed", "bundles", "stored_bytes"), 0),
        "known": len(LOGS),
        "seconds": pytest.approx(0, abs=100),
    }
    assert {path: path.stat().st_mtime_ns for path in store.rglob("*")} == before
    assert (store.stat().st_mode & 0o777) == 0o750


def test_day_folders_gzip_tar_files_and_lists_of_paths_are_read(tmp_path: Path) -> None:
    day = folder_of(tmp_path / "logs" / "2026" / "11" / "28", LOGS[0])
    with gzip.open(day / "zipped.darshan.gz", "wb") as file:
        file.write(LOGS[1].read_bytes())
    for suffix, members in (("", LOGS[2:4]), (".gz", LOGS[4:5])):
        with tarfile.open(day / f"old.tar{suffix}", f"w:{suffix[1:]}") as tar:
            for log in members:
                tar.add(log, f"night/{log.name}")
            tar.add(__file__, "notes.txt")
    (tmp_path / "paths.txt").write_text(f"{LOGS[5].absolute()}\n{tmp_path / 'gone.darshan'}\n")
    store = tmp_path / "store"
    numbers = ingested(store, tmp_path / "logs", tmp_path / "paths.txt", code=2)
    assert (numbers["logs"], numbers["failed"]) == (6, 0)
    paths = [row["path"] for row in stored(store)["jobs"]]
    assert f"{day}/old.tar:night/{LOGS[2].name}" in paths
    assert ingested(store, tmp_path / "logs")["known"] == 5


def test_a_damaged_tar_file_and_members_that_are_no_logs_are_told(tmp_path: Path) -> None:
    logs, store = folder_of(tmp_path / "logs"), tmp_path / "store"
    with tarfile.open(logs / "a.tar", "w") as tar:
        tar.add(LOGS[0], "good.darshan")
        tar.add(__file__, "bad.darshan")
        link = tarfile.TarInfo("link.darshan")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    whole = (logs / "a.tar").read_bytes()
    (logs / "b.tar").write_bytes(whole[: len(whole) // 8])
    (logs / "c.tar").write_bytes(b"\0" * 10 + whole)
    done = run_ioncast("ingest", logs, "--store", store, "--system", "here")
    assert done.returncode == 2
    assert "c.tar: the tar file cannot be read" in done.stderr
    assert "some files cannot be read; `ioncast sql STORE" in done.stderr
    found = stored(store)
    assert [row["path"] for row in found["jobs"]] == [f"{logs}/a.tar:good.darshan"]
    assert {row["path"] for row in found["failed"]} >= {f"{logs}/a.tar:bad.darshan"}
    # A member that cannot be read has a size and a time, so it is known next time.
    assert run_ioncast("ingest", logs, "--store", store, "--system", "here").returncode == 2
    assert stored(store) == found


@pytest.mark.slow
def test_a_copy_counts_once_also_with_a_later_ingest(tmp_path: Path) -> None:
    logs, store = folder_of(tmp_path / "logs", *LOGS[:3]), tmp_path / "store"
    shutil.copy(LOGS[0], logs / "copy.darshan")
    assert ingested(store, logs)["copies"] == 1
    assert ingested(store, logs)["known"] == 4
    later = folder_of(tmp_path / "later", LOGS[1], LOGS[3])
    assert ingested(store, later)["logs"] == 2
    found = stored(store)
    assert sorted(row["log"] for row in found["jobs"]) == sorted(
        row["log"] for row in in_memory(*LOGS[:4])["jobs"]
    )
    assert len(found["files"]) == len(in_memory(*LOGS[:4])["files"])


@pytest.mark.slow
def test_unreadable_files_count_once_each_until_they_are_tried_again(tmp_path: Path) -> None:
    logs, store = folder_of(tmp_path / "logs"), tmp_path / "store"
    for name in ("a", "b"):
        (logs / f"{name}.darshan").write_bytes(b"")
    assert ingested(store, logs) == {
        **ingested(tmp_path / "other", logs),
        "seconds": pytest.approx(0, abs=100),
    }
    assert len(stored(store)["failed"]) == 2
    assert ingested(store, logs)["known"] == 2
    assert ingested(store, logs, "--retry")["failed"] == 2
    assert len(stored(store)["failed"]) == 2
    shutil.copyfile(LOGS[0], logs / "a.darshan")
    assert ingested(store, logs)["logs"] == 1
    # It was another file then, and cannot be read still: of another size.
    assert len(stored(store)["failed"]) == 2


@pytest.mark.slow
def test_requests_that_are_asked_for_later_come_into_the_store(tmp_path: Path) -> None:
    logs, store = tmp_path / "logs", tmp_path / "store"
    logs.mkdir()
    planted(logs)
    shutil.copy2(LOGS[0], logs)
    ingested(store, logs)
    assert stored(store)["requests"] == []
    assert ingested(store, logs, "--requests")["logs"] == 1
    found = stored(store)
    assert found == in_memory(*logs.iterdir(), requests=True)
    assert len(found["requests"]) == 305
    assert ingested(store, logs, "--requests")["known"] == 2
    assert ingested(store, logs)["known"] == 2
    assert stored(store) == found


@pytest.mark.slow
def test_a_newer_extractor_reads_all_logs_again_and_an_older_one_rejects_its_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, store = folder_of(tmp_path / "logs", *LOGS[:2]), tmp_path / "store"
    (logs / "bad.darshan").write_bytes(b"no log")
    ingested(store, logs)
    raised = schema.EXTRACTOR + 1
    with monkeypatch.context() as newer:
        for module in (schema, rows, job_rows, bundles, ingest, views):
            newer.setattr(module, "EXTRACTOR", raised)
        numbers = ingested(store, logs)
        assert (numbers["logs"], numbers["failed"]) == (2, 1)
        found = stored(store)
    assert {row["extractor"] for row in found["jobs"]} == {raised}
    assert (len(found["jobs"]), len(found["failed"])) == (2, 1)
    done = run_ioncast("sql", store, "users")
    assert done.returncode == 2
    assert "a newer ioncast wrote this store" in done.stderr


def test_tables_and_columns_that_a_bundle_lacks_are_empty_and_null(tmp_path: Path) -> None:
    logs, store = folder_of(tmp_path / "logs", *LOGS[:2]), tmp_path / "store"
    ingested(store, logs)
    [bundle] = store.iterdir()
    (bundle / "findings.parquet").unlink()
    jobs = pq.read_table(bundle / "jobs.parquet", partitioning=None)
    pq.write_table(jobs.drop_columns(["capped"]), bundle / "jobs.parquet")
    found = stored(store)
    assert found["findings"] == []
    assert [row["capped"] for row in found["jobs"]] == [None, None]


@pytest.mark.slow
def test_logs_of_a_month_or_of_a_user_are_removed_from_all_bundles(tmp_path: Path) -> None:
    store = tmp_path / "store"
    for logs in (LOGS[:4], LOGS[2:]):
        ingested(store, *logs)
    before = stored(store)
    months = sorted({row["month"] for row in before["jobs"]})
    done = run_ioncast("store", "remove", store, "--before", months[-1])
    assert done.stdout.startswith("would remove")
    assert stored(store) == before
    assert run_ioncast("store", "remove", store, "--before", months[-1], "--yes").returncode == 0
    kept = {row["log"] for row in before["jobs"] if row["month"] == months[-1]}
    after = stored(store)
    for name in SCHEMAS:
        if "log" in SCHEMAS[name].names:
            assert after[name] == [row for row in before[name] if row["log"] in kept]
    [user] = {row["user_id"] for row in after["jobs"]}
    assert run_ioncast("store", "remove", store, "--user", str(user), "--yes").returncode == 0
    assert not list(store.iterdir())


@pytest.mark.slow
def test_info_counts_logs_users_failures_and_copies(tmp_path: Path) -> None:
    logs, store = folder_of(tmp_path / "logs", *LOGS), tmp_path / "store"
    shutil.copy(LOGS[0], logs / "copy.darshan")
    (logs / "bad.darshan").write_bytes(b"no log")
    ingested(store, logs)
    ingested(store, LOGS[0])
    done = run_ioncast("store", "info", store, "--format", "json")
    found = json.loads(done.stdout)
    [system] = found["systems"]
    assert (system["system"], system["logs"]) == ("here", len(LOGS))
    assert (found["failed"], found["copies"], found["twice"], found["bundles"]) == (1, 1, 1, 2)
    assert run_ioncast("store", "info", store).returncode == 0
    assert "not a store" in run_ioncast("store", "info", tmp_path).stderr


def test_what_an_interrupted_ingest_left_is_removed_after_a_day(tmp_path: Path) -> None:
    store = tmp_path / "store"
    for name, age_s in ((".new-old", 100_000), (".new-young", 1_000)):
        (store / name).mkdir(parents=True)
        then = time.time() - age_s
        os.utime(store / name, (then, then))
    ingested(store, LOGS[0])
    assert not (store / ".new-old").exists()
    assert (store / ".new-young").exists()


def test_bundles_have_at_most_2000_logs_and_256_mib_and_the_largest_comes_first() -> None:
    small = [LogFile(f"{number}", None, 1 << 10, 0) for number in range(4_500)]
    large = [LogFile("large", None, 300 << 20, 0), *(LogFile("l", None, 100 << 20, 0),) * 4]
    found = divided([*small, *large], workers=1)
    assert sorted(file.name for bundle in found for file in bundle) == sorted(
        file.name for file in [*small, *large]
    )
    assert found[0] == (large[0],)
    assert all(len(bundle) <= 2_000 for bundle in found)
    assert all(sum(file.size_bytes for file in bundle) <= 256 << 20 for bundle in found[1:])
    assert {len(bundle) for bundle in divided(small[:1_000], workers=4)} == {500}


@pytest.mark.slow
def test_a_query_of_a_store_reads_no_other_file_and_writes_none(tmp_path: Path) -> None:
    store = tmp_path / "store"
    ingested(store, LOGS[0])
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    for text in (
        f"select * from read_csv('{secret}')",
        f"copy (select 1) to '{store}/x.csv'",
        "select 1; select 2",
        "set enable_external_access = true",
    ):
        done = run_ioncast("sql", store, "--text", text)
        assert done.returncode == 2, text
    assert [path.name[:7] for path in store.iterdir()] == ["bundle="]


def test_answers_are_written_as_parquet(tmp_path: Path) -> None:
    store = tmp_path / "store"
    ingested(store, *LOGS)
    done = run_ioncast("sql", store, "users", "--format", "parquet")
    content = done.stdout.encode("utf-8", "surrogateescape")
    table = pq.read_table(pa.BufferReader(content))
    with asking(store) as ask:
        [jobs] = ask(text_query("select count(*) as jobs from jobs"), {}).to_pylist()
    assert sum(table["jobs"].to_pylist()) == jobs["jobs"] == len(LOGS)


@pytest.mark.slow
def test_a_dry_run_writes_nothing_and_says_time_and_disk(tmp_path: Path) -> None:
    store = tmp_path / "store"
    numbers = ingested(store, *LOGS, "--dry-run")
    assert (numbers["logs"], numbers["known"]) == (len(LOGS), 0)
    assert numbers["seconds"] > 0 < numbers["stored_bytes"]
    assert not list(store.iterdir())
    assert (
        "new logs"
        in run_ioncast("ingest", *LOGS, "--store", store, "--system", "x", "--dry-run").stdout
    )
    ingested(store, LOGS[0])
    again = run_ioncast("ingest", LOGS[0], "--store", store, "--system", "here", "--dry-run")
    assert again.stdout == "no new logs, 1 known before\n"


def test_a_store_that_is_no_folder_of_posix_is_rejected(tmp_path: Path) -> None:
    done = run_ioncast("ingest", LOGS[0], "--store", "hdfs://head/store", "--system", "x")
    assert (done.returncode, "POSIX" in done.stderr) == (2, True)
    (tmp_path / "file").write_text("")
    assert ingested(tmp_path / "file" / "store", LOGS[0], code=2) == {}


@pytest.mark.root
def test_a_full_disk_is_one_line_and_leaves_whole_bundles(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        store = disk / "store"
        ingested(store, LOGS[0])
        before = stored(store)
        fill(disk)
        done = run_ioncast("ingest", *LOGS, "--store", store, "--system", "here")
        assert done.returncode == 2
        assert "No space left on device" in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert stored(store) == before
        for file in ("full", "fuller"):
            (disk / file).unlink()
        ingested(store, *LOGS)
        assert stored(store)["jobs"] == in_memory(*LOGS)["jobs"]
