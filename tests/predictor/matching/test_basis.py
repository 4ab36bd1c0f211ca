from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from benchdb.measurements.curves import Curve, curves, curves_of_ids
from benchdb.measurements.storing import Measurement, store
from benchdb.store.database import opened_database, reading, transaction
from ioncast.cli import cli
from ioncast_base.errors import UnknownNameError
from ior_configs import IorConfig
from predictor.matching import basis
from predictor.matching.basis import choose_engine, lessons, read_basis, read_survey, read_unlearned
from predictor.model.stored import Fitted, Lessons, store_fitted
from predictor.model.system_model import Knowledge
from summario.phases.tables import to_csv
from summario.phases.values import Phase

MakePhase = Callable[..., Phase]
# The configuration of `a_phase` in conftest.py.
SAME = IorConfig(write=True, block_size=4 << 20, transfer_size=1 << 20, tasks=16, nodes=8)


@pytest.mark.parametrize(
    ("configurations", "chosen"),
    [
        ({"ior": 1}, "ior"),
        ({"fio": 1}, "fio"),
        ({"fio": 99, "ior": 1}, "ior"),
        ({"fio": 2, "forge": 3}, "forge"),
        ({"forge": 2, "fio": 2}, "fio"),
    ],
)
def test_the_engine_is_ior_or_the_one_that_measured_most(
    configurations: dict[str, int], chosen: str
) -> None:
    assert choose_engine(configurations) == chosen


@pytest.fixture
def location(tmp_path: Path) -> Path:
    return tmp_path / "bench.sqlite"


def put(location: Path, *rows: Measurement) -> None:
    with opened_database(location) as engine, transaction(engine, write=True) as connection:
        store(
            connection,
            system="here",
            file="file",
            content=repr(rows).encode(),
            file_format="test",
            rows=rows,
        )


def far(config: IorConfig) -> IorConfig:
    return replace(config, tasks=1024, nodes=64)


@pytest.fixture
def mixed(location: Path) -> Path:
    """IOR measured a far configuration; fio measured SAME; forge measured both."""
    put(
        location,
        *(Measurement(far(SAME), n, 10.0, engine="ior") for n in (0, 1)),
        *(Measurement(SAME, n, 20.0, engine="fio") for n in (0, 1, 2)),
        *(Measurement(SAME, n, 40.0, engine="forge") for n in (0, 4)),
        *(Measurement(far(SAME), n, 40.0, engine="forge") for n in (0, 4)),
    )
    return location


@pytest.mark.parametrize(
    ("asked", "chosen", "configs"),
    [
        (None, "ior", {far(SAME)}),
        ("fio", "fio", {SAME}),
        ("forge", "forge", {SAME, far(SAME)}),
    ],
)
def test_a_basis_is_of_one_engine_even_if_another_is_nearer(
    mixed: Path, asked: str | None, chosen: str, configs: set[IorConfig]
) -> None:
    with reading(mixed) as connection:
        basis = read_basis(connection, "here", [SAME], asked)
    assert basis.engine == chosen
    assert basis.engines == ("fio", "forge", "ior")
    curves_of_it = basis.knowledge.curves
    assert {curve.engine for curve in curves_of_it} == {chosen}
    assert {curve.config for curve in curves_of_it} == configs
    assert basis.fitted is not None
    assert (basis.fitted.engine, basis.fitted.model) == (chosen, basis.knowledge.model)
    assert basis.fitted.model.configurations == len(configs)


@pytest.mark.parametrize(("system", "engine"), [("here", "x"), ("nowhere", None), ("x", "ior")])
def test_where_nothing_was_measured_there_is_no_curve(
    mixed: Path, system: str, engine: str | None
) -> None:
    with reading(mixed) as connection:
        basis = read_basis(connection, system, [SAME], engine)
    assert (basis.knowledge.curves, basis.knowledge.model, basis.fitted) == ((), None, None)
    assert basis.engine == engine
    assert basis.engine not in basis.engines


@pytest.fixture
def phases_csv(a_phase: MakePhase, tmp_path: Path) -> Path:
    path = tmp_path / "phases.csv"
    path.write_text(to_csv([a_phase()]), encoding="utf-8")
    return path


def predicted(phases: Path, location: Path, *options: str) -> Result:
    args = ["predict", str(phases), "--system", "here", "--nodes", "8", "--db", str(location)]
    return CliRunner().invoke(cli, [*args, *options])


def test_the_engines_that_are_left_out_are_named(mixed: Path, phases_csv: Path) -> None:
    for options, engine, others in (
        ((), "ior", "fio, forge"),
        (("--engine", "fio"), "fio", "forge, ior"),
    ):
        result = predicted(phases_csv, mixed, *options)
        assert result.exit_code == 0
        [warning] = [line for line in result.stderr.splitlines() if "engine" in line]
        assert warning.startswith("ioncast: warning: ")
        assert f"uses the measurements of {engine}; {others} " in warning
        record = json.loads(predicted(phases_csv, mixed, *options, "--format", "json").stdout)
        assert any(others in warning for warning in record["warnings"])
        mean = record["curve"][0]["bandwidth_mib_s"]["mean"]
        assert mean == pytest.approx({"ior": 10, "fio": 20}[engine])


def test_where_one_engine_measured_none_is_left_out(location: Path, phases_csv: Path) -> None:
    put(location, Measurement(SAME, 0, 20.0, engine="fio"))
    result = predicted(phases_csv, location)
    assert (result.exit_code, "engine" in result.stderr) == (0, False)


def test_an_engine_that_measured_nothing_is_an_error(mixed: Path, phases_csv: Path) -> None:
    result = predicted(phases_csv, mixed, "--engine", "iperf")
    assert isinstance(result.exception, UnknownNameError)
    assert result.stdout == ""
    assert "on 'here' with 'iperf'" in str(result.exception)
    assert "engines with measurements: fio, forge and ior" in str(result.exception)


