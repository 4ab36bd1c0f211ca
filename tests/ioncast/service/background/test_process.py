from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from benchdb.measurements.curves import Curve
from benchdb.measurements.storing import Measurement, store
from benchdb.store.database import open_database, opened_database, transaction
from benchdb.store.fitted_models import stored_model
from ioncast.service.background import (
    answer_step,
    expiring_table,
    learning_systems,
    preparing,
    summary_step,
)
from ioncast.service.background import process as keeper
from ioncast.service.background.preparing import Prepared, Preparing
from ioncast.service.background.process import Keeper
from ioncast.service.decide.answers import NO_TRIAL, answer
from ioncast.service.decide.prepared import KeeperHeartbeat, Reader, prepared_file
from ioncast.service.decide.spool import SpoolWriter, spool_files, spool_folder
from ioncast.service.settings import Settings, SystemSettings
from ioncast.service.store.credentials import digest
from ioncast.service.store.decisions import decision, decisions
from ioncast.service.store.deleting_belongings import belongings_of_user, delete_some
from ioncast.service.store.deleting_runs import delete_runs, forget_deleted
from ioncast.service.store.expiring import Expiring
from ioncast.service.store.kept_results import keep_result
from ioncast.service.store.outcomes import joined_outcomes, store_outcome
from ioncast.service.store.runs import NewRun, StoredRun, runs_like, store_run
from ioncast.service.store.tokens import add_token, revoke_token
from ioncast_base.errors import DatabaseError
from ioncast_base.times import in_utc
from ior_configs import IorConfig
from predictor.curve.prediction import DecisionRules, Prediction, predict, predict_together
from predictor.matching.same_application import identities
from predictor.model.measurement_summary import MeasurementSummary, read_summary
from summario.phases.tables import to_record
from summario.phases.values import Part, Phase
from tests.support.command import killed_at_the_end
from tests.support.serving import PATIENCE_S, command_of

pytestmark = pytest.mark.slow

MIB = 1 << 20
# Unix time when the machine of a `Site` was booted.
BOOTED_S = 1_794_999_000.0
CURVE = {0: 50.0, 2: 60.0, 4: 97.0, 8: 100.0}
CONFIG = IorConfig(write=True, block_size=4 * MIB, transfer_size=MIB, tasks=16, nodes=8)


def phase(tasks: int = 16, moved_mib: int = 4, **told: Any) -> Phase:
    """Make a phase in which each process writes 4 MiB in 1 MiB requests into one file."""
    values: dict[str, Any] = {
        "job": 1,
        "start_seconds": 0.0,
        "end_seconds": 1.0,
        "operation": "write",
        "rank": None,
        "processes": tasks,
        "nprocs": tasks,
        "bytes": tasks * moved_mib * MIB,
        "io_time_seconds": 1.0,
        "api": "POSIX",
        "requests": tasks * moved_mib,
        "spatiality": "contiguous",
        "file_access": "shared",
        "n_files": 1,
        "mode_processes": tasks,
        "parts": (Part(tasks * moved_mib, tasks * moved_mib * MIB),),
        "fsync": "none",
    }
    return Phase(**(values | told))


class Site:
    """A database and a keeper; `seconds` lets the keeper work as in so many seconds."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.keeper = Keeper(settings)
        self.reader = Reader(prepared_file(settings.state))
        self.now_s = 1_795_000_000.0
        self.ahead_s = 0.0
        self._runs = 0

    def seconds(self, count: int = 1) -> None:
        for _ in range(count):
            self.now_s += 1
            self.round()
            while self.keeper.is_behind:
                time.sleep(0.01)
                self.round()
        self.reader.refresh()

    def round(self, later_s: float = 0.0) -> None:
        """Let the keeper work once; the wall clock is ahead by `ahead_s`."""
        now_s = self.now_s + later_s
        self.keeper.round(now_s + self.ahead_s, now_s - BOOTED_S)

    def restart(self) -> None:
        self.keeper.close()
        self.keeper = Keeper(self.settings)

    def write(self, what: Callable[..., Any], *told: Any, **named: Any) -> Any:
        with (
            opened_database(self.settings.database) as database,
            transaction(database, write=True) as connection,
        ):
            return what(connection, *told, **named)

    def read(self, what: Callable[..., Any], *told: Any, **named: Any) -> Any:
        with opened_database(self.settings.database) as database, transaction(database) as c:
            return what(c, *told, **named)

    def measure(
        self,
        factor: float = 1.0,
        system: str = "here",
        content: bytes = b"1",
        curve: Mapping[int, float] = CURVE,
    ) -> None:
        rows = [
            Measurement(CONFIG, n, factor * speed * noise, engine="ior")
            for n, speed in curve.items()
            for noise in (0.97, 1.0, 1.03)
        ]
        told = {"file": "file", "file_format": "test", "rows": rows}
        self.write(store, system=system, content=content, **told)

    def run(self, *phases: Phase, **told: Any) -> StoredRun:
        self._runs += 1
        found = phases or (phase(),)
        values: dict[str, Any] = {
            "system": "here",
            "executable": "/opt/bin/hacc_io",
            "user": "ada",
            "name": "night",
            "logs": [f"{self._runs:064x}"],
            "tasks": 16,
            "nodes": 8,
            "started": f"2026-11-01T00:{self._runs:02d}:00+00:00",
            "phases": [to_record(each) for each in found],
        }
        stored, _ = self.write(store_run, NewRun(**(values | told)))
        assert isinstance(stored, StoredRun)
        return stored

    def ask(
        self,
        tasks: int | None = 16,
        nodes: int | None = 8,
        *,
        executable: str | None = "/opt/bin/hacc_io",
        user: str | None = "ada",
        name: str | None = "night",
        drawn: int = NO_TRIAL,
    ) -> dict[str, Any] | None:
        """Answer as a worker; None if no entry fits."""
        for identity in identities(executable, user, name):
            entry = self.reader.entries.get(("here", identity.key))
            if entry is not None:
                found = answer(entry, identity.says, tasks, nodes, None, drawn)
                return dict(json.loads(found.body))
        return None

    def decide(self, spool: SpoolWriter, number: str, tasks: int = 16) -> dict[str, Any]:
        """Answer as a worker, and append the decision to the spool."""
        told = self.ask(tasks)
        assert told is not None
        spool.append(line(number, told, tasks))
        return told


def line(number: str, told: dict[str, Any], tasks: int = 16, **query: Any) -> bytes:
    asked = {"system": "here", "user": "ada", "executable": "/opt/bin/hacc_io", "tasks": tasks}
    at = "2026-11-21T12:00:00.000+00:00"
    record = {"id": number, "at": at, "query": {**asked, "nodes": 8, **query}, "answer": told}
    return json.dumps(record).encode() + b"\n"


UNKNOWN: dict[str, Any] = {
    "explored": False,
    "io_nodes": 4,
    "source": "default",
    "expected_mib_s": None,
    "alternatives": [],
    "confidence": None,
    "application_id": None,
    "why": "nothing is known",
}


@pytest.fixture
def settings(location: str, tmp_path: Path) -> Settings:
    open_database(location).dispose()
    return Settings(database=location, state=str(tmp_path / "state"), default_io_nodes=3)


@pytest.fixture
def site(settings: Settings) -> Iterator[Site]:
    made = Site(settings)
    yield made
    made.keeper.close()
    made.reader.close()


@pytest.fixture
def spool(settings: Settings) -> Iterator[SpoolWriter]:
    made = SpoolWriter(spool_folder(settings.state))
    yield made
    made.close()


@pytest.fixture
def any_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any share of a table may expire at once."""
    monkeypatch.setattr(expiring_table, "_PERCENT_AT_ONCE", 100)


