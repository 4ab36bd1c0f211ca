"""The verdict: its order, and the parts of the lost time."""

from __future__ import annotations

from dataclasses import replace
from math import log
from typing import Any, Literal

import pytest

from ioncast.diagnosis.diagnosing import History
from ioncast.diagnosis.server_evidence import ServerEvidence
from ioncast.diagnosis.stripes import Stripes
from ioncast.diagnosis.traced_delays import TracedDelays, UsualDelays
from ioncast.diagnosis.verdict import (
    IoTimes,
    RunFacts,
    Twins,
    UsualBandwidth,
    judge,
)
from tests.ioncast.diagnosis.test_normal import rows

MIB = 1 << 20
# 1,000 MiB at 10 MiB/s take 100 s; the usual 50 MiB/s would take 20 s.
SLOW = RunFacts(
    1000 * MIB,
    10.0,
    UsualBandwidth("history", 50.0, 40.0, 60.0, jobs=9),
    is_slow=True,
    twins=Twins(9, 9, 50.0),
)
FEW = Stripes(1, MIB, 8, 10.0, "too few")


def period(
    answer: Literal["busy", "not busy", "unknown"], seconds: float, reason: str | None = None
) -> ServerEvidence:
    return ServerEvidence(
        *("/f", "write", 0, 1, seconds, answer, reason, None, None, None, None, ())
    )


def verdict(**changes: Any) -> tuple[str, dict[str, float]]:
    """The verdict, and the seconds of each cause with the reason of unknown ones."""
    found = judge(replace(SLOW, **changes))
    parts = {part.reason or part.cause: round(part.seconds, 6) for part in found.parts}
    return found.verdict, parts


def test_without_a_usual_bandwidth_nothing_is_known() -> None:
    found = judge(replace(SLOW, usual=None, no_comparison="3 other jobs"))
    assert (found.verdict, found.reason, found.parts) == (
        "unknown",
        "no comparison: 3 other jobs",
        (),
    )


def test_a_run_that_is_not_slow_is_normal() -> None:
    assert verdict(is_slow=False, stripes=FEW) == ("normal", {})


def test_lost_time_without_evidence_is_unknown() -> None:
    assert verdict() == ("unknown", {"no samples of servers": 80})


@pytest.mark.parametrize(("twins_mib_s", "expected"), [(15.0, "configuration"), (15.1, "unknown")])
def test_stripes_explain_a_run_as_slow_as_others_with_them(
    twins_mib_s: float, expected: str
) -> None:
    found, parts = verdict(stripes=FEW, twins=Twins(4, 0, twins_mib_s))
    assert found == expected
    if found == "configuration":
        # With these stripes it usually takes 66.7 s, 46.7 s more than the usual 20 s.
        assert parts == {
            "configuration": pytest.approx(1000 / 15 - 20, abs=1e-5),
            "no samples of servers": pytest.approx(100 - 1000 / 15, abs=1e-5),
        }


def test_right_stripes_explain_nothing() -> None:
    right = replace(FEW, are_wrong=None)
    assert verdict(stripes=right, twins=Twins(4, 0, 12.0))[0] == "unknown"


def test_stripes_of_too_few_jobs_explain_nothing() -> None:
    assert verdict(stripes=FEW, twins=Twins(2, 0, None))[0] == "unknown"


@pytest.mark.parametrize(
    ("jobs", "slow", "expected"),
    [(5, 5, "application"), (5, 4, "unknown"), (4, 4, "unknown"), (5, None, "unknown")],
)
def test_an_application_that_is_always_slow_beside_its_prediction(
    jobs: int, slow: int | None, expected: str
) -> None:
    assert verdict(twins=Twins(jobs, 0, 10.0, slow))[0] == expected


def test_a_run_slower_than_its_slow_application_has_a_cause_of_its_own() -> None:
    # Five others at 50 MiB/s are slow beside their prediction, and this run got 10.
    servers = (period("busy", 1.0),)
    assert verdict(servers=servers, twins=Twins(5, 5, 50.0, 5))[0] == "system"


def test_trailing_writes_count_beyond_the_usual_ones() -> None:
    delays = TracedDelays(60.0, 8, 0.0, ())
    assert verdict(delays=delays) == (
        "application",
        {"trailing writes": 60, "no samples of servers": 20},
    )
    usual = UsualDelays(3, 30.0, 0.0)
    assert verdict(delays=delays, usual_delays=usual)[1]["trailing writes"] == 30


def test_causes_together_take_no_more_than_the_lost_time() -> None:
    delays = TracedDelays(60.0, 8, 1e9, (3,))
    assert verdict(delays=delays, servers=(period("busy", 5.0),)) == (
        "application",
        {"trailing writes": 60, "stragglers": 20},
    )


def test_busy_servers_take_their_share_of_the_lost_time() -> None:
    servers = (period("busy", 75.0), period("not busy", 15.0), period("unknown", 10.0, "clock"))
    assert verdict(servers=servers) == (
        "system",
        {"system": 60, "servers not busy": 12, "clock": 8},
    )


def test_a_cause_of_less_than_half_is_no_verdict() -> None:
    servers = (period("busy", 45.0), period("not busy", 55.0))
    found = judge(replace(SLOW, servers=servers))
    assert (found.verdict, found.reason) == ("unknown", "servers not busy")
    delays = TracedDelays(30.0, 8, 0.0, ())
    servers = (period("busy", 60.0), period("not busy", 40.0))
    found = judge(replace(SLOW, servers=servers, delays=delays))
    assert (found.verdict, found.reason) == ("unknown", "several causes")


def test_busy_servers_are_no_cause_without_normal_runs() -> None:
    found = judge(replace(SLOW, servers=(period("busy", 1.0),), twins=Twins(9, 2, 50.0)))
    assert found.verdict == "unknown"
    assert found.reason == "too few normal runs with the same stripes"


def test_evidence_from_servers_widens_the_noise_of_an_outcome_by_its_share() -> None:
    servers = (period("busy", 75.0), period("not busy", 25.0))
    assert judge(replace(SLOW, servers=servers)).outcome_scatter(5.0) == pytest.approx(
        0.75 * log(5) / 3
    )
    assert judge(SLOW).outcome_scatter(5.0) == 0


@pytest.mark.parametrize(
    ("metadata", "data", "expected"),
    [
        (2.1, 2.1, "metadata and data"),
        (2.1, 2.0, "metadata"),
        (2.0, 2.1, "data"),
        (2.0, 2.0, "neither"),
    ],
)
def test_the_class_of_a_slow_run(metadata: float, data: float, expected: str) -> None:
    times = IoTimes(metadata, data, 1.0, 1.0)
    assert times.slow_class == expected


def test_unknown_times_have_no_class() -> None:
    assert IoTimes(1.0, 9.0, None, 0.0).slow_class == "neither"
    assert IoTimes(1.0, 3.0).metadata_share == 0.25
    assert IoTimes(0.0, 0.0).metadata_share is None


@pytest.mark.parametrize(
    ("mib_s", "p10", "expected"),
    [(10.0, 15.0, True), (10.0, 9.0, False), (21.0, 30.0, False), (None, 0.0, False)],
)
def test_a_short_history_is_compared_with_the_prediction(
    mib_s: float | None, p10: float, expected: bool
) -> None:
    history = History(rows([{"bandwidth_mib_s": mib_s}] * 3))
    predicted = UsualBandwidth("prediction", 40.0, p10, 60.0)
    found = history.diagnose("0" * 64, predicted=predicted)
    assert found.facts.is_slow == expected
    assert found.judgement.verdict == ("unknown" if expected or mib_s is None else "normal")
