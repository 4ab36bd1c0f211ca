"""Prometheus' samples count once, in whatever order a file has them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from ioncast.diagnosis.server_logs import read_prometheus
from ioncast.diagnosis.server_logs.read_prometheus import read_exposition, read_query_range
from ioncast.diagnosis.server_logs.sample_rows import ImportSettings
from ioncast_base.errors import InputError

START_S = 1_700_000_000
READS, WRITES = "lustre_read_bytes_total", "lustre_write_bytes_total"


def line(name: str, second: int, value: int, **labels: str) -> str:
    all_labels = {"component": "ost", "target": "fs-OST000b", **labels}
    text = ",".join(f'{key}="{each}"' for key, each in all_labels.items())
    return f"{name}{{{text}}} {value} {(START_S + second) * 1000}\n"


READ_LINES = [line(READS, 15 * n, 10 * n) for n in range(4)]
WRITE_LINES = [line(WRITES, 15 * n, 100 * n) for n in range(4)]


def moved(*paths: Path) -> list[tuple[Any, Any]]:
    [table] = read_exposition(paths, ImportSettings())
    return [(row["read_bytes"], row["written_bytes"]) for row in table.to_pylist()]


def test_a_text_may_have_its_series_one_after_the_other(tmp_path: Path) -> None:
    file = tmp_path / "export.txt"
    lines = READ_LINES + WRITE_LINES
    for _ in range(5):
        file.write_text("".join(lines))
        assert moved(file) == [(10, 100)] * 3
        random.Random(1).shuffle(lines)


def test_a_text_that_is_too_large_to_be_sorted_has_ascending_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_prometheus, "_MOST_BYTES_IN_MEMORY", 100)
    file = tmp_path / "export.txt"
    by_time = [each for two in zip(READ_LINES, WRITE_LINES, strict=True) for each in two]
    file.write_text("".join(by_time))
    assert moved(file) == [(10, 100)] * 3
    file.write_text("".join(READ_LINES + WRITE_LINES))
    with pytest.raises(InputError, match=r"times do not ascend.*shorter"):
        moved(file)


def test_writes_in_a_file_of_their_own_are_rejected_and_not_lost(tmp_path: Path) -> None:
    reads, writes = tmp_path / "reads.txt", tmp_path / "writes.txt"
    reads.write_text("".join(READ_LINES))
    writes.write_text("".join(WRITE_LINES))
    with pytest.raises(InputError, match=r"written_bytes of OST 11 .* one file"):
        moved(reads, writes)
    # A file may have some of the times again.
    writes.write_text("".join(READ_LINES[2:]))
    assert moved(reads, writes) == [(10, None)] * 3


def test_a_series_of_two_replicas_counts_once(tmp_path: Path) -> None:
    file = tmp_path / "replicas.txt"
    series = [(READS, "a"), (READS, "b"), (WRITES, "b"), (WRITES, "a")]
    file.write_text(
        "".join(line(name, 15 * n, 100 * n, replica=one) for n in range(2) for name, one in series)
    )
    assert moved(file) == [(100, 100)]
    answer = tmp_path / "answer.json"
    labels = {"component": "ost", "target": "fs-OST000b"}
    result = [
        {
            "metric": {"__name__": name, "replica": one, **labels},
            "values": [[START_S + 15 * n, str(100 * n)] for n in range(2)],
        }
        for name, one in series
    ]
    answer.write_text(json.dumps({"data": {"result": result}}))
    [table] = read_query_range([answer], ImportSettings())
    assert (table["read_bytes"].to_pylist(), table["written_bytes"].to_pylist()) == ([100], [100])


def test_operations_of_several_metrics_and_names_add_up(tmp_path: Path) -> None:
    file = tmp_path / "operations.txt"
    names = [("lustre_read_samples_total", "read"), ("lustre_write_samples_total", "write")]
    of_mdt = {"component": "mdt", "target": "fs-MDT0000"}
    file.write_text(
        "".join(
            line(name, 15 * n, 3 * n, operation=operation)
            for n in range(2)
            for name, operation in names
        )
        + "".join(
            line("lustre_stats_total", 15 * n, 5 * n, operation=operation, replica=one, **of_mdt)
            for n in range(2)
            for operation in ("open", "close", "mkdir")
            for one in "ab"
        )
    )
    [table] = read_exposition([file], ImportSettings())
    assert {row["kind"]: row["operations"] for row in table.to_pylist()} == {"OST": 6, "MDT": 15}