# Answers


def test_a_run_is_answered_from_a_second_later(site: Site) -> None:
    site.measure()
    run = site.run()
    site.seconds()
    found = site.ask()
    assert found is not None
    with opened_database(site.settings.database) as database, transaction(database) as c:
        summary = read_summary(c, "here")
        knowledge = summary.knowledge(c, summary.near([CONFIG]))
    expected = predict(
        [phase()], knowledge, system="here", nodes=8, policy=DecisionRules(default=3)
    )
    assert found["io_nodes"] == expected.decision.io_nodes == 4
    assert found["expected_mib_s"] == pytest.approx(expected.decision.bandwidth_mib_s, rel=1e-5)
    assert found["application_id"] == run.application.id
    assert found["why"].startswith(
        "1 earlier run of the same executable, user and job name, 16 processes on 8 nodes; 4 I/O"
    )


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"name": "day"}, "the same executable and user, 16"),
        ({"executable": "/home/ada/hacc_io"}, "the same program, user and job name, 16"),
        ({"executable": "hacc_io", "name": None}, "the same program and user, 16"),
        ({"user": "bob"}, "the same executable, by anybody, 16"),
        ({"user": "bob", "executable": "./hacc_io"}, "the same program, by anybody, 16"),
        ({"executable": "other"}, "the same user and job name, 16"),
    ],
)
def test_an_application_is_found_by_all_that_it_is_known_by(
    settings: Settings, asked: dict[str, str], says: str
) -> None:
    site = Site(settings)
    site.measure()
    site.run()
    site.seconds()
    found = site.ask(**asked)  # type: ignore[arg-type]
    assert found is not None
    assert f"1 earlier run of {says}" in found["why"]
    assert site.ask(executable="other", user="bob") is None
    site.keeper.close()
    site.reader.close()


def test_runs_of_all_users_and_names_are_counted_where_these_do_not_matter(site: Site) -> None:
    site.measure()
    for user in ("ada", "bob", "cid"):
        for name in ("night", "day"):
            site.run(user=user, name=name)
    site.seconds()
    counts = {
        "6 earlier runs": {"user": "zoe"},
        "2 earlier runs": {"user": "bob", "name": "other"},
        "1 earlier run ": {"user": "bob", "name": "day"},
    }
    for said, asked in counts.items():
        found = site.ask(**asked)  # type: ignore[arg-type]
        assert found is not None
        assert found["why"].startswith(said)


def test_many_runs_of_others_do_not_hide_a_users_own_runs(site: Site) -> None:
    site.measure()
    site.run(executable="/opt/bin/python", name="mine")
    for _ in range(51):
        site.run(executable="/opt/bin/python", user="bob", name="theirs")
    site.seconds()
    found = site.ask(executable="/opt/bin/python", name="mine")
    assert found is not None
    assert found["why"].startswith("1 earlier run of the same executable, user and job name")


def test_each_size_has_its_answer(site: Site) -> None:
    site.measure()
    site.run()
    site.run(phase(64), tasks=64, nodes=16)
    site.seconds()
    small, large, newest = site.ask(16), site.ask(64, 16), site.ask(None, None)
    assert small is not None
    assert large is not None
    assert ", 16 processes on 8 nodes; " in small["why"]
    assert ", 64 processes on 16 nodes; " in large["why"]
    assert newest == large


def test_runs_that_do_something_else_are_kept_apart(site: Site) -> None:
    site.measure()
    site.run()
    site.run()
    site.run(phase(operation="read"))
    site.seconds()
    found = site.ask()
    assert found is not None
    assert "3 earlier runs of" in found["why"]
    assert "16 processes on 8 nodes, 2 of which do the same I/O; " in found["why"]
    assert found["source"] == "history"


def test_it_does_not_matter_which_variant_a_job_is_if_both_get_the_same_number(
    site: Site,
) -> None:
    site.measure()
    site.run()
    site.seconds()
    alone = site.ask()
    # 16 times the bytes: another variant, with the same benchmark.
    site.run(phase(moved_mib=64))
    site.run()
    site.seconds()
    found = site.ask()
    assert alone is not None
    assert found is not None
    assert "2 of which do the same I/O; " in found["why"]
    assert (found["io_nodes"], found["confidence"]) == (alone["io_nodes"], alone["confidence"])
    # Nothing is known of reads, so their number may be another one.
    site.run(phase(operation="read"))
    site.run()
    site.seconds()
    unlike = site.ask()
    assert unlike is not None
    # The runs weigh 1, 0.8 (the read), 0.64, 0.512 and 0.4096.
    share = 1 - 0.8 / (1 + 0.8 + 0.64 + 0.512 + 0.4096)
    assert unlike["confidence"] == pytest.approx(share * alone["confidence"], abs=1e-5)


def test_outcomes_correct_the_expected_bandwidth(site: Site) -> None:
    site.measure()
    site.run()
    site.seconds()
    before = site.ask()
    for _ in range(5):
        site.run(io_nodes=4, bandwidth_mib_s=150.0)
    site.seconds()
    after = site.ask()
    assert before is not None
    assert after is not None
    assert before["expected_mib_s"] < after["expected_mib_s"] <= 150


