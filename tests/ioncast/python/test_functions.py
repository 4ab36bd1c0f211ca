"""The Python interface on the testbed: the same numbers as the command and the data files."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

import ioncast
from ioncast.cli import cli

PROJECT = Path(__file__).resolve().parents[2]
TESTBED = PROJECT / "experiments" / "data" / "testbed"
HACC = TESTBED / "logs" / "hacc-io-ionodes0.darshan"
WORKERS = [
    PROJECT / f"tests/summario/fixtures/programs/fork-workers-{number}.darshan"
    for number in range(4)
]

pytestmark = pytest.mark.filterwarnings("default::UserWarning:tests")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("frames") / "bench.sqlite"
    args = ["bench", "import", str(TESTBED / "benchmarks.csv"), "--system", "testbed"]
    done = CliRunner().invoke(cli, [*args, "--tasks", "16", "--nodes", "8", "--db", str(place)])
    assert done.exit_code == 0, done.output
    return place


def printed(*args: str | Path) -> Any:
    """The JSON that a command prints."""
    done = CliRunner().invoke(cli, [*map(str, args), "--format", "json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_importing_ioncast_loads_no_library() -> None:
    program = (
        "import sys, ioncast; dir(ioncast)\n"
        "print(sorted({'numpy', 'click', 'pandas', 'sqlalchemy'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_the_interface_has_what_it_names_and_nothing_else() -> None:
    for name in ioncast.__all__:
        assert getattr(ioncast, name).__doc__
        assert name in dir(ioncast)
    with pytest.raises(AttributeError, match="no attribute 'phase'"):
        ioncast.phase  # type: ignore[attr-defined]  # noqa: B018


def test_the_example_in_the_readme_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    [example] = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    monkeypatch.chdir(PROJECT)
    exec(example, {})  # noqa: S102
    shown = capsys.readouterr().out
    assert "463453184" in shown
    assert "mpiexec -n 16 ior -a POSIX -w -F" in shown


def test_phases_have_the_bytes_of_the_program_and_units_in_their_columns() -> None:
    found = ioncast.phases(HACC)
    # 16 processes write a header of 24 MiB and 38 bytes for each of 100,000 particles.
    assert found["bytes"].tolist() == [16 * ((24 << 20) + 38 * 100_000)]
    assert {"start_seconds", "end_seconds", "io_time_seconds", "metadata_seconds"} <= {*found}
    assert "parts" not in found
    [row] = printed("phases", HACC)
    assert found["io_time_seconds"].tolist() == [row["time"]]


def test_the_logs_of_one_run_are_joined() -> None:
    joined = ioncast.phases(WORKERS)
    assert joined["n_files"].tolist() == [1, 4]
    assert ioncast.phases([str(log) for log in WORKERS], join="job").equals(joined)


def test_a_log_without_phases_has_all_columns() -> None:
    nothing = ioncast.ExtractionSettings(layer="mpiio")
    with pytest.warns(UserWarning, match="through POSIX"):
        found = ioncast.phases(HACC, settings=nothing)
    assert found.empty
    assert list(found) == list(ioncast.phases(HACC))


def test_a_report_of_pydarshan_gives_the_same_phases() -> None:
    darshan = pytest.importorskip("darshan", reason="PyDarshan has no wheel for this Python")
    found = ioncast.phases(darshan.DarshanReport(str(HACC)))
    assert found.drop(columns="log").equals(ioncast.phases(HACC).drop(columns="log"))


def test_matches_are_the_lines_of_the_command() -> None:
    log = TESTBED / "logs" / "multiphase-ionodes0.darshan"
    found = ioncast.match(log, nodes=8)
    assert found["ior"].tolist() == [row["ior"] for row in printed("match", log, "--nodes", "8")]
    assert found["requests"].mul(found["request_bytes"]).sum() == found["bytes"].sum()
    assert found["nodes"].tolist() == [8] * len(found)


def test_curves_hold_every_measurement_of_the_file(database: Path) -> None:
    found = ioncast.curves("testbed", database=database)
    with (TESTBED / "benchmarks.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert Counter(found["bandwidth_mib_s"]) == Counter(
        float(row["bandwidth_mib_s"]) for row in rows
    )
    means = found.groupby(["ior", "io_nodes"])["bandwidth_mib_s"].mean()
    assert len(means) == len({(row["name"], row["io_nodes"]) for row in rows})
    assert ioncast.curves("testbed", engine="fio", database=str(database)).empty


@pytest.mark.slow
def test_predictions_are_those_of_the_command(database: Path) -> None:
    with pytest.warns(UserWarning):
        found = ioncast.predict(HACC, "testbed", nodes=8, io_nodes=[4, 0, 0], database=database)
    told = printed(
        "predict", HACC, "--system=testbed", "--nodes=8", "--io-nodes=0,4", f"--db={database}"
    )
    assert found["io_nodes"].tolist() == [0, 4]
    assert found["p90_mib_s"].tolist() == [p["bandwidth_mib_s"]["p90"] for p in told["curve"]]
    assert found.attrs["decision"] == told["decision"]
    [decided] = found.loc[found["is_decision"], "io_nodes"]
    assert decided == told["decision"]["io_nodes"]


@pytest.mark.parametrize("as_frame", [False, True])
def test_validation_measures_what_the_reruns_say(database: Path, as_frame: bool) -> None:
    applications = TESTBED / "applications.csv"
    reruns = pd.read_csv(applications)
    mean = reruns[reruns["name"] == "hacc-io"].groupby("io_nodes")["bandwidth_mib_s"].mean()
    if as_frame:
        reruns = reruns[reruns["name"] == "hacc-io"]
        # The number of one repetition is not known.
        reruns = reruns.assign(repetition=[None, *reruns["repetition"][1:]])
    logs = {name: TESTBED / f"logs/{name}-ionodes0.darshan" for name in set(reruns["name"])}
    with pytest.warns(UserWarning):
        found = ioncast.validate(
            reruns if as_frame else applications, logs, "testbed", nodes=8, database=database
        )
    hacc = found[found["application"] == "hacc-io"].set_index("io_nodes")
    assert hacc["measured_mib_s"].to_dict() == pytest.approx(mean.to_dict())
    runs = reruns[(reruns["name"] == "hacc-io") & (reruns["io_nodes"] == 4)]["bandwidth_mib_s"]
    predicted = hacc.loc[4, "predicted_mib_s"]
    assert hacc.loc[4, "error"] == pytest.approx(fmean(abs(predicted - run) / run for run in runs))
    assert set(found["application"]) == set(logs)


def test_errors_are_one_line_and_name_parameters_as_python_does(
    database: Path, tmp_path: Path
) -> None:
    with pytest.raises(ioncast.IoncastError, match=r"^[^\n]*missing\.darshan[^\n]*$"):
        ioncast.phases(tmp_path / "missing.darshan")
    with pytest.raises(ioncast.IoncastError, match="testbed"):
        ioncast.predict(HACC, "tesbed", database=database)
    with pytest.raises(ioncast.IoncastError, match="tesbed"):
        ioncast.curves("tesbed", database=database)
    with pytest.raises(ioncast.IoncastError, match="the frame of reruns"):
        ioncast.validate(pd.DataFrame({"io_nodes": [1]}), {}, "testbed", database=database)
    with pytest.raises(ioncast.IoncastError):
        ioncast.curves("testbed", database=tmp_path / "nowhere.sqlite")
    assert not (tmp_path / "nowhere.sqlite").exists()
