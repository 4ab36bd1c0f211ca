"""The file with a daemon's numbers: whole or old, and never a reason to wait."""

from __future__ import annotations

import logging
import os
import stat
import threading
from pathlib import Path

import pytest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from scheduler_plugin import metrics_file
from scheduler_plugin.metrics_file import MetricsFile, common_metrics

LOG = logging.getLogger("ioncast.test")


def written(file: MetricsFile, value: float) -> None:
    file.write([GaugeMetricFamily("ioncast_a", "A number.", value)])
    file.close()


def value_in(path: Path) -> float:
    [family] = text_string_to_metric_families(path.read_text())
    return float(family.samples[0].value)


def test_the_file_is_whole_and_everybody_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "watch.prom"
    before = os.umask(0o077)
    try:
        file = MetricsFile(str(path), LOG)
        written(file, 4)
        written(file, 5)
    finally:
        os.umask(before)
    assert value_in(path) == 5
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_written_without_a_path() -> None:
    written(MetricsFile(None, LOG), 4)


def test_a_pipe_or_a_link_in_the_folder_does_no_harm(tmp_path: Path) -> None:
    path, victim = tmp_path / "watch.prom", tmp_path / "victim"
    victim.write_text("precious")
    os.mkfifo(path)
    (tmp_path / ".watch.prom.new").symlink_to(victim)
    written(MetricsFile(str(path), LOG), 4)
    assert (value_in(path), victim.read_text()) == (4, "precious")


def test_a_file_that_cannot_be_written_is_reported_once_until_it_works_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    folder = tmp_path / "later"
    file = MetricsFile(str(folder / "watch.prom"), LOG)
    for value in range(3):
        written(file, value)
    folder.mkdir()
    for value in range(3):
        written(file, value)
    assert [record.message.partition(": ")[0] for record in caplog.records] == [
        "writing metrics fails",
        "writing metrics works again",
    ]
    assert "No such file or directory" in caplog.text
    assert value_in(folder / "watch.prom") == 2


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "watch.prom"
    file = MetricsFile(str(path), LOG)
    written(file, 4)
    monkeypatch.setattr(metrics_file.os, "open", lambda *_: os.dup(full.fileno()))
    with Path("/dev/full").open("wb") as full:
        written(file, 5)
    assert value_in(path) == 4


def test_a_disk_that_hangs_delays_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ever = threading.Event()
    monkeypatch.setattr(metrics_file, "_replace", lambda *_: ever.wait())
    monkeypatch.setattr(metrics_file, "_PATIENCE_S", -1)
    file = MetricsFile(str(tmp_path / "watch.prom"), LOG)
    for value in range(3):
        file.write([GaugeMetricFamily("ioncast_a", "A number.", value)])
    ever.set()
    file.close()
    assert caplog.text.count("the disk does not answer") == 1


def test_errors_are_counted_by_step() -> None:
    names = {
        sample.name: sample.labels
        for metric in common_metrics("watch", {"sending logs": 3}, 5.0, 7.0)
        for sample in metric.samples
    }
    assert names["ioncast_watch_errors_total"] == {"step": "sending logs"}
