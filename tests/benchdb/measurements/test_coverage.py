from __future__ import annotations

import csv
import errno
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
from collections import defaultdict
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine

from benchdb.measurements.coverage import Cell, CoverageRow, blocks, coverage, summarise
from benchdb.measurements.coverage_page import write_html
from benchdb.measurements.storing import Measurement, store
from benchdb.store.database import open_database, transaction
from ioncast.cli import cli
from ioncast_base.errors import InputError, UnknownNameError
from ior_configs import IorConfig

pytestmark = pytest.mark.both_databases

ROOT = Path(__file__).resolve().parents[3]
TESTBED = ROOT / "experiments" / "data" / "testbed" / "benchmarks.csv"
NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
DAY = 86_400
SHARED = IorConfig(write=True, tasks=16, nodes=8, block_size=4 << 20, transfer_size=1 << 20)
OWN_FILES = IorConfig(write=True, file_per_process=True, tasks=16, nodes=8)
# Inria RR-9366, Table 9.
BIMODAL = (370.1, 287.1, 52145.5, 50370.5, 383.0)
_contents = itertools.count()


def put(engine: Engine, *rows: Measurement, system: str = "here") -> None:
    with transaction(engine, write=True) as connection:
        store(
            connection,
            system=system,
            file="file.csv",
            content=str(next(_contents)).encode(),
            file_format="test",
            rows=rows,
        )


def rows_of(
    engine: Engine, system: str | None = None, now: datetime = NOW, stale_after_s: float = 365 * DAY
) -> list[CoverageRow]:
    with transaction(engine) as connection:
        return coverage(connection, system, now=now, stale_after_s=stale_after_s)


def only_cell(engine: Engine, **times: float) -> Cell:
    [row] = rows_of(engine, **times)  # type: ignore[arg-type]
    [cell] = row.cells
    return cell


def ioncast(*args: str | Path) -> Result:
    return CliRunner().invoke(cli, ["bench", *map(str, args)], env={"COLUMNS": "300"})


@pytest.fixture(scope="module")
def testbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("database") / "bench.sqlite"
    options = ("--system", "testbed", "--tasks", "16", "--nodes", "8", "--db", place)
    assert ioncast("import", TESTBED, *options).exit_code == 0
    return place


def test_every_cell_of_the_testbed_has_the_repetitions_of_its_file(testbed: Path) -> None:
    expected: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with TESTBED.open(encoding="utf-8") as file:
        for line in csv.DictReader(file):
            if line["kind"] == "benchmark":
                cell = expected[int(line["io_nodes"])]
                cell[line["name"]].append(float(line["bandwidth_mib_s"]))
    engine = open_database(testbed)
    rows = rows_of(engine)
    engine.dispose()
    found = {n: [c for row in rows for c in row.cells if c.io_nodes == n] for n in expected}
    assert len(rows) == 15
    for n, cells in expected.items():
        assert sorted((c.repetitions, c.mean_mib_s, c.median_mib_s) for c in found[n]) == sorted(
            (len(values), statistics.fmean(values), statistics.median(values))
            for values in cells.values()
        )


def test_a_cell_without_measurements_is_shown_as_missing(database: Engine) -> None:
    put(database, *(Measurement(SHARED, n, 5.0) for n in (0, 8)))
    put(database, Measurement(OWN_FILES, 2, 5.0))
    first, second = rows_of(database)
    assert [(c.io_nodes, c.missing) for c in first.cells] == [(0, False), (2, True), (8, False)]
    assert [(c.io_nodes, c.missing) for c in second.cells] == [(0, True), (2, False), (8, True)]
    assert first.cells[1] == Cell(2)


def test_the_numbers_of_io_nodes_are_those_of_the_same_system(database: Engine) -> None:
    put(database, Measurement(SHARED, 0, 5.0))
    put(database, Measurement(SHARED, 4, 5.0), system="there")
    assert [(r.system, [c.io_nodes for c in r.cells]) for r in rows_of(database)] == [
        ("here", [0]),
        ("there", [4]),
    ]


