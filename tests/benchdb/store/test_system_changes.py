"""A machine changes: older measurements no longer count, stay visible, and can count again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine

from benchdb.measurements.coverage import coverage
from benchdb.measurements.curves import curves, curves_of_config, measured
from benchdb.measurements.listing import configurations_after, measurements_after
from benchdb.measurements.storing import Measurement, store
from benchdb.store.database import open_database, transaction
from benchdb.store.fitted_models import state_of
from benchdb.store.system_changes import (
    SystemChange,
    change_of,
    changes,
    counts_of_measurements,
    note_change,
    undo_change,
)
from ioncast.cli import cli
from ioncast_base.errors import InputError, UnknownNameError
from ioncast_base.times import instant
from ior_configs import IorConfig

pytestmark = pytest.mark.both_databases

NOW = instant("2026-11-23")
WRITE = IorConfig(write=True, tasks=16, nodes=8)
Ioncast = Callable[..., Result]


def measure(engine: Engine, *starts: str | None, content: bytes = b"1") -> None:
    """Store a measurement with 4 I/O nodes for each start; the nth has n MiB/s."""
    rows = [Measurement(WRITE, 4, float(n), started=at) for n, at in enumerate(starts, 1)]
    with transaction(engine, write=True) as connection:
        store(connection, system="here", file="f", content=content, file_format="test", rows=rows)


def note(engine: Engine, since: str, why: str = "new disks") -> SystemChange:
    with transaction(engine, write=True) as connection:
        return note_change(connection, "here", since=since, why=why)


def undo(engine: Engine) -> SystemChange:
    with transaction(engine, write=True) as connection:
        return undo_change(connection, "here")


def used(engine: Engine) -> tuple[float, ...]:
    """The bandwidths of the curve."""
    with transaction(engine) as connection:
        found = curves(connection, "here")
        assert found == curves_of_config(connection, "here", WRITE)
        assert len(measured(connection, "here")) == len(found)
    return found[0].bandwidths_mib_s[4] if found else ()


def test_only_measurements_since_the_change_count(database: Engine) -> None:
    measure(database, "2026-11-19T23:59:59Z", "2026-11-20T01:00:00+02:00", "2026-11-20", None)
    assert used(database) == (1.0, 2.0, 3.0, 4.0)
    found = note(database, "2026-11-20")
    # 01:00 in a zone two hours ahead of UTC is 23:00 of the day before. The last one counts as
    # measured when it was imported, that is now.
    assert used(database) == (3.0, 4.0)
    assert (found.day, found.mark) == ("2026-11-20", "before the change of 2026-11-20: new disks")
    with transaction(database) as connection:
        assert counts_of_measurements(connection, "here") == (2, 2)
        [older] = curves(connection, "here", before_change=True)
    assert older.bandwidths_mib_s == {4: (1.0, 2.0)}


def test_a_measurement_that_is_imported_later_counts_by_its_start(database: Engine) -> None:
    measure(database, "2026-11-21")
    note(database, "2026-11-20")
    measure(database, "2026-11-19", "2026-11-22", content=b"2")
    assert used(database) == (1.0, 2.0)


def test_the_change_that_is_noted_last_replaces_the_one_before(database: Engine) -> None:
    measure(database, "2026-11-18", "2026-11-20", "2026-11-22")
    note(database, "2026-11-21", "late")
    assert used(database) == (3.0,)
    early = note(database, "2026-11-19", "early")
    assert used(database) == (2.0, 3.0)
    with transaction(database) as connection:
        assert changes(connection) == {"here": early}
        assert change_of(connection, "here") == early
    assert undo(database) == early
    assert used(database) == (1.0, 2.0, 3.0)


def test_models_are_out_of_date_after_a_change_and_after_its_undo(database: Engine) -> None:
    measure(database, "2026-11-18")

    def state() -> str:
        with transaction(database) as connection:
            return state_of(connection, "here", "ior")

    states = [state()]
    note(database, "2026-11-19")
    states.append(state())
    undo(database)
    assert len({*states, state()}) == 3


def test_older_measurements_stay_visible(database: Engine) -> None:
    measure(database, "2026-11-18", "2026-11-19", "2026-11-22")
    note(database, "2026-11-21")
    with transaction(database) as connection:
        [row] = coverage(connection, "here", now=NOW, stale_after_s=1e9)
        [config] = configurations_after(connection, system="here")
        listed = measurements_after(connection, "here")
    [cell] = row.cells
    assert (cell.repetitions, cell.before_change, cell.set_apart) == (1, 2, 0)
    assert (cell.mean_mib_s, cell.missing) == (3.0, False)
    [on] = config.measured
    assert (on.repetitions, on.before_change, on.set_apart) == (1, 2, 0)
    assert [each.before_change for each in listed] == [True, True, False]
    note(database, "2026-11-22T12:00:00Z")
    with transaction(database) as connection:
        [row] = coverage(connection, "here", now=NOW, stale_after_s=1e9)
    assert (row.cells[0].missing, row.cells[0].before_change) == (True, 3)


@pytest.mark.parametrize(
    ("since", "why", "complaint"),
    [
        ("yesterday", "new disks", "'yesterday', which is not a time"),
        ("2999-01-01", "new disks", "2999-01-01 is in the future"),
        ("0001-01-01T00:00:00+10:00", "new disks", "which is not a time"),
        ("2026-11-20\0", "new disks", "which is not a time"),
        ("2026-11-20", "", "the reason is ''"),
        ("2026-11-20", "a\nb", "use printable characters in one line"),
        ("2026-11-20", "a" * 501, "501 characters, more than 500"),
        ("2026-11-20", "a\ud800", "half a character"),
    ],
)
def test_a_change_that_cannot_be_is_rejected(
    database: Engine, since: str, why: str, complaint: str
) -> None:
    measure(database, "2026-11-18")
    first = note(database, "2026-11-19")
    with pytest.raises(InputError, match=complaint):
        note(database, since, why)
    with transaction(database) as connection:
        assert changes(connection) == {"here": first}


def test_unknown_systems_and_changes_are_rejected(database: Engine) -> None:
    with pytest.raises(UnknownNameError, match="no system 'here'"):
        note(database, "2026-11-20")
    measure(database, None)
    with pytest.raises(UnknownNameError, match="no change of here is noted"):
        undo(database)


@pytest.fixture
def ioncast(location: str) -> Ioncast:
    engine = open_database(location)
    measure(engine, "2026-11-18", "2026-11-22")
    engine.dispose()

    def run(*args: str) -> Result:
        return CliRunner().invoke(cli, [*args, "--db", location])

    return run


def answer(ioncast: Ioncast, *args: str) -> Any:
    done = ioncast(*args, "--format", "json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


CHANGED = ("system", "changed", "here", "--since", "2026-11-20", "--why", "new disks")


def test_the_commands_note_show_and_take_back(ioncast: Ioncast) -> None:
    assert ioncast("system", "show", "here").stdout == (
        "here: 2 measurements and 0 outcomes count\nno change is noted\n"
    )
    assert ioncast(*CHANGED).stdout == (
        "here: the change is noted; measurements from before 2026-11-20, which no longer count: 1;"
        " since then: 1\n"
    )
    shown = ioncast("system", "show", "here").stdout
    assert "before the change of 2026-11-20: new disks: 1 measurement and 0 outcomes" in shown
    found = answer(ioncast, "system", "show", "here")
    assert (found["measurements"], found["measurements_before_change"]) == (1, 1)
    change = found["change"]
    assert (change["since"], change["why"]) == ("2026-11-20T00:00:00.000000+00:00", "new disks")
    back = ioncast("system", "undo", "here").stdout
    assert back == "here: the change of 2026-11-20 is taken back; measurements that count: 2\n"
    assert answer(ioncast, "system", "show", "here")["change"] is None


def test_lists_mark_measurements_from_before_the_change(ioncast: Ioncast) -> None:
    ioncast(*CHANGED)
    new, old = answer(ioncast, "bench", "list")
    assert (new["before_change"], new["repetitions"]) == (None, {"4": 1})
    assert old["before_change"]["why"] == "new disks"
    text = ioncast("bench", "list").stdout
    assert "here, before the change of 2026-11-20: new disks (these measurements no longer" in text
    bandwidths = {
        bool(row["before_change"]): row["bandwidths_mib_s"]
        for row in answer(ioncast, "bench", "show", "1")
    }
    assert bandwidths == {False: {"4": [2.0]}, True: {"4": [1.0]}}
    assert "new disks" in ioncast("bench", "show", "1").stdout


def test_a_change_without_newer_measurements_says_that_predictions_have_no_basis(
    ioncast: Ioncast,
) -> None:
    since = ("--since", "2026-11-22T12:00:00Z", "--why", "new disks")
    done = ioncast("system", "changed", "here", *since)
    assert "predictions have no basis until something is measured" in done.stdout
    assert "- (2 before)" in ioncast("bench", "coverage", "--system", "here").stdout
    fitted = ioncast("model", "fit", "--system", "here")
    assert str(fitted.exception).endswith(
        ": nothing was measured on 'here' since the change of 2026-11-22 12:00:00 UTC (new disks);"
        " `ioncast campaign plan` lists the benchmarks to run again"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "args",
    [
        ("changed", "here", "--since", "x", "--why", "y"),
        ("changed", "there", "--since", "2026-11-20", "--why", "y"),
        ("undo", "here"),
        ("undo", "there"),
        ("show", "there"),
    ],
)
def test_mistakes_are_one_line(ioncast: Ioncast, args: Sequence[str]) -> None:
    done = ioncast("system", *args)
    assert done.exit_code
    assert len((str(done.exception) + done.stderr).splitlines()) <= 4
