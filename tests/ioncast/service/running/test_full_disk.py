"""With a full disk under the state folder, every question still gets an answer."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from werkzeug.datastructures import FileStorage
from werkzeug.test import encode_multipart

from ioncast.service.decide.counts import counts_files, counts_in
from tests.support.disks import fill, small_disk
from tests.support.serving import Served, asked_meanwhile, running, wait_for

pytestmark = [pytest.mark.root, pytest.mark.serving]

QUESTION = "/v1/decisions?system=testbed&user=ada&executable=/opt/app&tasks=16"
# Requests that were not sent before, so that new series would be counted.
OTHERS = ("/", "/healthz", "/metrics", "/v1/systems", "/applications", "/predict")


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "state") as folder:
        yield folder


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "run") as folder:
        fill(folder)
        yield folder


def all_are_answered(served: Served) -> None:
    for path in OTHERS:
        assert served.ask(path).status == 200, path
    assert served.ask("/nowhere").status == 404
    processes = [served.web(), served.all_deciders()[0]]
    for each in processes:
        os.kill(each, signal.SIGKILL)
    wait_for(lambda: served.web() not in processes, "another web process")
    wait_for(lambda: not set(served.all_deciders()) & {*processes}, "another process")
    assert [served.ask(QUESTION).status for _ in range(200)] == [200] * 200
    for path in OTHERS:
        assert served.ask(path).status == 200, path
    assert "SIGBUS" not in served.log.read_text()


@pytest.mark.promise("service-disk-full")
def test_a_disk_that_becomes_full_keeps_nobody_from_an_answer(state: Path, tmp_path: Path) -> None:
    with running(tmp_path, "--db", str(tmp_path / "db.sqlite")) as served:
        with asked_meanwhile(served, QUESTION) as asked:
            fill(state)
            all_are_answered(served)
        text = served.ask("/metrics").body.decode()
        # One more was asked before the disk was full.
        count = 200 + 1 + len(asked.numbers)
        assert f'ioncast_decisions_total{{source="default"}} {count}.0' in text
        # The block that a spool file already has takes some more decisions.
        [lost] = [line for line in text.splitlines() if line.startswith("ioncast_unrecorded")]
        assert float(lost.split()[1]) > 100
        # Each of the two web processes and the three processes for decisions says it once.
        assert 0 < served.log.read_text().count("cannot be recorded") <= 5
        (state / "full").unlink()
        recorded = served.decide(QUESTION).json["decision_id"]
        wait_for(lambda: served.ask(f"/v1/decisions/{recorded}").status == 200, "the decision")


@pytest.mark.promise("service-disk-full")
def test_without_a_folder_for_temporary_files_all_processes_start(tmp_path: Path) -> None:
    # As in a unit of systemd: its current folder is /, which it cannot write.
    script = """
        mount --bind "$0" "$0"
        for folder in /tmp /var/tmp; do
            mount --rbind $folder $folder
            mount -o remount,bind,ro $folder
        done
        cd /proc
        exec "$@"
    """
    under = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", script, str(tmp_path)]
    told = {"TMPDIR": "/proc"}
    database = str(tmp_path / "db.sqlite")
    log = FileStorage(io.BytesIO(bytes(1 << 20)), "app.darshan")
    boundary, body = encode_multipart({"system": "testbed", "log": log})
    form = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    with running(tmp_path, "--db", database, under=under, environment=told) as served:
        all_are_answered(served)
        answer = served.ask("/v1/predictions", method="POST", body=body, headers=form)
        assert answer.status == 503


@pytest.mark.promise("service-no-space-for-metrics")
def test_a_service_without_space_for_metrics_answers_without_counting(
    full_disk: Path, tmp_path: Path
) -> None:
    told = {"RUNTIME_DIRECTORY": str(full_disk)}
    with running(tmp_path, "--db", str(tmp_path / "db.sqlite"), environment=told) as served:
        with asked_meanwhile(served, QUESTION):
            all_are_answered(served)
        assert "decisions are not counted in /metrics" in served.log.read_text()
        assert b"ioncast_request_seconds" in served.ask("/metrics").body


@pytest.mark.promise("service-no-space-for-metrics")
def test_files_have_their_blocks_before_anybody_counts(tmp_path: Path) -> None:
    folder = tmp_path / "counts"
    descriptors = counts_files(folder, 2)
    assert len(counts_in(folder)) == 2
    for file in folder.iterdir():
        assert file.stat().st_blocks * 512 >= file.stat().st_size > 1 << 10
    for descriptor in descriptors:
        os.close(descriptor)


def test_processes_count_in_systemds_folder_where_there_is_one(tmp_path: Path) -> None:
    runtime = tmp_path / "run"
    runtime.mkdir()
    told = {"RUNTIME_DIRECTORY": f"{runtime}:/nowhere"}
    with running(tmp_path, "--db", str(tmp_path / "db.sqlite"), environment=told) as served:
        assert served.ask("/healthz").status == 200
        assert len(list(runtime.glob("*.counts"))) == 2
        assert not list(served.state.glob("*.counts"))