def test_coverage_can_be_read_for_one_system(database: Engine) -> None:
    put(database, Measurement(SHARED, 0, 5.0))
    put(database, Measurement(OWN_FILES, 4, 5.0), system="there")
    [row] = rows_of(database, "there")
    assert (row.system, row.config) == ("there", OWN_FILES)


def test_each_engine_has_its_own_coverage(database: Engine) -> None:
    put(database, Measurement(SHARED, 0, 5.0), Measurement(SHARED, 0, 6.0, engine="fio"))
    put(database, Measurement(OWN_FILES, 0, 5.0), Measurement(OWN_FILES, 0, 7.0))
    found = [(system, engine, len(rows)) for system, engine, rows in blocks(rows_of(database))]
    assert found == [("here", "fio", 1), ("here", "ior", 2)]
    assert [[c.repetitions for c in row.cells] for row in rows_of(database)] == [[1], [1], [2]]


def test_measurements_set_apart_are_counted_separately(database: Engine) -> None:
    put(
        database,
        *(Measurement(SHARED, 0, value) for value in (10.0, 12.0)),
        Measurement(SHARED, 0, 99.0, used=False),
        Measurement(SHARED, 1, 99.0, used=False, started="2026-11-01T00:00:00Z"),
    )
    [row] = rows_of(database)
    assert [(c.repetitions, c.set_apart, c.mean_mib_s) for c in row.cells] == [
        (2, 1, 11.0),
        (0, 1, None),
    ]
    assert row.cells[1].missing
    assert row.cells[1].newest is None


def test_outliers_are_listed_and_stay_in_the_mean(database: Engine) -> None:
    put(database, *(Measurement(SHARED, 0, value) for value in (44.7, 44.8, 84.0, 44.8, 45.1)))
    cell = only_cell(database)
    assert cell.outliers_mib_s == (84.0,)
    assert cell.mean_mib_s == pytest.approx(52.68)
    assert cell.median_mib_s == 44.8
    assert cell.marks == "*"


def test_a_bimodal_cell_is_marked(database: Engine) -> None:
    put(database, *(Measurement(SHARED, 0, value) for value in BIMODAL))
    cell = only_cell(database)
    assert cell.bimodal
    assert cell.outliers_mib_s == ()
    assert cell.spread == pytest.approx(statistics.stdev(BIMODAL) / statistics.fmean(BIMODAL))


@pytest.mark.parametrize(
    ("started", "stale"),
    [
        ("2026-11-14T12:00:01Z", False),
        ("2026-11-14T11:59:59Z", True),
        ("2026-11-14T13:59:59+02:00", True),
        ("2026-11-14T12:00:01", False),
        ("2026-11-14", True),
        ("1970-01-01T00:00:00Z", True),
    ],
)
def test_a_cell_is_stale_when_its_newest_repetition_is_too_old(
    database: Engine, started: str, stale: bool
) -> None:
    put(
        database,
        Measurement(SHARED, 0, 5.0, started=started),
        Measurement(SHARED, 0, 5.0, started="1969-01-01T00:00:00Z"),
    )
    assert only_cell(database, stale_after_s=7 * DAY).stale is stale


@pytest.mark.parametrize("started", [None, "on a Tuesday"])
def test_a_run_without_a_time_is_as_old_as_its_import(
    database: Engine, started: str | None
) -> None:
    put(database, Measurement(SHARED, 0, 5.0, started=started))
    now = datetime.now(timezone.utc)
    cell = only_cell(database, now=now, stale_after_s=DAY)  # type: ignore[arg-type]
    assert cell.newest is not None
    assert abs(cell.newest - now) < timedelta(minutes=1)
    assert not cell.stale


