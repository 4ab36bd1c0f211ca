"""An export that is imported into another database gives the same database."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, make_url, select

from benchdb.commands import bench
from benchdb.measurements.cells import OUTLIER_RULE
from benchdb.measurements.exports import EXPORT_COLUMNS, csv_lines, export_rows
from benchdb.measurements.importers import ResultFile, is_export, read_export
from benchdb.measurements.restore import restore
from benchdb.measurements.storing import Measurement, store
from benchdb.store.database import open_database, opened_database, transaction
from benchdb.store.schema import configurations, imports, measurements, systems
from ioncast_base.errors import InputError
from ior_configs import IorConfig
from tests.support.examples import examples
from tests.support.postgresql import Server

pytestmark = pytest.mark.both_databases

PROJECT = Path(__file__).resolve().parents[3]
BENCHMARKS = PROJECT / "experiments/data/testbed/benchmarks.csv"
NUMBERS = {"bandwidth_mib_s", "time_s"}
IOR_JSON = PROJECT / "tests/ior_configs/fixtures/wr-shared.json"
CONFIG = IorConfig(write=True, tasks=16, nodes=8)
FORGE = (
    "forwarders;clients;processes;layout;spatiality;odirect;stonewall;request;total;operation;"
    "time;transfered;bandwidth;population\n"
    "0;8;96;1;0;1;60;512;9216;write;61.5;4096.5;66.609756;A\n"
    "0;8;96;1;0;1;60;512;9216;write;6.5;4096.5;630.2;B\n"
)
# Measurements with digits, blanks, quotes and line ends that other programs often lose.
ODD = [
    Measurement(CONFIG, 0, 0.1 + 0.2, bytes=2**63 - 1, time_s=5e-324, note="a,b"),
    Measurement(CONFIG, 0, 1e15, bytes=0, time_s=0.0, note=' "quoted" '),
    Measurement(CONFIG, 0, 1 / 3, command="ior -w  -o 'a b'\nior -r\r", campaign=" größer\tals"),
    Measurement(IorConfig(read=True), 2**31 - 1, 7.0, engine="fio", started="soon", note="\r"),
    Measurement(CONFIG, 0, 2.0, engine="Fio", engine_version="fio-3.33", used=False),
    Measurement(
        CONFIG,
        0,
        2.5,
        engine="@SUM(1)",
        engine_version="'-1",
        command="\t=1",
        campaign="'quoted'",
        note='=HYPERLINK("http://example.org")',
    ),
    Measurement(replace(CONFIG, fsync=None), 0, 3.0),
    Measurement(replace(CONFIG, fsync="each", conditions=("-M 75%", "-U my hints")), 0, 3.0),
]


def run(*args: str | Path, db: str) -> Result:
    return CliRunner().invoke(bench, [*map(str, args), "--db", db])


def output(*args: str | Path, db: str) -> str:
    result = run(*args, db=db)
    # The nodes that wrote some of the data also read them, which the import says.
    said = [line for line in result.stderr.splitlines() if "page cache" not in line]
    assert (result.exit_code, said) == (0, []), result.stderr
    return result.stdout


def complaint(*args: str | Path, db: str) -> str:
    result = run(*args, db=db)
    if isinstance(result.exception, InputError):
        return str(result.exception)
    assert result.exit_code == 2
    [line] = result.stderr.splitlines()
    return line


def fill(location: str, folder: Path) -> None:
    """Import five files of three formats, for two systems and three engines."""
    forge = folder / "forge.csv"
    forge.write_text(FORGE)
    told = ("--tasks", "16", "--nodes", "8")
    output("import", BENCHMARKS, "--system", "testbed", *told, db=location)
    output("import", IOR_JSON, "--system", "Ärger, 4", "--io-nodes", "4", db=location)
    output("import", IOR_JSON, "--system", "testbed", "--io-nodes", "2", db=location)
    output("import", forge, "--system", "Ärger, 4", db=location)
    engine = open_database(location)
    put(engine, *ODD)
    engine.dispose()


def put(engine: Engine, *rows: Measurement, system: str = "Ärger, 4", file: str = "odd") -> None:
    with transaction(engine, write=True) as connection:
        store(
            connection,
            system=system,
            file=file,
            content=file.encode(),
            file_format="test",
            rows=rows,
        )


def contents(location: str) -> set[tuple[Any, ...]]:
    """Every measurement with its system, configuration and import, without ids and revisions."""
    engine = open_database(location)
    tables = (systems, configurations, imports, measurements)
    hidden = ("id", "revision")
    columns = [c for t in tables for c in t.c if c.name not in hidden and c.name[-3:] != "_id"]
    query = (
        select(*columns)
        .select_from(measurements)
        .join(systems, systems.c.id == measurements.c.system_id)
        .join(configurations)
        .join(imports, imports.c.id == measurements.c.import_id)
    )
    with engine.connect() as connection:
        rows = [tuple(row) for row in connection.execute(query)]
    engine.dispose()
    assert len(set(rows)) == len(rows)
    return set(rows)


@pytest.fixture(scope="module")
def filled_on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A filled database, which each test copies."""
    folder = tmp_path_factory.mktemp("filled")
    fill(str(folder / "filled.sqlite"), folder)
    return folder / "filled.sqlite"


