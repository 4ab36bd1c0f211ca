"""Planted causes of a made-up centre are named, and nothing else is blamed."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from ioncast.diagnosis.diagnosing import Diagnosis, History
from ioncast.diagnosis.diagnosis_texts import evidence_lines
from ioncast.warehouse.engine import asking
from ioncast.warehouse.queries import query_of
from tests.support.centre import VERDICTS, Centre, CentreRun, harrington, large

Found = list[tuple[CentreRun, Diagnosis]]


def diagnosed(centre: Centre) -> Found:
    query = query_of("variant-runs")
    with asking(centre.tables()) as ask:
        history = History(ask(query, query.values({})))
        return [
            (
                run,
                history.diagnose(run.log, ask_run=ask, ask_others=ask, evidence=centre.servers_of),
            )
            for run in centre.runs
        ]


@cache
def of_harrington() -> Found:
    return diagnosed(harrington())


@cache
def of_large() -> Found:
    return diagnosed(large())


def test_the_79_runs_have_the_properties_of_the_source() -> None:
    found = of_harrington()
    above = [each for _, each in found if (each.facts.times.metadata_share or 0) > 0.23]
    assert len(above) == 8
    assert all(each.facts.is_slow for each in above)
    worst = max((each for _, each in found), key=lambda each: each.facts.slowdown or 0)
    assert worst.facts.slowdown == pytest.approx(40, rel=0.25)
    assert worst.facts.times.slow_class == "metadata and data"
    wrong = Counter(
        each.facts.stripes.are_wrong
        for _, each in found
        if each.facts.is_slow and each.facts.stripes
    )
    assert wrong == {"too few": 4, "too many": 4, None: 8}


def test_each_of_the_79_runs_has_its_verdict() -> None:
    assert [each.judgement.verdict for _, each in of_harrington()] == [
        VERDICTS[run.planted] for run, _ in of_harrington()
    ]


@pytest.mark.slow
def test_nine_of_ten_planted_causes_are_named() -> None:
    planted = [
        VERDICTS[run.planted] == each.judgement.verdict
        for run, each in of_large()
        if VERDICTS[run.planted] in ("configuration", "application", "system")
    ]
    assert len(planted) > 80
    assert sum(planted) >= 0.9 * len(planted)


@pytest.mark.slow
def test_slow_runs_with_idle_servers_are_seldom_blamed_on_the_system() -> None:
    verdicts = Counter(
        each.judgement.verdict for run, each in of_large() if run.planted == "idle servers"
    )
    assert verdicts.total() >= 20
    assert verdicts["system"] <= 0.05 * verdicts.total()


@pytest.mark.slow
def test_nobody_is_blamed_for_runs_without_a_planted_cause() -> None:
    verdicts = Counter(each.judgement.verdict for run, each in of_large() if not run.planted)
    assert verdicts.total() > 1000
    assert not {"system", "application", "configuration"} & verdicts.keys()


@pytest.mark.slow
def test_coarse_samples_leave_the_cause_unknown() -> None:
    reasons = {each.judgement.reason for run, each in of_large() if run.planted == "coarse samples"}
    assert reasons == {"too coarse"}


@pytest.mark.slow
def test_the_parts_are_the_lost_time() -> None:
    for _, each in of_large():
        if each.judgement.parts:
            parts = sum(part.seconds for part in each.judgement.parts)
            assert parts == pytest.approx(each.facts.lost_seconds)
            assert evidence_lines(each)[-1].startswith("Of the lost time: ")
