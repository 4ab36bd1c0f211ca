"""The Python interface on the testbed: the same numbers as the command and the data files."""

from __future__ import annotations

import configparser
import csv
import inspect
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
from predictor.curve.prediction_formats import to_json

PROJECT = Path(__file__).resolve().parents[3]
TESTBED = PROJECT / "experiments" / "data" / "testbed"
HACC = TESTBED / "logs" / "hacc-io-ionodes0.darshan"
WORKERS = [
    PROJECT / f"tests/summario/fixtures/programs/fork-workers-{number}.darshan"
    for number in range(4)
]

pytestmark = pytest.mark.filterwarnings("default::UserWarning:tests")


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


def test_the_version_is_that_of_the_package() -> None:
    package = configparser.ConfigParser()
    package.read(PROJECT / "setup.cfg", encoding="utf-8")
    assert ioncast.__version__ == package["metadata"]["version"]


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
    found = ioncast.phases(HACC).frame
    # 16 processes write a header of 24 MiB and 38 bytes for each of 100,000 particles.
    assert found["bytes"].tolist() == [16 * ((24 << 20) + 38 * 100_000)]
    assert {"start_seconds", "end_seconds", "io_time_seconds", "metadata_seconds"} <= {*found}
    assert "parts" not in found
    [row] = printed("phases", HACC)
    assert found["io_time_seconds"].tolist() == [row["time"]]


def test_the_logs_of_one_run_are_joined() -> None:
    joined = ioncast.phases(WORKERS).frame
    assert joined["n_files"].tolist() == [1, 4]
    assert ioncast.phases([str(log) for log in WORKERS], join="job").frame.equals(joined)


def test_a_log_without_phases_has_all_columns() -> None:
    nothing = ioncast.ExtractionSettings(layer="mpiio")
    with pytest.warns(UserWarning, match="through POSIX"):
        found = ioncast.phases(HACC, settings=nothing).frame
    assert found.empty
    assert list(found) == list(ioncast.phases(HACC).frame)


def test_a_report_of_pydarshan_gives_the_same_phases() -> None:
    darshan = pytest.importorskip("darshan", reason="PyDarshan has no wheel for this Python")
    found = ioncast.phases(darshan.DarshanReport(str(HACC))).frame
    assert found.drop(columns="log").equals(ioncast.phases(HACC).frame.drop(columns="log"))


def test_matches_are_the_lines_of_the_command() -> None:
    log = TESTBED / "logs" / "multiphase-ionodes0.darshan"
    found = ioncast.match(log, nodes=8).frame
    assert found["ior"].tolist() == [row["ior"] for row in printed("match", log, "--nodes", "8")]
    assert found["requests"].mul(found["request_bytes"]).sum() == found["bytes"].sum()
    assert found["nodes"].tolist() == [8] * len(found)


def test_an_import_stores_every_measurement_of_the_file_once(database: Path) -> None:
    again = ioncast.import_results(
        TESTBED / "benchmarks.csv", "testbed", tasks=16, nodes=8, db=database
    )
    with (TESTBED / "benchmarks.csv").open(encoding="utf-8", newline="") as file:
        rows = len(list(csv.DictReader(file)))
    assert again.frame[["found", "measurements"]].to_dict("records") == [
        {"found": rows, "measurements": 0}
    ]
    assert "nothing changed" in again.said[0]


def test_curves_hold_every_measurement_of_the_file(database: Path) -> None:
    found = ioncast.curves("testbed", db=database).frame
    with (TESTBED / "benchmarks.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert Counter(found["bandwidth_mib_s"]) == Counter(
        float(row["bandwidth_mib_s"]) for row in rows
    )
    means = found.groupby(["ior", "io_nodes"])["bandwidth_mib_s"].mean()
    assert len(means) == len({(row["name"], row["io_nodes"]) for row in rows})
    assert (
        "write POSIX sequential shared: bandwidth"
        in ioncast.curves("testbed", db=database).plot().svg
    )
    assert ioncast.curves("testbed", engine="fio", db=str(database)).frame.empty


