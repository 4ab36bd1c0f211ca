"""The gain of decisions: by hand, on simulated sites, and beside reruns that it did not see."""

from __future__ import annotations

import csv
import math
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from statistics import fmean

import pytest

from benchdb.store.database import opened_database, transaction
from benchdb.store.system_changes import SystemChange
from ioncast.service.monitoring.gain import Gain, gains
from ioncast.service.store.applications import Application
from ioncast.service.store.decisions import DecisionRow
from ioncast.service.store.outcomes import JoinedOutcome, joined_outcomes
from ioncast.service.store.same_run import Outcome

APPLICATIONS = Path(__file__).resolve().parents[4] / "experiments/data/testbed/applications.csv"
DAY = "2026-11-21T12:00:00.000000+00:00"
_numbers = count(1)


def job(
    got_mib_s: float, io_nodes: int, curve: dict[int, float], application: int, **decided: object
) -> JoinedOutcome:
    number = next(_numbers)
    points = tuple((n, mean, 0.8 * mean, 1.2 * mean) for n, mean in curve.items())
    decision = DecisionRow(
        id=str(number),
        asked_at=DAY,
        system="here",
        user="ada",
        executable=f"/opt/{application}",
        name=None,
        job_id=None,
        nodes=8,
        tasks=16,
        available=None,
        io_nodes=io_nodes,
        source="history",
        expected_mib_s=curve.get(io_nodes),
        confidence=0.9,
        application_id=application,
        why="it ran before",
        curve=points,
    )
    outcome = Outcome(number, "here", f"j{number}", DAY, None, None, io_nodes, got_mib_s, DAY)
    owner = Application(application, "here", f"/opt/{application}", str(application), "ada")
    return JoinedOutcome(outcome, replace(decision, **decided), owner, None, 16)


def direct(_system: str) -> int:
    return 0


def test_the_gain_of_two_applications_is_as_by_hand() -> None:
    curve = {0: 60.0, 4: 100.0}
    rows = [job(80, 4, curve, 1), job(125, 4, curve, 1), job(50, 0, curve, 1)]
    # No run of application 2 had the default: the decision's prediction of 50 MiB/s counts.
    rows.append(job(100, 4, {0: 50.0, 4: 90.0}, 2))
    [found] = gains(rows, direct)
    assert (found.default, found.jobs, found.measured, found.applications) == (0, 4, 3, 2)
    # The ratios are 1.6, 2.5, 1 and 2; their product is 8.
    assert found.ratio == pytest.approx(8**0.25)
    # Each application is 0.17329 from its share of the mean; t is 3.0777 with one degree.
    half = 3.0777 * math.sqrt(2 * 2 * 0.17329**2) / 4
    assert (found.p10, found.p90) == pytest.approx(
        (8**0.25 / math.exp(half), 8**0.25 * math.exp(half)), rel=1e-4
    )


def test_runs_with_the_default_that_scatter_are_no_gain() -> None:
    """Of numbers that scatter alike, the arithmetic mean is larger than the geometric one."""
    curve = {0: 60.0, 4: 100.0}
    rows = [
        job(mib_s, io_nodes, curve, number)
        for number in (1, 2)
        for io_nodes in (0, 4)
        for mib_s in (40.0, 90.0)
    ]
    [found] = gains(rows, direct)
    assert found.ratio == pytest.approx(1.0)


def test_jobs_that_tell_nothing_do_not_count() -> None:
    curve = {0: 50.0, 4: 90.0}
    rows = [job(100, 4, curve, number) for number in (1, 2)]
    [alone] = gains(rows, direct)
    change = SystemChange("here", "2026-11-22T00:00:00.000000+00:00", "new disks", DAY)
    silent = [
        job(100, 4, curve, 3, source="default"),
        job(100, 4, {4: 90.0}, 3),
        job(9e5, 4, curve, 3),
        replace(job(100, 4, curve, 3), decision=None),
        replace(job(100, 4, curve, 3), application=None),
        replace(job(100, 4, curve, 3), change=change),
    ]
    assert gains([*rows, *silent], direct) == (alone,)


def test_one_application_says_nothing_about_a_system() -> None:
    assert gains([job(100, 4, {0: 50.0, 4: 90.0}, 1) for _ in range(50)], direct) == ()


def test_a_site_without_a_default_leaves_jobs_direct_access() -> None:
    rows = [job(100, 4, {0: 50.0, 4: 90.0}, number) for number in (1, 2)]
    assert gains(rows, lambda _: None) == gains(rows, direct)


@pytest.mark.slow
def test_four_fifths_of_the_intervals_hold_the_gain_of_all_applications() -> None:
    """Applications gain 20 % on average, a tenth more or less; single runs scatter by 15 %."""
    numbers = random.Random(7)

    def site() -> Iterator[JoinedOutcome]:
        for application in range(8):
            gain = math.log(1.2) + numbers.gauss(0, 0.1)
            for _ in range(12):
                got = 50 * math.exp(gain + numbers.gauss(0, 0.15))
                yield job(got, 4, {0: 50.0, 4: 60.0}, application)

    held = 0
    for _ in range(300):
        [found] = gains(site(), direct)
        held += found.p10 <= 1.2 <= found.p90
    assert 0.75 <= held / 300 <= 0.85


def test_the_gain_of_the_demonstration_is_that_of_reruns_that_it_did_not_see(
    demo_on_sqlite: Path,
) -> None:
    """Without jobs that had direct access, the gain rests on predictions; the reruns had it."""
    measured: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    with APPLICATIONS.open(encoding="utf-8") as file:
        for run in csv.DictReader(file):
            measured[run["name"]][int(run["io_nodes"])].append(float(run["bandwidth_mib_s"]))
    with (
        opened_database(str(demo_on_sqlite)) as database,
        transaction(database) as connection,
    ):
        rows = [row for row in joined_outcomes(connection) if row.outcome.io_nodes]
    ratios = [
        row.outcome.bandwidth_mib_s / fmean(measured[row.outcome.job_id.rsplit("-", 2)[0]][0])
        for row in rows
    ]
    [found] = gains(rows, direct)
    assert isinstance(found, Gain)
    assert (found.jobs, found.measured, found.applications) == (len(ratios), 0, 3)
    assert found.p10 <= math.exp(fmean(map(math.log, ratios))) <= found.p90
