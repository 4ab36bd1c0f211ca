from __future__ import annotations

import itertools
import re
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from benchdb.measurements.curves import curves
from benchdb.measurements.exports import export_rows
from benchdb.measurements.storing import Measurement, config_of, pattern_of, store
from benchdb.store.database import transaction
from benchdb.store.systems import system_names
from ioncast_base.errors import InputError, IoncastError
from ior_configs import IorConfig

pytestmark = pytest.mark.both_databases

SHARED = IorConfig(write=True, tasks=16, nodes=8, block_size=4 << 20, transfer_size=1 << 20)
OWN_FILES = IorConfig(write=True, file_per_process=True, tasks=16, nodes=8)
_contents = itertools.count()


def put(
    engine: Engine, *rows: Measurement, system: str = "here", content: bytes | None = None
) -> bool:
    with transaction(engine, write=True) as connection:
        return store(
            connection,
            system=system,
            file="file.csv",
            content=str(next(_contents)).encode() if content is None else content,
            file_format="test",
            rows=rows,
        )


def exported(engine: Engine, system: str | None = None) -> list[tuple[str, int, int, float]]:
    with transaction(engine) as connection:
        return [
            (row["system"], row["io_nodes"], row["repetition"], row["bandwidth_mib_s"])
            for row in export_rows(connection, system)
        ]


def curves_of(engine: Engine, system: str = "here") -> dict[tuple[IorConfig, str], dict]:
    with transaction(engine) as connection:
        return {(c.config, c.engine): c.bandwidths_mib_s for c in curves(connection, system)}


def test_every_repetition_is_stored_even_if_equal(database: Engine) -> None:
    put(database, *(Measurement(SHARED, 2, value) for value in (5.0, 7.0, 5.0)))
    assert curves_of(database) == {(SHARED, "ior"): {2: (5.0, 7.0, 5.0)}}


def test_the_numbers_of_repetitions_continue_from_file_to_file(database: Engine) -> None:
    put(database, Measurement(SHARED, 0, 1.0), Measurement(SHARED, 1, 2.0))
    put(database, Measurement(SHARED, 0, 3.0), Measurement(OWN_FILES, 0, 4.0))
    put(database, Measurement(SHARED, 0, 5.0))
    assert exported(database) == [
        ("here", 0, 0, 4.0),
        ("here", 0, 0, 1.0),
        ("here", 0, 1, 3.0),
        ("here", 0, 2, 5.0),
        ("here", 1, 0, 2.0),
    ]


def test_the_same_file_twice_changes_nothing(database: Engine) -> None:
    row = Measurement(SHARED, 0, 1.0)
    assert put(database, row, content=b"same") is True
    assert put(database, row, content=b"same") is False
    assert exported(database) == [("here", 0, 0, 1.0)]


@pytest.mark.parametrize("io_nodes", [2, 4])
def test_runs_of_two_files_with_unknown_numbers_of_processes_are_not_pooled(
    database: Engine, io_nodes: int
) -> None:
    unknown = replace(SHARED, tasks=None, nodes=None)
    put(database, Measurement(unknown, 2, 5.0), Measurement(unknown, 2, 6.0))
    with pytest.raises(InputError, match=r"number of processes is unknown.*--tasks"):
        put(database, Measurement(unknown, io_nodes, 50.0))
    put(database, Measurement(unknown, io_nodes, 50.0), system="elsewhere")
    put(database, Measurement(SHARED, io_nodes, 50.0))
    assert curves_of(database)[unknown, "ior"] == {2: (5.0, 6.0)}


@pytest.mark.parametrize("stored", [1, 3])
def test_a_file_that_is_stored_in_part_or_doubled_is_not_the_same(
    database: Engine, stored: int
) -> None:
    row = Measurement(SHARED, 0, 1.0)
    put(database, *[row] * stored, content=b"same")
    with pytest.raises(InputError, match="nodes or repetitions; correct it with --replace"):
        put(database, row, row, content=b"same")
    assert len(exported(database)) == stored


def test_the_same_file_can_be_stored_for_another_system(database: Engine) -> None:
    row = Measurement(SHARED, 0, 1.0)
    assert put(database, row, content=b"same", system="here")
    assert put(database, row, content=b"same", system="there")
    assert exported(database) == [("here", 0, 0, 1.0), ("there", 0, 0, 1.0)]
    assert curves_of(database, "there") == {(SHARED, "ior"): {0: (1.0,)}}


