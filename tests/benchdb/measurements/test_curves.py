from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import Engine

from benchdb.measurements.curves import Curve, curves, curves_of_config, curves_of_ids, measured
from benchdb.measurements.storing import Measurement, store
from benchdb.store.database import transaction
from ior_configs import IorConfig

pytestmark = pytest.mark.both_databases

SHARED = IorConfig(write=True, tasks=16, nodes=8, block_size=4 << 20, transfer_size=1 << 20)
READ = replace(SHARED, write=False, read=True)
OWN_FILES = replace(SHARED, file_per_process=True)
ASKED = 16 * 4 << 20
# A configuration measured by two engines, one with a row set apart, and one on another system.
HERE = [
    Measurement(SHARED, 4, 70.0, bytes=ASKED),
    Measurement(SHARED, 0, 50.0, bytes=ASKED),
    Measurement(SHARED, 0, 40.0, bytes=ASKED),
    Measurement(SHARED, 0, 45.0, engine="fio", bytes=ASKED // 2),
    Measurement(READ, 1, 30.0, bytes=0),
    Measurement(READ, 2, 20.0),
    Measurement(READ, 8, 99.0, used=False, bytes=ASKED // 2),
]
THERE = [Measurement(OWN_FILES, 0, 10.0), Measurement(SHARED, 0, 5.0)]


@pytest.fixture
def filled(database: Engine) -> Engine:
    with transaction(database, write=True) as connection:
        for system, rows in (("here", HERE), ("there", THERE)):
            store(
                connection,
                system=system,
                file="file.csv",
                content=system.encode(),
                file_format="test",
                rows=rows,
            )
    return database


def looked_up(engine: Engine, config: IorConfig, system: str = "here") -> list[Curve]:
    with transaction(engine) as connection:
        return curves_of_config(connection, system, config)


def facts(found: list[Curve]) -> dict[tuple[IorConfig, str], dict[int, tuple[float, ...]]]:
    return {(curve.config, curve.engine): curve.bandwidths_mib_s for curve in found}


def test_a_configuration_has_a_curve_of_each_engine_that_measured_it(filled: Engine) -> None:
    assert facts(looked_up(filled, SHARED)) == {
        (SHARED, "ior"): {0: (50.0, 40.0), 4: (70.0,)},
        (SHARED, "fio"): {0: (45.0,)},
    }


def test_a_system_has_its_own_curves(filled: Engine) -> None:
    assert facts(looked_up(filled, SHARED, "there")) == {(SHARED, "ior"): {0: (5.0,)}}


def test_rows_that_are_set_apart_are_in_no_curve(filled: Engine) -> None:
    [curve] = looked_up(filled, READ)
    assert curve.bandwidths_mib_s == {1: (30.0,), 2: (20.0,)}
    assert not curve.stonewalled


@pytest.mark.parametrize(
    "asked",
    [replace(SHARED, repetitions=7, keep_file=True, test_file="/scratch/x"), SHARED.pattern()],
    ids=["its run", "its pattern"],
)
def test_options_that_only_control_a_run_are_ignored(filled: Engine, asked: IorConfig) -> None:
    assert looked_up(filled, asked) == looked_up(filled, SHARED)


@pytest.mark.parametrize(
    ("config", "system"),
    [
        (replace(SHARED, nodes=4), "here"),
        (replace(SHARED, fsync="end"), "here"),
        (OWN_FILES, "here"),
        (SHARED, "nowhere"),
        (SHARED, "Here"),
    ],
    ids=str,
)
def test_a_configuration_without_measurements_has_no_curve(
    filled: Engine, config: IorConfig, system: str
) -> None:
    assert looked_up(filled, config, system) == []


def test_every_function_gives_the_same_curve(filled: Engine) -> None:
    with transaction(filled) as connection:
        for system in ("here", "there"):
            everything = curves(connection, system)
            assert len(everything) == {"here": 3, "there": 2}[system]
            for curve in everything:
                assert curve in curves_of_config(connection, system, curve.config)
                assert curves_of_ids(connection, system, [curve.id], curve.engine) == [curve]
                assert curve in curves_of_ids(connection, system, [curve.id])
        ids = {curve.id for curve in curves(connection, "here")}
        assert curves_of_ids(connection, "here", [*ids, 10**6], "fio") == [
            curve for curve in curves(connection, "here") if curve.engine == "fio"
        ]
        assert curves_of_ids(connection, "here", ids, "forge") == []


def test_the_summary_of_a_curve_agrees_with_the_curve(filled: Engine) -> None:
    with transaction(filled) as connection:
        for system in ("here", "there", "nowhere"):
            rows = {(row.id, row.engine): row for row in measured(connection, system)}
            found = {(curve.id, curve.engine): curve for curve in curves(connection, system)}
            assert rows.keys() == found.keys()
            for key, row in rows.items():
                curve = found[key]
                assert row.coverage == len(curve.bandwidths_mib_s)
                assert row.stonewalled == curve.stonewalled == (row.engine == "fio")
                assert row.operation == curve.config.operation
                assert row.bytes_per_process == curve.config.bytes_per_process
                for name in {*row._fields} & {*vars(curve.config)}:
                    assert getattr(row, name) == getattr(curve.config, name), name
