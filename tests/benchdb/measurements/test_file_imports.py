"""A file is stored once; the result says in numbers what is new, known and replaced."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Engine

from benchdb.measurements.exports import export_rows, write_csv
from benchdb.measurements.file_imports import ImportCounts, MeasurementsFile, StoredFile, read_file
from benchdb.measurements.importers import ImportOptions
from benchdb.measurements.parquet import write_parquet
from benchdb.store.database import transaction
from ioncast_base.errors import InputError

IOR_OUTPUTS = Path(__file__).parents[2] / "ior_configs" / "fixtures"
NOTHING = ImportCounts(0, 0, 0, lacks_tasks=False)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "results.csv"
    rows = ("4,50.5,mpiexec -n 8 ior -w,1", "4,60.5,mpiexec -n 8 ior -w,0", "0,9.5,ior -r,1")
    path.write_text("\n".join(["io_nodes,bandwidth_mib_s,command,used", *rows, ""]))
    return path


def put(
    engine: Engine, path: Path, system: str | None = None, *, replace: bool = False
) -> StoredFile:
    read = read_file(path, ImportOptions(system))
    with transaction(engine, write=True) as connection:
        return read.store(connection, replace=replace)


def test_a_new_file_is_stored_and_counted(database: Engine, results: Path) -> None:
    counts = ImportCounts(measurements=3, configurations=2, set_apart=1, lacks_tasks=True)
    assert put(database, results, "here") == StoredFile("ioncast-csv", found=counts, stored=counts)


def test_a_known_file_stores_nothing(database: Engine, results: Path) -> None:
    first = put(database, results, "here")
    again = put(database, results, "here", replace=True)
    assert (again.found, again.stored, again.replaced) == (first.found, NOTHING, 0)


def test_a_corrected_file_replaces_its_measurements(database: Engine, results: Path) -> None:
    put(database, results, "here")
    read = read_file(results, ImportOptions("here", tasks=16))
    with transaction(database, write=True) as connection:
        corrected = read.store(connection, replace=True)
    assert (corrected.stored.measurements, corrected.replaced) == (3, 3)
    assert not corrected.stored.lacks_tasks


@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_an_export_counts_its_imports(
    database: Engine, results: Path, tmp_path: Path, write: Callable[..., None]
) -> None:
    other = tmp_path / "other.csv"
    other.write_text("io_nodes,bandwidth_mib_s,command\n2,1.5,mpiexec -n 8 ior -w\n")
    put(database, results, "here")
    put(database, other, "here")
    export = tmp_path / "export"
    with transaction(database) as connection:
        write(export_rows(connection), export)
    again = put(database, export)
    assert (again.file_format, again.found.measurements, again.stored) == ("export", 4, NOTHING)
    assert (again.imports, again.known_imports) == (0, 2)
    moved = put(database, export, "there")
    assert (moved.stored, moved.imports, moved.known_imports) == (moved.found, 2, 0)


def test_a_file_without_a_system_is_rejected(results: Path) -> None:
    with pytest.raises(InputError, match="name it with --system"):
        read_file(results, ImportOptions())


@pytest.mark.parametrize("name", ["two-runs-different.txt", "periodic-a.json"])
def test_an_output_of_ior_is_the_same_from_a_file_and_from_a_pipe(
    database: Engine, tmp_path: Path, name: str
) -> None:
    """A file is read line by line, and more than once; a pipe can be read only once."""
    output, pipe = IOR_OUTPUTS / name, tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(output.read_bytes(),))
    writer.start()
    streamed = read_file(pipe, ImportOptions("here", io_nodes=2))
    writer.join()
    with transaction(database, write=True) as connection:
        streamed.store(connection)
    read = read_file(output, ImportOptions("here", io_nodes=2))
    assert isinstance(read, MeasurementsFile)
    assert isinstance(streamed, MeasurementsFile)
    assert read.rows == streamed.rows
    with transaction(database, write=True) as connection:
        assert read.store(connection).stored == NOTHING