def test_names_of_systems_are_in_the_order_of_their_bytes(database: Engine) -> None:
    for name in ("zeta", "alpha", "Beta"):
        put(database, Measurement(SHARED, 0, 1.0), system=name)
    with transaction(database) as connection:
        assert system_names(connection) == ["Beta", "alpha", "zeta"]


def test_rows_set_apart_are_stored_but_in_no_curve(database: Engine) -> None:
    put(
        database,
        Measurement(SHARED, 0, 1.0),
        Measurement(SHARED, 0, 99.0, used=False, note="population B"),
        Measurement(OWN_FILES, 0, 98.0, used=False),
    )
    assert curves_of(database) == {(SHARED, "ior"): {0: (1.0,)}}
    with transaction(database) as connection:
        kept = [(r["bandwidth_mib_s"], r["used"], r["note"]) for r in export_rows(connection)]
    assert kept == [(98.0, False, None), (1.0, True, None), (99.0, False, "population B")]


def test_engines_have_curves_of_their_own(database: Engine) -> None:
    put(
        database,
        Measurement(SHARED, 0, 1.0),
        Measurement(SHARED, 0, 9.0, engine="forge"),
        Measurement(SHARED, 1, 2.0),
    )
    assert curves_of(database) == {
        (SHARED, "ior"): {0: (1.0,), 1: (2.0,)},
        (SHARED, "forge"): {0: (9.0,)},
    }


def test_engines_number_their_own_repetitions(database: Engine) -> None:
    engines = ("ior", "fio", "fio", "ior")
    put(database, *(Measurement(SHARED, 0, 1.0, engine=engine) for engine in engines))
    put(database, Measurement(SHARED, 0, 1.0, engine="fio"))
    with transaction(database) as connection:
        found = [(row["engine"], row["repetition"]) for row in export_rows(connection)]
    assert found == [("fio", 0), ("fio", 1), ("fio", 2), ("ior", 0), ("ior", 1)]


@pytest.mark.parametrize(
    "other", ["marenostrum", "MARENOSTRUM", "Mare Nostrum", "mareNostrum", "\uff2dareNostrum"]
)
def test_a_system_has_one_spelling(database: Engine, other: str) -> None:
    put(database, Measurement(SHARED, 0, 1.0), system="MareNostrum")
    with pytest.raises(InputError, match="the database already has a system 'MareNostrum'"):
        put(database, Measurement(SHARED, 0, 2.0), system=other)
    assert exported(database) == [("MareNostrum", 0, 0, 1.0)]


@pytest.mark.parametrize("name", ["", " ", " x", "x ", "x  y", "x\ny", "x\0y", "x" * 201])
def test_a_name_of_a_system_can_be_printed_and_typed(database: Engine, name: str) -> None:
    with pytest.raises(InputError):
        put(database, Measurement(SHARED, 0, 1.0), system=name)
    assert exported(database) == []


def test_the_curve_of_a_configuration_is_looked_up_by_an_index(database: Engine) -> None:
    put(database, *(Measurement(SHARED, n, 1.0) for n in range(4)))
    explain = "EXPLAIN QUERY PLAN" if database.dialect.name == "sqlite" else "EXPLAIN"
    with transaction(database) as connection:
        if database.dialect.name == "postgresql":
            # With so few rows, the server would read all of them instead of the index.
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        plan = " ".join(
            str(row)
            for row in connection.exec_driver_sql(
                f"{explain} SELECT io_nodes, bandwidth_mib_s FROM measurements"
                " WHERE system_id = 1 AND configuration_id = 1"
            )
        )
    assert re.search(
        r"USING INDEX \w+ \(system_id=\? AND configuration_id=\?\)"
        r"|uq_measurements_repetition.*Cond: \(\(system_id = 1\) AND \(configuration_id = 1\)\)",
        plan,
    ), plan


def test_a_system_without_measurements_has_no_curves(database: Engine) -> None:
    assert curves_of(database, "nowhere") == {}
    assert exported(database, "nowhere") == []


def test_curves_are_by_io_nodes_in_ascending_order(database: Engine) -> None:
    put(database, *(Measurement(SHARED, n, 1.0 + n) for n in (8, 0, 2, 1)))
    [cells] = curves_of(database).values()
    assert list(cells.items()) == [(0, (1.0,)), (1, (2.0,)), (2, (3.0,)), (8, (9.0,))]