@pytest.mark.slow
def test_predictions_are_those_of_the_command(database: Path) -> None:
    with pytest.warns(UserWarning):
        result = ioncast.predict(HACC, "testbed", nodes=8, io_nodes=[4, 0, 0], db=database)
    found = result.frame
    told = printed(
        "predict", HACC, "--system=testbed", "--nodes=8", "--io-nodes=0,4", f"--db={database}"
    )
    assert found["io_nodes"].tolist() == [0, 4]
    assert found["p90_mib_s"].tolist() == [p["bandwidth_mib_s"]["p90"] for p in told["curve"]]
    assert to_json(result.details)["decision"] == told["decision"]
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
            reruns if as_frame else applications, logs, "testbed", nodes=8, db=database
        ).frame
    hacc = found[found["application"] == "hacc-io"].set_index("io_nodes")
    assert hacc["measured_mib_s"].to_dict() == pytest.approx(mean.to_dict())
    runs = reruns[(reruns["name"] == "hacc-io") & (reruns["io_nodes"] == 4)]["bandwidth_mib_s"]
    predicted = hacc.loc[4, "predicted_mib_s"]
    assert hacc.loc[4, "error"] == pytest.approx(fmean(abs(predicted - run) / run for run in runs))
    assert set(found["application"]) == set(logs)


def test_a_folder_has_the_phases_of_its_programs() -> None:
    found = ioncast.phases(TESTBED / "logs").frame
    numbers = found.groupby(
        found["log"].map(lambda log: Path(log).name.split("-ionodes")[0])
    ).size()
    # Each program ran three times; the README of the testbed tells its phases.
    assert numbers.to_dict() == {"hacc-io": 3 * 1, "multiphase": 3 * 3, "periodic": 3 * 4}