def test_the_summary_counts_cells_with_problems(database: Engine) -> None:
    put(
        database,
        *(Measurement(SHARED, 0, value, started="2020-01-01T00:00:00Z") for value in BIMODAL),
        *(Measurement(SHARED, 1, value) for value in (44.7, 44.8, 84.0, 44.8, 45.1)),
        *(Measurement(OWN_FILES, 0, value) for value in (5.0, 6.0)),
    )
    found = summarise(rows_of(database))
    assert (found.configurations, found.io_nodes) == (2, 2)
    assert (found.missing, found.few, found.with_outliers) == (1, 1, 1)
    assert (found.bimodal, found.stale) == (1, 1)


def test_an_unknown_system_is_an_error_that_lists_the_known_systems(database: Engine) -> None:
    put(database, Measurement(SHARED, 0, 5.0))
    with pytest.raises(UnknownNameError, match="here"):
        rows_of(database, "nowhere")


def test_coverage_ignores_measurements_that_are_stored_while_it_is_read(
    postgresql_location: str,
) -> None:
    engine = open_database(postgresql_location)
    with transaction(engine) as connection:
        assert coverage(connection, now=NOW, stale_after_s=DAY) == []
        put(engine, Measurement(SHARED, 0, 5.0))
        assert coverage(connection, now=NOW, stale_after_s=DAY) == []
    assert len(rows_of(engine)) == 1
    engine.dispose()


def test_a_run_in_the_future_counts_as_measured_now(database: Engine) -> None:
    put(database, Measurement(SHARED, 0, 5.0, started="2999-01-01T00:00:00Z"))
    assert only_cell(database).newest == NOW


def test_an_empty_database_covers_nothing(database: Engine) -> None:
    assert rows_of(database) == []


def test_the_table_has_a_column_for_each_number_of_io_nodes(testbed: Path) -> None:
    result = ioncast("coverage", "--db", testbed)
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0].startswith("testbed, ior")
    assert lines[1].split() == ["id", "configuration", "nodes", "fsync", *"01248"]
    # The sample coefficients of variation in experiments/data/testbed/README.md.
    [line] = [line for line in lines if "-w -F -e -b 24m -t 24m" in line]
    assert "mpiexec -n 16 ior" in line
    assert re.findall(r"\d ±\d+%", line) == ["6 ±1%", "6 ±0%", "6 ±2%", "5 ±9%", "6 ±14%"]
    assert "15 configurations × 5 numbers of I/O nodes: 0 cells missing" in result.output
    assert "Iglewicz and Hoaglin" in result.output


def test_the_table_marks_missing_stale_and_bimodal_cells(tmp_path: Path) -> None:
    place = tmp_path / "bench.sqlite"
    engine = open_database(place)
    put(
        engine,
        *(Measurement(SHARED, 0, value, started="2020-01-01T00:00:00Z") for value in BIMODAL),
        Measurement(OWN_FILES, 1, 5.0),
    )
    engine.dispose()
    lines = ioncast("coverage", "--db", place).output.splitlines()
    spread = statistics.stdev(BIMODAL) / statistics.fmean(BIMODAL)
    assert re.search(rf"8 +none +5 ±{spread:.0%} bs +-$", lines[3])
    assert re.search(r"8 +none +- +1$", lines[4])


def test_json_has_every_cell_and_the_rule(testbed: Path) -> None:
    result = ioncast("coverage", "--db", testbed, "--format", "json", "--stale-after", "2h")
    document = json.loads(result.output)
    assert document["stale_after_s"] == 7200
    assert "Iglewicz" in document["outlier_rule"]
    assert len(document["configurations"]) == 15
    for row in document["configurations"]:
        assert IorConfig.from_command_line(row["command"]).operation in {"read", "write"}
        assert [cell["io_nodes"] for cell in row["cells"]] == [0, 1, 2, 4, 8]
        assert all(cell["newest"].startswith("2026-11-21T") for cell in row["cells"])


