"""Evidence from servers widens the noise of a slow run, so that it teaches less."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from benchdb.store.database import opened_database
from ioncast.service.background import evidence_step
from ioncast.service.background.evidence_step import EvidenceStep
from ioncast.service.settings import Settings
from ioncast.service.store.runs import StoredRun, run_of
from ioncast_base.clock import ClockCheck
from tests.ioncast.service.background.test_process import Site
from tests.support.busy_store import SLOW_JOB, SLOWDOWN, log_of, put_busy_store

APP = "/opt/app"
# A third of the logarithm of the slowdown: all of it is the servers'.
SCATTER = math.log(SLOWDOWN) / 3
WEEK_S = 7 * 86_400


@pytest.fixture
def site(settings: Settings) -> Iterator[Site]:
    made = Site(settings)
    yield made
    made.keeper.close()
    made.reader.close()


@pytest.fixture
def opened(settings: Settings) -> Iterator[Engine]:
    with opened_database(settings.database) as database:
        yield database


def step_of(settings: Settings, database: Engine, store: Path) -> EvidenceStep:
    return EvidenceStep(settings.model_copy(update={"store": str(store)}), database)


def put_slow_run(site: Site, job: int = SLOW_JOB) -> StoredRun:
    told = {"executable": APP, "io_nodes": 4, "bandwidth_mib_s": 97.0 / SLOWDOWN}
    return site.run(logs=[log_of(job)], started="2026-11-02T00:00:00+00:00", **told)


def scatter_of(site: Site, run: StoredRun) -> float:
    found: StoredRun = site.read(run_of, run.application.id, run.id)
    return found.outcome_scatter


def expected(site: Site) -> float:
    site.seconds()
    found = site.ask(executable=APP)
    assert found is not None
    points = [found, *found["alternatives"]]
    return {each["io_nodes"]: float(each["expected_mib_s"]) for each in points}[4]


@pytest.mark.slow
def test_a_slow_run_with_busy_servers_moves_the_expectation_less(
    site: Site, settings: Settings, opened: Engine, tmp_path: Path
) -> None:
    put_busy_store(tmp_path / "store")
    site.measure()
    for _ in range(3):
        site.run(executable=APP, io_nodes=4, bandwidth_mib_s=97.0)
    before = expected(site)
    run = put_slow_run(site)
    without = expected(site)
    step_of(settings, opened, tmp_path / "store").ask(site.now_s)
    assert scatter_of(site, run) == pytest.approx(SCATTER)
    with_evidence = expected(site)
    assert without < with_evidence < before
    # It still counts.
    assert before - with_evidence > 0.02 * (before - without)


def test_a_slow_run_without_samples_keeps_its_noise(
    site: Site, settings: Settings, opened: Engine, tmp_path: Path
) -> None:
    put_busy_store(tmp_path / "store", with_samples=False)
    run = put_slow_run(site)
    step_of(settings, opened, tmp_path / "store").ask(site.now_s)
    assert scatter_of(site, run) == 0


def test_runs_that_are_usual_old_or_unknown_keep_their_noise(
    site: Site, settings: Settings, opened: Engine, tmp_path: Path
) -> None:
    put_busy_store(tmp_path / "store")
    usual, unknown = put_slow_run(site, SLOW_JOB - 1), put_slow_run(site, 5)
    old = put_slow_run(site)
    step = step_of(settings, opened, tmp_path / "store")
    step.ask(time.time() + 52 * WEEK_S)
    assert scatter_of(site, old) == 0
    step.ask(site.now_s)
    assert [scatter_of(site, run) for run in (usual, unknown)] == [0, 0]
    assert scatter_of(site, old) == pytest.approx(SCATTER)


def test_samples_that_come_later_count(
    site: Site, settings: Settings, opened: Engine, tmp_path: Path
) -> None:
    step, run = step_of(settings, opened, tmp_path / "store"), put_slow_run(site)
    step.ask(site.now_s)
    assert scatter_of(site, run) == 0
    put_busy_store(tmp_path / "store")
    step.ask(site.now_s)
    assert scatter_of(site, run) == pytest.approx(SCATTER)


def test_a_log_is_looked_up_once(
    site: Site,
    settings: Settings,
    opened: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put_busy_store(tmp_path / "store")
    step, _ = step_of(settings, opened, tmp_path / "store"), put_slow_run(site)
    asked: list[set[str]] = []
    scatters = step._scatters
    monkeypatch.setattr(
        step, "_scatters", lambda *words: asked.append(words[-1]) or scatters(*words)
    )
    step.ask(site.now_s)
    step.ask(site.now_s)
    put_slow_run(site, SLOW_JOB - 1)
    step.ask(site.now_s)
    assert asked == [{log_of(SLOW_JOB)}, {log_of(SLOW_JOB - 1)}]


def test_a_store_that_cannot_be_asked_is_told(
    site: Site,
    settings: Settings,
    opened: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    put_busy_store(tmp_path / "store")
    run = put_slow_run(site)
    monkeypatch.setattr(evidence_step, "_MOST_ROWS", 3)
    step_of(settings, opened, tmp_path / "store").ask(site.now_s)
    assert scatter_of(site, run) == 0
    assert "no evidence from servers about runs of 'app'" in caplog.text


def test_the_store_is_asked_once_a_minute_in_a_thread(
    site: Site, settings: Settings, opened: Engine, tmp_path: Path
) -> None:
    put_busy_store(tmp_path / "store")
    step, run = step_of(settings, opened, tmp_path / "store"), put_slow_run(site)
    clock = ClockCheck.begin(site.now_s, 1000.0)
    step.step(clock)
    first = step._thread
    assert first is not None
    first.join()
    assert scatter_of(site, run) == pytest.approx(SCATTER)
    step.step(clock.step(site.now_s + 30, 1030.0))
    assert step._thread is first
    step.step(clock.step(site.now_s + 60, 1060.0))
    assert step._thread is not first
    step._thread.join()
