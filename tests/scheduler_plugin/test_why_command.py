"""`ioncast why`, with the demonstration's service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from benchdb.store.database import opened_database, transaction
from ioncast.service.running.demo_data import fill
from ioncast.service.store.outcomes import store_outcome
from ioncast.service.store.tokens import add_token
from scheduler_plugin.why_command import _line, _lines
from tests.support.command import run_ioncast
from tests.support.serving import PATIENT, Served, free_port, running

# Its row in experiments/data/testbed/applications.csv: 65.8 MiB/s with 4 I/O nodes.
JOB = "hacc-io-4-0"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("why") / "demo.sqlite"
    fill(str(path))
    return path


@pytest.fixture(scope="module")
def served(database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    told = ("--workers", "1", "--db", str(database))
    with running(tmp_path_factory.mktemp("served"), *told, environment=PATIENT) as service:
        yield service


def ask(*args: str, address: str, token: str | None = None) -> CompletedProcess[str]:
    environment = {"IONCAST_ADDRESS": address, "IONCAST_TOKEN": token}
    return run_ioncast("why", *args, environment=environment)


@pytest.mark.serving
def test_a_user_reads_the_reason_and_the_outcome(served: Served) -> None:
    done = ask(JOB, address=served.url)
    assert (done.returncode, done.stderr) == (0, "")
    heading, decision, *lines = done.stdout.splitlines()
    assert heading.startswith(f"Job {JOB} on testbed, 20")
    assert heading.endswith(": hacc_io_write_posix_fpp of demo")
    assert decision == "4 I/O nodes"
    assert lines[0].startswith("  - 3 earlier runs of the same program, user and job name")
    assert any(line.startswith("  - Measured: 65.8 MiB/s with 4 I/O nodes,") for line in lines)
    [row] = [line.split() for line in lines if line.endswith("decision")]
    assert (row[0], row[-2]) == ("4", "65.8")
    assert "`sbatch -L ionode:N`" in lines[-1]


@pytest.mark.serving
def test_the_newest_run_is_one_line(served: Served) -> None:
    done = ask(JOB, "--line", address=served.url)
    predicted = "65.2 MiB/s predicted"
    assert done.stdout == (f"ioncast: 4 I/O nodes; 65.8 MiB/s with 4 I/O nodes; {predicted}\n")


def test_a_verdict_is_said_with_its_evidence() -> None:
    verdict = {
        "headline": "slow by the system: 2.1 times the usual time",
        "evidence": ["OST 14 was busy\x07"],
    }
    item = {
        "job_id": "1", "system": "here", "time": "?", "application": None, "implausible": False,
        "headline": "No decision is known", "sentences": [], "decision": None, "outcome": None,
        "diagnosis": verdict,
    }  # fmt: skip
    lines = list(_lines({"items": [item], "more": False, "another_number": "ask"}))
    assert lines[2] == "  - slow by the system: 2.1 times the usual time"
    assert "OST 14 was busy" in lines[3]
    assert lines[3].isprintable()
    assert _line(item) == f"ioncast: No decision is known; {verdict['headline']}"


@pytest.mark.serving
def test_a_job_is_also_found_over_the_socket_and_by_its_mark(served: Served) -> None:
    found = json.loads(ask(JOB, "--format", "json", address=f"unix:{served.socket}").stdout)
    mark = f"ioncast:{found['items'][0]['decision']['id']}"
    again = ask(mark, "--system", "testbed", address=f"{served.url}/")
    assert again.stdout.splitlines()[1:] == ask(JOB, address=served.url).stdout.splitlines()[1:]


@pytest.mark.serving
def test_each_run_of_an_id_is_told(served: Served, database: Path) -> None:
    with opened_database(database) as engine, transaction(engine, write=True) as connection:
        told: dict[str, Any] = {"system": "testbed", "job_id": "periodic-4-0", "io_nodes": 1}
        store_outcome(connection, bandwidth_mib_s=9e6, started="2031-01-01T00:00:00Z", **told)
    text = ask("periodic-4-0", address=served.url).stdout
    assert text.count("Job periodic-4-0 on testbed") == 2
    assert text.startswith("Job periodic-4-0 on testbed, 2031-01-01 00:00 UTC")
    assert "  - The measured bandwidth is implausible" in text


@pytest.mark.serving
@pytest.mark.parametrize(
    "job_id", ["0", "x" * 3000, "a/b\nc", "' OR 1=1", "\x1b[31m", "%00", "..", "ioncast:no", "ä"]
)
def test_an_unknown_job_is_one_line(served: Served, job_id: str) -> None:
    done = ask(job_id, address=served.url)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("ioncast: ")
    assert line.isprintable()


@pytest.mark.serving
def test_where_reading_is_closed_a_token_is_needed(database: Path, tmp_path: Path) -> None:
    with opened_database(database) as engine, transaction(engine, write=True) as connection:
        token = add_token(connection, "why", "reader")
    told = ("--workers", "1", "--db", str(database))
    with running(tmp_path, *told, environment={**PATIENT, "IONCAST_READING": "closed"}) as service:
        refused = ask(JOB, address=service.url)
        assert refused.returncode == 2
        assert refused.stderr.rstrip().endswith("; set IONCAST_TOKEN to a token")
        assert ask(JOB, address=service.url, token=token).returncode == 0


def test_a_service_that_is_away_is_one_line() -> None:
    done = ask("4711", address=f"http://127.0.0.1:{free_port()}")
    assert done.returncode == 2
    assert "the service cannot be reached" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("args", [("",), ("4711", "--address", "nowhere"), ()])
def test_wrong_arguments_are_one_line(args: tuple[str, ...]) -> None:
    done = run_ioncast("why", *args)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_texts_of_users_cannot_change_the_terminal() -> None:
    item = {
        "job_id": "1\x1b[2J",
        "system": "here",
        "time": "?",
        "application": {"program": "a\nb", "user": "\x07"},
        "headline": "No decision is known",
        "sentences": ["\x1b]0;x\x07"],
        "decision": None,
        "outcome": None,
    }
    lines = list(_lines({"items": [item], "more": True, "another_number": "ask"}))
    # The only control characters are those of the emphasis.
    assert all(line.isprintable() for line in lines if line != lines[1])
