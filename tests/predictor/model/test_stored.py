"""Models in a real database: read back exactly; damaged or old ones are fitted again."""

from __future__ import annotations

import hashlib
import json
import pickle
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from benchdb.measurements.storing import Measurement, store
from benchdb.store.database import opened_database, reading, transaction
from benchdb.store.fitted_models import stored_model
from ioncast.cli import cli
from predictor.model.measurement_summary import read_summary
from predictor.model.stored import from_document, to_document
from predictor.model.system_model import Model, SystemModel

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).resolve().parents[3]
TESTBED = PROJECT / "experiments" / "data" / "testbed"
LOG = TESTBED / "logs" / "hacc-io-ionodes0.darshan"


def test_a_model_read_back_predicts_the_same_to_the_last_bit(synthetic: Any, fitted: Model) -> None:
    again = from_document(to_document(fitted))
    assert again is not None
    one, other = SystemModel(synthetic.curves, fitted), SystemModel(synthetic.curves, again)
    for curve in (*synthetic.curves[:5], *synthetic.left_out[:5]):
        here = one.expect([one.match(curve.config)], [0, 4, 8])
        there = other.expect([other.match(curve.config)], [0, 4, 8])
        assert np.array_equal(here.mean, there.mean)
        assert np.array_equal(here.covariance, there.covariance)
        assert np.array_equal(here.noise, there.noise)
    assert again.scores == fitted.scores
    assert (again.measurements, again.configurations) == (600, 40)
    assert to_document(again) == to_document(fitted)


def test_a_model_with_a_jump_is_read_back(jumping: SystemModel) -> None:
    assert jumping.model is not None
    text = to_document(jumping.model)
    again = from_document(text)
    assert again is not None
    assert to_document(again) == text
    less = json.loads(text)
    del less["with_jump"]["trend"][0]
    assert from_document(json.dumps(less)) is None


def test_a_document_is_small_and_strict_json(fitted: Model) -> None:
    text = to_document(fitted)
    assert len(text) < 10_000
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not valid JSON"))
    assert from_document(to_document(replace(fitted, scores=None))) is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "1",
        '"model"',
        "NaN",
        "{}",
        '{"version": 1}',
        "[" * 100_000,
        "9" * 100_000,
        "\x00",
        pickle.dumps({"version": 1}, protocol=0).decode("ascii"),
    ],
    ids=lambda text: repr(text[:12]),
)
def test_a_document_that_is_not_a_model_is_rejected(text: str) -> None:
    assert from_document(text) is None


# Each of these replaces each value of a document.
NO_VALUES: list[Any] = [None, "x", [], {}, float("nan"), float("inf"), 10**400, [[1]], -1.5]