def test_a_new_database_has_no_measurements(tmp_path: Path) -> None:
    page, place = tmp_path / "coverage.html", tmp_path / "new.sqlite"
    open_database(str(place)).dispose()
    result = ioncast("coverage", "--db", place, "--html", page)
    assert (result.exit_code, result.stdout) == (0, "no measurements\n")
    assert "No measurements" in page.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ("--system", "nowhere"),
        ("--stale-after", "1 fortnight"),
        ("--stale-after", "-1d"),
        ("--html", "missing/coverage.html"),
        ("--html", ""),
        ("--html", "x" * 300 + ".html"),
        ("--html", "/dev/full"),
    ],
    ids=lambda options: " ".join(options)[:40],
)
def test_an_error_is_one_line(testbed: Path, tmp_path: Path, options: tuple[str, str]) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "ioncast", "bench", "coverage", "--db", str(testbed), *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("ioncast: ")
    assert list(tmp_path.iterdir()) == []


def a_row(*cells: Cell, system: str = "here", config: IorConfig = SHARED) -> CoverageRow:
    return CoverageRow(system, "ior", 7, config, cells)


FULL = Cell(4, 6, 2, 50.0, 45.0, 0.31, (84.0,), True, NOW, True)


def write(rows: list[CoverageRow], path: Path) -> str:
    write_html(rows, path, now=NOW, stale_after="365d")
    return path.read_text(encoding="utf-8")


def test_the_heat_map_has_a_row_for_each_configuration(tmp_path: Path) -> None:
    one = Cell(0, 1, 0, 5.0, 5.0)
    text = write([a_row(one, FULL), a_row(Cell(0), FULL)], tmp_path / "coverage.html")
    rows = [
        (
            " ".join(re.findall(r"[\w.*–×]+", re.sub("<[^>]+>", " ", row))),
            re.findall(r'<td class="(\w+)"', row),
        )
        for row in re.findall(r"<tr>\s*<th scope=\"row\".*?</tr>", text, re.DOTALL)
    ]
    assert [classes for _, classes in rows] == [["one", "s2"], ["missing", "s2"]]
    words = [text for text, _ in rows]
    assert all("b 4m t 1m 16 processes on 8 nodes" in line for line in words)
    assert words[0].endswith("5 ×1 50 ×6 *bs")
    assert words[1].endswith("– missing 50 ×6 *bs")


def test_a_cell_says_its_spread_its_outliers_and_its_age(tmp_path: Path) -> None:
    text = write([a_row(FULL)], tmp_path / "coverage.html")
    assert 'title="spread 31%, two modes, outliers 84, stale"' in text
    assert "Iglewicz" in text


@pytest.mark.slow
def test_the_page_leaves_out_rows_beyond_a_thousand(tmp_path: Path) -> None:
    page = write([a_row(FULL)] * 1005, tmp_path / "coverage.html")
    assert "5 more are in the table" in page
    assert "1,005 configurations" in page
    assert "more are in the table" not in write([a_row(FULL)] * 25, tmp_path / "coverage.html")


def test_the_page_needs_no_network(tmp_path: Path) -> None:
    page = write([a_row(FULL), a_row(FULL, system="there")], tmp_path / "coverage.html")
    tags = re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", page)
    assert tags == []


def test_names_cannot_break_the_page(tmp_path: Path) -> None:
    page = write([a_row(FULL, system="<img src=x onerror=alert(1)>")], tmp_path / "coverage.html")
    assert "<img src=x" not in page


def test_a_page_that_cannot_be_written_leaves_the_earlier_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "coverage.html"
    place.write_text("before", encoding="utf-8")

    def full_disk(self: Path, text: str, encoding: str) -> None:
        self.write_bytes(text[:100].encode(encoding))
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full_disk)
    with pytest.raises(InputError, match="No space left"):
        write_html([a_row(FULL)], place, now=NOW, stale_after="365d")
    assert place.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [place]


def test_a_link_to_a_page_stays_a_link(tmp_path: Path) -> None:
    place, link = tmp_path / "coverage.html", tmp_path / "link.html"
    link.symlink_to(place)
    write([a_row(FULL)], link)
    assert link.is_symlink()
    assert place.is_file()