def test_all_fields_of_a_measurement_come_back_unchanged(database: Engine) -> None:
    row = Measurement(
        SHARED,
        4,
        123.4567890123,
        bytes=2**40 + 1,
        time_s=0.1,
        started="2026-11-21T04:15:02Z",
        engine="forge",
        engine_version="4.1.0+dev",
        command="ior -w  -o 'a b'",
        used=False,
        note="größer",
        campaign="first light",
    )
    put(database, row)
    with transaction(database) as connection:
        [found] = export_rows(connection)
    names = {field.name for field in fields(row)} - {"config"}
    assert {name: found[name] for name in names} == {name: getattr(row, name) for name in names}
    assert config_of(found) == SHARED


def test_options_that_only_control_a_run_do_not_make_another_configuration(
    database: Engine,
) -> None:
    for config in (
        SHARED,
        replace(SHARED, repetitions=3, test_file="/x", keep_file=True).pattern(),
    ):
        put(database, Measurement(config, 0, 1.0))
    assert curves_of(database) == {(SHARED, "ior"): {0: (1.0, 1.0)}}


@pytest.mark.parametrize(
    "values",
    [
        {"io_nodes": 2**63},
        {"io_nodes": 2**31},
        {"io_nodes": -1},
        {"bytes": 2**63},
        {"bytes": -1},
        {"nodes": 2**63},
        {"nodes": 2**31},
        {"command": "x" * 4001},
        {"campaign": "x" * 201},
        {"engine": "x" * 41},
        {"note": "a\0b"},
        {"command": "ior -o \udcff"},
        {"engine_version": "fio-3.\ud800"},
        {"bandwidth_mib_s": 1e308},
        {"bandwidth_mib_s": 5e-324},
        {"bandwidth_mib_s": 0.0},
        {"bandwidth_mib_s": -1.0},
        {"bandwidth_mib_s": float("nan")},
        {"bandwidth_mib_s": float("inf")},
        {"time_s": float("nan")},
        {"time_s": -1.0},
    ],
    ids=str,
)
def test_an_impossible_value_is_an_error_of_ioncast(
    database: Engine, values: dict[str, float]
) -> None:
    told: dict[str, Any] = {"io_nodes": 0, "bandwidth_mib_s": 1.0, **values}
    with pytest.raises(IoncastError):
        put(database, Measurement(IorConfig(write=True, nodes=told.pop("nodes", None)), **told))
    assert exported(database) == []


def iorconfig(**fields: object) -> IorConfig | None:
    try:
        return IorConfig(**fields)  # type: ignore[arg-type]
    except InputError:
        return None


patterns = (
    st.tuples(st.integers(1, 2**24), st.integers(1, 2**16))
    .flatmap(
        lambda sizes: st.builds(
            iorconfig,
            api=st.sampled_from(["POSIX", "MPIIO", "HDF5", "NCMPI", "MMAP", "DFS"]),
            write=st.booleans(),
            read=st.booleans(),
            file_per_process=st.booleans(),
            collective=st.booleans(),
            random_offsets=st.integers(0, 2),
            transfer_size=st.just(8 * sizes[0]),
            block_size=st.just(8 * sizes[0] * sizes[1]),
            segments=st.integers(1, 2**40),
            reorder_tasks=st.booleans(),
            fsync=st.sampled_from(["none", "end", "each", None]),
            conditions=st.sampled_from([(), ("-Z",), ("-M 75%", "-l random"), ("-U my hints",)]),
            intra_test_barriers=st.booleans(),
            odirect=st.booleans(),
            tasks=st.none() | st.integers(1, 2**31 - 1),
            nodes=st.none() | st.integers(1, 2**31 - 1),
        )
    )
    .filter(lambda config: config is not None)
)


@given(config=patterns)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_configuration_comes_back_as_it_was_stored(database: Engine, config: IorConfig) -> None:
    system = f"any{next(_contents)}"
    put(database, Measurement(config, 0, 1.0), system=system)
    assert (config, "ior") in curves_of(database, system)


@given(one=patterns, other=patterns)
@settings(deadline=None)
def test_different_configurations_have_different_patterns(one: IorConfig, other: IorConfig) -> None:
    assert (pattern_of(one) == pattern_of(other)) == (one == other)
