"""An ingest that is killed, and what kills it: all rows are there at last, and none twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from ioncast.warehouse import bundles, copies
from ioncast.warehouse.bundles import IngestOptions, divided
from ioncast.warehouse.ingest import ingest, new_logs, open_store
from ioncast.warehouse.inputs import LogFile, find_logs
from ioncast.warehouse.rows import tables_of
from ioncast.warehouse.schema import EXTRACTOR
from ioncast_base.errors import InputError, IoncastError
from summario.reading.sources import Source
from tests.ioncast.warehouse.test_rows import planted
from tests.ioncast.warehouse.test_store import LOGS, folder_of, in_memory, stored
from tests.support.command import PROJECT

_INGEST = """
import os, signal, sys
from pathlib import Path
{before}
from ioncast.cli import main
sys.argv = ["ioncast", "ingest", *sys.argv[1:], "--system", "here"]
main()
"""


def named(logs: Path) -> list[LogFile]:
    return [each for each in find_logs([str(logs)]) if isinstance(each, LogFile)]


def ingested(files: list[LogFile], store: Path, memory_mib: int | None = None) -> list[Any]:
    options = IngestOptions(store, "here", requests=False)
    return [written for _, written in ingest(files, options, 2, memory_mib)]


def program(before: str, *words: str | Path) -> list[str]:
    return [sys.executable, "-c", _INGEST.format(before=before), *map(str, words)]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return folder_of(tmp_path / "logs", *LOGS)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return open_store(str(tmp_path / "store"))


@pytest.mark.slow
def test_a_log_that_kills_its_reader_is_failed_and_the_others_are_not(
    logs: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadly = {str(logs / LOGS[1].name): signal.SIGTERM, str(logs / LOGS[4].name): signal.SIGKILL}

    def reading(sources: Iterable[Source | IoncastError], **options: Any) -> dict[str, Any]:
        sources = list(sources)
        for source in sources:
            if isinstance(source, Source) and source.name in deadly:
                os.kill(os.getpid(), deadly[source.name])
        return tables_of(sources, **options)

    monkeypatch.setattr(copies, "tables_of", reading)
    [written] = ingested(named(logs), store)
    assert (written.logs, written.failed) == (4, 2)
    found = stored(store)
    kept = [path for path in sorted(logs.iterdir()) if str(path) not in deadly]
    assert found["jobs"] == in_memory(*kept)["jobs"]
    assert {row["path"]: row["reason"] for row in found["failed"]} == {
        str(logs / LOGS[1].name): f"its reader ended by signal {signal.SIGTERM.value}",
        str(logs / LOGS[4].name): "the memory is not enough to read it",
    }
    options = IngestOptions(store, "here", requests=False)
    assert new_logs(named(logs), options, retry=False) == []


@pytest.mark.slow
def test_a_killed_worker_is_replaced(
    logs: Path, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = tmp_path / "killed"

    def reading(sources: Any, **options: Any) -> dict[str, Any]:
        if not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return tables_of(sources, **options)

    monkeypatch.setattr(copies, "tables_of", reading)
    ingested(named(logs), store)
    assert killed.exists()
    assert stored(store) == in_memory(*logs.iterdir())


def test_workers_that_are_always_killed_together_are_an_error(
    logs: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reading(sources: Any, **options: Any) -> dict[str, Any]:
        sources = list(sources)
        if len(sources) > 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return tables_of(sources, **options)

    monkeypatch.setattr(copies, "tables_of", reading)
    with pytest.raises(InputError, match="none of them alone"):
        ingested(named(logs), store)


@pytest.mark.slow
def test_a_log_that_needs_more_memory_than_allowed_is_failed(
    logs: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = str(logs / LOGS[2].name)

    def reading(sources: Iterable[Source | IoncastError], **options: Any) -> dict[str, Any]:
        sources = list(sources)
        if any(isinstance(source, Source) and source.name == large for source in sources):
            bytearray(4 << 30)
        return tables_of(sources, **options)

    monkeypatch.setattr(copies, "tables_of", reading)
    [written] = ingested(named(logs), store, memory_mib=2 << 10)
    assert (written.logs, written.failed) == (5, 1)
    [failed] = stored(store)["failed"]
    assert (failed["path"], failed["reason"]) == (large, "the memory is not enough to read it")


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_ingest_killed_around_the_renaming_of_a_bundle_goes_on(
    logs: Path, store: Path, moment: str
) -> None:
    rename = "real(self, *words)" if moment == "after" else "None"
    before = f"""
