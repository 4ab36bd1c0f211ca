from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Connection

from benchdb.measurements.curves import Curve, curves, curves_of_ids
from benchdb.measurements.storing import Measurement, store
from benchdb.store.database import opened_database, reading, transaction
from benchdb.store.system_changes import note_change, undo_change
from ioncast.cli import cli
from ioncast_base.errors import UnknownNameError
from ior_configs import IorConfig
from predictor.model import measurement_summary
from predictor.model.measurement_summary import MeasurementSummary, choose_engine, read_summary
from predictor.model.system_model import SystemModel
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


def fitted(connection: Connection, engine: str | None = None) -> MeasurementSummary:
    summary = read_summary(connection, "here", engine)
    return summary.fitted_to(summary.curves_to_fit(connection))


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
def test_a_summary_is_of_one_engine_even_if_another_is_nearer(
    mixed: Path, asked: str | None, chosen: str, configs: set[IorConfig]
) -> None:
    with reading(mixed) as connection:
        summary = fitted(connection, asked)
        knowledge = summary.knowledge(connection, summary.near([SAME]))
    assert summary.engine == chosen
    assert summary.engines == ("fio", "forge", "ior")
    assert {curve.engine for curve in knowledge.curves} == {chosen}
    assert {curve.config for curve in knowledge.curves} == configs
    assert knowledge.model is summary.model is not None
    assert summary.model.configurations == len(configs)


@pytest.mark.parametrize(("system", "engine"), [("here", "x"), ("nowhere", None), ("x", "ior")])
def test_where_nothing_was_measured_there_is_no_curve(
    mixed: Path, system: str, engine: str | None
) -> None:
    with reading(mixed) as connection:
        summary = read_summary(connection, system, engine)
        knowledge = summary.knowledge(connection, summary.near([SAME]))
    assert (knowledge.curves, knowledge.model, summary.needs_model) == ((), None, False)
    assert summary.engine == engine
    assert summary.engine not in summary.engines


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


def keep(location: Path, summary: MeasurementSummary) -> None:
    with opened_database(location) as engine, transaction(engine, write=True) as connection:
        summary.store_model(connection)


@pytest.fixture(scope="module")
def large_location(tmp_path_factory: pytest.TempPathFactory) -> Path:
    location = tmp_path_factory.mktemp("large") / "bench.sqlite"
    put(
        location,
        *(Measurement(config, n, 10.0 + i % 7) for i, config in enumerate(MANY) for n in IO_NODES),
    )
    return location


@pytest.fixture(scope="module")
def large(large_location: Path) -> Path:
    """Such a system with its model; tests only read it."""
    with reading(large_location) as connection:
        summary = read_summary(connection, "here")
        sample = summary.curves_to_fit(connection)
    assert len(sample) == MOST < len(MANY)
    # Fit to a part of the sample: the time grows with the cube of the number of cells, and the
    # whole sample would take half a minute. The tests do not depend on the size.
    keep(large_location, summary.fitted_to(sample[:FEW]))
    return large_location


@pytest.mark.slow
def test_the_nearest_configurations_of_a_large_system_are_predicted_from(large: Path) -> None:
    wanted = [replace(config, tasks=16, nodes=4) for config in MANY[::17]]
    with reading(large) as connection:
        everything = SystemModel(tuple(curves(connection, "here")))
        for asked in (wanted[:1], wanted, MANY[:40]):
            summary = read_summary(connection, "here")
            assert summary.model is not None
            assert summary.model.configurations == FEW
            near = SystemModel(summary.knowledge(connection, summary.near(asked)).curves)
            assert 0 < len(near.curves) <= MOST
            for config in asked:
                assert near.match(config) == everything.match(config)


def test_a_stored_model_is_taken_as_long_as_nothing_changes(mixed: Path) -> None:
    with reading(mixed) as connection:
        first = fitted(connection)
        assert first.model is not None
    keep(mixed, first)
    with reading(mixed) as connection:
        again = read_summary(connection, "here")
        assert not again.needs_model
        assert (again.rows, again.engines) == (first.rows, first.engines)
    put(mixed, Measurement(SAME, 4, 30.0, engine="ior"))
    with reading(mixed) as connection:
        after = read_summary(connection, "here")
        assert after.needs_model
        measured = [curve for curve in curves(connection, "here") if curve.engine == "ior"]
        assert after.curves_to_fit(connection) == measured


