"""Data sets: those that ioncast ships, and new ones."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchdb.measurements.file_rates import FileRate
from experiments.datasets import ApplicationRun, BenchmarkRun, DataSet, read, shipped, write
from experiments.evaluation import evaluate
from experiments.provenance import PROVENANCE as PROVENANCE_FILE
from experiments.provenance import Log, Machine, Provenance, read_provenance
from experiments.published_tables import gain_of_rates, rates
from ioncast.cli import cli
from ioncast_base.errors import InputError

DATA = Path(__file__).resolve().parents[2] / "experiments" / "data"
LOG = "multiphase-ionodes0.darshan"
PROVENANCE = Provenance(
    study="example",
    command="ioncast experiment example --seed 3",
    date="2026-11-22",
    seeds=(3,),
    scale=0.25,
    system="example",
    tasks=16,
    nodes=8,
    engine="fio",
    platform={"io_nodes": [0, 4]},
    machine=Machine(cores=2, memory_bytes=8 << 30, kernel="6.1.0"),
    versions={"fio": "3.28"},
    logs=(Log(file=LOG, application="app", io_nodes=0, source="Darshan"),),
    notes=("one node was slow",),
)
BENCHMARKS = [
    BenchmarkRun(
        name="w-fpp",
        io_nodes=n,
        repetition=0,
        bytes=16 << 20,
        time_s=0.5,
        bandwidth_mib_s=32.0 + n,
        started="2026-11-22T04:00:00Z",
        command="ior -a POSIX -w -F -b 4m -t 1m -e",
        operation="write",
        tasks=4,
        nodes=2,
        engine="fio",
    )
    for n in (0, 4)
]
APPLICATIONS = [
    ApplicationRun(
        name="app",
        io_nodes=0,
        repetition=r,
        bytes=1 << 20,
        time_s=0.1,
        bandwidth_mib_s=10.0 + r,
        started="2026-11-22T04:01:00Z",
        command="app --small",
        phases_mib_s=(8.0 + r, 12.0 + r),
    )
    for r in (0, 1)
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a log, for a data set."""
    made = tmp_path / "set"
    (made / "logs").mkdir(parents=True)
    shutil.copy(DATA / "testbed" / "logs" / LOG, made / "logs")
    return made


@pytest.fixture
def complaint(folder: Path) -> Callable[..., str]:
    """Gives the error of a data set after changes of its provenance."""
    write(folder, PROVENANCE, BENCHMARKS, APPLICATIONS)

    def found(**changes: Any) -> str:
        path = folder / "provenance.json"
        record = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps({**record, **changes}), encoding="utf-8")
        with pytest.raises(InputError) as caught:
            read(folder)
        return str(caught.value).removeprefix(f"{path}: ")

    return found


def test_the_readme_explains_every_key_and_every_table() -> None:
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    tables = {path.stem for path in (DATA / "testbed" / "tables").iterdir()}
    assert len(tables) == 14
    for name in {*Provenance.model_fields, *Machine.model_fields, *Log.model_fields, *tables}:
        assert f"`{name}`" in readme


@pytest.mark.parametrize("shipped_set", shipped(), ids=lambda path: path.name)
def test_the_provenance_of_every_shipped_set_is_complete(shipped_set: Path) -> None:
    found = read_provenance(shipped_set / PROVENANCE_FILE)
    assert found.platform
    assert found.versions
    assert found.command.startswith("ioncast ")
    assert {log.file for log in found.logs} == {path.name for path in shipped_set.glob("logs/*")}


def test_the_testbed_is_shipped_with_all_its_runs(testbed: DataSet) -> None:
    assert DATA / "testbed" in shipped()
    found = testbed
    # Its README lists 15 patterns and three applications with five numbers of I/O nodes and six
    # runs each. Ten runs of benchmarks and two of applications failed.
    assert len(found.benchmarks) == 15 * 5 * 6 - 10
    assert {name: len(runs) for name, runs in found.applications.items()} == {
        "hacc-io": 29,
        "multiphase": 29,
        "periodic": 30,
    }
    assert {
        (one.measurement.config.tasks, one.measurement.config.nodes) for one in found.benchmarks
    } == {(16, 8)}


