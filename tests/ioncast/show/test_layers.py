"""The page of layers: its figures have the numbers of planted calls."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from ioncast.show.layers import write_layers
from ioncast.warehouse.engine import asking
from tests.ioncast.warehouse.test_layer_queries import at_server, planted, request, tables


def page(folder: Path, data: dict[str, pa.Table], given: Mapping[str, str]) -> str:
    path = folder / "layers.html"
    with asking(data) as ask:
        write_layers(path, ask, given, "/logs/app.darshan")
    return path.read_text(encoding="utf-8")


def titles(text: str) -> list[str]:
    return re.findall("<h2>(.*?)</h2>", text)


def test_each_figure_has_the_seconds_servers_and_bandwidth_of_its_calls(tmp_path: Path) -> None:
    text = page(tmp_path, planted(), {})
    assert titles(text) == [
        "Layers of each process",
        "Longest and shortest fragment of each process",
        "Fragments of process 0",
        "Calls of process 0",
        "Requests of process 0 to servers",
        "Bandwidth of servers",
        "Bandwidth of processes at server 0",
    ]
    for hint in (
        "process 0: 2 s, MPI-IO",
        "process 0: 7 s, servers",
        "process 0: 4 s, server 1",
        "process 0: 1 s, server 0",
        "call-fragment 0-0: 3 s, server 1",
        "call-fragment 0-0: 2 s, server 0",
        "server 0, call 0: 2 requests",
        "server 0, call 0: 6.67 MB/s",
    ):
        assert hint in text


def test_without_times_of_servers_bars_have_no_numbers(tmp_path: Path) -> None:
    text = page(tmp_path, planted(own_times=False), {})
    assert "Longest fragments" in titles(text)
    assert "The log does not tell the seconds at each server." in text
    assert "seconds, shortest" not in text
    assert "process 0: 7 s, client (POSIX)" in text


def test_fragments_have_a_logarithmic_axis_that_begins_below_the_shortest(tmp_path: Path) -> None:
    calls = [
        request(0, "MPIIO", (0, 90), 0),
        *(request(n, "POSIX", (0, 10.0 ** (2 - n)), 0, fragment=n) for n in (1, 2, 3)),
    ]
    text = page(tmp_path, tables(calls, []), {})
    drawn = text.partition("<h2>Fragments of process 0</h2>")[2].partition("<h2>")[0]
    assert "seconds, longest, logarithmic" in drawn
    heights = [float(each) for each in re.findall(r'<rect [^>]*height="([\d.]+)%"', drawn)]
    assert heights[0] - heights[1] == pytest.approx(heights[1] - heights[2], abs=0.1)
    assert heights[2] > 0


def test_of_many_processes_the_longest_are_drawn(tmp_path: Path) -> None:
    calls = [request(n, "MPIIO", (0, 1 + n), n, process=n) for n in range(1000)]
    text = page(tmp_path, tables(calls, []), {})
    assert "The 32 longest of 1,000." in text
    assert "process 999: 1,000 s, MPI-IO" in text
    assert "process 0: 1 s" not in text


def test_a_page_has_only_selected_calls(tmp_path: Path) -> None:
    assert "No MPI-IO call is selected." in page(tmp_path, planted(), {"process": "7"})
    text = page(tmp_path, planted(), {"server": "0", "view": "server"})
    assert "call-fragment 0-0: 3 s" not in text


def test_an_unknown_server_is_minus_one(tmp_path: Path) -> None:
    data = tables(
        [
            request(0, "MPIIO", (0, 9), 0),
            request(1, "POSIX", (1, 4), 0, fragment=0),
            request(2, "POSIX", (4, 5), 0, fragment=1),
        ],
        [at_server(1, 3, (1, 4))],
    )
    assert "server -1, call 0: 1 requests" in page(tmp_path, data, {})
