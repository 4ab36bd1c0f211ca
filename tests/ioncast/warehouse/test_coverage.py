"""The I/O of jobs by its match with benchmarks, counted by hand, and as `predict` matches it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchdb.measurements.curves import Curve
from ioncast.warehouse.coverage import coverage_of, jobs_of
from ioncast.warehouse.engine import asking
from ioncast.warehouse.queries import query_of
from ioncast.warehouse.rows import tables_of
from ior_configs import IorConfig
from predictor.curve.asking import RUN_MODULES
from predictor.matching.configurations import Match, configuration
from summario.phases.extract import extract_run
from summario.phases.values import Extraction, Part, Phase
from summario.reading.sources import find_sources
from summario.runs.given_run import run_of_files
from summario.runs.hosts import job_nodes
from tests.predictor.planning.test_needs import BENCHMARKS, LOGS, PLATFORM
from tests.support.command import run_ioncast

PROJECT = Path(__file__).resolve().parents[3]
FIXTURES = PROJECT / "tests" / "summario" / "fixtures"
MIB = 1 << 20
# In 4 seconds 4 processes write 12 MiB to a file each: 8 MiB in requests of 1 MiB, the rest in
# requests of 256 KiB.
PHASE = Phase(
    *(1, 0.0, 5.0, "write", None, 4, 4, 12 * MIB, 4.0, "POSIX", 24, "contiguous", "unique", 4, 1),
    parts=(Part(8, 8 * MIB), Part(16, 4 * MIB)),
    fsync="none",
    order="contiguous",
)


def match_of(*measured: IorConfig) -> Any:
    """A function that finds only these configurations, and counts how often it is asked."""

    def match(wanted: IorConfig) -> Match:
        match.asked.append(wanted)  # type: ignore[attr-defined]
        curve = Curve(1, wanted, "ior", {0: (100.0,)})
        return Match("exact", wanted, curve) if wanted in measured else Match("unknown", wanted)

    match.asked = []  # type: ignore[attr-defined]
    return match


def test_bytes_and_seconds_are_those_of_each_part_and_patterns_are_matched_once() -> None:
    large, small = (configuration(PHASE, part) for part in PHASE.parts)
    match = match_of(large)
    # Twice in one job, once in another one.
    found = coverage_of([Extraction((PHASE, PHASE)), Extraction((PHASE,))], match)
    rows = {row["match"]: row for row in found.predicted}
    assert [row["bytes"] for row in found.predicted] == [24 * MIB, 0, 0, 12 * MIB]
    assert rows["exact"]["bytes_share"] == pytest.approx(2 / 3)
    assert rows["exact"]["io_seconds"] == pytest.approx(3 * 4.0 * 2 / 3)
    [missing] = found.missing
    assert missing["configuration"] == small.command_line(launcher=True)
    assert (missing["bytes"], missing["jobs"]) == (12 * MIB, 2)
    assert sorted(match.asked, key=str) == sorted({large, small}, key=str)


def test_a_phase_without_requests_is_unknown_and_needs_no_benchmark() -> None:
    phase = replace(PHASE, parts=(), requests=0)
    found = coverage_of([Extraction((phase,))], match_of())
    assert [row["bytes"] for row in found.predicted] == [0, 0, 0, 12 * MIB]
    assert found.missing == ()


def test_jobs_without_io_have_no_shares() -> None:
    found = coverage_of([], match_of())
    assert {row["bytes_share"] for row in found.predicted} == {None}


@pytest.mark.slow
@pytest.mark.parametrize("folder", [FIXTURES / "ior", LOGS])
def test_phases_of_tables_are_those_of_the_logs(folder: Path) -> None:
    query = query_of("phases")
    logs = sorted(folder.glob("*.darshan"))
    tables = tables_of(find_sources(list(map(str, logs))))
    with asking(tables) as ask:
        found = list(jobs_of(ask(query, query.values({})).to_pylist()))
    expected = [extract_run(run_of_files([str(log)], "steps", RUN_MODULES)) for log in logs]
    assert {job.phases: job.nodes for job in found} == {
        job.phases: job_nodes(None, job.nodes) for job in expected if job.phases
    }


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("measured") / "bench.sqlite"
    options = ("--system", "testbed", "--tasks", "16", "--nodes", "8", "--db", file)
    done = run_ioncast("bench", "import", BENCHMARKS, *options)
    assert done.returncode == 0, done.stderr
    return file


@pytest.mark.slow
def test_the_survey_tells_the_predicted_share_and_the_largest_patterns(database: Path) -> None:
    options = ("--system", "testbed", "--db", database)
    done = run_ioncast("survey", LOGS, *options, "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    # Every byte of the jobs is in a phase.
    [totals] = found["totals"]
    moved = totals["read_bytes"] + totals["written_bytes"]
    assert sum(row["bytes"] for row in found["predicted"]) == moved
    assert sum(row["bytes_share"] for row in found["predicted"]) == pytest.approx(1)
    commands = [row["configuration"] for row in found["missing_by_bytes"]]
    # HACC-IO writes without an fsync; the benchmarks wrote with one at the end.
    assert commands[0] == "mpiexec -n 16 ior -a POSIX -w -F -b 24m -t 24m"
    for key, name in (("missing_by_bytes", "bytes"), ("missing_by_io", "io_seconds")):
        values = [row[name] for row in found[key]]
        assert values == sorted(values, reverse=True)


@pytest.mark.slow
def test_the_campaign_is_that_of_campaign_plan(database: Path, tmp_path: Path) -> None:
    platform, needed, planned = (tmp_path / name for name in ("p.toml", "n.toml", "c.toml"))
    platform.write_text(PLATFORM)
    page = tmp_path / "survey.html"
    options = ("--system", "testbed", "--db", database, "--platform", platform)
    done = run_ioncast("survey", LOGS, *options, "--campaign", needed, "--html", page)
    assert done.returncode == 0, done.stderr
    assert "Predictions and benchmarks" in page.read_text("utf-8")
    options = ("--platform", platform, "--db", database, "--output", planned)
    done = run_ioncast("campaign", "plan", "--from-logs", LOGS, *options)
    assert done.returncode == 0, done.stderr
    assert needed.read_text() == planned.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--db", "DB"), "--db: the measurements are of a system; give --system"),
        (("--db", "DB", "--system", "no"), "nothing was measured on 'no'"),
        (("--campaign", "needed.toml"), "a campaign needs measurements and a platform; give"),
        (("--platform", "PLATFORM"), "a campaign needs measurements and a platform; give"),
        (
            ("--db", "DB", "--system", "no", "--platform", "PLATFORM", "--campaign", "needed.toml"),
            "the platform is 'testbed', the survey is of 'no'; give its --system",
        ),
    ],
)
def test_an_error_is_one_line(
    database: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    platform = tmp_path / "platform.toml"
    platform.write_text(PLATFORM)
    places = {"DB": str(database), "PLATFORM": str(platform)}
    log = next(LOGS.glob("*.darshan"))
    done = run_ioncast("survey", log, *(places.get(word, word) for word in words), folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "needed.toml").exists()
