"""A queue of applications that ran on the emulated platform, with each number of I/O nodes.

The logs are of runs with direct access, the bandwidths of benchmarks on the same platform. The
measured hours are those of other runs of the applications (`experiments/data`).
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from experiments.shipped import DATA
from ioncast.asked_data import asked_data
from ioncast.warehouse.queries import query_of
from ioncast.worth.logged_io import LoggedIo, logged_io
from ioncast.worth.policies import POLICIES
from ioncast.worth.queued_jobs import QueuedJob
from ioncast.worth.replay import replay
from ioncast.worth.replayed_machine import Machine
from ioncast.worth.valued_queue import JobIo, joined, known_queue
from ioncast.worth.valuing import worth_of
from ior_configs import IorConfig
from predictor.commands import command_line
from predictor.curve.asking import read_knowledge
from predictor.model.system_model import SystemModel
from tests.support.command import run_ioncast

pytestmark = pytest.mark.slow

STUDIES = ("single", "hacc", "periodic", "applications")
NODES, COMPUTE_S = 8, 60.0
ARMS = {"direct": "direct", "static": "static", "ioncast": "mckp"}
Logs = Mapping[str, LoggedIo]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Logs:
    """The I/O of each application, by its log with direct access."""
    found = {}
    queries = [query_of("logged-jobs"), query_of("phases")]
    for study in STUDIES:
        database = str(tmp_path_factory.mktemp("worth") / "bench.sqlite")
        benchmarks = DATA / study / "benchmarks.csv"
        run_ioncast("bench", "import", benchmarks, "--system", "p", "--db", database)

        def knowledge_of(wanted: Sequence[IorConfig], database: str = database) -> SystemModel:
            return read_knowledge(command_line(database), "p", wanted)[0]

        for log in sorted((DATA / study / "logs").glob("*.darshan")):
            with asked_data([str(log)], None, None, "p") as data:
                jobs, phases = (data.ask(each, each.values({})) for each in queries)
            name = log.name.partition("-ionodes")[0]
            [found[name]] = logged_io(jobs, phases, knowledge_of, "p", 0)
    return found


def measured_runs() -> Mapping[str, Mapping[int, list[float]]]:
    """Seconds of the runs of each application with each number of I/O nodes."""
    runs: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for study in STUDIES:
        with (DATA / study / "applications.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                runs[row["name"]][int(row["io_nodes"])].append(float(row["time_s"]))
    return runs


def queue_of(names: Sequence[str], logs: Logs) -> list[JobIo]:
    """One job after the other: compute time, and the I/O of an application."""
    jobs, own = [], []
    for number, name in enumerate(names):
        log = logs[name]
        run_s = COMPUTE_S + (log.io_seconds or 0)
        submit_s = 600.0 * number
        jobs.append(QueuedJob(submit_s, run_s, run_s, NODES, name, start_s=submit_s, job_id=number))
        own.append(replace(log, job_id=number, start_us=int(submit_s * 1e6), run_seconds=run_s))
    return joined(jobs, own)


@pytest.mark.parametrize("pool", [4, 8])
def test_measured_hours_are_inside_the_interval_for_most_parts_of_the_queue(
    logs: Logs, pool: int
) -> None:
    runs = measured_runs()
    # Each application three times: 24 jobs, of which a part has 12.
    queue = [(name, repetition) for name in sorted(logs) for repetition in range(3)]
    assert len(queue) == 24
    random = np.random.default_rng(9366)
    machine = Machine(NODES, pool, direct=True)
    inside: dict[str, int] = defaultdict(int)
    for _ in range(10):
        part = [queue[place] for place in random.permutation(24)[:12]]
        jobs = queue_of([name for name, _ in part], logs)
        found = worth_of(jobs, [pool], system="p", curves_of="p", ran_with=0, nodes=NODES)
        work = known_queue(jobs, machine).work
        for arm, policy in ARMS.items():
            io_nodes = replay(work, machine, POLICIES[policy]).io_nodes.tolist()
            measured_s = sum(
                runs[name][given][repetition]
                for (name, repetition), given in zip(part, io_nodes, strict=True)
            )
            [own] = [each.io_hours for each in found.arms if each.arm == arm]
            inside[arm] += own.low <= measured_s / 3600 <= own.high
    assert min(inside[arm] for arm in ARMS) >= 8


def test_the_decisions_save_measured_hours(logs: Logs) -> None:
    runs, machine = measured_runs(), Machine(NODES, 8, direct=True)
    names = sorted(logs)
    work = known_queue(queue_of(names, logs), machine).work
    seconds = {}
    for arm, policy in ARMS.items():
        io_nodes = replay(work, machine, POLICIES[policy]).io_nodes.tolist()
        seconds[arm] = sum(
            float(np.median(runs[name][given])) for name, given in zip(names, io_nodes, strict=True)
        )
    assert seconds["ioncast"] < seconds["direct"]
    assert seconds["ioncast"] < seconds["static"]


def test_logs_are_found_by_number_and_time(logs: Logs) -> None:
    log = replace(logs["hacc-io"], job_id=7, start_us=1_000_000_000, run_seconds=50.0)
    job = QueuedJob(900, 100, 100, 8, "ada run", start_s=1000, job_id=7)
    year_us = 365 * 86_400 * 1_000_000

    def reason_of(log: LoggedIo, job: QueuedJob = job) -> str | None:
        [found] = joined([job], [log])
        return found.reason

    assert reason_of(log) is None
    assert reason_of(replace(log, job_id=8)) == "no log"
    # Slurm gave the number to another job, a year later.
    assert reason_of(replace(log, start_us=1_000_000_000 + year_us)) == "no log"
    # A local time, as sacct prints it.
    assert reason_of(replace(log, start_us=1_000_000_000 + 9 * 3600 * 1_000_000)) is None
    assert reason_of(replace(log, run_seconds=1000.0)) == "no log"
    assert reason_of(replace(log, curve=None)) == "no benchmark"
    assert reason_of(replace(log, io_seconds=None)) == "no I/O time"
    assert reason_of(log, job._replace(job_id=None)) == "no log"


def test_a_job_of_several_logs_has_all_their_bytes_and_seconds(logs: Logs) -> None:
    log = replace(logs["hacc-io"], job_id=7, start_us=1_000_000_000, run_seconds=50.0)
    other = replace(log, mib=2 * log.mib, io_seconds=5.0, curve=logs["single-a"].curve)
    job = QueuedJob(900, 100, 100, 8, "ada run", start_s=1000, job_id=7)
    [found] = joined([job], [log, other])
    assert found.mib == pytest.approx(3 * log.mib)
    assert found.io_seconds == pytest.approx((log.io_seconds or 0) + 5)
    assert found.curve is logs["single-a"].curve
    # Two thirds of the bytes are of a log without a benchmark.
    [found] = joined([job], [log, replace(other, curve=None)])
    assert found.reason == "no benchmark"


def test_the_bytes_and_seconds_of_a_log_are_those_of_the_run(logs: Logs) -> None:
    # HACC-IO: 463,453,184 bytes (applications.csv), about ten seconds with direct access.
    assert logs["hacc-io"].mib == pytest.approx(463_453_184 / (1 << 20))
    measured = measured_runs()["hacc-io"][0]
    assert logs["hacc-io"].io_seconds == pytest.approx(np.median(measured), rel=0.1)