@pytest.fixture(scope="module")
def filled_on_postgresql(
    postgresql: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    with postgresql.database("filled") as url:
        fill(url, tmp_path_factory.mktemp("filled"))
        yield "filled"


@pytest.fixture
def filled(location: str, request: pytest.FixtureRequest) -> str:
    if "://" not in location:
        shutil.copy(request.getfixturevalue("filled_on_sqlite"), location)
    else:
        server: Server = request.getfixturevalue("postgresql")
        name = make_url(location).database
        assert name is not None
        server.copy(request.getfixturevalue("filled_on_postgresql"), name)
    return location


@pytest.fixture(params=["csv", "parquet"])
def exported(request: pytest.FixtureRequest, filled: str, tmp_path: Path) -> Path:
    path = tmp_path / f"export.{request.param}"
    assert output("export", "--format", request.param, "--output", path, db=filled) == ""
    return path


@pytest.mark.slow
def test_an_export_gives_the_same_database_elsewhere(
    filled: str, exported: Path, other_location: str
) -> None:
    said = output("import", exported, db=other_location)
    # 440 measurements of the testbed, 2 of the JSON on each system, 2 of FORGE, and 8 odd ones.
    assert said.startswith(f"{exported}: 454 measurements of ")
    assert contents(other_location) == contents(filled)
    assert output("export", db=other_location) == output("export", db=filled)


def test_an_export_changes_nothing_in_its_own_database(filled: str, exported: Path) -> None:
    before = contents(filled)
    assert "nothing changed" in output("import", exported, db=filled)
    assert "nothing changed" in output("import", exported, "--replace", db=filled)
    assert contents(filled) == before


def test_a_file_that_was_restored_is_known(
    filled: str, other_location: str, tmp_path: Path
) -> None:
    export = tmp_path / "export.csv"
    output("export", "--output", export, db=filled)
    output("import", export, db=other_location)
    told = ("--system", "testbed", "--tasks", "16", "--nodes", "8")
    assert "nothing changed" in output("import", BENCHMARKS, *told, db=other_location)


def test_the_export_on_standard_output_is_the_file(filled: str, tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    output("export", "--output", path, db=filled)
    assert path.read_bytes().decode() == output("export", db=filled)
    assert [p.name for p in tmp_path.glob("export*")] == ["export.csv"]


def test_one_system_can_be_exported_and_imported_under_another_name(
    filled: str, other_location: str, tmp_path: Path
) -> None:
    path = tmp_path / "export.csv"
    output("export", "--system", "testbed", "--output", path, db=filled)
    output("import", path, "--system", "the same", db=other_location)
    there, here = contents(other_location), contents(filled)
    assert {row[0] for row in there} == {"the same"}
    assert {row[1:] for row in there} == {row[1:] for row in here if row[0] == "testbed"}
    output("import", path, db=other_location)
    assert {row[0] for row in contents(other_location)} == {"the same", "testbed"}


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def csv_of(rows: list[dict[str, str]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, EXPORT_COLUMNS, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def test_every_measurement_is_exported_with_its_origin(location: str, tmp_path: Path) -> None:
    fill(location, tmp_path)
    rows = rows_of(output("export", db=location))
    origins = {(r["system"], r["file"], r["file_sha256"], r["file_format"]) for r in rows}
    paths = (BENCHMARKS, IOR_JSON, tmp_path / "forge.csv")
    digests = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    assert origins == {
        ("testbed", str(BENCHMARKS), digests[BENCHMARKS], "ioncast-csv"),
        ("testbed", str(IOR_JSON), digests[IOR_JSON], "ior"),
        ("Ärger, 4", str(IOR_JSON), digests[IOR_JSON], "ior"),
        ("Ärger, 4", str(tmp_path / "forge.csv"), digests[tmp_path / "forge.csv"], "forge-csv"),
        ("Ärger, 4", "odd", hashlib.sha256(b"odd").hexdigest(), "test"),
    }
    assert all(row["imported_at"].startswith("20") for row in rows)


def test_the_order_does_not_depend_on_the_order_of_import(location: str) -> None:
    engine = open_database(location)
    rows = [
        Measurement(config, n, 1.0, engine=name)
        for n in (8, 0, 1)
        for name in ("fio", "Fio", "ior")
        for config in (CONFIG, IorConfig(read=True, api="MPIIO"))
    ]
    put(engine, *rows, system="b")
    put(engine, *reversed(rows), system="Za")
    with transaction(engine) as connection:
        found = [
            (r["system"], r["api"], r["io_nodes"], r["engine"]) for r in export_rows(connection)
        ]
    engine.dispose()
    assert found == [
        (system, api, n, name)
        for system in ("Za", "b")
        for api in ("MPIIO", "POSIX")
        for n in (0, 1, 8)
        for name in ("Fio", "fio", "ior")
    ]


def test_a_spreadsheet_runs_no_cell_of_an_export(filled: str) -> None:
    rows = rows_of(output("export", db=filled))
    cells = [cell for row in rows for name, cell in row.items() if name not in NUMBERS]
    assert '\'=HYPERLINK("http://example.org")' in cells
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]


def test_outliers_are_exported_with_their_rule_and_without_rows_set_apart(
    database: Engine,
) -> None:
    # The example of the rule, whose third value is an outlier, with a row set apart in between.
    values = [44.7, 44.8, 84.0, 44.8, 45.1, 45.1]
    rows = [Measurement(CONFIG, 0, value) for value in values]
    put(database, *rows[:1], Measurement(CONFIG, 0, 9999.0, used=False), *rows[1:])
    put(database, Measurement(CONFIG, 1, 84.0), file="other")
    with transaction(database) as connection:
        found = [(r["bandwidth_mib_s"], r["outlier"]) for r in export_rows(connection)]
    assert [pair for pair in found if pair[1]] == [(84.0, OUTLIER_RULE)]
    assert found[-1] == (84.0, None)


def test_parquet_has_the_types_of_the_tables(filled: str, tmp_path: Path) -> None:
    path = tmp_path / "export.parquet"
    output("export", "--format", "parquet", "--output", path, db=filled)
    table = pq.read_table(path)
    assert table.column_names == list(EXPORT_COLUMNS)
    assert table.num_rows == 454
    kinds = {name: table.schema.field(name).type for name in EXPORT_COLUMNS}
    whole = {"transfer_size", "block_size", "segments", "tasks", "nodes", "random_offsets"}
    whole |= {"io_nodes", "repetition", "bytes"}
    flags = {"file_per_process", "collective", "odirect", "reorder_tasks", "used"}
    flags |= {"intra_test_barriers"}
    assert {name for name, kind in kinds.items() if kind == pa.int64()} == whole
    assert {name for name, kind in kinds.items() if kind == pa.bool_()} == flags
    assert {n for n, kind in kinds.items() if kind == pa.float64()} == {"bandwidth_mib_s", "time_s"}
    assert {kind for n, kind in kinds.items() if n == "command"} == {pa.string()}
    floats = {0.1 + 0.2, 1e15, 1 / 3}
    assert floats <= set(table.column("bandwidth_mib_s").to_pylist())


def test_a_parquet_file_of_another_program_is_imported(location: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.parquet"
    columns = {"io_nodes": [0, 4], "bandwidth_mib_s": [1 / 3, 5.0], "command": ["ior -w"] * 2}
    pq.write_table(pa.table(columns), path)
    assert "2 measurements" in output("import", path, "--system", "x", db=location)
    rows = rows_of(output("export", db=location))
    assert [(r["io_nodes"], r["bandwidth_mib_s"]) for r in rows] == [
        ("0", repr(1 / 3)),
        ("4", "5.0"),
    ]
    assert {row["file_format"] for row in rows} == {"parquet"}
    assert "nothing changed" in output("import", path, "--system", "x", db=location)


def test_parquet_without_its_library_is_an_error_in_one_line(
    database: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    put(database, *ODD)
    path, db = tmp_path / "x.parquet", database.url.render_as_string(hide_password=False)
    exporting = complaint("export", "--format", "parquet", "--output", path, db=db)
    assert "pip install '.[parquet]'" in exporting
    assert not path.exists()
    path.write_bytes(b"PAR1")
    assert "pip install '.[parquet]'" in complaint("import", path, db=db)


def test_a_file_named_parquet_is_written_as_parquet(filled: str, tmp_path: Path) -> None:
    path = tmp_path / "my.parquet"
    output("export", "--output", path, db=filled)
    assert path.read_bytes().startswith(b"PAR1")


@pytest.mark.parametrize("output_format", ["csv", "parquet"])
def test_an_export_that_cannot_be_written_is_an_error_in_one_line(
    filled: str, tmp_path: Path, output_format: str
) -> None:
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path, tmp_path / "file" / "x", tmp_path / "no folder" / "x"):
        args = ("export", "--format", output_format, "--output", place)
        assert str(place) in complaint(*args, db=filled)
    assert (tmp_path / "file").read_text() == "mine"
    assert list(tmp_path.glob("*.part")) == []


@pytest.mark.slow
@pytest.mark.parametrize("output_format", ["csv", "parquet"])
def test_an_export_can_be_written_to_a_pipe(
    filled: str, tmp_path: Path, output_format: str
) -> None:
    path = tmp_path / "export"
    args = ("--format", output_format, "--db", filled)
    output("export", *args[:2], "--output", path, db=filled)
    command = [sys.executable, "-m", "ioncast", "bench", "export", *args, "--output"]
    piped = subprocess.run([*command, "/dev/stdout"], cwd=PROJECT, capture_output=True, check=True)
    assert piped.stdout == path.read_bytes()
    os.mkfifo(tmp_path / "fifo")
    with ThreadPoolExecutor(1) as reader:
        read = reader.submit((tmp_path / "fifo").read_bytes)
        output("export", *args[:2], "--output", tmp_path / "fifo", db=filled)
        assert read.result() == path.read_bytes()


def test_an_export_is_utf_8_on_every_terminal(filled: str) -> None:
    expected = output("export", db=filled).encode()
    assert "Ärger".encode() in expected
    printed = subprocess.run(
        [sys.executable, "-m", "ioncast", "bench", "export", "--db", filled],
        cwd=PROJECT,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        check=True,
    )
    assert printed.stdout == expected


def test_a_slow_pager_does_not_block_writers(filled: str) -> None:
    command = [sys.executable, "-m", "ioncast", "bench", "export", "--db", filled]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE) as pager:
        assert pager.stdout is not None
        pager.stdout.readline()
        engine = open_database(filled)
        if engine.dialect.name == "sqlite":
            with engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA busy_timeout = 0")
        put(engine, Measurement(CONFIG, 0, 1.0), file="meanwhile")
        engine.dispose()
        assert b"meanwhile" not in pager.stdout.read()


def test_parquet_needs_a_file(filled: str) -> None:
    assert "--output" in complaint("export", "--format", "parquet", db=filled)


# Exports that contradict the database


@pytest.fixture
def small(location: str) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A database with three repetitions from two files, and the rows of its export."""
    engine = open_database(location)
    put(engine, Measurement(CONFIG, 0, 1.0), Measurement(CONFIG, 0, 2.0), system="x", file="a")
    put(engine, Measurement(CONFIG, 0, 3.0), system="x", file="b")
    engine.dispose()
    yield location, rows_of(output("export", db=location))


Small = tuple[str, list[dict[str, str]]]


def test_a_repetition_that_belongs_to_another_file_is_rejected(
    small: Small, tmp_path: Path
) -> None:
    location, rows = small
    before = contents(location)
    path = tmp_path / "export.csv"
    path.write_text(csv_of([{**rows[1], "file_sha256": "0" * 64, "file": "c"}]))
    for more in ((), ("--replace",)):
        line = complaint("import", path, *more, db=location)
        assert str(path) in line
        assert "repetition 1 " in line
        assert "already has" in line
        assert ", from a" in line
        assert contents(location) == before


@pytest.mark.parametrize(
    ("column", "value"),
    [("bandwidth_mib_s", "9.0"), ("repetition", "7"), ("tasks", "32"), ("note", "odd")],
)
def test_a_known_file_with_other_measurements_needs_replace(
    small: Small, tmp_path: Path, column: str, value: str
) -> None:
    location, rows = small
    before = contents(location)
    path = tmp_path / "export.csv"
    path.write_text(csv_of([{**rows[0], column: value}, *rows[1:]]))
    line = complaint("import", path, db=location)
    assert "x has other measurements of a; correct them with --replace" in line
    assert contents(location) == before
    said = output("import", path, "--replace", db=location)
    assert "2 measurements of " in said
    assert "restored, replacing 2, 1 import already there" in said
    after = rows_of(output("export", db=location))
    assert sorted(after, key=str) == sorted([{**rows[0], column: value}, *rows[1:]], key=str)


def test_part_of_an_export_changes_nothing_in_its_own_database(
    small: Small, tmp_path: Path
) -> None:
    location, rows = small
    before = contents(location)
    path = tmp_path / "export.csv"
    for part in ([rows[0]], [rows[1]], [rows[2]], rows[1:]):
        path.write_text(csv_of(part))
        assert "nothing changed" in output("import", path, db=location)
        assert contents(location) == before


def test_part_of_an_export_with_replace_says_how_many_it_replaces(
    small: Small, tmp_path: Path
) -> None:
    location, rows = small
    path = tmp_path / "export.csv"
    path.write_text(csv_of([rows[1]]))
    said = output("import", path, "--replace", db=location)
    assert "1 measurement of 1 configuration from 1 import restored, replacing 2\n" in said
    assert rows_of(output("export", db=location)) == rows[1:]
    path.write_text(csv_of(rows))
    assert "x has other measurements of a" in complaint("import", path, db=location)


def test_a_file_that_was_restored_in_part_can_be_imported_again(
    location: str, tmp_path: Path
) -> None:
    path, export = tmp_path / "results.csv", tmp_path / "export.csv"
    path.write_text("io_nodes,bandwidth_mib_s,command\n" + "4,1,ior -w\n" * 3)
    told = ("--system", "x")
    output("import", path, *told, db=location)
    rows = rows_of(output("export", db=location))
    export.write_text(csv_of(rows[:1]))
    output("import", export, "--replace", db=location)
    assert "nodes or repetitions" in complaint("import", path, *told, db=location)
    said = output("import", path, *told, "--replace", db=location)
    assert "3 measurements of 1 configuration (ioncast-csv), replacing 1;" in said
    assert len(rows_of(output("export", db=location))) == 3


def test_an_export_without_measurements_imports_nothing(location: str, tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    open_database(location).dispose()
    output("export", "--output", path, db=location)
    assert output("import", path, db=location) == (
        f"{path}: the export has no measurements, nothing changed\n"
    )


def test_an_export_of_several_systems_cannot_be_imported_as_one_system(
    filled: str, exported: Path, tmp_path: Path
) -> None:
    new = tmp_path / "new.sqlite"
    line = complaint("import", exported, "--system", "x", db=str(new))
    assert f"{exported}:" in line
    assert "several systems" in line
    assert not new.exists()


def test_only_missing_imports_are_restored(small: Small, tmp_path: Path) -> None:
    location, rows = small
    new = {**rows[2], "file": "c", "file_sha256": "c" * 64, "repetition": "3"}
    path = tmp_path / "export.csv"
    path.write_text(csv_of([*rows, new]))
    said = output("import", path, db=location)
    assert "1 measurement of 1 configuration from 1 import restored" in said
    assert "2 imports already there" in said
    assert rows_of(output("export", db=location)) == [*rows, new]


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"file_sha256": "x"},
        {"file_sha256": ""},
        {"file_sha256": "A" * 64},
        {"file": ""},
        {"file": "x" * 1001},
        {"file_format": ""},
        {"imported_at": "yesterday"},
        {"imported_at": ""},
        {"repetition": "-1"},
        {"repetition": ""},
        {"repetition": str(2**31)},
        {"system": ""},
        {"system": "x" * 201},
        {"system": "X"},
        {"system": "x "},
        {"file_format": "other"},
        {"repetition": "2"},
    ],
    ids=lambda change: str(change)[:40],
)
def test_an_invalid_export_is_one_line_and_no_change(
    small: Small, tmp_path: Path, change: dict[str, str]
) -> None:
    location, rows = small
    before = contents(location)
    path = tmp_path / "export.csv"
    path.write_text(csv_of([rows[0], {**rows[1], **change}, rows[2]]))
    new = str(tmp_path / "new.sqlite")
    for db in (location, new):
        line = complaint("import", path, db=db)
        assert str(path) in line, line
    assert contents(location) == before
    assert contents(new) == set()


def test_an_export_with_two_spellings_of_a_system_is_rejected(tmp_path: Path, small: Small) -> None:
    _, rows = small
    path, new = tmp_path / "export.csv", str(tmp_path / "new.sqlite")
    path.write_text(csv_of([rows[0], {**rows[1], "system": "X"}]))
    assert "the database already has a system 'X'" in complaint("import", path, db=new)


# Any measurement

texts = st.builds(
    str.__add__,
    st.sampled_from(["", "=", "-", "+", "@", "\t", "\r", "'", "'=", "''-"]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30),
)
some_measurements = st.lists(
    st.builds(
        Measurement,
        config=st.sampled_from([CONFIG, IorConfig(read=True)]),
        io_nodes=st.integers(0, 3) | st.integers(0, 2**31 - 1),
        bandwidth_mib_s=st.floats(min_value=1e-9, max_value=1e15),
        bytes=st.none() | st.integers(0, 2**63 - 1),
        time_s=st.none() | st.floats(min_value=0, allow_infinity=False),
        started=st.none() | texts,
        engine=texts.filter(bool),
        engine_version=st.none() | texts,
        command=st.none() | texts,
        used=st.booleans(),
        note=st.none() | texts,
        campaign=st.none() | texts,
    ),
    min_size=1,
    max_size=5,
)


@pytest.fixture
def elsewhere() -> Iterator[Engine]:
    with opened_database("sqlite://") as engine:
        yield engine


@given(rows=some_measurements)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
    max_examples=examples(25),
)
def test_any_measurements_come_back_byte_by_byte(
    database: Engine, elsewhere: Engine, rows: list[Measurement]
) -> None:
    file = hashlib.sha256(repr(rows).encode()).hexdigest()
    put(database, *rows, system=file, file=file)
    with transaction(database) as connection:
        text = "".join(csv_lines(export_rows(connection, file)))
    assert is_export(text)
    with transaction(elsewhere, write=True) as connection:
        restore(connection, read_export(ResultFile("export", text)), file="export")
        assert "".join(csv_lines(export_rows(connection, file))) == text
    with transaction(database, write=True) as connection:
        assert restore(connection, read_export(ResultFile("export", text)), file="export") == set()


def test_the_list_is_the_same_after_a_round_trip(filled: str, exported: Path) -> None:
    other = str(exported.parent / "other.sqlite")
    output("import", exported, db=other)

    def listed(db: str) -> list[dict[str, Any]]:
        rows = json.loads(output("list", "--format", "json", db=db))
        return sorted(
            ({name: value for name, value in row.items() if name != "id"} for row in rows), key=str
        )

    assert listed(other) == listed(filled)
