"""Databases of every version are upgraded, and keep all their rows."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Connection, Engine, create_engine, inspect, text

from benchdb.history.decision_sizes import SIZE_COUNTER
from benchdb.history.decisions import DecisionRow, store_decisions
from benchdb.history.kept_results import keep_result, kept_result
from benchdb.history.outcomes import joined_outcomes, store_outcome
from benchdb.history.run_insights import NewInsights, insights_of, store_insights
from benchdb.history.runs import NewRun, store_run
from benchdb.measurements.storing import Measurement, config_of, pattern_of, store
from benchdb.store.database import NEWEST, open_database, transaction
from benchdb.store.fitted_models import state_of, store_model, stored_models
from benchdb.store.schema import configurations, metadata
from benchdb.store.stored_counters import counter
from benchdb.store.system_changes import note_change
from benchdb.store.systems import system_names
from benchdb.store.tokens import add_token
from ior_configs import IorConfig
from tests.support.command import killed_at_the_end, run_together

pytestmark = pytest.mark.both_databases

ROOT = Path(__file__).resolve().parents[3]
SCHEMAS = Path(__file__).parent / "schemas"
# Created by the code of that version, and dumped by the tools of the databases.
VERSIONS = ["0001", "0002", "0003", "0004"]
SERVICE = ("applications", "decisions", "outcomes", "runs", "tokens")
# Two engines measured a configuration of version 0001 in turns, without I/O nodes: the repetitions
# of these measurements before and after.
MIXED = {45: (0, 0), 46: (1, 0), 47: (2, 1), 48: (3, 1), 50: (4, 2), 51: (5, 2)}
# Columns of configurations that version 0008 writes anew.
CHANGED = ("pattern", "fsync", "conditions")
# The first table of each later version.
LATER = (
    *("run_logs", "fidelities", "insights", "kept_results"),
    *("expired_decisions", "drained_spools", "deleted_runs", "paused_systems", "writes"),
    *("expired_errors", "system_changes"),
)
# Numbers that a migration counts.
COUNTED = ("counters",)
Rows = dict[str, list[dict[str, Any]]]


def load(version: str, location: str) -> Rows:
    """Restore the dump of an old database, and return its rows."""
    if "://" not in location:
        connection = sqlite3.connect(location)
        connection.executescript((SCHEMAS / f"{version}.sqlite.sql").read_text(encoding="utf-8"))
        connection.close()
        return everything(f"sqlite:///{location}")
    engine = create_engine(location.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as begun:
        dump = (SCHEMAS / f"{version}.postgresql.sql").read_text(encoding="utf-8")
        begun.exec_driver_sql(dump)
    engine.dispose()
    return everything(location)


def everything(location: str) -> Rows:
    """All rows of all tables except Alembic's and counted ones, without the code under test."""
    engine = create_engine(location.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        tables = sorted(set(inspect(connection).get_table_names()) - {"alembic_version", *COUNTED})
        rows = {name: rows_of(connection, name) for name in tables}
    engine.dispose()
    return rows


def rows_of(connection: Connection, table: str) -> list[dict[str, Any]]:
    query = text(f"SELECT * FROM {table} ORDER BY id")  # noqa: S608
    return [dict(row) for row in connection.execute(query).mappings()]


def without(rows: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in names} for row in rows]


