"""Pairs of applications in planted stores: a disturbing pair is found, and chance is not named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ioncast.warehouse.engine import asking
from ioncast.warehouse.pairs import DisturbingPair, pairs_of
from ioncast.warehouse.queries import query_of
from ioncast.warehouse.schema import SCHEMAS

HOUR_US = 3_600_000_000
NEW_YEAR_US = 1_767_225_600_000_000


def store(runs: Sequence[tuple[str, int, float, int | None]]) -> dict[str, pa.Table]:
    """Tables of runs: each a program, its hour, its bandwidth and its server."""
    jobs, servers, files = [], [], []
    for number, (program, hour, bandwidth, server) in enumerate(runs):
        log = f"{number:064x}"
        jobs.append(
            {
                "log": log,
                "system": "here",
                "job_id": number,
                "user_id": 1000,
                "program": program,
                "processes": 64,
                "start_us": NEW_YEAR_US + hour * HOUR_US,
                "month": "2026-01",
                "run_seconds": 60.0,
                "bandwidth_mib_s": bandwidth,
            }
        )
        files.append({"log": log, "file_system": "lustre"})
        if server is not None:
            servers.append({"log": log, "api": "POSIX", "server": server, "bytes": 1 << 30})
    rows = {"jobs": jobs, "file_servers": servers, "files": files}
    return {
        name: pa.Table.from_pylist(rows.get(name, []), schema=schema)
        for name, schema in SCHEMAS.items()
    }


def pairs(
    runs: Sequence[tuple[str, int, float, int | None]], program: str | None = None
) -> list[DisturbingPair]:
    query = query_of("run-places")
    given = {} if program is None else {"program": program}
    with asking(store(runs)) as ask:
        return pairs_of(ask(query, query.values(given)), program)


def planted(ratio: float, together: int = 10, apart: int = 10, **changes: Any) -> list[Any]:
    """Runs of A, slower by a ratio in the hours of B."""
    random = np.random.default_rng(5)
    server, other = changes.get("servers", (3, 3))
    runs = []
    for hour in range(together + apart):
        noise = float(np.exp(random.normal(0, 0.1)))
        runs.append(("a", hour, 1000 * noise / (ratio if hour < together else 1), server))
        b_hour = hour if hour < together else hour + 1000
        runs.append(("b", b_hour, 500 * float(np.exp(random.normal(0, 0.1))), other))
    return runs


def test_a_disturbing_pair_is_found_in_its_direction() -> None:
    found = pairs(planted(2.0))
    assert [(each.program, each.by_program) for each in found if each.is_disturbing] == [("a", "b")]
    [pair] = [each for each in found if each.is_disturbing]
    assert (pair.together, pair.apart, pair.places) == (10, 10, "server")
    assert pair.apart_mib_s / pair.together_mib_s == pytest.approx(2, rel=0.15)


@pytest.mark.parametrize(("together", "apart"), [(4, 20), (20, 4)])
def test_fewer_than_five_jobs_together_or_apart_are_not_tested(together: int, apart: int) -> None:
    assert not [each for each in pairs(planted(3.0, together, apart)) if each.program == "a"]


def test_jobs_on_different_servers_are_apart() -> None:
    assert pairs(planted(3.0, servers=(3, 4))) == []


def test_unknown_servers_leave_the_file_system_and_it_says_so() -> None:
    found = pairs(planted(3.0, servers=(None, 4)))
    assert [each.places for each in found if each.is_disturbing] == ["file system"]


def test_jobs_one_after_the_other_are_apart() -> None:
    runs = [
        (program, hour + (program == "b") * 100, 9.0, 1) for program in "ab" for hour in range(20)
    ]
    assert pairs(runs) == []


def test_a_program_without_a_pair_is_not_named() -> None:
    assert pairs(planted(2.0), "c") == []
    assert pairs(planted(2.0), "a") == pairs(planted(2.0))


@pytest.mark.parametrize("bandwidth", [float("nan"), float("inf"), 0.0, -1.0])
def test_impossible_bandwidths_do_not_count(bandwidth: float) -> None:
    assert pairs([*planted(2.0), ("a", 0, bandwidth, 3)]) == pairs(planted(2.0))


@pytest.mark.slow
def test_a_sure_pair_is_found_among_a_thousand() -> None:
    runs = [
        (f"p{number}", hour, 1000.0 + hour % 7, 3)
        for number in range(32)
        for hour in [*range(8), *range(100 + 10 * number, 108 + 10 * number)]
    ]
    sure = [("sure", hour, 10.0 if hour >= 0 else 1000.0, 3) for hour in range(-30, 8)]
    found = pairs([*runs, *sure])
    assert len(found) > 1000
    assert {each.program for each in found if each.is_disturbing} == {"sure"}


@pytest.mark.slow
def test_chance_names_at_most_two_of_a_hundred_stores() -> None:
    named = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        runs = [
            (program, int(random.integers(0, 60)), float(np.exp(random.normal(7, 0.5))), 0)
            for program in "abcd"
            for _ in range(30)
        ]
        named += any(each.is_disturbing for each in pairs(runs))
    assert named <= 2
