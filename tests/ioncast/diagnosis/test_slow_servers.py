"""Slow servers: planted ones and a genuine one are named, and chance is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ioncast.diagnosis.diagnosing import History
from ioncast.diagnosis.slow_servers import SlowServer
from ioncast.warehouse.copies import unique_tables_of
from ioncast.warehouse.engine import asking
from ioncast.warehouse.queries import query_of
from summario.reading.sources import find_sources
from tests.ioncast.diagnosis.test_normal import GIB, rows

PLACES = {
    "log": pa.string(),
    "kind": pa.string(),
    "server": pa.int64(),
    "file": pa.string(),
    "moved_bytes": pa.int64(),
    "seconds": pa.float64(),
}
Place = Mapping[str, Any]


def slow(runs: Sequence[Mapping[str, Any]], places: Sequence[Place]) -> list[SlowServer]:
    table = pa.Table.from_pylist(list(places), schema=pa.schema(list(PLACES.items())))
    return History(rows(runs)).slow_servers(table)


def month(
    random: np.random.Generator,
    *,
    jobs: int = 150,
    stripes: int = 4,
    osts: int = 24,
    sick: int = -1,
    ratio: float = 1.0,
) -> list[SlowServer]:
    """Jobs of five variants with a shared file on some OSTs, and weather from day to day."""
    runs, places = [], []
    weather = np.cumsum(random.normal(0, 0.05, 30))
    for number in range(jobs):
        on = random.choice(osts, stripes, replace=False).tolist()
        # A job waits for its slowest server.
        slower = ratio if sick in on else 1.0
        day = int(random.integers(30))
        noise = random.standard_t(4) * 0.2
        mib_s = 1000 * float(np.exp(noise + weather[day])) / slower
        runs.append(
            {"bandwidth_mib_s": mib_s, "program": f"p{number % 5}", "start_us": day * 10**11}
        )
        for ost in on:
            places.append(
                {
                    "log": f"{number:064x}",
                    "kind": "OST",
                    "server": ost,
                    "file": "f",
                    "moved_bytes": GIB,
                    "seconds": 1024 / mib_s,
                }
            )
    return slow(runs, places)


def of_log(path: Path) -> list[SlowServer]:
    tables = unique_tables_of(find_sources([str(path)]), system="here", findings=False)
    with asking(tables) as ask:
        queries = query_of("variant-runs"), query_of("files-on-servers")
        runs, places = (ask(query, query.values({})) for query in queries)
    return History(runs).slow_servers(places)


@pytest.fixture
def logs() -> Path:
    """PyDarshan's folder, which has the two logs."""
    darshan = pytest.importorskip("darshan", reason="PyDarshan has no wheel for this Python")
    return Path(darshan.__file__).parent


def test_the_bad_ost_of_a_genuine_log_is_the_only_one(logs: Path) -> None:
    [found] = of_log(logs / "tests/input/sample-badost.darshan")
    assert (found.system, found.kind, found.server) == ("here", "OST", 14)
    assert (found.units, found.here, found.elsewhere) == ("files", 85, 1963)
    # Its files take 275 to 778 s and others 11 s.
    assert 275 / 11 < found.ratio < 778 / 11


def test_good_osts_of_a_genuine_log_are_not_named(logs: Path) -> None:
    assert of_log(logs / "tests/input/sample-goodost.darshan") == []


@pytest.mark.parametrize("seed", range(5))
def test_a_planted_slow_ost_is_the_only_one(seed: int) -> None:
    found = month(np.random.default_rng(seed), sick=7, ratio=3.0)
    assert [(each.server, each.units) for each in found] == [(7, "jobs")]
    assert found[0].ratio == pytest.approx(3, rel=0.35)


@pytest.mark.slow
def test_at_most_one_server_is_named_in_100_clean_months() -> None:
    named = [each for seed in range(100) for each in month(np.random.default_rng(1000 + seed))]
    assert len(named) <= 1


def test_a_slightly_slower_server_is_not_named() -> None:
    assert month(np.random.default_rng(3), jobs=2000, sick=7, ratio=1.3) == []


def test_a_slow_job_with_many_files_counts_once() -> None:
    """One of 20 jobs is ten times as slow, and has 500 files on OST 3."""
    random = np.random.default_rng(4)
    runs, places = [], []
    for number in range(20):
        is_slow = number == 0
        runs.append({"bandwidth_mib_s": 100.0 if is_slow else 1000.0})
        for file in range(500 if is_slow else 5):
            places.append(
                {
                    "log": f"{number:064x}",
                    "kind": "OST",
                    "server": 3 if is_slow else int(random.integers(8)),
                    "file": f"{file}",
                    "moved_bytes": GIB,
                    "seconds": float(random.uniform(9, 11)) * (10 if is_slow else 1),
                }
            )
    assert slow(runs, places) == []


def test_files_in_one_job_tell_a_slow_server_whatever_the_weather() -> None:
    """Each of 20 jobs has a file on each OST; jobs differ by a factor of ten, and OST 3 by two."""
    random = np.random.default_rng(5)
    runs, places = [], []
    for number in range(20):
        seconds = 10 ** float(random.uniform(0, 1))
        runs.append({"bandwidth_mib_s": 1000 / seconds})
        for ost in range(8):
            took = seconds * float(random.uniform(0.9, 1.1)) * (2 if ost == 3 else 1)
            place = {"log": f"{number:064x}", "kind": "OST", "server": ost, "file": f"{ost}"}
            places.append({**place, "moved_bytes": GIB, "seconds": took})
    [found] = slow(runs, places)
    assert (found.server, found.here, found.elsewhere) == (3, 20, 20)
    assert found.ratio == pytest.approx(2, rel=0.2)


def test_a_slow_io_node_is_named_by_its_jobs() -> None:
    random = np.random.default_rng(6)
    runs, places = [], []
    for number in range(60):
        node = number % 6
        slower = 4 if node == 5 else 1
        runs.append({"bandwidth_mib_s": float(random.uniform(900, 1100)) / slower})
        places.append({"log": f"{number:064x}", "kind": "ION", "server": node})
    [found] = slow(runs, places)
    assert (found.kind, found.server, found.here, found.elsewhere) == ("ION", 5, 10, 50)
    assert found.ratio == pytest.approx(4, rel=0.2)


@pytest.mark.parametrize("here", [4, 56])
def test_fewer_than_five_jobs_here_or_elsewhere_are_no_proof(here: int) -> None:
    runs = [{"bandwidth_mib_s": 1.0 if n < 4 else 100.0 + n} for n in range(60)]
    places = [
        {"log": f"{n:064x}", "kind": "ION", "server": 1 if n < here else 2} for n in range(60)
    ]
    assert slow(runs, places) == []


def test_no_places_are_no_servers() -> None:
    assert slow([], []) == []
    assert slow([{"bandwidth_mib_s": 1.0}], []) == []


def test_few_jobs_on_many_other_nodes_are_no_proof() -> None:
    """Two jobs use eight I/O nodes each: that is no more proof than two jobs."""
    runs = [{"bandwidth_mib_s": 100.0 + n} for n in range(8)]
    runs += [{"bandwidth_mib_s": 1000.0 + n} for n in range(2)]
    places = [{"log": f"{n:064x}", "kind": "ION", "server": 0} for n in range(8)]
    places += [
        {"log": f"{n:064x}", "kind": "ION", "server": node} for n in (8, 9) for node in range(1, 9)
    ]
    assert slow(runs, places) == []