def with_nulls(rows: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    return [row | dict.fromkeys(names) for row in rows]


def sqlalchemy_url(location: str) -> str:
    return url_of(location).replace("postgresql:", "postgresql+psycopg:")


def stable(rows: Rows) -> Rows:
    """The rows without the values that later versions write anew."""
    changed = {
        "configurations": CHANGED,
        "systems": ("revision",),
        "measurements": ("before_change",),
        "decisions": ("explored",),
    }
    return {table: without(found, *changed.get(table, ())) for table, found in rows.items()}


def url_of(location: str) -> str:
    return location if "://" in location else f"sqlite:///{location}"


@pytest.mark.parametrize("version", VERSIONS)
def test_an_old_database_gets_the_tables_of_a_new_one(location: str, version: str) -> None:
    load(version, location)
    engine = open_database(location)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert context.get_current_revision() == NEWEST
        assert compare_metadata(context, metadata) == []
        found = inspect(connection)
        for table in metadata.sorted_tables:
            names = {key["name"] for key in found.get_unique_constraints(table.name)}
            names |= {key["name"] for key in found.get_foreign_keys(table.name)}
            expected = {str(c.name) for c in table.constraints if c is not table.primary_key}
            assert names == expected, table.name
    engine.dispose()


def test_version_0001_keeps_every_row(location: str) -> None:
    before = load("0001", location)
    assert {name: len(rows) for name, rows in before.items()} == {
        "configurations": 18,
        "imports": 6,
        "measurements": 51,
        "systems": 3,
    }
    open_database(location).dispose()
    after = everything(url_of(location))
    assert after["imports"] == before["imports"]
    # Of the runs of one configuration, a single one has a command.
    *same, new = stable(after)["configurations"]
    assert same == stable(before)["configurations"]
    fsyncs = {row["id"]: row["fsync"] for row in after["configurations"]}
    found = {row["id"]: fsyncs[row["configuration_id"]] for row in after["measurements"]}
    assert {id_: found[id_] for id_ in MIXED} == dict.fromkeys(MIXED) | {48: "none"}
    assert [row["id"] for row in after["measurements"] if row["configuration_id"] == new["id"]] == [
        48
    ]
    assert without(after["systems"], "revision") == before["systems"]
    new_columns = ("campaign", "before_change")
    assert without(
        after["measurements"], "repetition", "configuration_id", *new_columns
    ) == without(before["measurements"], "repetition", "configuration_id")
    assert not any(row["before_change"] for row in after["measurements"])
    assert {row["campaign"] for row in after["measurements"]} == {None}


def test_version_0001_gets_repetitions_by_engine(location: str) -> None:
    before = load("0001", location)["measurements"]
    open_database(location).dispose()
    after = everything(url_of(location))["measurements"]
    found = {
        old["id"]: (old["repetition"], new["repetition"])
        for old, new in zip(before, after, strict=True)
    }
    assert {id_: found[id_] for id_ in MIXED} == MIXED
    engines = {row["id"]: row["engine"] for row in before}
    assert [engines[id_] for id_ in MIXED] == ["forge", "ior", "forge", "ior", "ior", "forge"]
    assert all(old == new for id_, (old, new) in found.items() if id_ not in MIXED)


def test_empty_texts_of_version_0001_become_nulls(tmp_path: Path) -> None:
    place = tmp_path / "bench.sqlite"
    load("0001", str(place))
    connection = sqlite3.connect(place)
    connection.execute("UPDATE measurements SET note = '', command = '' WHERE id = 1")
    connection.commit()
    connection.close()
    open_database(place).dispose()
    [row] = [r for r in everything(f"sqlite:///{place}")["measurements"] if r["id"] == 1]
    assert (row["note"], row["command"]) == (None, None)


def test_version_0002_keeps_every_row(location: str) -> None:
    before = load("0002", location)
    assert {name: len(rows) for name, rows in before.items()} == {
        "configurations": 18,
        "imports": 4,
        "measurements": 38,
        "systems": 3,
    }
    open_database(location).dispose()
    after = everything(url_of(location))
    assert stable(after).items() >= stable(before).items()


@pytest.mark.parametrize("version", VERSIONS)
def test_an_old_database_can_store_models_and_knows_when_they_are_out_of_date(
    location: str, version: str
) -> None:
    load(version, location)
    engine = open_database(location)
    with transaction(engine, write=True) as connection:
        before = {name: state_of(connection, name, "ior") for name in system_names(connection)}
        for name, state in before.items():
            store_model(connection, name, "ior", state, "{}")
        assert {name: model.state for name, model in stored_models(connection)} == before
        assert len(set(before.values())) == 3
        rows = [Measurement(IorConfig(write=True), 0, 1.0)]
        store(connection, system="testbed", file="f", content=b"", file_format="test", rows=rows)
        after = {name: state_of(connection, name, "ior") for name in before}
    engine.dispose()
    assert {name for name in before if after[name] != before[name]} == {"testbed"}


def test_version_0003_keeps_every_row(location: str) -> None:
    before = load("0003", location)
    assert {name: len(rows) for name, rows in before.items()} == {
        "configurations": 18,
        "imports": 4,
        "measurements": 38,
        "models": 2,
        "systems": 3,
    }
    open_database(location).dispose()
    after = everything(url_of(location))
    assert stable(after) == stable(before | {name: [] for name in (*SERVICE, *LATER)})


def test_version_0004_keeps_every_row(location: str) -> None:
    before = load("0004", location)
    assert {name: len(before[name]) for name in SERVICE} == dict.fromkeys(SERVICE, 1)
    open_database(location).dispose()
    after = everything(url_of(location))
    [log], [run] = after.pop("run_logs"), before["runs"]
    before["outcomes"] = [row | {"started": None} for row in before["outcomes"]]
    listed = {"runs": 1, "newest": run["started"] or run["stored_at"]}
    before["applications"] = [row | listed for row in before["applications"]]
    before["tokens"] = with_nulls(before["tokens"], "expires_at")
    assert stable(after) == stable(before | {name: [] for name in LATER[1:]})
    assert log == {
        "id": log["id"],
        "system_id": run["system_id"],
        "sha256": run["sha256"],
        "run_id": run["id"],
    }


def test_outcomes_of_version_0004_start_with_their_logs(location: str) -> None:
    load("0004", location)
    engine = create_engine(sqlalchemy_url(location))
    with engine.begin() as connection:
        connection.execute(text("UPDATE runs SET started = '2026-11-22T09:00:05.250000+00:00'"))
        connection.execute(
            text(
                "INSERT INTO outcomes SELECT 2, system_id, '2', decision_id, NULL, io_nodes,"
                " bandwidth_mib_s, reported_at, revision FROM outcomes"
            )
        )
    engine.dispose()
    open_database(location).dispose()
    found = [row["started"] for row in everything(url_of(location))["outcomes"]]
    assert found == ["2026-11-22T09:00:05.000000+00:00", None]


def test_a_downgrade_keeps_the_newest_outcome_of_each_job(location: str) -> None:
    load("0004", location)
    engine = open_database(location)
    told: dict[str, Any] = {"system": "testbed", "job_id": "1", "bandwidth_mib_s": 70.0}
    with transaction(engine, write=True) as connection:
        for minute, io_nodes in ((0, 2), (5, 8)):
            started = f"2026-11-23T10:0{minute}:00Z"
            store_outcome(connection, io_nodes=io_nodes, started=started, **told)
        go_back(connection, "0006")
    engine.dispose()
    assert [row["io_nodes"] for row in everything(url_of(location))["outcomes"]] == [8]


def test_a_change_of_a_system_goes_with_a_downgrade_and_its_measurements_stay(
    location: str,
) -> None:
    load("0004", location)
    engine = open_database(location)
    before = everything(url_of(location))["measurements"]
    assert [row["before_change"] for row in before] == [False] * len(before)
    with transaction(engine, write=True) as connection:
        note_change(connection, "testbed", since="2026-11-22", why="new disks", by="command of ada")
    marked = everything(url_of(location))["measurements"]
    assert {row["system_id"] for row in marked if row["before_change"]} == {3}
    with transaction(engine, write=True) as connection:
        go_back(connection, "0019")
    engine.dispose()
    old = everything(url_of(location))
    assert old["measurements"] == without(before, "before_change")
    assert "system_changes" not in old
    open_database(location).dispose()
    again = everything(url_of(location))
    assert (again["measurements"], again["system_changes"]) == (before, [])


@pytest.mark.parametrize("version", ["0003", "0004"])
def test_old_models_are_out_of_date_and_can_be_replaced(location: str, version: str) -> None:
    """The state of their measurements came from a `repr`, so they are fitted once more."""
    load(version, location)
    engine = open_database(location)
    with transaction(engine, write=True) as connection:
        found = stored_models(connection)
        assert [(name, model.engine) for name, model in found] == [
            ("local", "ior"),
            ("testbed", "ior"),
        ]
        for name, model in found:
            state = state_of(connection, name, model.engine)
            assert model.state != state
            store_model(connection, name, model.engine, state, "{}")
        replaced = stored_models(connection)
    engine.dispose()
    assert [(name, model.engine, model.document) for name, model in replaced] == [
        ("local", "ior", "{}"),
        ("testbed", "ior", "{}"),
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_old_database_can_store_the_rows_of_the_service(location: str, version: str) -> None:
    load(version, location)
    engine = open_database(location)
    with transaction(engine, write=True) as connection:
        use_service_tables(connection)
    with transaction(engine) as connection:
        [joined] = joined_outcomes(connection, system="testbed")
    engine.dispose()
    assert joined.decision is not None
    assert joined.decision.id == "d1"
    assert joined.application is not None
    assert joined.application.executable == "/opt/app"


def go_back(connection: Connection, version: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(ROOT / "benchdb/store/migrations"))
    config.attributes["connection"] = connection
    command.downgrade(config, version)


def use_service_tables(connection: Connection) -> None:
    """Store a row in each table of version 0004."""
    new = NewRun(
        system="testbed",
        executable="/opt/app",
        user="ada",
        logs=["0" * 64],
        tasks=16,
        phases=[],
    )
    run, _ = store_run(connection, new)
    missing = dict.fromkeys(("user", "executable", "name", "nodes", "tasks", "available"))
    row = DecisionRow(
        id="d1",
        asked_at="2026-11-21T04:15:02Z",
        system="testbed",
        job_id="1",
        io_nodes=4,
        source="history",
        expected_mib_s=70.5,
        confidence=0.9,
        application_id=run.application.id,
        why="it ran before",
        curve=((4, 70.5, 60.0, 80.0),),
        **missing,
    )
    store_decisions(connection, [row])
    store_outcome(
        connection, system="testbed", job_id="1", io_nodes=4, bandwidth_mib_s=70.0, run_id=run.id
    )
    add_token(connection, "slurm", "scheduler")


RUN = "ior -a POSIX -w -b 1m -t 32k -k -o f"
LIVE = "ior -a POSIX -w -b 1m -t 32k -Y -k -o f"


def add_configuration(connection: Connection, *, fsync: bool, read: bool = False) -> int:
    """Store a configuration as versions before 0008 did; it has 8 tasks on a node."""
    options = f"{'-r' if read else '-w'}{' -e' if fsync else ''}"
    values = {
        "pattern": f"ior -a POSIX {options} -b 1m -t 32k tasks=8 nodes=1",
        "api": "POSIX",
        "operation": "read" if read else "write",
        **dict.fromkeys(("file_per_process", "collective", "odirect"), False),
        **dict.fromkeys(("reorder_tasks", "intra_test_barriers"), False),
        "random_offsets": 0,
        "transfer_size": 32 << 10,
        "block_size": 1 << 20,
        "segments": 1,
        "tasks": 8,
        "nodes": 1,
        "fsync": fsync,
    }
    return insert(connection, "configurations", values)


def add_runs(connection: Connection, configuration: int, commands: list[str | None]) -> list[int]:
    """Store a run with each command, numbered from 0."""
    usual = {"system_id": 1, "import_id": 1, "io_nodes": 4, "bandwidth_mib_s": 1.0, "used": True}
    return [
        insert(
            connection,
            "measurements",
            usual
            | {"configuration_id": configuration, "repetition": number, "command": command}
            | {"engine": "ior", "note": "odd" if command and "-f" in command else None},
        )
        for number, command in enumerate(commands)
    ]


def insert(connection: Connection, table: str, values: dict[str, Any]) -> int:
    names = ", ".join(values)
    places = ", ".join(f":{name}" for name in values)
    query = f"INSERT INTO {table} ({names}) VALUES ({places}) RETURNING id"  # noqa: S608
    return int(connection.execute(text(query), values).scalar_one())


def old_database(location: str) -> Engine:
    """A database of version 0004."""
    load("0004", location)
    return create_engine(sqlalchemy_url(location))


def told(location: str) -> dict[int, tuple[str | None, str, int]]:
    """Fsync, conditions and repetition of each measurement."""
    rows = everything(url_of(location))
    configs = {row["id"]: row for row in rows["configurations"]}
    of = {row["id"]: configs[row["configuration_id"]] for row in rows["measurements"]}
    return {
        row["id"]: (of[row["id"]]["fsync"], of[row["id"]]["conditions"], row["repetition"])
        for row in rows["measurements"]
    }


def test_version_0008_divides_configurations_by_the_commands_of_their_runs(location: str) -> None:
    old = old_database(location)
    with old.begin() as connection:
        plain = add_configuration(connection, fsync=False)
        synced = add_configuration(connection, fsync=True)
        reading = add_configuration(connection, fsync=False, read=True)
        lone = add_configuration(connection, fsync=True, read=True)
        runs = add_runs(connection, plain, [RUN, RUN, LIVE, None, "srun ./mine", RUN, RUN])
        runs += add_runs(connection, synced, [None, f"{RUN} -e", f"{RUN} -e -Y", "fio x", RUN])
        runs += add_runs(
            connection,
            reading,
            [
                "ior -r -b 1m -t 32k -o 'my file' -Z",
                "ior -r -b 1m -t 32k -O reorderTasksRandom=1 -v",
                "ior -r -b 1m -t 32k -o it's -M 75%",
                "ior -r -b 1m -t 32k -f script",
                "fio --name=global --rw=read --name=0",
            ],
        )
    old.dispose()
    open_database(location).dispose()
    found = told(location)
    assert [found[id_] for id_ in runs] == [
        ("none", "", 0),
        ("none", "", 1),
        ("each", "", 2),
        (None, "", 3),
        (None, "", 4),
        ("none", "", 5),
        ("none", "", 6),
        ("end", "", 0),
        ("end", "", 1),
        # The other configuration has a run with this number already.
        ("each", "", 3),
        ("end", "", 3),
        ("end", "", 4),
        ("none", "-Z", 0),
        ("none", "-Z", 1),
        ("none", "-M 75%", 2),
        ("none", "", 3),
        ("none", "", 4),
    ]
    rows = everything(url_of(location))
    patterns = {row["id"]: row["pattern"] for row in rows["configurations"]}
    assert patterns[plain] == "ior -a POSIX -w -b 1m -t 32k tasks=8 nodes=1"
    assert patterns[synced] == "ior -a POSIX -w -e -b 1m -t 32k tasks=8 nodes=1"
    assert patterns[lone] == "ior -a POSIX -r -e -b 1m -t 32k tasks=8 nodes=1"
    assert set(patterns.values()) >= {
        "ior -a POSIX -w -Y -b 1m -t 32k tasks=8 nodes=1",
        "ior -a POSIX -w -b 1m -t 32k tasks=8 nodes=1 fsync=unknown",
        "ior -a POSIX -r -b 1m -t 32k -Z tasks=8 nodes=1",
        "ior -a POSIX -r -b 1m -t 32k -M 75% tasks=8 nodes=1",
        "ior -a POSIX -r -b 1m -t 32k tasks=8 nodes=1",
    }
    unused = [(row["id"], row["note"]) for row in rows["measurements"] if not row["used"]]
    reason = "IOR read options from a script (-f), which the command does not show; odd"
    assert (runs[-2], reason) in unused
    assert not set(runs[:-2]) & {id_ for id_, _ in unused}


def test_every_pattern_of_an_upgraded_database_is_that_of_its_columns(location: str) -> None:
    old = old_database(location)
    with old.begin() as connection:
        plain = add_configuration(connection, fsync=False)
        add_runs(connection, plain, [RUN, LIVE, None, f"{RUN} -M 75%"])
    old.dispose()
    engine = open_database(location)
    with transaction(engine) as connection:
        for row in connection.execute(configurations.select()).mappings():
            assert pattern_of(config_of(dict(row))) == row["pattern"]
    engine.dispose()


def test_version_0008_can_be_downgraded_after_it_divided_configurations(location: str) -> None:
    old = old_database(location)
    with old.begin() as connection:
        plain = add_configuration(connection, fsync=False)
        add_runs(connection, plain, [LIVE, RUN, RUN, None, f"{RUN} -l random"])
        synced = add_configuration(connection, fsync=True)
        add_runs(connection, synced, [f"{RUN} -e", None])
    old.dispose()
    before = everything(url_of(location))
    engine = open_database(location)
    with transaction(engine, write=True) as connection:
        go_back(connection, "0007")
    engine.dispose()
    after = everything(url_of(location))
    changed = ("fsync", "revision")
    assert without(after["configurations"], "id") == without(before["configurations"], "id")
    assert without(after["measurements"], "configuration_id") == without(
        before["measurements"], "configuration_id"
    )
    assert without(after["systems"], *changed) == without(before["systems"], *changed)


@pytest.mark.parametrize("version", ["0002", "0003"])
def test_a_database_can_be_downgraded(location: str, version: str) -> None:
    before = load(version, location)
    engine = open_database(location)
    with transaction(engine, write=True) as connection:
        if version < "0003":
            store_model(connection, "testbed", "ior", "state", "{}")
        use_service_tables(connection)
        go_back(connection, version)
    engine.dispose()
    after = everything(url_of(location))
    if version >= "0003":
        revisions = [{row["revision"] for row in rows["systems"]} for rows in (before, after)]
        assert revisions[0].isdisjoint(revisions[1])
        after["systems"] = before["systems"]
    assert after == before


def test_runs_of_version_0009_have_no_insights_until_their_log_is_sent_again(
    location: str,
) -> None:
    engine = open_database(location)
    with transaction(engine, write=True) as connection:
        use_service_tables(connection)
        go_back(connection, "0009")
    engine.dispose()
    before = everything(url_of(location))
    engine = open_database(location)
    after = everything(url_of(location))
    [run] = after["runs"]
    listed = {"runs": 1, "newest": run["started"] or run["stored_at"]}
    before["applications"] = [row | listed for row in before["applications"]]
    before["tokens"] = with_nulls(before["tokens"], "expires_at")
    assert stable(after) == stable(before | {name: [] for name in LATER[2:]})
    new = NewInsights(version=1, characterisation="{}", checks="{}")
    with transaction(engine, write=True) as connection:
        assert insights_of(connection, run["id"]) is None
        assert store_insights(connection, run["id"], [run["sha256"]], new)
    engine.dispose()
    [stored] = everything(url_of(location))["insights"]
    assert (stored["run_id"], stored["sha256"]) == (run["id"], run["sha256"])


def test_version_0011_keeps_every_row_and_can_keep_results(location: str) -> None:
    engine = open_database(location)
    with transaction(engine, write=True) as connection:
        use_service_tables(connection)
        go_back(connection, "0011")
    engine.dispose()
    before = everything(url_of(location))
    assert "kept_results" not in before
    assert all(len(before[name]) == 1 for name in SERVICE)
    engine = open_database(location)
    tokens = with_nulls(before["tokens"], "expires_at")
    new = {name: [] for name in LATER[3:]} | {"tokens": tokens}
    assert stable(everything(url_of(location))) == stable(before | new)
    now = datetime(2026, 11, 23, tzinfo=timezone.utc)
    with transaction(engine, write=True) as connection:
        assert keep_result(connection, "secret", "{}", now=now, days=30, room_bytes=2)
        assert kept_result(connection, "secret", now) is not None
        go_back(connection, "0011")
    engine.dispose()
    assert everything(url_of(location)) == before


def test_the_space_of_the_decisions_of_version_0012_is_counted(location: str) -> None:
    engine = open_database(location)
    with transaction(engine, write=True) as connection:
        use_service_tables(connection)
        counted = counter(connection, SIZE_COUNTER)
        go_back(connection, "0012")
    engine.dispose()
    before = everything(url_of(location))
    engine = open_database(location)
    tokens = with_nulls(before["tokens"], "expires_at")
    new = {name: [] for name in LATER[4:]} | {"tokens": tokens}
    assert stable(everything(url_of(location))) == stable(before | new)
    with transaction(engine) as connection:
        assert counter(connection, SIZE_COUNTER) == counted > 0
    engine.dispose()


def test_tokens_that_expire_are_revoked_for_older_versions(location: str) -> None:
    engine = open_database(location)
    moment = datetime(2027, 1, 1, tzinfo=timezone.utc)
    with transaction(engine, write=True) as connection:
        add_token(connection, "stays", "reader")
        add_token(connection, "expires", "reader", moment)
        go_back(connection, "0014")
    engine.dispose()
    revoked = [row["revoked_at"] for row in everything(url_of(location))["tokens"]]
    assert revoked == [None, "2027-01-01T00:00:00.000000+00:00"]


_OPEN = (
    "import sys; from benchdb.store.database import open_database;"
    " open_database(sys.argv[1]).dispose()"
)


@pytest.mark.slow
@pytest.mark.parametrize("version", [None, *VERSIONS])
def test_several_processes_may_open_an_old_or_empty_database_at_once(
    location: str, tmp_path: Path, version: str | None
) -> None:
    alone = str(tmp_path / "alone.sqlite")
    for place in (location, alone) if version else ():
        load(version, place)
    running = run_together(*[("-c", _OPEN, location)] * 3)
    assert [(done.returncode, done.stderr[-300:]) for done in running] == [(0, "")] * 3
    open_database(alone).dispose()
    after, expected = everything(url_of(location)), everything(url_of(alone))
    assert set(after) == set(metadata.tables) - set(COUNTED)
    assert {name: len(rows) for name, rows in after.items()} == {
        name: len(rows) for name, rows in expected.items()
    }


@pytest.mark.slow
def test_an_upgrade_waits_for_a_writer(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    load("0001", location)
    with monkeypatch.context() as patched:
        patched.setattr("benchdb.store.database.NEWEST", "0001")
        engine = open_database(location)
    with ExitStack() as stack:
        with transaction(engine, write=True) as connection:
            upgrading = stack.enter_context(
                killed_at_the_end([sys.executable, "-c", _OPEN, location], cwd=ROOT)
            )
            with pytest.raises(subprocess.TimeoutExpired):
                upgrading.wait(timeout=2)
            columns = inspect(connection).get_columns("measurements")
        assert upgrading.wait(timeout=300) == 0
    assert "campaign" not in {column["name"] for column in columns}
    engine.dispose()
    assert "campaign" in everything(url_of(location))["measurements"][0]