real = Path.rename
def rename(self, *words):
    {rename}
    os.killpg(0, signal.SIGKILL)
Path.rename = rename
"""
    done = subprocess.run(
        program(before, logs, "--store", store), cwd=PROJECT, start_new_session=True, check=False
    )
    assert done.returncode == -signal.SIGKILL
    left = sorted(path.name[:5] for path in store.iterdir())
    assert left == ([".new-"] if moment == "before" else ["bundl"])
    assert subprocess.run(program("", logs, "--store", store), cwd=PROJECT, check=True)
    assert stored(store) == in_memory(*logs.iterdir())


@pytest.mark.slow
def test_two_ingests_at_once_of_overlapping_folders_store_each_log_once(
    tmp_path: Path, store: Path
) -> None:
    folders = [
        folder_of(tmp_path / str(number), *LOGS[first : first + 4])
        for number, first in enumerate((0, 2, 2))
    ]
    running = [
        subprocess.Popen(program("", logs, "--store", store), cwd=PROJECT) for logs in folders
    ]
    assert [each.wait() for each in running] == [0, 0, 0]
    found = stored(store)
    assert sorted(row["log"] for row in found["jobs"]) == sorted(
        row["log"] for row in in_memory(*LOGS)["jobs"]
    )
    assert len(found["phases"]) == len(in_memory(*LOGS)["phases"])


def test_the_same_bundle_written_twice_at_once_is_there_once(
    logs: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a speculative task of Spark does, or NFS that reports an error after a renaming."""
    options = IngestOptions(store, "here", requests=False)
    [bundle] = divided(named(logs), 1)
    first = bundles.write_bundle(bundle, options)
    assert bundles.write_bundle(bundle, options) == first
    assert [path.name for path in store.iterdir()] == [first.name]
    (store / first.name / "jobs.parquet").unlink()
    with pytest.raises(OSError, match="not empty"):
        bundles.write_bundle(bundle, options)


def test_a_bundle_of_failures_only_has_a_row_for_each(store: Path, tmp_path: Path) -> None:
    logs = folder_of(tmp_path / "logs")
    for number in range(3):
        (logs / f"{number}.darshan").write_bytes(b"no log" * number)
    [written] = ingested(named(logs), store)
    assert (written.logs, written.failed) == (0, 3)
    found = stored(store)
    assert found["jobs"] == []
    assert [row["extractor"] for row in found["failed"]] == [EXTRACTOR] * 3


def test_a_file_that_goes_or_becomes_a_pipe_while_the_ingest_runs_is_failed(
    logs: Path, store: Path
) -> None:
    files = named(logs)
    (logs / LOGS[0].name).unlink()
    (logs / LOGS[1].name).unlink()
    os.mkfifo(logs / LOGS[1].name)
    [written] = ingested(files, store)
    assert (written.logs, written.failed) == (4, 2)


def test_requests_are_written_in_row_groups_of_at_most_a_million_rows(
    store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bundles, "_ROWS_OF_A_GROUP", 100)
    log = planted(tmp_path)
    options = IngestOptions(store, "here", requests=True)
    [written] = [each for _, each in ingest(named(log), options, 1)]
    metadata = pq.ParquetFile(store / written.name / "requests.parquet").metadata
    assert [metadata.row_group(group).num_rows for group in range(4)] == [100, 100, 100, 5]