def places_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List the paths of all values in a document; of a list only the first value."""
    children: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = [(0, value[0])]
    return [path, *(p for key, child in children for p in places_in(child, (*path, key)))]


def put_in(record: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = record.copy()
    changed[path[0]] = put_in(record[path[0]], path[1:], value)
    return changed


# The values that may be below 0.
SIGNED = {"centre", "offset", "noise", "usual"}


OPTIONAL = {("scores",), ("large_requests",), ("with_jump",)}


def test_a_model_with_a_damaged_value_is_rejected(fitted: Model) -> None:
    record = json.loads(to_document(fitted))
    believed = []
    for path in places_in(record)[1:]:
        for value in NO_VALUES:
            if (value == -1.5 and SIGNED & set(path)) or (path in OPTIONAL and value is None):
                continue
            if from_document(json.dumps(put_in(record, path, value))) is not None:
                believed.append((path, value))
    assert believed == []


@pytest.mark.parametrize("path", [("spread",), ("lengths", 0, 0)])
def test_a_model_with_a_divisor_of_0_is_rejected(fitted: Model, path: tuple[Any, ...]) -> None:
    record = json.loads(to_document(fitted))
    assert from_document(json.dumps(put_in(record, ("parameters", *path), 0.0))) is None


def test_a_model_without_one_of_its_parts_is_rejected(fitted: Model) -> None:
    record = json.loads(to_document(fitted))
    for path in places_in(record)[1:]:
        if path[0] in {"tails", "new_factors", "factors_of_processes"} and len(path) == 2:
            # Their number may differ.
            continue
        holder = record
        for key in path[:-1]:
            holder = holder[key]
        less: Any = (
            {key: value for key, value in holder.items() if key != path[-1]}
            if isinstance(holder, dict)
            else holder[1:]
        )
        assert from_document(json.dumps(put_in(record, path[:-1], less))) is None, path


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 6, "5", None, 5.5])
def test_a_model_of_another_version_is_rejected(fitted: Model, version: Any) -> None:
    assert from_document(json.dumps(json.loads(to_document(fitted)) | {"version": version})) is None


def test_a_model_with_an_unknown_feature_is_rejected(fitted: Model) -> None:
    record = json.loads(to_document(fitted))
    record["features"][0] = "phase of the moon"
    assert from_document(json.dumps(record)) is None


def test_a_model_with_a_million_components_is_rejected(fitted: Model) -> None:
    record = json.loads(to_document(fitted))
    record["parameters"]["weights"] = [1.0] * 1_000_000
    assert from_document(json.dumps(record)) is None


# In the database


@pytest.fixture
def location(synthetic: Any, tmp_path: Path) -> Path:
    """Store six configurations of the synthetic system; so few are fitted quickly."""
    place = tmp_path / "bench.sqlite"
    put(place, *(run for curve in synthetic.curves[:6] for run in runs_of(curve)))
    return place


def runs_of(curve: Any, engine: str = "ior") -> list[Measurement]:
    return [
        Measurement(curve.config, n, value, engine=engine)
        for n, values in curve.bandwidths_mib_s.items()
        for value in values
    ]


def put(place: Path, *rows: Measurement) -> None:
    with opened_database(place) as database, transaction(database, write=True) as connection:
        store(
            connection,
            system="here",
            file="file",
            content=repr(rows).encode(),
            file_format="test",
            rows=rows,
        )


def fit(place: Path, engine: str = "ior") -> Model:
    with reading(place) as connection:
        summary = read_summary(connection, "here", engine)
        summary = summary.fitted_to(summary.curves_to_fit(connection))
    with opened_database(place) as database, transaction(database, write=True) as connection:
        summary.store_model(connection)
    assert summary.model is not None
    return summary.model


def current(place: Path, engine: str = "ior") -> Model | None:
    with reading(place) as connection:
        return read_summary(connection, "here", engine).model


def test_a_fitted_model_stays_until_the_measurements_change(location: Path, synthetic: Any) -> None:
    assert current(location) is None
    model = fit(location)
    found = current(location)
    assert found is not None
    assert to_document(found) == to_document(model)
    assert model.measurements == 6 * 5 * 3
    put(location, *runs_of(synthetic.curves[6]))
    assert current(location) is None
    assert fit(location).configurations == 7
    assert current(location) is not None


def test_each_engine_has_a_model_of_its_own(location: Path, synthetic: Any) -> None:
    put(location, *runs_of(synthetic.curves[0], engine="fio"))
    fit(location)
    assert current(location, "fio") is None
    assert fit(location, "fio").configurations == 1
    found = current(location)
    assert found is not None
    assert found.configurations == 6


def overwrite(place: Path, document: str) -> None:
    with closing(sqlite3.connect(place)) as database, database:
        assert database.execute("UPDATE models SET document = ?", [document]).rowcount == 1


@pytest.mark.parametrize(
    "document", ["", "{}", "cos\nsystem\n(S'touch stolen'\ntR.", '{"version": 2}']
)
def test_a_damaged_model_in_the_database_is_fitted_again(location: Path, document: str) -> None:
    fit(location)
    overwrite(location, document)
    assert current(location) is None
    assert to_document(fit(location)) == to_document(current(location))  # type: ignore[arg-type]


def test_loading_needs_nothing_that_reads_pickles() -> None:
    """It also imports no library that takes longer to import than a prediction takes."""
    program = (
        "import sys, predictor.model.stored, predictor.curve.prediction\n"
        "print({'joblib', 'cloudpickle', 'dill', 'sklearn', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


# From the command


@pytest.fixture
def testbed(tmp_path: Path) -> Path:
    place = tmp_path / "testbed.sqlite"
    ran = invoke(
        *("bench", "import", TESTBED / "benchmarks.csv", "--system", "testbed"),
        *("--tasks", "16", "--nodes", "8", "--db", place),
    )
    assert ran.exit_code == 0
    return place


def invoke(*arguments: Any) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in arguments])


def predicted(place: Any) -> Result:
    result = invoke(
        "predict", LOG, "--system", "testbed", "--nodes", "8", "--db", place, "--format", "json"
    )
    assert result.exit_code == 0, result.exception
    return result


FITTING = "fitting a model to 15 configurations"


def test_the_first_prediction_fits_and_the_next_finds_the_same_model(testbed: Path) -> None:
    first, second = predicted(testbed), predicted(testbed)
    assert FITTING in first.stderr
    assert second.stderr == ""
    assert first.stdout == second.stdout


def test_an_import_that_adds_something_is_fitted_to(testbed: Path, tmp_path: Path) -> None:
    predicted(testbed)
    more = tmp_path / "more.csv"
    more.write_text("io_nodes,bandwidth_mib_s,command\n4,75,mpiexec -n 16 ior -w -b 4m -t 1m\n")
    for expected in (True, False):
        # Importing the same file again changes nothing.
        assert (
            invoke("bench", "import", more, "--system", "testbed", "--db", testbed).exit_code == 0
        )
        assert ("fitting a model" in predicted(testbed).stderr) == expected


def test_a_database_that_can_only_be_read_predicts_with_a_warning(testbed: Path) -> None:
    read_only = f"sqlite:///file:{testbed}?mode=ro&uri=true"
    first, second = predicted(read_only), predicted(read_only)
    for result in (first, second):
        assert FITTING in result.stderr
        [warning] = [w for w in json.loads(result.stdout)["warnings"] if "cannot be stored" in w]
        assert "fitted each time" in warning
    assert first.stdout == second.stdout
    with reading(testbed) as connection:
        assert stored_model(connection, "testbed", "ior") is None
    written = json.loads(predicted(testbed).stdout)
    assert json.loads(first.stdout)["curve"] == written["curve"]


def test_a_damaged_model_does_not_stop_a_prediction(testbed: Path) -> None:
    good = predicted(testbed).stdout
    overwrite(testbed, '{"version": 1, "features": 7}')
    again = predicted(testbed)
    assert FITTING in again.stderr
    assert again.stdout == good
    assert predicted(testbed).stderr == ""


def test_a_model_with_the_state_of_an_earlier_version_is_fitted_once_more(testbed: Path) -> None:
    """Earlier versions computed the state of the measurements from a `repr`, so it differs now."""
    good = predicted(testbed).stdout
    with closing(sqlite3.connect(testbed)) as database, database:
        [row] = database.execute("SELECT revision, (SELECT max(id) FROM imports) FROM systems")
        old = hashlib.sha256(repr(("testbed", "ior", *row)).encode()).hexdigest()
        database.execute("UPDATE models SET state = ?", [old])
    again = predicted(testbed)
    assert FITTING in again.stderr
    assert again.stdout == good
    assert predicted(testbed).stderr == ""