def test_a_prediction_rests_on_the_first_log_of_its_application(testbed: DataSet) -> None:
    assert {phase.log for phases in testbed.jobs.values() for phase in phases} == {
        str(DATA / "testbed" / "logs" / f"{name}-ionodes0.darshan") for name in testbed.applications
    }


def test_a_data_set_that_was_written_can_be_read(folder: Path) -> None:
    found = write(folder, PROVENANCE, BENCHMARKS, APPLICATIONS)
    assert found == read(folder)
    assert found.provenance == PROVENANCE
    assert [(one.name, one.measurement.io_nodes) for one in found.benchmarks] == [
        ("w-fpp", 0),
        ("w-fpp", 4),
    ]
    assert [run.bandwidth_mib_s for run in found.applications["app"]] == [10.0, 11.0]
    assert [run.phases_mib_s for run in found.applications["app"]] == [(8.0, 12.0), (9.0, 13.0)]
    assert found.commands == {"app": "app --small"}


RATES = [
    FileRate(
        *("create", n, 1000.5 + n, 16, 8, 200, True, 9555),
        started="2026-11-29T04:00:00+00:00",
        engine_version="4.1.0",
        command="mdtest '-F' '-n' '200', quoted",
        campaign="files",
    )
    for n in (0, 4)
]


def test_rates_of_files_are_a_file_of_their_own(folder: Path) -> None:
    assert write(folder, PROVENANCE, BENCHMARKS, APPLICATIONS).rates == ()
    assert not (folder / "file_rates.csv").exists()
    assert write(folder, PROVENANCE, BENCHMARKS, APPLICATIONS, RATES).rates == tuple(RATES)


def test_a_damaged_rate_names_its_line(folder: Path) -> None:
    write(folder, PROVENANCE, BENCHMARKS, APPLICATIONS, RATES)
    file = folder / "file_rates.csv"
    file.write_text(file.read_text().replace("create,4", "creates,4"))
    with pytest.raises(InputError) as caught:
        read(folder)
    assert f"{file}:3: operation is 'creates'" in str(caught.value)


def test_the_gain_of_rates_is_a_table_of_a_data_set_with_rates(folder: Path) -> None:
    without = write(folder, PROVENANCE, BENCHMARKS, APPLICATIONS)
    assert not gain_of_rates(evaluate(without)).rows
    data = write(folder, PROVENANCE, BENCHMARKS, APPLICATIONS, RATES)
    rows = gain_of_rates(evaluate(data)).rows
    assert [row["io_nodes"] for row in rows] == ["0", "all"]
    # The application has no phase of many files, so rates change nothing.
    assert rows[0]["with_rates"] == rows[0]["without_rates"] != ""
    # Runs of 10 and 11 MiB/s: each is predicted by the other one.
    assert float(rows[0]["noise_floor"]) == pytest.approx((1 / 11 + 1 / 10) / 2, abs=0.001)
    assert [(row["io_nodes"], row["mean_files_per_s"]) for row in rates(data).rows] == [
        ("0", "1000.50"),
        ("4", "1004.50"),
    ]


def test_commands_of_applications_are_optional(folder: Path) -> None:
    write(folder, PROVENANCE, BENCHMARKS, APPLICATIONS)
    table = folder / "applications.csv"
    lines = table.read_text(encoding="utf-8").splitlines()
    # The last two columns are the command and the bandwidths of the phases.
    shorter = [line.rsplit(",", 2)[0] for line in lines]
    table.write_text("\n".join(shorter), encoding="utf-8")
    assert read(folder).commands == {"app": ""}


def test_processes_and_nodes_of_a_row_override_those_of_the_set(folder: Path) -> None:
    measured = write(folder, PROVENANCE, BENCHMARKS, APPLICATIONS).benchmarks[0].measurement
    assert (measured.config.tasks, measured.config.nodes, measured.engine) == (4, 2, "fio")


