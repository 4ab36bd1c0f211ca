"""Several real processes write to one database at once."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter, defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect

from benchdb.measurements.exports import export_rows
from benchdb.store.database import open_database, transaction
from tests.support.command import killed_at_the_end, run_together

pytestmark = [pytest.mark.both_databases, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[3]
WRITERS = 4
FILES = 5
HEADER = "io_nodes,bandwidth_mib_s,command\n"


def outcomes_of(commands: list[list[str]]) -> list[tuple[int, str, str]]:
    return [(done.returncode, done.stdout, done.stderr) for done in run_together(*commands)]


def importing(location: str, *args: str | Path) -> list[str]:
    command = ("-m", "ioncast", "bench", "import", *map(str, args), "--db", location)
    return list(command)


def stored(location: str) -> list[dict[str, Any]]:
    engine = open_database(location)
    with transaction(engine) as connection:
        rows = list(export_rows(connection))
    engine.dispose()
    return rows


def cells_of(rows: list[dict[str, Any]]) -> dict[tuple[str, ...], list[int]]:
    cells = defaultdict(list)
    key = ("system", "operation", "tasks", "io_nodes", "engine")
    for row in rows:
        cells[tuple(row[name] for name in key)].append(row["repetition"])
    return dict(cells)


def file_of_many_cells(path: Path, first: float, *, backwards: bool) -> Path:
    """Write twelve cells with four repetitions each, forwards or backwards."""
    lines = [
        f"{n},{first + repetition},mpiexec -n {tasks} ior -{operation}\n"
        for operation in "rw"
        for tasks in (1, 2, 3)
        for n in (0, 1)
        for repetition in range(4)
    ]
    path.write_text(HEADER + "".join(reversed(lines) if backwards else lines))
    return path


@pytest.mark.parametrize("exists", [True, False], ids=["open", "new"])
def test_concurrent_writers_lose_and_repeat_nothing(
    location: str, tmp_path: Path, exists: bool
) -> None:
    if exists:
        open_database(location).dispose()
    commands = [
        importing(
            location,
            *(
                # One writer stores first the cells that another one stores last.
                file_of_many_cells(
                    tmp_path / f"{writer}-{file}.csv",
                    100.0 * writer + 10 * file + 1,
                    backwards=bool(writer % 2),
                )
                for file in range(FILES)
            ),
            *("--system", "here"),
        )
        for writer in range(WRITERS)
    ]
    outcomes = outcomes_of(commands)
    assert [(code, said) for code, _, said in outcomes] == [(0, "")] * WRITERS
    rows = stored(location)
    values = Counter(row["bandwidth_mib_s"] for row in rows)
    assert values == {
        100.0 * writer + 10 * file + 1 + repetition: 12
        for writer in range(WRITERS)
        for file in range(FILES)
        for repetition in range(4)
    }
    cells = cells_of(rows)
    assert len(cells) == 12
    assert all(numbers == list(range(WRITERS * FILES * 4)) for numbers in cells.values())


def test_one_file_from_several_processes_at_once_counts_once(location: str, tmp_path: Path) -> None:
    paths = []
    for number in range(20):
        paths.append(tmp_path / f"{number}.csv")
        paths[-1].write_text(f"{HEADER}0,{number + 1},mpiexec -n 2 ior -w\n")
    outcomes = outcomes_of([importing(location, *paths, "--system", "here")] * WRITERS)
    assert [(code, said) for code, _, said in outcomes] == [(0, "")] * WRITERS
    said = Counter(line for _, output, _ in outcomes for line in output.splitlines())
    assert sum(n for line, n in said.items() if "1 measurement of" in line) == len(paths)
    assert sum(n for line, n in said.items() if "nothing changed" in line) == 3 * len(paths)
    rows = stored(location)
    assert sorted(row["bandwidth_mib_s"] for row in rows) == [n + 1.0 for n in range(20)]
    assert [row["repetition"] for row in rows] == list(range(20))


def test_concurrent_writers_agree_on_one_spelling_of_a_system(
    location: str, tmp_path: Path
) -> None:
    path = tmp_path / "results.csv"
    path.write_text(f"{HEADER}0,1,ior -w\n")
    names = ["MareNostrum", "marenostrum", "Mare Nostrum", "MARENOSTRUM"]
    outcomes = outcomes_of([importing(location, path, "--system", name) for name in names])
    assert sorted(code for code, _, _ in outcomes) == [0, 2, 2, 2]
    [row] = stored(location)
    refusals = [said for code, _, said in outcomes if code]
    assert all(f"the database already has a system '{row['system']}'" in said for said in refusals)


def test_exports_are_restored_beside_imports(location: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other.sqlite")
    results = [
        file_of_many_cells(tmp_path / f"{name}.csv", 1.0, backwards=name == "b") for name in "ab"
    ]
    for name, path in zip("ab", results, strict=True):
        [outcome] = outcomes_of([importing(other, path, "--system", f"restored {name}")])
        assert outcome[0] == 0
    export = tmp_path / "export.csv"
    command = ["-m", "ioncast", "bench", "export", "--output", str(export), "--db", other]
    assert outcomes_of([command]) == [(0, "", "")]
    outcomes = outcomes_of(
        [
            importing(location, export),
            importing(location, *results, "--system", "here"),
            importing(location, export),
            importing(location, *reversed(results), "--system", "there"),
        ]
    )
    assert [(code, said) for code, _, said in outcomes] == [(0, "")] * 4
    restored = [outcomes[0][1], outcomes[2][1]]
    assert sorted(bool(re.search("restored$", said)) for said in restored) == [False, True]
    cells = cells_of(stored(location))
    assert Counter(system for system, *_ in cells) == {
        "here": 12,
        "there": 12,
        "restored a": 12,
        "restored b": 12,
    }
    for (system, *_), numbers in cells.items():
        assert numbers == list(range(4 if system.startswith("restored") else 8))


_OPEN = (
    "import sys; from benchdb.store.database import open_database;"
    " open_database(sys.argv[1]).dispose()"
)


def test_a_migration_waits_for_a_writer(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer works on the empty database, which another process wants to upgrade."""
    with monkeypatch.context() as patched:
        patched.setattr("benchdb.store.database.NEWEST", None)
        engine = open_database(location)
    with ExitStack() as stack:
        with transaction(engine, write=True) as connection:
            upgrading = stack.enter_context(
                killed_at_the_end([sys.executable, "-c", _OPEN, location], cwd=ROOT)
            )
            with pytest.raises(subprocess.TimeoutExpired):
                upgrading.wait(timeout=2)
            assert not inspect(connection).get_table_names()
        assert upgrading.wait(timeout=300) == 0
    assert "measurements" in inspect(engine).get_table_names()
    engine.dispose()