def test_an_outcome_without_a_log_corrects_it_too(site: Site, spool: SpoolWriter) -> None:
    site.measure()
    site.run()
    site.seconds()
    before = site.decide(spool, "d1")
    site.seconds()
    told = {"system": "here", "job_id": "17", "io_nodes": 4, "bandwidth_mib_s": 150.0}
    site.write(store_outcome, decision_id="d1", **told)
    site.seconds()
    after = site.ask()
    assert after is not None
    assert after["expected_mib_s"] > before["expected_mib_s"]


def test_outcomes_with_one_number_are_not_forgotten_for_those_with_another(site: Site) -> None:
    """Ten runs with 8 I/O nodes got 30 MiB/s, and more than 50 later ones with none get 26."""
    site.measure()
    site.run()
    for number in range(70):
        io_nodes, got_mib_s = (8, 30.0) if number < 10 else (0, 26.0)
        site.run(
            io_nodes=io_nodes,
            bandwidth_mib_s=got_mib_s,
            started=f"2026-10-01T{number // 60:02d}:{number % 60:02d}:00+00:00",
        )
    site.seconds()
    found = site.ask()
    assert found is not None
    assert found["io_nodes"] > 0
    expected = {each["io_nodes"]: each["expected_mib_s"] for each in found["alternatives"]}
    assert expected[8] == pytest.approx(30, rel=0.05)
    assert expected[0] == pytest.approx(26, rel=0.05)


def test_a_site_may_let_some_jobs_try_another_number(
    settings: Settings, spool: SpoolWriter
) -> None:
    exploring = {"here": SystemSettings(explore=0.01)}
    site = Site(settings.model_copy(update={"systems": exploring}))
    site.measure()
    # All runs had 4 I/O nodes, so 8 may be better for this application.
    for _ in range(3):
        site.run(io_nodes=4, bandwidth_mib_s=97.0)
    site.seconds()
    usual, tried = site.ask(), site.ask(drawn=0)
    assert usual is not None and tried is not None
    assert (usual["explored"], tried["explored"]) == (False, True)
    assert tried["io_nodes"] != usual["io_nodes"]
    spool.append(line("d1", tried))
    site.seconds()
    stored = site.read(decision, "d1")
    assert (stored.explored, stored.io_nodes, stored.why) == (
        True,
        tried["io_nodes"],
        tried["why"],
    )
    assert len(stored.curve) == len(CURVE)
    site.keeper.close()


def test_an_implausible_outcome_changes_no_answer_but_its_reason(
    site: Site, spool: SpoolWriter
) -> None:
    site.measure()
    site.run()
    site.seconds()
    before = site.decide(spool, "d1")
    site.seconds()
    told = {"system": "here", "job_id": "17", "io_nodes": 4, "bandwidth_mib_s": 584_253.0}
    site.write(store_outcome, decision_id="d1", **told)
    site.seconds()
    after = site.ask()
    assert after is not None
    assert after.pop("why") == before["why"].replace(
        " on 8 nodes", " on 8 nodes, 1 bandwidth left out as implausible"
    )
    assert after == {name: value for name, value in before.items() if name != "why"}


def test_an_application_of_mostly_unknown_io_is_decided_by_its_own_runs(
    site: Site, spool: SpoolWriter
) -> None:
    site.measure()
    # Nothing was measured of reads, which are three quarters of the bytes.
    phases = phase(), phase(moved_mib=12, operation="read", start_seconds=2.0, end_seconds=3.0)
    site.run(*phases, io_nodes=4, bandwidth_mib_s=90.0)
    site.seconds()
    found = site.decide(spool, "d1")
    assert (found["io_nodes"], found["source"]) == (3, "default")
    assert "the site's default, because only 25% of the bytes have a benchmark" in found["why"]
    site.run(*phases, io_nodes=4, bandwidth_mib_s=90.0)
    site.run(*phases, io_nodes=0, bandwidth_mib_s=45.0)
    site.seconds()
    found = site.ask()
    assert found is not None
    assert (found["io_nodes"], found["source"]) == (4, "history")


def test_runs_of_another_machine_leave_the_decision_to_the_site(
    site: Site, spool: SpoolWriter
) -> None:
    site.measure()
    # The keeper knows no benchmark with 17 I/O nodes, so this bandwidth corrects nothing.
    site.run(bandwidth_mib_s=584_253.0, io_nodes=17)
    site.seconds()
    found = site.ask()
    assert found is not None
    assert (found["io_nodes"], found["source"]) == (3, "default")
    assert "because a run got 571 GiB/s, which is impossible here" in found["why"]
    # The same for another size.
    site.decide(spool, "d1", tasks=64)
    site.seconds(2)
    larger = site.ask(tasks=64)
    assert larger is not None
    assert "scaled to 64; the site's default, because a run got 571 GiB/s" in larger["why"]
    # A second run, which this system can have had.
    site.run(bandwidth_mib_s=90.0)
    site.seconds()
    found = site.ask()
    assert found is not None
    assert found["source"] == "history"


def test_a_job_whose_log_and_outcome_are_both_known_counts_once(
    site: Site, spool: SpoolWriter
) -> None:
    site.measure()
    got = {"io_nodes": 4, "bandwidth_mib_s": 150.0}
    # An outcome is reported now, and is about a run of the last four weeks.
    started = in_utc(datetime.now(timezone.utc) - timedelta(hours=1))
    site.run(job_id="17", started=started, **got)
    site.seconds()
    once = site.decide(spool, "d1")
    site.seconds()
    site.write(store_outcome, system="here", job_id="17", decision_id="d1", **got)
    site.seconds()
    assert site.ask() == once
    # If the outcome has another bandwidth than the log, the outcome counts.
    site.run(job_id="18", started=started, **got)
    site.seconds()
    twice = site.decide(spool, "d2")
    site.seconds()
    worse = {"io_nodes": 4, "bandwidth_mib_s": 60.0}
    site.write(store_outcome, system="here", job_id="18", decision_id="d2", **worse)
    site.seconds()
    after = site.ask()
    assert after is not None
    assert after["expected_mib_s"] < twice["expected_mib_s"]