def test_a_damaged_log_of_a_folder_is_a_warning_if_others_can_be_read(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.darshan"
    damaged.write_bytes(HACC.read_bytes()[:500])
    with pytest.raises(ioncast.IoncastError, match="damaged"):
        ioncast.phases(tmp_path)
    (tmp_path / "good.darshan").write_bytes(HACC.read_bytes())
    with pytest.warns(UserWarning, match=r"damaged\.darshan: ") as warned:
        found = ioncast.phases(tmp_path)
    assert len(found.frame) == 1
    # The warning points to the line that called.
    assert {warning.filename for warning in warned} == {__file__}
    with pytest.warns(UserWarning, match=r"damaged\.darshan: "):
        answer = ioncast.sql(tmp_path, text="select count(*) as jobs from jobs")
    assert answer.frame["jobs"].tolist() == [1]
    with pytest.raises(ioncast.IoncastError, match="damaged"):
        ioncast.phases([tmp_path / "good.darshan", damaged])


def test_findings_are_those_of_the_command() -> None:
    log = TESTBED / "logs" / "multiphase-ionodes0.darshan"
    result = ioncast.check(log, ignore=["P08"])
    [told] = printed("check", log, "--ignore", "P08")
    known = result.frame[result.frame["level"] != "UNKNOWN"]
    assert known["code"].tolist() == [finding["code"] for finding in told["findings"]]
    stakes = [finding["seconds_at_stake"] for finding in told["findings"]]
    assert known["seconds_at_stake"].fillna(0).tolist() == [stake or 0 for stake in stakes]
    assert set(result.frame["code"]) - set(known["code"]) == set(told["unknown"])
    assert "POSIX requests by size" in result.plot().svg


def test_tables_of_two_runs_are_compared() -> None:
    logs = [TESTBED / "logs" / f"multiphase-ionodes{number}.darshan" for number in (0, 4)]
    result = ioncast.characterize(logs)
    rows = result.frame[result.frame["characteristic"] == "writes"]
    # It writes 64 MiB in requests of 1 MiB, and 32 MiB in requests of 64 KiB.
    assert rows[rows["table"] == "operations"]["value"].tolist() == [64 + 512, 64 + 512]
    assert rows[rows["table"] == "operations"]["ratio"].tolist() == [1.0, 1.0]
    [said] = result.said
    assert said.startswith("multiphase-ionodes4 beside multiphase-ionodes0: ")
    assert result.plot().svg.count("multiphase-ionodes4") > 1


def test_a_time_line_has_the_requests_of_the_program() -> None:
    result = ioncast.timeline(TESTBED / "logs" / "hacc-io-ionodes4-dxt.darshan", ranks="0,8-9")
    assert sorted(set(result.frame["first_rank"])) == [0, 8, 9]
    # A header and nine arrays for each process.
    assert result.frame["requests"].sum() == 3 * 10
    assert result.frame["bytes"].sum() == 3 * ((24 << 20) + 38 * 100_000)
    assert "rank" in result.plot().svg


def test_a_time_line_without_requests_shows_phases(shared_data: Path) -> None:
    folder = shared_data / "darshan-logs/apmpi_apxc"
    result = ioncast.timeline(next(folder.glob("*.darshan")))
    assert result.frame.drop(columns="log").equals(ioncast.phases(folder).frame.drop(columns="log"))
    assert "because there is no trace" in result.said[0]
    assert "Phase 0" in result.plot().svg


def test_answers_in_sql_have_the_rows_of_the_files() -> None:
    logs = [TESTBED / "logs" / f"{name}-ionodes0.darshan" for name in ("hacc-io", "periodic")]
    text = "select log, sum(written_bytes) as bytes from files group by log"
    found = ioncast.sql(logs, text=text).frame
    assert sorted(found["bytes"]) == [128 << 20, 16 * ((24 << 20) + 38 * 100_000)]
    assert len(ioncast.sql(logs, "programs", limit=1).frame) == 1


def test_a_report_of_pydarshan_has_the_same_findings_and_requests() -> None:
    darshan = pytest.importorskip("darshan", reason="PyDarshan has no wheel for this Python")
    log = TESTBED / "logs" / "hacc-io-ionodes4-dxt.darshan"
    report = darshan.DarshanReport(str(log))
    for function in (ioncast.check, ioncast.timeline):
        assert function(report).frame.equals(function(log).frame)


@pytest.mark.slow
def test_advice_is_that_of_the_command(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = TESTBED / "logs" / "multiphase-ionodes0.darshan"
    monkeypatch.setenv("IONCAST_DB", str(database))
    with pytest.warns(UserWarning):
        result = ioncast.advise(log, "testbed", nodes=8)
    told = printed("advise", log, "--system=testbed", "--nodes=8", f"--db={database}")
    assert result.frame["advice"].tolist() == [advice["name"] for advice in told["advice"]]
    saved = [advice["saved_seconds"]["expected"] for advice in told["advice"]]
    assert result.frame["saved_seconds"].tolist() == saved
    assert told["advice"][0]["name"] in result.plot().svg


@pytest.mark.slow
def test_a_missing_extra_is_an_error_only_where_it_is_needed() -> None:
    program = f"""
import sys
sys.modules |= {{"pyarrow": None, "duckdb": None}}
import ioncast
print(len(ioncast.phases({str(HACC)!r}).frame))
try:
    ioncast.sql({str(HACC)!r}, "programs")
except ioncast.IoncastError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=PROJECT
    )
    count, error = done.stdout.splitlines()
    assert count == "1"
    assert "which is not installed; `pip install" in error


def test_the_document_lists_every_function_and_its_example_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (PROJECT / "docs/python.md").read_text(encoding="utf-8")
    functions = {name for name in ioncast.__all__ if inspect.isfunction(getattr(ioncast, name))}
    assert set(re.findall(r"^\| `(\w+)` \| `ioncast ", text, re.MULTILINE)) == functions
    [(example, shown)] = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(PROJECT)
    exec(example, {})  # noqa: S102
    assert capsys.readouterr().out == shown
