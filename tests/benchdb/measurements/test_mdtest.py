"""Genuine outputs of mdtest 3.3.0, 4.0.0 and 4.1 become rates of files, and are stored once."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import Engine

from benchdb.commands import bench
from benchdb.measurements.file_imports import StoredFile, read_file
from benchdb.measurements.file_rates import FileRate, rates_of_system
from benchdb.measurements.importers import ImportOptions, ResultFile, read_measurements
from benchdb.measurements.storing import count
from benchdb.store.database import transaction
from benchdb.store.system_changes import note_change
from ioncast_base.errors import InputError

FIXTURES = Path(__file__).parent / "fixtures"
SMALL_FILES = FIXTURES / "mdtest-4.0.0-small-files.txt"
THREE_RUNS = FIXTURES / "mdtest-4.1-three-runs.txt"


def read(text: str, **told: object) -> list[FileRate]:
    options = ImportOptions(**{"system": "here", "io_nodes": 2} | told)  # type: ignore[arg-type]
    name, rows = read_measurements(ResultFile("file", text), options)
    assert name == "mdtest"
    return list(rows)  # type: ignore[arg-type]


def problem(text: str, **told: object) -> str:
    with pytest.raises(InputError) as caught:
        read(text, **told)
    return str(caught.value)


def put(engine: Engine, io_nodes: int, *, replace: bool = False) -> StoredFile:
    read = read_file(SMALL_FILES, ImportOptions("here", io_nodes=io_nodes))
    with transaction(engine, write=True) as connection:
        return read.store(connection, replace=replace)


def test_an_output_has_the_rates_of_its_operations_on_files() -> None:
    rates = read(SMALL_FILES.read_text())
    assert [(rate.operation, rate.files_per_s) for rate in rates] == [
        ("create", 14354.407),
        ("stat", 99938.740),
        ("remove", 53929.558),
    ]
    create = rates[0]
    assert (create.tasks, create.nodes, create.files_per_process) == (4, 1, 200)
    assert (create.io_nodes, create.bytes_per_file, create.unique_directory) == (2, 8192, False)
    assert (create.started, create.engine_version) == ("2026-11-22T18:22:48", "4.0.0")
    assert create.used
    assert create.note is None


def test_a_stat_of_files_that_the_process_created_may_be_cached() -> None:
    assert "caches of their nodes" in str(read(SMALL_FILES.read_text())[1].note)
    shifted = SMALL_FILES.read_text().replace("'-r'", "'-r' '-N' '1'")
    assert read(shifted)[1].note is None


def test_three_iterations_follow_from_what_mdtest_prints() -> None:
    rates = read(THREE_RUNS.read_text())
    creates = [rate.files_per_s for rate in rates if rate.started == "2026-11-29T00:41:15"][:3]
    # mdtest printed these three numbers and the standard deviation.
    assert creates[:2] == [59241.582, 2772.315]
    assert statistics.fmean(creates) == pytest.approx(39899.759)
    assert statistics.stdev(creates) == pytest.approx(32162.724, abs=0.01)
    first = rates[0]
    assert (first.unique_directory, first.bytes_per_file) == (True, 4096)
    assert {rate.bytes_per_file for rate in rates if rate.operation == "read"} == {512}


def test_several_runs_and_several_numbers_of_tasks_stand_in_one_file() -> None:
    synced = [rate for rate in read(THREE_RUNS.read_text()) if not rate.used]
    assert [(rate.tasks, rate.files_per_s) for rate in synced] == [
        (2, 260.743),
        (2, 239.466),
        (4, 651.361),
        (4, 650.301),
    ]
    assert {(rate.note, rate.bytes_per_file) for rate in synced} == {
        ("each file is synchronised (-y)", 1024)
    }


def test_more_iterations_are_summed_up_with_their_mean() -> None:
    last = [rate for rate in read(THREE_RUNS.read_text()) if rate.files_per_process == 40]
    assert [rate.files_per_s for rate in last[:2]] == [23775.549, 3534.315]
    together = sum(rate.files_per_s for rate in last[:2]) + 2 * last[2].files_per_s
    assert together == pytest.approx(4 * 9050.458)
    assert "only max, min and mean of 4 iterations" in str(last[0].note)


def test_max_and_min_of_old_versions_are_of_processes() -> None:
    rates = read((FIXTURES / "mdtest-3.3.0-iterations.txt").read_text())
    assert [(rate.operation, rate.files_per_s) for rate in rates] == [
        ("create", 6215.334),
        ("stat", 10490.503),
        ("read", 10681.531),
        ("remove", 12723.050),
    ]
    assert "of 2 iterations" in str(rates[0].note)


def test_a_stone_wall_leaves_the_files_of_a_process_unknown() -> None:
    text = SMALL_FILES.read_text().replace("'-r'", "'-r' '-W' '10'")
    assert read(text)[0].files_per_process is None
    told = text.replace(
        "\nSUMMARY", "\nContinue stonewall hit min: 90 max: 150 avg: 120.0 \nSUMMARY"
    )
    assert read(told)[0].files_per_process == 150


def test_ranks_of_launchers_are_removed() -> None:
    labelled = "\n".join(f"0: {line}" for line in SMALL_FILES.read_text().splitlines())
    assert read(labelled) == read(SMALL_FILES.read_text())


@pytest.mark.parametrize(
    ("change", "told", "part"),
    [
        (lambda text: text, {"io_nodes": None}, "give --io-nodes"),
        (lambda text: text.split("-- finished")[0], {}, "did not finish"),
        (lambda text: text + text.split("-- finished")[0], {}, "file:27: this run of mdtest"),
        (lambda text: text.replace("'-w' '8192'", "'-Q'"), {}, "-Q not recognized"),
        (lambda text: text.replace("'8192'", "'8 KiB'"), {}, "-w: '8 KiB' is not a size"),
        (lambda text: text.replace("'8192'", "'8192"), {}, "cannot be read"),
        (lambda text: text + "IOR-4.0.0: MPI Coordinated Test\n", {}, "a run of IOR begins here"),
        (lambda text: text.replace("   File", "   Tree"), {}, "measured no file"),
        (lambda text: text.replace("4 tasks,", "0 tasks,"), {}, "0 tasks, not from 1"),
    ],
)
def test_an_unusable_output_is_one_clear_line(
    change: Callable[[str], str], told: dict[str, object], part: str
) -> None:
    line = problem(change(SMALL_FILES.read_text()), **told)
    assert part in line
    assert "\n" not in line


def test_an_output_about_directories_has_no_rates_of_files() -> None:
    assert "no file" in problem((FIXTURES / "mdtest-4.1-directories.txt").read_text())


def test_rates_of_another_api_are_set_apart() -> None:
    text = SMALL_FILES.read_text().replace("'-r'", "'-r' '-a' 'DFS' '--dfs.pool=x'")
    assert {rate.used for rate in read(text)} == {False}


@pytest.mark.both_databases
def test_rates_are_stored_once_and_replaced(database: Engine) -> None:
    assert put(database, 2).stored.rates == 3
    assert put(database, 2).stored.rates == 0
    with pytest.raises(InputError, match="other numbers of I/O nodes"):
        put(database, 4)
    replaced = put(database, 4, replace=True)
    assert (replaced.stored.measurements, replaced.replaced) == (3, 3)
    with transaction(database) as connection:
        stored = rates_of_system(connection, "here")
        assert count(connection) == 3
        assert rates_of_system(connection, "there") == []
    assert stored == read(SMALL_FILES.read_text(), io_nodes=4)


def test_rates_from_before_a_change_do_not_count(database: Engine) -> None:
    put(database, 2)
    with transaction(database, write=True) as connection:
        note_change(connection, "here", since="2026-11-22", why="disks")
        assert len(rates_of_system(connection, "here")) == 3
        note_change(connection, "here", since="2026-11-23", why="new disks")
        assert rates_of_system(connection, "here") == []
        assert len(rates_of_system(connection, "here", before_change=True)) == 3


def test_the_command_imports_and_shows_rates(location: str) -> None:
    def run(*words: str) -> str:
        result = CliRunner().invoke(bench, [*words, "--db", location])
        assert result.exit_code == 0, result.output
        return result.stdout

    imported = run("import", str(THREE_RUNS), "--system", "here", "--io-nodes", "4")
    assert "19 rates of operations on files (mdtest), 4 of them set apart" in imported
    shown = run("rates", "--system", "here")
    # The median of 59,241.582, 2,772.315 and 57,685.38.
    assert "57,685 (3)" in shown
    assert "4 rates set apart" in shown
    assert '"files_per_s": 59241.582' in run("rates", "--format", "json")
