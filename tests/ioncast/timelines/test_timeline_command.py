"""`ioncast timeline` on genuine logs: traces, heat maps, selections, and logs without either."""

from __future__ import annotations

import csv
import json
import re
import struct
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from experiments.applications.darshan_writer import Dxt, write_log
from ioncast.timeline_command import timeline
from ioncast_base.errors import InputError
from tests.support.command import run_ioncast

FIXTURES = Path(__file__).resolve().parents[2] / "summario" / "fixtures"
TRACED = FIXTURES / "reopen-same-5x-dxt.darshan"
HEAT_MAP = FIXTURES / "reopen-same-5x.darshan"
# Its manifest: 24 processes write 240 MiB, five times after a pause, in requests of 512 KiB.
PROCESSES, MOVED, REQUESTS = 24, 251_658_240, 480


def rows_of(folder: Path, log: Path, *options: str) -> list[dict[str, str]]:
    table = folder / "spans.csv"
    done = run_ioncast("timeline", log, "--csv", table, *options)
    assert done.returncode == 0, done.stderr
    with table.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def total(rows: list[dict[str, str]], column: str) -> int:
    return sum(int(row[column]) for row in rows)


def test_a_trace_has_all_requests_of_all_ranks(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, TRACED)
    assert total(rows, "requests") == len(rows) == REQUESTS
    assert total(rows, "bytes") == MOVED
    assert {(row["api"], row["operation"]) for row in rows} == {("POSIX", "write")}
    assert {int(row["first_rank"]) for row in rows} == set(range(PROCESSES))


def test_without_a_trace_the_heat_map_is_the_time_line(tmp_path: Path) -> None:
    # Its heat map of STDIO has the output of the program.
    rows = [row for row in rows_of(tmp_path, HEAT_MAP) if row["api"] == "POSIX"]
    assert total(rows, "bytes") == MOVED
    assert {int(row["first_rank"]) for row in rows} == set(range(PROCESSES))
    page = tmp_path / "page.html"
    assert run_ioncast("timeline", HEAT_MAP, "--html", page).returncode == 0
    assert "from the heat maps, because the log has no trace" in page.read_text(encoding="utf-8")


