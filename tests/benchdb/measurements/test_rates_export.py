"""An export of rates of files that is imported into another database gives the same rates."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import select

from benchdb.commands import bench
from benchdb.measurements.file_rates import FileRate
from benchdb.measurements.storing import store
from benchdb.store.database import open_database, transaction
from benchdb.store.schema import file_rates, imports, systems
from ioncast_base.errors import InputError

pytestmark = pytest.mark.both_databases

MDTEST = Path(__file__).parent / "fixtures" / "mdtest-4.1-three-runs.txt"
# Digits, quotes and formulas that other programs often lose.
ODD = FileRate(
    *("remove", 8, 0.1 + 0.2, 16, None, None, True, 2**40),
    started="soon",
    command="=mdtest '-n' \"5\", -d 'ä'",
    used=False,
    note=' "quoted"',
    campaign="files, many",
)


def bench_command(*words: str | Path, db: str) -> Result:
    return CliRunner().invoke(bench, [*map(str, words), "--db", db])


def output(*words: str | Path, db: str) -> str:
    done = bench_command(*words, db=db)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def contents(location: str) -> set[tuple[object, ...]]:
    """Every rate with its system and its import, without ids."""
    hidden = ("id", "system_id", "import_id", "revision")
    tables = (systems, imports, file_rates)
    columns = [column for t in tables for column in t.c if column.name not in hidden]
    query = (
        select(*columns)
        .select_from(file_rates)
        .join(systems, systems.c.id == file_rates.c.system_id)
        .join(imports, imports.c.id == file_rates.c.import_id)
    )
    engine = open_database(location)
    with engine.connect() as connection:
        rows = [tuple(row) for row in connection.execute(query)]
    engine.dispose()
    assert len(set(rows)) == len(rows)
    return set(rows)


@pytest.fixture
def exported(location: str, tmp_path: Path) -> Path:
    """An export of three runs of mdtest on one system, and an odd rate of another system."""
    output("import", MDTEST, "--system", "here", "--io-nodes", "2", db=location)
    engine = open_database(location)
    with transaction(engine, write=True) as connection:
        store(connection, system="Ärger", file="odd", content=b"o", file_format="test", rows=[ODD])
    engine.dispose()
    file = tmp_path / "rates.csv"
    assert output("export", "--rates", "--output", file, db=location) == ""
    return file


def test_rates_are_restored_with_their_imports(
    exported: Path, location: str, tmp_path: Path
) -> None:
    other = str(tmp_path / "other.sqlite")
    said = output("import", exported, db=other)
    assert "of operations on files from 2 imports restored" in said
    assert contents(other) == contents(location)
    assert len(contents(other)) > 10
    assert "already has these measurements" in output("import", exported, db=other)
    # The output of mdtest is known too.
    again = output("import", MDTEST, "--system", "here", "--io-nodes", "2", db=other)
    assert "already has this file" in again


def test_other_rates_of_an_import_need_replace(exported: Path, location: str) -> None:
    before = contents(location)
    text = exported.read_text(encoding="utf-8")
    exported.write_text(text.replace(repr(0.1 + 0.2), "7.5"), encoding="utf-8")
    done = bench_command("import", exported, db=location)
    assert done.exit_code == 2
    assert "Ärger has other rates of odd; correct them with --replace" in done.stderr
    assert contents(location) == before
    output("import", exported, "--replace", db=location)
    changed = {row for row in contents(location) if 7.5 in row}
    assert len(changed) == 1
    assert len(contents(location) - changed) == len(before) - 1


def test_one_system_is_exported_and_may_get_another_name(
    exported: Path, location: str, tmp_path: Path
) -> None:
    file, other = tmp_path / "one.csv", str(tmp_path / "other.sqlite")
    output("export", "--rates", "--system", "Ärger", "--output", file, db=location)
    output("import", file, "--system", "mine", db=other)
    assert {row[0] for row in contents(other)} == {"mine"}
    assert len(contents(other)) == 1


def test_rates_are_not_written_as_parquet(exported: Path, location: str, tmp_path: Path) -> None:
    done = bench_command("export", "--rates", "--output", tmp_path / "r.parquet", db=location)
    assert isinstance(done.exception, InputError)
    assert "rates of files are written as CSV" in str(done.exception)