def test_each_run_of_a_job_id_that_came_again_corrects_what_is_expected(
    site: Site, spool: SpoolWriter
) -> None:
    site.measure()
    told: dict[str, Any] = {"system": "here", "job_id": "17", "io_nodes": 4}
    run = site.run(job_id="17", io_nodes=4, bandwidth_mib_s=150.0)
    assert run.started is not None
    site.seconds()
    site.decide(spool, "d1")
    site.seconds()
    site.write(store_outcome, bandwidth_mib_s=150.0, run_id=run.id, **told)
    site.seconds()
    once = site.ask()
    # Slurm started the job again, and only its bandwidth is reported.
    again = {"started": "2026-11-01T09:00:00Z", "decision_id": "d1", "bandwidth_mib_s": 40.0}
    site.write(store_outcome, **told, **again)
    site.seconds()
    twice = site.ask()
    assert once is not None
    assert twice is not None
    assert twice["expected_mib_s"] < once["expected_mib_s"]


def test_other_measurements_give_other_answers_but_not_all_the_time(site: Site) -> None:
    site.measure()
    site.run()
    site.seconds()
    before = site.ask()
    site.measure(factor=4, content=b"2")
    site.seconds(100)
    assert site.ask() == before
    site.now_s += 300
    site.seconds()
    after = site.ask()
    assert before is not None
    assert after is not None
    assert after["expected_mib_s"] > 1.5 * before["expected_mib_s"]