def test_after_a_change_a_model_is_fitted_to_new_curves_and_earlier_ones(location: Path) -> None:
    others = [replace(SAME, transfer_size=size << 10) for size in (64, 256)]
    old = [
        Measurement(config, n, 10.0 + n, engine="ior", started="2026-11-01T00:00:00+00:00")
        for config in (SAME, *others)
        for n in (0, 2)
    ]
    put(location, *old, replace(old[0], engine="fio"))
    with opened_database(location) as engine, transaction(engine, write=True) as connection:
        note_change(connection, "here", since="2026-11-10", why="new disks")
        # Without a new measurement nothing tells the offset.
        assert read_summary(connection, "here").earlier == ()
    put(location, replace(old[1], bandwidth_mib_s=6.0, started="2026-11-20T00:00:00+00:00"))
    with reading(location) as connection:
        summary = read_summary(connection, "here")
        assert [row.coverage for row in summary.rows] == [1]
        assert [(row.engine, row.coverage) for row in summary.earlier] == [("ior", 2)] * 3
        to_fit = summary.curves_to_fit(connection)
        assert [curve.before_change for curve in to_fit] == [False, True, True, True]
        fitted_one = summary.fitted_to(to_fit)
        knowledge = fitted_one.knowledge(connection, fitted_one.near([others[0]]))
        assert {curve.config for curve in knowledge.earlier} == {SAME, *others}
        assert [curve.config for curve in knowledge.curves] == [SAME]
        # A configuration that was measured since never matches an old curve.
        for wanted, is_old in ((SAME, False), (others[0], True)):
            found = knowledge.match(wanted)
            assert found.curve is not None
            assert (found.kind == "exact", found.curve.before_change) == (not is_old, is_old)
    with opened_database(location) as engine, transaction(engine, write=True) as connection:
        undo_change(connection, "here")
        assert read_summary(connection, "here").earlier == ()
        assert len(read_summary(connection, "here").rows) == 3


def test_no_more_earlier_cells_are_fitted_than_some_and_those_measured_again_come_first(
    location: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs = [replace(SAME, transfer_size=1 << size) for size in range(12, 22)]
    old = [
        Measurement(config, 2, 10.0, engine="ior", started="2026-11-01T00:00:00+00:00")
        for config in configs
    ]
    put(location, *old)
    with opened_database(location) as engine, transaction(engine, write=True) as connection:
        note_change(connection, "here", since="2026-11-10", why="new disks")
    again = [replace(row, started="2026-11-20T00:00:00+00:00") for row in old[3:5]]
    put(location, *again)
    with reading(location) as connection:
        summary = read_summary(connection, "here")
        monkeypatch.setattr(measurement_summary, "_EARLIER_CELLS", 4)
        earlier = [curve for curve in summary.curves_to_fit(connection) if curve.before_change]
        assert len(earlier) == 4
        assert {row.config for row in again} < {curve.config for curve in earlier}
        # As many new cells as a model is fitted to leave no room for old ones.
        monkeypatch.setattr(measurement_summary, "_MOST_CELLS", 2)
        assert read_summary(connection, "here").earlier == ()


def test_a_summary_reads_a_curve_once_and_keeps_no_more_than_some(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    def noted(*given: Any, **told: Any) -> list[Curve]:
        read.extend(given[2])
        return curves_of_ids(*given, **told)

    monkeypatch.setattr(measurement_summary, "curves_of_ids", noted)
    with reading(large) as connection:
        summary = read_summary(connection, "here")
        read.clear()
        ids = summary.near([SAME])
        first, again = (summary.knowledge(connection, ids) for _ in range(2))
        assert read == list(ids)
        assert first.curves == again.curves == tuple(curves_of_ids(connection, "here", ids))
        monkeypatch.setattr(measurement_summary, "_MOST_CURVES", 1)
        assert summary.knowledge(connection, ids).curves == first.curves
        read.clear()
        assert summary.knowledge(connection, ids).curves == first.curves
        assert read == list(ids[:-1])
