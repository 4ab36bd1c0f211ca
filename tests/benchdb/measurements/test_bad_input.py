"""A file that cannot be imported gives one line of error and leaves the database unchanged."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from sqlalchemy import Engine

import ioncast.service.store.tables  # noqa: F401 - the tables of the service
from benchdb.commands import bench
from benchdb.measurements.storing import Measurement, store
from benchdb.store.database import transaction
from benchdb.store.schema import metadata
from ioncast_base.errors import InputError
from ior_configs import IorConfig

pytestmark = pytest.mark.both_databases

PROJECT = Path(__file__).resolve().parents[3]
IOR_JSON = (PROJECT / "tests/ior_configs/fixtures/wr-shared.json").read_bytes()
OURS = "io_nodes,bandwidth_mib_s,command\n"
GOOD = "4,66.6,ior -a POSIX -w -F -b 4m -t 1m\n"
# The beginning of an output of `fio --output-format=json`; the disk was full.
FIO_JSON = (
    b'{\n  "fio version" : "fio-3.33",\n  "timestamp" : 1795,\n  "jobs" : [\n    {\n      "job'
)


def parquet(**columns: list[Any]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


COMMANDS = ["ior -w", "ior -w"]
GOOD_PARQUET = parquet(io_nodes=[0, 1], bandwidth_mib_s=[1.0, 2.0], command=COMMANDS)
Bad = tuple[bytes, tuple[str, ...]]
BAD: dict[str, Bad] = {
    "negative bandwidth": ((OURS + GOOD + "4,-66.6,ior -w\n").encode(), ()),
    "no bandwidth": ((OURS + GOOD + "4,,ior -w\n").encode(), ()),
    "bandwidth of 0": ((OURS + GOOD + "4,0,ior -w\n").encode(), ()),
    "NaN": ((OURS + GOOD + "4,nan,ior -w\n").encode(), ()),
    "infinity": ((OURS + GOOD + "4,inf,ior -w\n").encode(), ()),
    "infinity by its exponent": ((OURS + GOOD + "4,1e999,ior -w\n").encode(), ()),
    "bandwidth with a unit": ((OURS + GOOD + "4,66 MB/s,ior -w\n").encode(), ()),
    "unknown unit of a size": ((OURS + GOOD + "4,66.6,ior -w -b 4x\n").encode(), ()),
    "command that the database cannot hold": (
        (OURS + GOOD + f"4,66.6,ior -w -o {'x' * 4000}\n").encode(),
        (),
    ),
    "Latin-1": ((OURS + GOOD + "4,66.6,ior -w -o größe\n").encode("latin-1"), ()),
    "Parquet with a column twice": (
        parquet(**{"io_nodes": [0], "io_nodes ": [0], "bandwidth_mib_s": [1.0]}),
        (),
    ),
    "too many I/O nodes": ((OURS + GOOD + f"{2**31},66.6,ior -w\n").encode(), ()),
    "too many tasks": ((OURS + GOOD).encode(), ("--tasks", str(2**31))),
    "line that is cut off": ((OURS + GOOD + "4,66").encode(), ()),
    "binary file": (bytes(range(256)) * 64, ()),
    "program": (b"\x7fELF" + bytes(4096), ()),
    "empty file": (b"", ()),
    "header only": (OURS.encode(), ()),
    "no column of I/O nodes": (b"bandwidth_mib_s,command\n1.0,ior -w\n", ()),
    "IOR without a number of I/O nodes": (IOR_JSON, ()),
    "IOR cut off": (IOR_JSON[: len(IOR_JSON) // 2], ("--io-nodes", "4")),
    "IOR cut off at its last brace": (IOR_JSON.rstrip()[:-1], ("--io-nodes", "4")),
    "fio cut off": (FIO_JSON, ("--io-nodes", "4")),
    "Parquet cut off": (GOOD_PARQUET[:-100], ()),
    "Parquet of four bytes": (b"PAR1", ()),
    "Parquet with a damaged footer": (GOOD_PARQUET[:-60] + b"\xff" * 52 + GOOD_PARQUET[-8:], ()),
    "Parquet of other columns": (parquet(a=[1], b=["x"]), ()),
    "Parquet without I/O nodes": (parquet(bandwidth_mib_s=[1.0], command=["ior -w"]), ()),
    "Parquet with NaN": (
        parquet(io_nodes=[0, 1], bandwidth_mib_s=[1.0, float("nan")], command=COMMANDS),
        (),
    ),
    "Parquet with a gap": (
        parquet(io_nodes=[0, None], bandwidth_mib_s=[1.0, 2.0], command=COMMANDS),
        (),
    ),
    "Parquet of lists": (
        parquet(io_nodes=[[0], [1]], bandwidth_mib_s=[1.0, 2.0], command=COMMANDS),
        (),
    ),
    "Parquet without rows": (
        parquet(io_nodes=[], bandwidth_mib_s=[], command=[]),
        (),
    ),
}


def everything(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    with engine.connect() as connection:
        return {
            table.name: [tuple(row) for row in connection.execute(table.select())]
            for table in metadata.sorted_tables
        }


def imported(engine: Engine, *args: str | Path) -> tuple[int, str, str]:
    url = engine.url.render_as_string(hide_password=False)
    result = CliRunner().invoke(bench, ["import", *map(str, args), "--db", url])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def filled(database: Engine) -> Engine:
    with transaction(database, write=True) as connection:
        store(
            connection,
            system="MareNostrum",
            file="f",
            content=b"f",
            file_format="test",
            rows=[Measurement(IorConfig(write=True), 0, 1.0)],
        )
    return database


@pytest.mark.slow
@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_one_line_and_no_change(filled: Engine, tmp_path: Path, kind: str) -> None:
    content, told = BAD[kind]
    path = tmp_path / "results"
    path.write_bytes(content)
    before = everything(filled)
    for system in ("MareNostrum", "new"):
        code, output, said = imported(filled, path, "--system", system, *told)
        assert (code, output, said.count("\n")) == (2, "", 1), said
        assert said.startswith(f"ioncast: {path}")
        assert everything(filled) == before


@pytest.mark.parametrize(
    "content",
    [
        OURS.encode() + GOOD.encode(),
        GOOD_PARQUET,
        parquet(io_nodes=[0], bandwidth_mib_s=[1.0], command=["ior -w"], steps=[[1, 2]]),
    ],
)
def test_a_good_file_is_imported(filled: Engine, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "results"
    path.write_bytes(content)
    assert imported(filled, path, "--system", "new")[0] == 0


@pytest.mark.parametrize("name", ["marenostrum", "Mare Nostrum"])
def test_two_systems_cannot_have_one_name(filled: Engine, tmp_path: Path, name: str) -> None:
    path = tmp_path / "results.csv"
    path.write_text(OURS + GOOD)
    before = everything(filled)
    code, output, said = imported(filled, path, "--system", name)
    assert (code, output, said.count("\n")) == (2, "", 1)
    assert "the database already has a system 'MareNostrum'" in said
    assert everything(filled) == before


def test_a_file_other_than_an_export_needs_a_system(filled: Engine, tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text(OURS + GOOD)
    before = everything(filled)
    code, output, said = imported(filled, path)
    assert (code, output, said.count("\n")) == (2, "", 1)
    assert said.startswith(f"ioncast: {path}")
    assert "--system" in said
    assert everything(filled) == before


@pytest.mark.parametrize("system", [(), ("--system", "x")])
def test_a_file_that_cannot_be_used_creates_no_database(
    tmp_path: Path, system: tuple[str, ...]
) -> None:
    path, db = tmp_path / "results.csv", tmp_path / "bench.sqlite"
    path.write_text(OURS + (GOOD if not system else ""))
    result = CliRunner().invoke(bench, ["import", str(path), *system, "--db", str(db)])
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert not db.exists()


@pytest.mark.parametrize("name", ["", " ", "x ", "x\ny", "\udcff", "x" * 201])
@pytest.mark.parametrize("content", [OURS.encode() + GOOD.encode(), IOR_JSON])
def test_an_invalid_name_of_a_system_creates_no_database(
    tmp_path: Path, name: str, content: bytes
) -> None:
    path, db = tmp_path / "results", tmp_path / "bench.sqlite"
    path.write_bytes(content)
    args = ["import", str(path), "--system", name, "--io-nodes", "0", "--db", str(db)]
    result = CliRunner().invoke(bench, args)
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith("--system: ")
    assert not db.exists()


def test_own_csv_in_another_encoding_is_rejected_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_bytes((OURS + GOOD + "4,66.6,ior -w -o größe\n").encode("latin-1"))
    args = ["import", str(path), "--system", "x", "--db", str(tmp_path / "bench.sqlite")]
    said = CliRunner().invoke(bench, args).stderr
    assert said == f"ioncast: {path}:3: not text in UTF-8; save it as UTF-8\n"


@pytest.mark.parametrize("number", ["0", "-1", "99999999999999999999"])
def test_an_impossible_id_of_a_configuration_is_rejected(filled: Engine, number: str) -> None:
    url = filled.url.render_as_string(hide_password=False)
    result = CliRunner().invoke(bench, ["show", "--db", url, "--", number])
    assert (result.exit_code, isinstance(result.exception, SystemExit)) == (2, True)


@pytest.mark.parametrize("command", [("list",), ("show", "1"), ("export",), ("coverage",)])
def test_an_empty_name_does_not_mean_all_systems(filled: Engine, command: tuple[str, ...]) -> None:
    url = filled.url.render_as_string(hide_password=False)
    result = CliRunner().invoke(bench, [*command, "--system", "", "--db", url])
    assert str(result.exception) == "the database has no system ''; its only system is MareNostrum"


Damage = Callable[[str], str]


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("66.6", "-66.6"),
        lambda text: text.replace("ior -a", "ior ,-a"),
        lambda text: text.replace("write", "wipe"),
    ],
    ids=["cut off", "negative", "one comma more", "unknown operation"],
)
def test_a_damaged_export_is_one_line_and_no_change(
    filled: Engine, tmp_path: Path, damage: Damage
) -> None:
    path = tmp_path / "results.csv"
    path.write_text(OURS + GOOD)
    assert imported(filled, path, "--system", "new")[0] == 0
    url = filled.url.render_as_string(hide_password=False)
    text = CliRunner().invoke(bench, ["export", "--db", url]).stdout
    path.write_text(damage(text))
    before = everything(filled)
    code, output, said = imported(filled, path)
    assert (code, output, said.count("\n")) == (2, "", 1), (output, said)
    assert said.startswith(f"ioncast: {path}:")
    assert everything(filled) == before