def test_ranks_and_times_are_selected(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, TRACED, "--ranks", "0-1,7")
    assert {int(row["first_rank"]) for row in rows} == {0, 1, 7}
    assert len(rows) == REQUESTS * 3 // PROCESSES
    middle = sorted(float(row["start"]) for row in rows)[len(rows) // 2]
    early = rows_of(tmp_path, TRACED, "--ranks", "0-1,7", "--to", str(middle))
    late = rows_of(tmp_path, TRACED, "--ranks", "0-1,7", "--from", str(middle))
    assert len(rows) <= len(early) + len(late) < len(rows) + 4
    assert max(float(row["start"]) for row in early) <= middle
    assert min(float(row["end"]) for row in late) >= middle


def test_the_page_has_phases_with_their_slowest_rank_and_each_request(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run_ioncast("timeline", TRACED, "--html", page).returncode == 0
    text = page.read_text(encoding="utf-8")
    assert len(re.findall(r"<title>rank \d+: 1 write, 512 KiB", text)) == REQUESTS
    phases = re.findall(r"<tr><td>POSIX</td><td>write</td>", text)
    assert len(phases) == len(re.findall(r"rank \d+ ended last", text)) == 5
    assert not re.findall(r"<(?:link|img|iframe)\b|<script [^>]*src", text)


def test_mpi_io_is_above_posix(tmp_path: Path, shared_data: Path) -> None:
    page = tmp_path / "page.html"
    log = shared_data / "runs/logs/mpiio-coll-contig-dxt.darshan"
    assert run_ioncast("timeline", log, "--html", page).returncode == 0
    text = page.read_text(encoding="utf-8")
    assert text.index("MPI-IO: rank") < text.index("POSIX: rank")


def test_files_are_selected_by_their_path(tmp_path: Path, shared_data: Path) -> None:
    log = shared_data / "runs/logs/two-shared-10s-dxt.darshan"
    one, other = (rows_of(tmp_path, log, "--files", pattern) for pattern in ("*/A", "*/B"))
    assert total(one, "bytes") == total(other, "bytes") > 0
    assert len(one) + len(other) == len(rows_of(tmp_path, log))


@pytest.mark.parametrize(
    ("log", "options", "said"),
    [
        (TRACED, (), "say --html FILE, or another option with a file"),
        (TRACED, ("--csv", "a.csv", "--ranks", "x"), "'x' is no range of ranks"),
        (TRACED, ("--csv", "a.csv", "--ranks", "99"), "no request is selected"),
        (TRACED, ("--csv", "a.csv", "--files", "*.none"), "no request is selected"),
        (HEAT_MAP, ("--csv", "a.csv", "--files", "*"), "only a trace tells files"),
        (HEAT_MAP, ("--csv", "a.csv", "--colour", "size"), "only a trace tells files"),
        (HEAT_MAP, ("--html", "a.html", "--offsets"), "only a trace tells files, offsets"),
        (
            TRACED,
            ("--csv", "a.csv", "--with", str(TRACED)),
            "only a page or a picture has two runs",
        ),
        (TRACED, ("--html", "no-such-folder/a.html"), "no-such-folder"),
    ],
)
def test_an_error_is_one_line(log: Path, options: tuple[str, ...], said: str) -> None:
    done = run_ioncast("timeline", log, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_log_with_neither_trace_nor_heat_map_is_an_error(shared_data: Path) -> None:
    log = shared_data / "darshan-logs/empty_log/empty_log.darshan"
    done = run_ioncast("timeline", log, "--csv", "a.csv")
    assert done.returncode == 2
    assert "there is no trace, and no heat map" in done.stderr


def page_of(folder: Path, log: Path, *options: str | Path) -> str:
    page = folder / "page.html"
    done = run_ioncast("timeline", log, "--html", page, *options)
    assert done.returncode == 0, done.stderr
    return page.read_text(encoding="utf-8")


def test_without_trace_and_heat_map_the_phases_are_drawn(tmp_path: Path, shared_data: Path) -> None:
    log = shared_data / "darshan-logs/apmpi_apxc"
    [log] = [each for each in log.iterdir() if each.suffix == ".darshan"]
    text = page_of(tmp_path, log)
    assert "The phases of the run, because there is no trace, and no heat map" in text
    assert re.search(r"<title>Phase 0\n", text)


def test_colours_tell_sizes_orders_and_compute_nodes(tmp_path: Path) -> None:
    # Its manifest: requests of 512 KiB, one after the other in the file of each process.
    rows = rows_of(tmp_path, TRACED, "--colour", "size")
    assert {row["class"] for row in rows} == {"64 KiB to 1 MiB"}
    rows = rows_of(tmp_path, TRACED, "--colour", "host")
    assert {row["class"] for row in rows} == {"vm"}
    rows = rows_of(tmp_path, TRACED, "--colour", "server")
    assert {row["class"] for row in rows} == {"not known"}


def test_two_runs_are_below_each_other(tmp_path: Path) -> None:
    text = page_of(tmp_path, TRACED, "--with", HEAT_MAP)
    assert text.index("First run: POSIX: rank") < text.index("Second run: POSIX: rank")
    assert "First run: 480 requests, 240 MiB." in text
    assert re.search(r"Second run: \d+ bins of [\d.]+ s of a rank", text)


def test_a_file_is_drawn_by_offset(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, TRACED, "--offsets", "--ranks", "0-1")
    assert {(row["first_rank"], row["last_rank"]) for row in rows} == {("", "")}
    # No byte of the file is written twice, and 128 rows have 240 MiB.
    assert len({row["offset"] for row in rows}) == len(rows) == REQUESTS * 2 // PROCESSES
    assert "A row has 1.88 MiB of the file." in page_of(tmp_path, TRACED, "--offsets")


def test_collective_calls_that_ran_alone_are_said(tmp_path: Path) -> None:
    text = page_of(tmp_path, FIXTURES / "programs" / "mpi-mix-dxt.darshan")
    assert "MPI-IO and POSIX look alike: collective calls ran as independent ones" in text
    assert "I07 Collective calls that ran as independent ones</option>" in text
    assert re.search(r'<rect class="c0" ', text)
    assert "look alike" not in page_of(tmp_path, TRACED)


def test_every_request_is_in_the_trace_for_perfetto(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    assert run_ioncast("timeline", TRACED, "--perfetto", file).returncode == 0
    events = [each for each in json.loads(file.read_text())["traceEvents"] if each["ph"] == "X"]
    assert len(events) == REQUESTS
    assert sum(each["args"]["bytes"] for each in events) == MOVED


def test_a_picture_is_the_same_drawing_without_a_style_sheet(tmp_path: Path) -> None:
    svg, png = tmp_path / "a.svg", tmp_path / "a.png"
    done = run_ioncast("timeline", TRACED, "--with", TRACED, "--svg", svg, "--png", png)
    assert done.returncode == 0, done.stderr
    text = svg.read_text(encoding="utf-8")
    drawn = ET.fromstring(text)  # noqa: S314 - ours
    bars = drawn.findall(".//{*}g[@class='bars']/{*}rect")
    assert len(bars) == 2 * REQUESTS
    names = {each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")}
    assert {"First run: POSIX: rank", "Second run: POSIX: rank", "writes"} <= names
    # A program that shows pictures knows no variables of style sheets.
    assert "var(" not in text
    header = png.read_bytes()[:24]
    assert header.startswith(b"\x89PNG\r\n")
    assert [str(size) for size in struct.unpack(">II", header[16:])] == [
        drawn.attrib["width"],
        drawn.attrib["height"],
    ]


def test_names_that_look_like_colours_stay_as_they_are(tmp_path: Path) -> None:
    log = write_log(
        tmp_path / "app.darshan",
        nprocs=1,
        exe="/bin/var(--x) fill:var(--text)",
        records=[],
        dxt=[Dxt("DXT_POSIX", "/data/out", 0, 'n"var(--y)"', [(0, 10, 0.0, 1.0)])],
    )
    svg = tmp_path / "a.svg"
    done = run_ioncast("timeline", log, "--svg", svg, "--colour", "host")
    assert done.returncode == 0, done.stderr
    names = {each.text for each in ET.parse(svg).getroot().iter()}  # noqa: S314 - ours
    assert 'n"var(--y)"' in names
    assert any("var(--x)" in (name or "") for name in names)


def test_requests_without_counters_are_drawn(tmp_path: Path) -> None:
    log = write_log(
        tmp_path / "app.darshan",
        nprocs=1,
        records=[],
        dxt=[Dxt("DXT_POSIX", "/data/out", 0, "n1", [(0, 10, 0.0, 1.0)])],
    )
    assert total(rows_of(tmp_path, log), "requests") == 1


def test_without_known_offsets_a_drawing_by_offset_is_an_error(tmp_path: Path) -> None:
    log = write_log(
        tmp_path / "app.darshan",
        nprocs=1,
        records=[],
        dxt=[Dxt("DXT_POSIX", "/data/out", 0, "n1", [(-5, 10, 0.0, 1.0)])],
    )
    done = run_ioncast("timeline", log, "--offsets", "--svg", tmp_path / "a.svg")
    assert done.returncode == 2
    assert "the trace has no offsets" in done.stderr


def test_two_runs_have_their_own_servers(tmp_path: Path, shared_data: Path) -> None:
    log = shared_data / "darshan-logs/ior_hdf5_lustre_dxt/ior_hdf5_example.darshan"
    text = page_of(tmp_path, log, "--with", log, "--colour", "server")
    assert re.search(r"OST \d+</li>", text)
    assert "not known</li>" not in text
    # Its hints tell them without colours, too.
    [server] = set(re.findall(r"OST \d+(?=</li>)", text))
    assert re.search(
        rf"<title>rank 0: 1 write, [^\n]* at \d[\d,]*, {server}\n", page_of(tmp_path, log)
    )


def test_without_its_library_a_png_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    done = CliRunner().invoke(timeline, [str(TRACED), "--png", str(tmp_path / "a.png")])
    assert isinstance(done.exception, InputError)
    assert "pip install 'ioncast[png]'" in str(done.exception)
    assert not list(tmp_path.iterdir())
