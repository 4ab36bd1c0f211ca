"""Speed of releasing held jobs on a real Slurm: one at a time, and as the arbiter does it.

    python benchmarks/releases.py [--rounds N]

Run it as root, because slurmd starts jobs for other users. The ways take turns; each round submits
the same jobs for each. The claim at the end is for information: a missed one does not change the
exit code.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from measuring import Claim, machine

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from scheduler_plugin.slurm import JobChange, Slurm, SlurmAnswerError  # noqa: E402
from tests.support.services import allow, problem  # noqa: E402
from tests.support.slurm import Cluster, cluster  # noqa: E402

JOBS = 60
CLAIM_RATIO = 2.0
HELD = ("--begin=now+1hour", "--licenses=ionode:1", "--nodes=1", "--time=1")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="how often each is measured (7)")
    rounds = parser.parse_args().rounds
    if reason := problem("slurm"):
        sys.exit(f"releases.py: Slurm cannot run here: {reason}")
    allow("slurm")
    ways = {
        "one at a time, after a look at the job": one_by_one_after_a_look,
        "one at a time": one_by_one,
        "eight at a time": together,
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory(prefix="releases-") as folder:
        Path(folder).chmod(0o755)
        with cluster(Path(folder) / "slurm", rest=True, accounting=True) as found:
            token = found.token(lifespan_s=86_400)
            with Slurm(f"unix:{found.rest}", "root", lambda: token, 60) as slurm:
                for number in range(rounds):
                    print(f"releases.py: round {number + 1} of {rounds}", file=sys.stderr)
                    for name, way in ways.items():
                        seconds[name].append(measured(found, slurm, way))
    print(machine())
    report(seconds)


def measured(found: Cluster, slurm: Slurm, way: Callable[[Slurm, Sequence[int]], None]) -> float:
    """Seconds until all of the jobs are released."""
    jobs = [found.submit(*HELD) for _ in range(JOBS)]
    began = time.perf_counter()
    way(slurm, jobs)
    took = time.perf_counter() - began
    found.run("scancel", "--user=root")
    found.wait(lambda: not found.run("squeue", "--noheader").stdout, "empty queue")
    return took


def one_by_one_after_a_look(slurm: Slurm, jobs: Sequence[int]) -> None:
    """As before holds had an end: first Slurm is asked whether the job waits."""
    for job_id in jobs:
        slurm.job(job_id)
        slurm.change_all([release(job_id)], note)


def one_by_one(slurm: Slurm, jobs: Sequence[int]) -> None:
    for job_id in jobs:
        slurm.change_all([release(job_id)], note)


def together(slurm: Slurm, jobs: Sequence[int]) -> None:
    slurm.change_all(map(release, jobs), note)


def release(job_id: int) -> JobChange:
    return JobChange(job_id, licenses="ionode:2", begins_s=int(time.time()))


def note(change: JobChange, error: SlurmAnswerError | None) -> None:
    if error is not None:
        sys.exit(f"releases.py: job {change.job_id}: {error}")


def report(seconds: dict[str, list[float]]) -> None:
    first, *_, last = seconds
    print("\n| releases | jobs/s, median | slowest | ratio |")
    print("| --- | ---: | ---: | ---: |")
    ratios = {}
    for name, took in seconds.items():
        ratios[name] = statistics.median(
            base / each for base, each in zip(seconds[first], took, strict=True)
        )
        speeds = f"{JOBS / statistics.median(took):.0f} | {JOBS / max(took):.0f}"
        print(f"| {name} | {speeds} | {ratios[name]:.1f} |")
    text = f"eight at a time are at least {CLAIM_RATIO:g} × as fast as the first way"
    print(f"\n{Claim(text, f'{ratios[last]:.1f} ×', ratios[last] >= CLAIM_RATIO)}")


if __name__ == "__main__":
    main()