# More cells than a prediction can use.
SIZES = [8 * 2**i for i in range(15)]
IO_NODES = range(6)
MANY = [
    replace(SAME, tasks=tasks, nodes=nodes, transfer_size=size, block_size=size * count)
    for tasks, nodes, size, count in itertools.product((4, 64), (1, 4), SIZES, (1, 2, 8, 32))
]
# The number of configurations with at most 1,000 cells.
MOST = 1000 // len(IO_NODES)
FEW = 12


def keep(location: Path, fitted: Fitted) -> None:
    with opened_database(location) as engine, transaction(engine, write=True) as connection:
        store_fitted(connection, fitted)


@pytest.fixture(scope="module")
def large_location(tmp_path_factory: pytest.TempPathFactory) -> Path:
    location = tmp_path_factory.mktemp("large") / "bench.sqlite"
    put(
        location,
        *(Measurement(config, n, 10.0 + i % 7) for i, config in enumerate(MANY) for n in IO_NODES),
    )
    return location


@pytest.fixture(scope="module")
def sample(large_location: Path) -> Lessons:
    """The curves to which a model of such a system is fitted."""
    with reading(large_location) as connection:
        found = lessons(connection, "here")
    assert found is not None
    return found


@pytest.fixture(scope="module")
def large(large_location: Path, sample: Lessons) -> Path:
    """Such a system with its model; tests only read it."""
    # Fit to a part of the sample: the time grows with the cube of the number of cells, and the
    # whole sample would take half a minute. The tests do not depend on the size.
    keep(large_location, replace(sample, curves=sample.curves[:FEW]).learn())
    return large_location


def test_of_a_large_system_a_sample_is_learned_from(sample: Lessons) -> None:
    assert len(sample.curves) == MOST < len(MANY)


def test_the_nearest_configurations_of_a_large_system_are_predicted_from(large: Path) -> None:
    wanted = [replace(config, tasks=16, nodes=4) for config in MANY[::17]]
    with reading(large) as connection:
        everything = Knowledge(tuple(curves(connection, "here")))
        for asked in (wanted[:1], wanted, MANY[:40]):
            basis = read_basis(connection, "here", asked)
            assert basis.fitted is None
            assert basis.knowledge.model is not None
            assert basis.knowledge.model.configurations == FEW
            assert 0 < len(basis.knowledge.curves) <= MOST
            near = Knowledge(basis.knowledge.curves)
            for config in asked:
                assert near.match(config) == everything.match(config)


def test_a_stored_model_is_taken_as_long_as_nothing_changes(mixed: Path) -> None:
    with reading(mixed) as connection:
        first = read_basis(connection, "here", [SAME])
    assert first.fitted is not None
    keep(mixed, first.fitted)
    with reading(mixed) as connection:
        said: list[int] = []
        again = read_basis(connection, "here", [SAME], before_fitting=said.append)
    assert (again.fitted, said) == (None, [])
    put(mixed, Measurement(SAME, 4, 30.0, engine="ior"))
    with reading(mixed) as connection:
        after = read_basis(connection, "here", [SAME], before_fitting=said.append)
    assert said == [2]
    assert after.fitted is not None


def test_a_survey_is_read_once_for_many_applications(mixed: Path) -> None:
    with reading(mixed) as connection:
        survey = read_survey(connection, "here", "forge")
        for wanted in (SAME, far(SAME)):
            basis = read_basis(connection, "here", [wanted], "forge")
            knowledge = survey.knowledge(connection, survey.near([wanted]))
            assert knowledge.curves == basis.knowledge.curves
        assert (survey.engine, survey.engines) == (basis.engine, basis.engines)


def test_a_survey_reads_a_curve_once_and_keeps_no_more_than_some(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    def noted(*given: Any) -> list[Curve]:
        read.extend(given[2])
        return curves_of_ids(*given)

    monkeypatch.setattr(basis, "curves_of_ids", noted)
    with reading(large) as connection:
        survey = read_survey(connection, "here")
        read.clear()
        ids = survey.near([SAME])
        first, again = (survey.knowledge(connection, ids) for _ in range(2))
        assert read == list(ids)
        assert first.curves == again.curves == tuple(curves_of_ids(connection, "here", ids))
        monkeypatch.setattr(basis, "_MOST_CURVES", 1)
        assert survey.knowledge(connection, ids).curves == first.curves
        read.clear()
        assert survey.knowledge(connection, ids).curves == first.curves
        assert read == list(ids[:-1])


def test_a_survey_without_its_model_says_what_to_learn(mixed: Path) -> None:
    with reading(mixed) as connection:
        unlearned = read_unlearned(connection, "here")
        found = unlearned.lessons(connection)
        assert found is not None
        assert unlearned.model is None
        learned = unlearned.learned(found.learn())
        whole = read_survey(connection, "here")
        assert (learned.rows, learned.engines) == (whole.rows, whole.engines)
        assert learned.fitted is not None
        assert learned.model is learned.fitted.model
        assert learned.lessons(connection) is None


def test_lessons_are_what_a_model_is_fitted_on_until_it_is_stored(location: Path) -> None:
    put(location, *(Measurement(SAME, n, 10.0 + n, engine="ior") for n in (0, 1, 2)))
    with reading(location) as connection:
        found = lessons(connection, "here")
        assert found is not None
        assert found.curves == tuple(curves(connection, "here"))
    keep(location, found.learn())
    with reading(location) as connection:
        assert lessons(connection, "here") is None
        assert read_survey(connection, "here").fitted is None
        assert lessons(connection, "nowhere") is None
