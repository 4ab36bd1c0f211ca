"""Decisions survive the worker that made them."""

from __future__ import annotations

import errno
import fcntl
import json
import multiprocessing
import os
import re
import shutil
import signal
import threading
from pathlib import Path

import pytest

from ioncast.service.decide import spool
from ioncast.service.decide.spool import (
    Losses,
    SpoolWriter,
    spool_files,
    spool_folder,
    waiting_bytes,
)


def lines_in(folder: Path) -> list[bytes]:
    return [line for path in spool_files(folder) for line in path.read_bytes().splitlines()]


def test_lines_of_all_threads_are_there_as_wholes(tmp_path: Path) -> None:
    writer = SpoolWriter(spool_folder(tmp_path))

    def append(thread: int) -> None:
        for i in range(200):
            writer.append(json.dumps({"id": [thread, i], "why": "x" * 900}).encode() + b"\n")

    threads = [threading.Thread(target=append, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = {tuple(json.loads(line)["id"]) for line in lines_in(spool_folder(tmp_path))}
    assert found == {(thread, i) for thread in range(8) for i in range(200)}


def append_and_die(folder: Path) -> None:
    writer = SpoolWriter(folder)
    for i in range(1000):
        writer.append(b"%d\n" % i)
    os.kill(os.getpid(), signal.SIGKILL)


def test_appended_decisions_outlive_a_killed_worker(tmp_path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=append_and_die, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert lines_in(tmp_path) == [b"%d" % i for i in range(1000)]


def is_locked(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def test_a_file_is_locked_while_its_worker_may_write_to_it(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path)
    writer.append(b"{}\n")
    [path] = spool_files(tmp_path)
    assert is_locked(path)
    writer.close()
    assert not is_locked(path)


def test_a_file_that_has_grown_long_is_followed_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "_LONGEST_FILE_BYTES", 10)
    writer = SpoolWriter(tmp_path)
    for i in range(4):
        writer.append(b"a line %d\n" % i)
    files = spool_files(tmp_path)
    assert len(files) == 2
    assert sorted(map(is_locked, files)) == [False, True]
    assert sorted(lines_in(tmp_path)) == [b"a line %d" % i for i in range(4)]


def test_a_folder_that_cannot_be_written_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "spool").write_text("a file")
    with pytest.raises(OSError, match="spool"):
        SpoolWriter(tmp_path / "spool").append(b"{}\n")


def test_a_full_disk_is_an_error_and_later_lines_are_wholes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = SpoolWriter(tmp_path)
    writer.append(b"one\n")
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:2]))
    with pytest.raises(OSError, match="full"):
        writer.append(b"two\n")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        writer.append(b"lost\n")
    monkeypatch.setattr(os, "write", write)
    writer.append(b"three\n")
    assert lines_in(tmp_path) == [b"one", b"tw", b"three"]


@pytest.mark.promise("service-disk-full")
def test_the_log_tells_of_lost_lines_when_it_begins_once_a_minute_and_when_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    losses, full = Losses(), OSError(errno.ENOSPC, "No space left on device")
    losses.written(0.0)
    for decision in range(13_000):
        losses.lost(full, 1000 + decision / 100)
    losses.written(1200.0)
    assert caplog.messages == [
        "decisions are answered but cannot be recorded: No space left on device",
        "6001 decisions could not be recorded so far: No space left on device",
        "12001 decisions could not be recorded so far: No space left on device",
        "decisions are recorded again; 13000 could not be",
    ]


def test_a_disk_with_room_for_every_other_line_does_not_flood_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    losses = Losses()
    for decision in range(18_000):
        losses.lost(OSError("full"), decision / 100)
        losses.written(decision / 100)
    losses.written(1000.0)
    assert len(caplog.messages) <= 2 * 3 + 1
    told = (re.search(r"again; (\d+) could", message) for message in caplog.messages)
    assert sum(int(found[1]) for found in told if found) == 18_000


@pytest.mark.promise("service-state-folder-deleted")
def test_a_folder_that_was_deleted_is_made_again(tmp_path: Path) -> None:
    writer = SpoolWriter(spool_folder(tmp_path))
    writer.append(b"one\n")
    shutil.rmtree(tmp_path)
    writer.append(b"two\n")
    assert lines_in(spool_folder(tmp_path)) == [b"two"]


@pytest.mark.promise("service-disk-full")
def test_no_more_waits_than_there_is_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "_LONGEST_FILE_BYTES", 10)
    monkeypatch.setattr(spool, "_MOST_WAITING_BYTES", 20)
    writer = SpoolWriter(tmp_path)
    for i in range(4):
        writer.append(b"a line %d\n" % i)
    with pytest.raises(OSError, match="too many decisions wait"):
        writer.append(b"another\n")
    for path in spool_files(tmp_path):
        path.unlink()
    writer.append(b"the next\n")
    assert lines_in(tmp_path) == [b"the next"]


def test_a_file_that_the_keeper_deletes_meanwhile_counts_nothing(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path)
    writer.append(b"one\n")
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    assert waiting_bytes(tmp_path) == 4