def test_while_a_model_is_fitted_all_the_rest_goes_on(
    site: Site, spool: SpoolWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    fit = MeasurementSummary.fitted_to

    def slowly(summary: MeasurementSummary, curves: Sequence[Curve]) -> MeasurementSummary:
        begun.set()
        assert go_on.wait(60)
        return fit(summary, curves)

    monkeypatch.setattr(MeasurementSummary, "fitted_to", slowly)
    site.measure()
    site.run()
    token = site.write(add_token, name="slurm", role="scheduler")
    spool.append(line("d1", UNKNOWN))
    site.round()
    assert begun.wait(60)
    site.round(1)
    site.reader.refresh()
    assert site.reader.heartbeat == KeeperHeartbeat(site.now_s + 1, True, True)
    assert list(site.reader.tokens) == [digest(token)]
    assert stored(site) == ["d1"]
    assert (site.keeper.is_behind, site.ask()) == (True, None)
    go_on.set()
    site.seconds()
    assert site.ask() is not None
    assert site.read(stored_model, "here", "ior") is not None


def test_equal_runs_of_many_applications_are_predicted_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    predicted = []

    def noted(versions: list[list[Phase]], *given: Any, **told: Any) -> list[Prediction]:
        predicted.append(len(versions[0]))
        return predict_together(versions, *given, **told)

    monkeypatch.setattr(preparing, "predict_together", noted)
    site.measure()
    for number, user in enumerate(("ada", "bob", "cid")):
        times = {
            "io_time_seconds": number + 1.0,
            "metadata_seconds": number / 2,
            "elapsed_seconds": number + 2.0,
        }
        site.run(phase(job=user, **times), user=user)
    site.seconds()
    answers = [site.ask(user=user) for user in ("ada", "bob", "cid")]
    assert len({found["application_id"] for found in answers if found}) == 3
    assert len({found["expected_mib_s"] for found in answers if found}) == 1
    assert len(predicted) == 1
    site.run(phase(), phase(operation="read"), user="bob")
    site.seconds()
    assert predicted == [1, 2]
    site.measure(factor=4, content=b"2")
    site.now_s += 300
    site.seconds()
    now = site.ask(user="ada")
    assert now is not None
    assert answers[0] is not None
    assert now["expected_mib_s"] > 1.5 * answers[0]["expected_mib_s"]


def test_a_number_is_untried_if_no_run_of_the_application_had_it(site: Site) -> None:
    """A job of another name is the same application."""

    def untried() -> dict[int, int]:
        found = site.reader.summaries["untried"].value.get("here", {"largest": []})
        return {one["id"]: one["io_nodes"] for one in found["largest"]}

    # Whether fsync was called is not known, so that 4 may be better than direct access.
    unsure = phase(fsync=None)
    site.measure(curve={0: 100.0, 4: 97.0, 8: 60.0})
    ada = site.run(unsure, name="night").application.id
    bob = site.run(unsure, name="night", user="bob").application.id
    site.seconds()
    assert untried() == {ada: 4, bob: 4}
    site.run(unsure, name="day", io_nodes=4, bandwidth_mib_s=97.0)
    site.seconds()
    assert untried() == {bob: 4}


def test_a_run_that_is_mostly_metadata_is_predicted_apart(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    matched = []

    def noted(*given: Any, **told: Any) -> list[Prediction]:
        found = predict_together(*given, **told)
        matched.append(found[0].phases[0].main.kind)
        return found

    monkeypatch.setattr(preparing, "predict_together", noted)
    site.measure()
    site.run(phase(metadata_seconds=0.5), user="ada")
    site.run(phase(metadata_seconds=1.5), user="bob")
    site.seconds()
    assert sorted(matched) == ["exact", "interpolated"]


def test_shared_answers_are_prepared_again_for_runs_that_came_meanwhile(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.measure()
    for number in range(3):
        site.run(executable=f"/opt/bin/part{number}")
    prepare, prepared = Preparing.prepare, []

    def slowly(of: Preparing, application_id: int) -> Prepared:
        prepared.append(application_id)
        time.sleep(0.05)
        return prepare(of, application_id)

    monkeypatch.setattr(Preparing, "prepare", slowly)
    monkeypatch.setattr(answer_step, "_BUSY_S", 0.01)
    while not prepared:
        site.round()
        time.sleep(0.01)
    assert len(prepared) == 1
    assert site.keeper.is_behind
    site.run(executable="/opt/bin/late")
    site.seconds()
    shared = site.ask(executable="other")
    assert shared is not None
    assert shared["why"].startswith("4 earlier runs of the same user and job name")


def test_other_settings_give_other_answers(site: Site) -> None:
    site.measure()
    site.run()
    site.seconds()
    site.settings = site.settings.model_copy(update={"tolerance": 0.0})
    site.restart()
    site.seconds()
    found = site.ask()
    assert found is not None
    assert found["io_nodes"] == 8


def test_an_application_on_a_system_without_benchmarks_gets_the_default(site: Site) -> None:
    run = site.run()
    site.seconds()
    found = site.ask()
    assert found is not None
    assert (found["io_nodes"], found["source"]) == (3, "default")
    assert found["application_id"] == run.application.id
    assert found["why"].startswith("1 earlier run of the same executable")


def test_a_size_that_was_asked_for_is_prepared(site: Site, spool: SpoolWriter) -> None:
    site.measure()
    site.run()
    site.seconds()
    first = site.decide(spool, "d1", tasks=64)
    assert (first["source"], "not yet scaled to 64" in first["why"]) == ("model", True)
    site.seconds(2)
    second = site.decide(spool, "d2", tasks=64)
    assert second["source"] == "model"
    assert "16 processes, scaled to 64; " in second["why"]
    site.restart()
    site.measure(factor=2, content=b"2")
    site.seconds(2)
    third = site.ask(64)
    assert third is not None
    assert "scaled to 64; " in third["why"]
    site.run(phase(64), tasks=64, nodes=16)
    site.seconds()
    fourth = site.ask(64)
    assert fourth is not None
    assert fourth["source"] == "history"


def test_a_size_that_was_asked_for_just_before_a_restart_is_prepared(
    site: Site, spool: SpoolWriter
) -> None:
    site.measure()
    site.run()
    site.seconds()
    site.decide(spool, "d1", tasks=64)
    site.round()
    assert site.keeper.is_behind
    site.restart()
    site.seconds()
    found = site.ask(64)
    assert found is not None
    assert "scaled to 64; " in found["why"]


def test_a_size_that_runs_answer_for_needs_no_preparing(site: Site, spool: SpoolWriter) -> None:
    site.measure()
    site.run()
    site.seconds()
    assert site.decide(spool, "d1", tasks=20)["source"] == "history"
    site.round()
    assert stored(site) == ["d1"]
    assert not site.keeper.is_behind


def test_of_many_sizes_the_last_twenty_are_prepared(site: Site, spool: SpoolWriter) -> None:
    site.measure()
    site.run()
    site.seconds()
    for tasks in range(101, 126):
        site.decide(spool, f"d{tasks}", tasks)
        site.seconds()
    site.seconds()
    answers = {tasks: site.ask(tasks) for tasks in range(101, 126)}
    exact = [n for n, found in answers.items() if found and f"scaled to {n}; " in found["why"]]
    assert exact == [*range(106, 126)]


def test_a_restarted_keeper_prepares_nothing_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.measure()
    site.run()
    site.seconds()
    before = site.ask()
    site.restart()
    monkeypatch.setattr("ioncast.service.background.preparing.predict_together", None)
    site.seconds()
    assert site.ask() == before
    assert not site.keeper.is_behind


def test_a_run_that_cannot_be_predicted_does_not_affect_other_runs(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.measure()
    broken = site.run(executable="/opt/bin/broken", name="broken")
    site.run()
    query = text("UPDATE runs SET phases = '[{}]' WHERE id = :id")
    site.write(lambda connection: connection.execute(query, {"id": broken.id}))
    site.seconds()
    assert site.ask() is not None
    assert site.ask(executable="/opt/bin/broken", name="broken") is None
    assert f"run {broken.id} is left out: not a phase: 'job' is missing" in caplog.text
    assert not site.keeper.is_behind


# Decisions


def test_decisions_come_into_the_database(site: Site, spool: SpoolWriter) -> None:
    site.measure()
    site.run()
    site.seconds()
    told = site.decide(spool, "d1")
    site.seconds()
    found = site.read(decision, "d1")
    assert (found.system, found.user, found.executable) == ("here", "ada", "/opt/bin/hacc_io")
    assert (found.tasks, found.nodes, found.available) == (16, 8, None)
    for name in ("io_nodes", "source", "expected_mib_s", "confidence", "why", "application_id"):
        assert getattr(found, name) == told[name]
    points = {each["io_nodes"]: each for each in [told, *told["alternatives"]]}
    assert found.curve == tuple(
        (n, points[n]["expected_mib_s"], points[n]["p10_mib_s"], points[n]["p90_mib_s"])
        for n in sorted(CURVE)
    )


def stored(site: Site) -> list[str]:
    return sorted(row.id for row in site.read(decisions, limit=10_000))


def test_each_decision_is_stored_once_whoever_drains(site: Site, spool: SpoolWriter) -> None:
    for number in range(5):
        spool.append(line(f"d{number}", UNKNOWN))
    site.seconds()
    site.restart()
    spool.append(line("d5", UNKNOWN))
    site.seconds(2)
    assert stored(site) == [f"d{number}" for number in range(6)]


def test_the_file_of_a_worker_that_is_gone_goes_when_all_is_stored(
    site: Site, spool: SpoolWriter
) -> None:
    other = SpoolWriter(spool_folder(site.settings.state))
    spool.append(line("d1", UNKNOWN))
    other.append(line("d2", UNKNOWN))
    site.seconds()
    assert len(spool_files(spool_folder(site.settings.state))) == 2
    other.append(line("d3", UNKNOWN))
    other.close()
    site.seconds()
    assert len(spool_files(spool_folder(site.settings.state))) == 1
    spool.append(line("d4", UNKNOWN))
    site.seconds()
    assert stored(site) == ["d1", "d2", "d3", "d4"]


def test_lines_that_are_not_decisions_are_skipped(
    site: Site, spool: SpoolWriter, caplog: pytest.LogCaptureFixture
) -> None:
    lines = [
        b"\n",
        b"[]\n",
        b"{}\n",
        b'{"id":"x","at":1}\n',
        b"\xff\xfe\n",
        b"[" * 5000 + b"\n",
        line("bad", {**UNKNOWN, "io_nodes": -1}),
        line("bad", UNKNOWN, system=""),
        line("bad", UNKNOWN, user=["ada"]),
        line("bad", {**UNKNOWN, "alternatives": 7}),
        line("bad", {**UNKNOWN, "alternatives": [{}]}),
    ]
    for each in [*lines, line("good", UNKNOWN)]:
        spool.append(each)
    site.seconds(2)
    assert stored(site) == ["good"]
    assert caplog.text.count("is not a decision") == len(lines)


def test_a_line_is_read_when_it_is_whole(site: Site, spool: SpoolWriter) -> None:
    whole = line("d1", UNKNOWN)
    spool.append(whole[:40])
    site.seconds()
    assert stored(site) == []
    spool.append(whole[40:])
    site.seconds()
    assert stored(site) == ["d1"]


def test_a_file_that_was_just_made_is_not_taken_for_an_old_one(site: Site) -> None:
    folder = spool_folder(site.settings.state)
    folder.mkdir(parents=True)
    path = folder / "new.jsonl"
    path.touch()
    os.utime(path, (site.now_s, site.now_s))
    site.seconds(2)
    assert path.exists()
    site.now_s += 100
    site.seconds()
    assert not path.exists()


# Tokens and summaries


def test_a_token_counts_from_a_second_later_until_it_is_revoked(site: Site) -> None:
    token = site.write(add_token, name="slurm", role="scheduler")
    site.seconds()
    assert site.reader.tokens == {digest(token): ("slurm", "scheduler", None)}
    site.write(revoke_token, name="slurm")
    site.seconds()
    assert site.reader.tokens == {}


def test_a_token_that_will_expire_is_told_of_once(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    moment = datetime.fromtimestamp(site.now_s + 15 * 86_400, timezone.utc)
    token = site.write(add_token, "portal", "reader", moment)
    site.seconds()
    known = site.reader.tokens[digest(token)]
    assert known == ("portal", "reader", moment.timestamp())
    assert "portal" not in caplog.text
    site.now_s += 2 * 86_400
    site.seconds(2)
    assert caplog.text.count("the token 'portal' expires within 14 days") == 1
    site.now_s += 13 * 86_400
    site.seconds(2)
    assert caplog.text.count("the token 'portal' has expired") == 1
    assert known.has_expired(site.now_s)


def test_the_database_is_summed_up_each_minute(site: Site, spool: SpoolWriter) -> None:
    site.measure()
    site.run()
    site.seconds(2)
    [covered] = site.reader.summaries["coverage"].value
    assert (covered["system"], covered["configurations"], covered["io_nodes"]) == ("here", 1, 4)
    assert site.reader.summaries["validation"].value["outcomes"] == 0
    site.decide(spool, "d1")
    told = {"system": "here", "job_id": "17", "io_nodes": 4, "bandwidth_mib_s": 150.0}
    site.write(store_outcome, decision_id="d1", **told)
    site.seconds()
    assert site.reader.summaries["validation"].value["outcomes"] == 0
    site.now_s += 60
    site.seconds()
    assert site.reader.summaries["validation"].value["decisions"] == 1
    assert site.reader.summaries["drift"].value[0]["system"] == "here"
    assert site.reader.summaries["missing kinds"].value == []
    site.run(replace(phase(), operation="read"))
    site.now_s += 60
    site.seconds()
    [missing] = site.reader.summaries["missing kinds"].value
    assert (missing["kind"].partition(" ")[0], missing["runs"]) == ("read", 1)


@pytest.mark.usefixtures("any_share")
def test_kept_results_are_deleted_within_a_minute_after_they_expired(site: Site) -> None:
    kept_at = datetime.fromtimestamp(site.now_s, timezone.utc)
    for secret, days in (("short", 1), ("long", 2)):
        told = {"now": kept_at, "days": days, "room_bytes": 1000}
        assert site.write(keep_result, secret, "{}", **told)

    def kept() -> int:
        return int(site.read(lambda c: c.scalar(text("SELECT count(*) FROM kept_results"))))

    site.seconds()
    site.now_s += 24 * 3600 - 30
    site.seconds()
    assert kept() == 2
    site.now_s += 60
    site.seconds()
    assert kept() == 1
    site.now_s += 24 * 3600
    site.seconds()
    assert kept() == 0


def test_no_more_outcomes_are_read_than_count(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary_step, "COUNTED", 2)
    site.measure()
    for number in range(3):
        told = {"system": "here", "job_id": f"{number}", "io_nodes": 4, "bandwidth_mib_s": 150.0}
        site.write(store_outcome, **told)
    site.seconds()
    assert site.reader.summaries["validation"].value["outcomes"] == 2


# Expiry


@pytest.mark.usefixtures("any_share")
def test_decisions_expire_after_some_days(site: Site, spool: SpoolWriter) -> None:
    spool.append(line("d1", UNKNOWN))
    site.seconds()
    asked_at_s = datetime(2026, 11, 21, 12, tzinfo=timezone.utc).timestamp()
    site.now_s = asked_at_s + site.settings.keep_decisions_days * 86_400 - 60
    site.seconds()
    assert stored(site) == ["d1"]
    site.now_s += 120
    site.seconds()
    assert stored(site) == []


def delete(site: Site, *gone: StoredRun) -> None:
    site.write(delete_runs, [run.id for run in gone])


def reason(site: Site, name: str) -> str:
    told = site.ask(name=name)
    assert told is not None
    return str(told["why"])


@pytest.mark.promise("service-data-deleted")
def test_answers_forget_a_deleted_run_a_second_later(site: Site) -> None:
    site.measure()
    first, _ = site.run(), site.run(name="day")
    site.seconds()
    assert "job name" in reason(site, "night")
    delete(site, first)
    site.seconds()
    # The other run is of the same program and user.
    assert "job name" not in reason(site, "night")
    assert "job name" in reason(site, "day")


def test_answers_forget_an_application_without_runs_also_after_a_restart(site: Site) -> None:
    site.measure()
    only = site.run()
    site.run(executable="/opt/bin/other", user="bob", name=None)
    site.seconds()
    assert site.ask() is not None
    delete(site, only)
    site.restart()
    site.seconds()
    assert site.ask() is None
    assert site.ask(executable="/opt/bin/other", user="bob", name=None) is not None
    site.restart()
    site.reader.close()
    site.reader = Reader(prepared_file(site.settings.state))
    site.seconds()
    assert site.ask() is None
    # A run of this application is known again as soon as one is stored.
    site.run()
    site.seconds()
    assert site.ask() is not None


def files_with(site: Site, *names: str) -> list[str]:
    """The files of the state folder that have one of the names in their bytes."""
    files = [path for path in Path(site.settings.state).rglob("*") if path.is_file()]
    assert len(files) > 1
    return [
        f"{path.name}: {name}"
        for path in files
        for name in names
        if name.encode() in path.read_bytes()
    ]


@pytest.mark.promise("service-data-deleted")
def test_no_file_has_the_name_of_a_deleted_user(site: Site, spool: SpoolWriter) -> None:
    site.measure()
    kept = site.run(executable="/opt/bin/other", user="bob", name="day")
    # So many keys fill several pages of the file.
    theirs = [site.run(user="zuleika", name=f"secret-{number}") for number in range(40)]
    spool.append(line("d1", UNKNOWN, user="zuleika", name="secret-1"))
    site.seconds()
    answered = site.ask(user="zuleika", name="secret-1")
    assert answered is not None
    for number, run in enumerate([theirs[0], kept]):
        told = {"system": "here", "job_id": f"{number}", "io_nodes": 4, "bandwidth_mib_s": 50.0}
        spool.append(line(f"judged{number}", answered, user=run.application.user))
        site.write(store_outcome, run_id=run.id, decision_id=f"judged{number}", **told)
    site.seconds(61)
    worst = site.reader.summaries["validation"].value["worst"]
    assert {each["user"] for each in worst} == {"zuleika", "bob"}
    assert files_with(site, "zuleika") != []
    found = site.read(belongings_of_user, "zuleika")
    while found:
        found = site.write(delete_some, found)
    site.seconds(61)
    assert files_with(site, "zuleika", "secret") == []
    assert site.ask(user="zuleika", name="secret-1") is None
    delete(site, kept)
    site.restart()
    site.seconds(2)
    assert files_with(site, "bob", "day") == []


def test_a_reader_in_the_middle_of_the_file_keeps_nobody_from_removing_names(
    site: Site,
) -> None:
    site.measure()
    only = site.run(user="zuleika")
    site.run(executable="/opt/bin/other", user="bob")
    site.seconds()
    slow = sqlite3.connect(prepared_file(site.settings.state), isolation_level=None)
    slow.execute("BEGIN")
    assert slow.execute("SELECT COUNT(*) FROM entries").fetchone()[0] > 0
    delete(site, only)
    site.seconds(2)
    slow.close()
    site.seconds()
    assert files_with(site, "zuleika") == []


def test_answers_of_a_keeper_that_saw_no_deleting_are_prepared_again(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.measure()
    only, other = site.run(), site.run(executable="/opt/bin/other", user="bob", name=None)
    site.run(executable="/opt/bin/third", user="bob", name=None)
    site.seconds()
    delete(site, other)
    site.seconds()
    site.keeper.close()
    delete(site, only)
    site.write(forget_deleted, datetime(2100, 1, 1, tzinfo=timezone.utc))
    site.restart()
    caplog.set_level("INFO")
    site.seconds(2)
    assert site.ask() is None
    assert site.ask(executable="/opt/bin/third", user="bob", name=None) is not None
    assert caplog.text.count("runs were deleted long ago") == 1


def test_deletions_after_a_backup_was_restored_are_noticed(
    sqlite_site: Site, tmp_path: Path
) -> None:
    site, backup = sqlite_site, tmp_path / "backup.sqlite"
    bobs: dict[str, Any] = {"executable": "/opt/bin/other", "user": "bob", "name": None}
    site.measure()
    first, second = site.run(), site.run(**bobs)
    site.run(executable="/opt/bin/third", user="eve", name=None)
    site.seconds()
    copy(str(site.settings.database), backup)
    delete(site, first)
    site.seconds()
    assert site.ask() is None
    site.keeper.close()
    copy(backup, str(site.settings.database))
    site.restart()
    site.seconds()
    assert site.ask() is not None
    delete(site, second)
    site.seconds()
    assert site.ask(**bobs) is None


def copy(source: str | Path, target: str | Path) -> None:
    """Copy a database as a backup does."""
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)


@pytest.mark.promise("service-data-deleted")
@pytest.mark.usefixtures("any_share")
def test_old_runs_and_outcomes_expire(site: Site) -> None:
    site.measure()
    site.run()
    told = {"system": "here", "job_id": "17", "io_nodes": 4, "bandwidth_mib_s": 150.0}
    site.write(store_outcome, **told)
    site.seconds()
    kept_s = site.settings.keep_runs_days * 86_400
    site.now_s = time.time() + kept_s - 3600
    site.seconds()
    assert site.ask() is not None
    assert len(site.read(joined_outcomes)) == 1
    site.now_s += 7200
    site.seconds(2)
    assert site.ask() is None
    assert site.read(runs_like, "here") == []
    assert site.read(joined_outcomes) == []


def test_without_a_limit_everything_stays(settings: Settings, spool: SpoolWriter) -> None:
    site = Site(settings.model_copy(update={"keep_decisions_days": 0}))
    spool.append(line("d1", UNKNOWN))
    site.seconds()
    site.now_s += 120
    site.seconds()
    assert stored(site) == ["d1"]
    site.keeper.close()


@pytest.mark.promise("service-data-deleted")
@pytest.mark.usefixtures("any_share")
def test_deleting_goes_on_after_a_failure(
    site: Site, spool: SpoolWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1200):
        spool.append(line(f"d{number}", UNKNOWN))
    site.seconds()
    site.now_s += 500 * 86_400
    delete = Expiring.delete_old
    answers = iter([delete, None, delete])

    def failing(*told: Any) -> int:
        act = next(answers, delete)
        if act is None:
            raise DatabaseError("the database is away")
        return int(act(*told))

    monkeypatch.setattr(Expiring, "delete_old", failing)
    site.seconds(20)
    assert stored(site) == []


# Trouble


@pytest.fixture
def sqlite_site(tmp_path: Path) -> Iterator[Site]:
    location = str(tmp_path / "bench.sqlite")
    open_database(location).dispose()
    made = Site(Settings(database=location, state=str(tmp_path / "state")))
    yield made
    made.keeper.close()
    made.reader.close()


@pytest.mark.promise("service-database-away")
def test_decisions_wait_while_the_database_is_locked(
    sqlite_site: Site, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = sqlite_site
    monkeypatch.setattr(keeper, "_PATIENCE_S", 0.1)
    site.restart()
    spool = SpoolWriter(spool_folder(site.settings.state))
    spool.append(line("d1", UNKNOWN))
    assert site.settings.database is not None
    other = sqlite3.connect(site.settings.database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    site.seconds(2)
    assert site.reader.heartbeat is not None
    assert not site.reader.heartbeat.database_ok
    other.execute("ROLLBACK")
    other.close()
    caplog.set_level("INFO")
    site.seconds(2)
    assert site.reader.heartbeat.database_ok
    assert stored(site) == ["d1"]
    assert [record.getMessage().split(": ")[0] for record in caplog.records] == [
        "decisions wait for the database",
        "no longer true",
    ]
    spool.close()


@pytest.mark.promise("service-database-away")
def test_a_server_that_is_read_only_for_a_while_is_told_of_once(
    postgresql_location: str, tmp_path: Path
) -> None:
    site = Site(Settings(database=postgresql_location, state=str(tmp_path / "state")))
    spool = SpoolWriter(spool_folder(site.settings.state))
    with opened_database(postgresql_location) as database, database.connect() as administrator:

        def alter(what: str) -> None:
            query = f"ALTER DATABASE {database.url.database} {what} default_transaction_read_only"
            administrator.exec_driver_sql(f"{query} = on" if what == "SET" else query)
            administrator.commit()

        alter("SET")
        spool.append(line("d1", UNKNOWN))
        with started(site.settings, PATIENT_KEEPER) as process:
            wait_for(lambda: has_beaten_since(site, 0.0))
            assert site.reader.heartbeat is not None
            seen_s = site.reader.heartbeat.at_s
            wait_for(lambda: has_beaten_since(site, seen_s + 2))
            alter("RESET")
            wait_for(lambda: stored(site) == ["d1"])
            wait_for(lambda: site.reader.refresh() and is_fine(site))
            process.send_signal(signal.SIGTERM)
            assert process.stderr is not None
            told = process.stderr.read().decode().splitlines()
    assert [each.split(": ")[:2] for each in told] == [
        ["ioncast", "decisions wait for the database"],
        ["ioncast", "no longer true"],
    ]
    spool.close()
    site.keeper.close()
    site.reader.close()


def is_fine(site: Site) -> bool:
    heartbeat = site.reader.heartbeat
    return heartbeat is not None and heartbeat.database_ok


def test_a_database_that_goes_while_a_system_is_learned_does_not_count_as_a_defect(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise DatabaseError("the database refused")

    monkeypatch.setattr(learning_systems, "read_summary", refuse)
    site.measure()
    site.run()
    site.seconds()
    assert site.ask() is not None
    assert not caplog.records


def test_answers_stay_while_the_database_is_gone(sqlite_site: Site) -> None:
    site = sqlite_site
    spool = SpoolWriter(spool_folder(site.settings.state))
    site.measure()
    site.run()
    site.seconds()
    before = site.ask()
    path = Path(str(site.settings.database))
    path.rename(path.with_suffix(".away"))
    site.decide(spool, "d1")
    site.seconds(2)
    assert site.reader.heartbeat is not None
    assert not site.reader.heartbeat.database_ok
    assert site.ask() == before
    assert not path.exists()
    path.with_suffix(".away").rename(path)
    site.seconds()
    assert site.reader.heartbeat.database_ok
    assert stored(site) == ["d1"]
    spool.close()


def test_another_database_is_prepared_from_its_beginning(sqlite_site: Site, tmp_path: Path) -> None:
    site = sqlite_site
    site.measure()
    site.run(executable="/opt/bin/old", name="old")
    site.run()
    site.seconds()
    assert site.ask(executable="/opt/bin/old", name="old") is not None
    site.settings = site.settings.model_copy(update={"database": str(tmp_path / "other.sqlite")})
    site.measure()
    site.run()
    site.restart()
    site.seconds()
    assert site.ask() is not None
    assert site.ask(executable="/opt/bin/old", name="old") is None


@pytest.mark.promise("service-state-folder-deleted")
def test_a_state_folder_that_is_gone_is_made_again(sqlite_site: Site) -> None:
    site = sqlite_site
    site.measure()
    site.run()
    site.seconds()
    for each in Path(site.settings.state).iterdir():
        each.unlink()
    site.seconds(3)
    assert prepared_file(site.settings.state).exists()
    assert site.ask() is not None


# The process

KEEPER = ("-m", "ioncast.service.background.process")
# A keeper that does not report a server as missing when a busy machine delays it.
PATIENT_KEEPER = (
    "-c",
    "from ioncast.service.background import process; process._PATIENCE_S = 60.0; process.main()",
)


@contextmanager
def started(
    settings: Settings, program: Sequence[str] = KEEPER
) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, *program, str(os.getpid())]
    with killed_at_the_end(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(settings.model_dump_json().encode())
        process.stdin.close()
        yield process


def wait_for(condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.05)


def test_a_keeper_ends_when_it_is_told_to(sqlite_site: Site) -> None:
    site = sqlite_site
    with started(site.settings) as keeper:
        wait_for(lambda: site.reader.refresh() and site.reader.heartbeat is not None)
        keeper.send_signal(signal.SIGTERM)
        assert keeper.wait(PATIENCE_S) == 0
        assert keeper.stderr is not None
        assert keeper.stderr.read() == b""


PARENT = """
import os, subprocess, sys
keeper = subprocess.Popen(
    [sys.executable, "-m", "ioncast.service.background.process", str(os.getpid())],
    stdin=subprocess.PIPE,
)
keeper.stdin.write(sys.argv[1].encode())
keeper.stdin.close()
print(keeper.pid, flush=True)
sys.stdin.read()
"""


def test_a_keeper_ends_with_its_parent(sqlite_site: Site) -> None:
    site = sqlite_site
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, site.settings.model_dump_json()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as parent:
        assert parent.stdout is not None
        keeper = int(parent.stdout.readline())
        wait_for(lambda: site.reader.refresh() and site.reader.heartbeat is not None)
        parent.kill()
    wait_for(lambda: KEEPER[-1] not in command_of(keeper))


def test_a_keeper_that_gets_many_signals_ends(sqlite_site: Site) -> None:
    site = sqlite_site
    # Many signals come when a parent with many threads is killed.
    for _ in range(5):
        began_s = time.time()
        with started(site.settings) as keeper:
            wait_for(lambda began_s=began_s: has_beaten_since(site, began_s))  # type: ignore[misc]
            for _ in range(1000):
                keeper.send_signal(signal.SIGTERM)
            # At its end Python removes its handlers, so a late signal may kill the process.
            assert keeper.wait(PATIENCE_S) in {0, -signal.SIGTERM}


def has_beaten_since(site: Site, moment_s: float) -> bool:
    site.reader.refresh()
    heartbeat = site.reader.heartbeat
    return heartbeat is not None and heartbeat.at_s > moment_s