def test_a_data_set_can_be_imported_and_used_for_validation(folder: Path) -> None:
    write(folder, PROVENANCE, BENCHMARKS, APPLICATIONS)
    database = ["--db", str(folder / "bench.sqlite")]
    imported = CliRunner().invoke(
        cli, ["bench", "import", str(folder / "benchmarks.csv"), "--system", "example", *database]
    )
    assert "2 measurements of 1 configuration" in imported.stdout
    validated = CliRunner().invoke(
        cli,
        [
            *("validate", str(folder / "applications.csv"), "--system", "example"),
            *("--log", f"app={folder / 'logs' / LOG}", *database),
        ],
    )
    assert validated.exit_code == 0, validated.output


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"date": "yesterday"}, "key `date`: must be a date such as 2026-11-21, not 'yesterday'"),
        ({"tasks": "16"}, "key `tasks`: must be a whole number"),
        ({"seeds": []}, "key `seeds`: must not be empty"),
        ({"seed": 3}, "key `seed` is unknown"),
        ({"logs": [{"file": "a.darshan"}]}, "key `logs.0.application` is missing"),
    ],
)
def test_a_wrong_provenance_is_rejected(
    complaint: Callable[..., str], changes: dict[str, Any], said: str
) -> None:
    assert complaint(**changes) == said


def test_a_provenance_that_is_not_json_is_rejected(folder: Path) -> None:
    (folder / "provenance.json").write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match=r"provenance\.json: .*JSON"):
        read(folder)


@pytest.mark.parametrize(
    ("applications", "said"),
    [
        (["app", "other"], "'other' has a log but is not in applications.csv"),
        (["other"], "'app' is in applications.csv but has no log"),
        (["app", "app"], f"the log {LOG!r} is listed twice"),
    ],
)
def test_logs_and_applications_must_agree(
    complaint: Callable[..., str], applications: list[str], said: str
) -> None:
    log = PROVENANCE.logs[0].model_dump()
    assert complaint(logs=[{**log, "application": name} for name in applications]) == said


def test_a_missing_log_is_rejected(folder: Path) -> None:
    (folder / "logs" / LOG).unlink()
    with pytest.raises(InputError, match=LOG):
        write(folder, PROVENANCE, BENCHMARKS, APPLICATIONS)


def test_a_pattern_has_one_name(folder: Path) -> None:
    write(folder, PROVENANCE, BENCHMARKS, APPLICATIONS)
    table = folder / "benchmarks.csv"
    table.write_text(table.read_text().replace("w-fpp", "first", 1), encoding="utf-8")
    with pytest.raises(InputError, match="'first' and 'w-fpp' are names of the same pattern"):
        read(folder)


def test_a_name_belongs_to_one_pattern(folder: Path) -> None:
    write(folder, PROVENANCE, BENCHMARKS, APPLICATIONS)
    table = folder / "benchmarks.csv"
    table.write_text(table.read_text().replace("-b 4m", "-b 8m", 1), encoding="utf-8")
    said = r"benchmarks\.csv: 'w-fpp' is the name of two patterns, `.* -b 8m .*` and `.* -b 4m .*`"
    with pytest.raises(InputError, match=said):
        read(folder)


def test_benchmarks_that_are_not_csv_are_rejected_with_the_line(folder: Path) -> None:
    write(folder, PROVENANCE, BENCHMARKS, APPLICATIONS)
    table = folder / "benchmarks.csv"
    # This field is longer than Python's csv module accepts.
    table.write_text(table.read_text() + "x" * 200_000 + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"benchmarks\.csv:4: this is not a CSV file"):
        read(folder)


def test_benchmarks_must_have_names(folder: Path) -> None:
    write(folder, PROVENANCE, BENCHMARKS, APPLICATIONS)
    table = folder / "benchmarks.csv"
    table.write_text(table.read_text().replace("name", "title", 1), encoding="utf-8")
    with pytest.raises(InputError, match="column 'name' is missing"):
        read(folder)
