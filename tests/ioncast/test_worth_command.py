"""`ioncast worth`: from a store, benchmarks and the output of sacct to the worth of a pool."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest

from experiments.shipped import TESTBED
from tests.support.command import run_ioncast

pytestmark = pytest.mark.slow

# Of experiments/data/testbed: job numbers, names and starts as `darshan-parser` prints them.
HEADER = "JobID|JobIDRaw|User|JobName|Submit|Start|End|NNodes|AllocCPUS|Timelimit"
Ask = Callable[..., str]


def line(number: str, raw: int, start: float, seconds: float, name: str = "run") -> str:
    def moment(at: float) -> str:
        return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")

    ends = "|".join(moment(at) for at in (start - 30, start, start + seconds))
    return f"{number}|{raw}|ada|{name}|{ends}|8|16|00:10:00"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of the shipped logs with direct access, their benchmarks, and their jobs."""
    made = tmp_path_factory.mktemp("worth")
    logs = [str(path) for path in TESTBED.glob("logs/*ionodes0.darshan")]
    for words in (
        ["ingest", *logs, "--system", "testbed", "--store", made / "store"],
        [
            *("bench", "import", TESTBED / "benchmarks.csv", "--system", "testbed"),
            *("--db", made / "bench.sqlite"),
        ],
    ):
        done = run_ioncast(*words)
        assert done.returncode == 0, done.stderr
    text = "select job_id, start_us, run_seconds from jobs order by job_id"
    done = run_ioncast("sql", made / "store", "--text", text, "--format", "json")
    rows = json.loads(done.stdout)
    jobs = [
        line(f"900_{place}", row["job_id"], row["start_us"] / 1e6, row["run_seconds"] + 100)
        for place, row in enumerate(rows)
    ]
    jobs.append(line("77", 77, rows[0]["start_us"] / 1e6, 3600, "other"))
    (made / "queue.txt").write_text("\n".join((HEADER, *jobs)))
    return made


@pytest.fixture
def ask(folder: Path) -> Ask:
    def asked(*more: str | Path, code: int = 0, system: str = "testbed") -> str:
        done = run_ioncast(
            *("worth", "--store", folder / "store", "--jobs", folder / "queue.txt"),
            *("--db", folder / "bench.sqlite", "--system", system, *more),
        )
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    return asked


def test_the_jobs_of_a_store_are_replayed_with_each_pool(ask: Ask) -> None:
    found = json.loads(ask("--pool", "4,8", "--format", "json"))
    assert (found["jobs"], found["unit"], found["ran_with"]) == (4, "core-hours", 0)
    assert {(arm["pool"], arm["arm"]) for arm in found["arms"]} == {
        (pool, arm) for pool in (4, 8) for arm in ("direct", "static", "ioncast", "best")
    }
    # Array jobs are found by their raw numbers; the job without a log has 16 of all core-hours.
    [unknown] = found["unknown"]
    assert (unknown["application"], unknown["jobs"]) == ("ada other", 1)
    assert unknown["hours"] == pytest.approx(16)
    assert found["unknown_share"] == pytest.approx(16 / found["hours"])


def test_tables_and_pages_show_the_same(ask: Ask, tmp_path: Path) -> None:
    text = ask("--pool", "4", "--html", tmp_path / "worth.html")
    assert "I/O nodes" in text.splitlines()[0]
    assert "ada other" in text
    page = (tmp_path / "worth.html").read_text()
    assert page.count("<figure>") == 3
    assert "ada other" in page
    rows = list(csv.DictReader(io.StringIO(ask("--pool", "4", "--format", "csv"))))
    assert [row["arm"] for row in rows] == ["direct", "static", "ioncast", "best"]
    assert float(rows[0]["saved_hours"]) == 0


def test_curves_of_another_system_are_an_assumption_in_the_first_line(
    folder: Path, tmp_path: Path
) -> None:
    logs = str(TESTBED / "logs/hacc-io-ionodes0.darshan")
    store = tmp_path / "store"
    assert run_ioncast("ingest", logs, "--system", "here", "--store", store).returncode == 0
    done = run_ioncast(
        *("worth", "--store", store, "--jobs", folder / "queue.txt", "--system", "here"),
        *("--db", folder / "bench.sqlite", "--pool", "8", "--curves-of", "testbed"),
    )
    assert done.returncode == 0, done.stderr
    first = done.stdout.splitlines()[0]
    assert first == "Assumption: I/O nodes on here would do what they do on testbed."


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--pool", "x"], "is not a list of numbers such as 4,8,16"),
        (["--pool", "0,4"], "a pool of 0 is direct access"),
        (["--pool", "4", "--nodes", "2"], "a job of the queue has 8 nodes"),
        (["--pool", "4", "--curves-of", "elsewhere"], "nothing was measured on 'elsewhere'"),
    ],
)
def test_a_mistake_is_one_clear_line(ask: Ask, more: list[str], said: str) -> None:
    [line] = [each for each in ask(*more, code=2).splitlines() if said in each]
    assert line


def test_a_system_without_logs_is_one_clear_line(ask: Ask) -> None:
    assert "it has no logs of the system 'other'" in ask("--pool", "4", code=2, system="other")
