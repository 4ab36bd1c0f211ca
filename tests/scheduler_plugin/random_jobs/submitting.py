"""A user who sends submissions to a cluster, and the jobs of a cluster at one moment."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.scheduler_plugin.random_jobs.site import USER
from tests.scheduler_plugin.random_jobs.submissions import Submission
from tests.support.slurm import Cluster

_PATIENCE_S = 300.0
# Lines of `srun -v` and `salloc -v` about a job that Slurm has accepted.
_ACCEPTED = re.compile(
    rb"^(?:srun|salloc): (?:jobid|job|Pending job allocation|Granted job allocation) (\d+)", re.M
)
_HOLDS = ("JobHeldUser", "BeginTime")
_ENDED = {
    *("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "DEADLINE", "BOOT_FAIL", "NODE_FAIL"),
    *("OUT_OF_MEMORY", "PREEMPTED"),
}


@dataclass(frozen=True)
class Fared:
    """Whether Slurm accepted a submission, the id of its job, and what the command said."""

    is_accepted: bool
    job_id: int | None
    said: str


@dataclass
class Client:
    """A user of a cluster. Her srun and salloc go on in the background until their jobs end.

    Attributes
    ----------
    ids : dict of int to int
        The job of each accepted submission, by the submission's number.
    """

    cluster: Cluster
    program: Path
    ids: dict[int, int] = field(default_factory=dict)
    _running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def submit(self, number: int, given: Submission) -> Fared:
        """Submit a job and wait until Slurm has accepted or rejected it."""
        told = self._batch(given) if given.command == "sbatch" else self._interactive(given)
        if told.job_id is not None:
            self.ids[number] = told.job_id
        return told

    def end(self) -> None:
        """End all srun and salloc."""
        for process in self._running:
            process.kill()
            process.wait()

    def _batch(self, given: Submission) -> Fared:
        done = subprocess.run(
            given.arguments(self.ids),
            input=given.script,
            capture_output=True,
            check=False,
            timeout=_PATIENCE_S,
            **self._as_user(given),
        )
        job_id = re.match(rb"\d+", done.stdout)
        return Fared(
            done.returncode == 0, int(job_id[0]) if job_id else None, _last_lines(done.stderr)
        )

    def _interactive(self, given: Submission) -> Fared:
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(
                given.arguments(self.ids, os.fsencode(self.program)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                **self._as_user(given),
            )
            self._running.append(process)
            give_up_at = time.monotonic() + _PATIENCE_S
            while time.monotonic() < give_up_at:
                status = process.poll()
                told = os.pread(said.fileno(), 1 << 20, 0)
                if job_id := _ACCEPTED.search(told):
                    return Fared(True, int(job_id[1]), _last_lines(told))
                if status is not None:
                    return Fared(status == 0, None, _last_lines(told))
                time.sleep(0.02)
        raise TimeoutError(f"neither accepted nor rejected: {given}")

    def _as_user(self, given: Submission) -> dict[str, Any]:
        return {
            "env": {**self.cluster.environment, **given.environment},
            "user": USER,
            "group": "nogroup",
            "cwd": "/",
        }


@dataclass(frozen=True)
class Jobs:
    """All jobs of a cluster: their states and reasons, by the id that the submission got.

    A part of an array or of a heterogeneous job counts as the whole job.
    """

    states: dict[int, tuple[str, ...]]

    @classmethod
    def of(cls, cluster: Cluster) -> Jobs:
        said = cluster.run("squeue", "-h", "--all", "--states=all", "--format=%i %T %r").stdout
        found: dict[int, tuple[str, ...]] = {}
        for line in said.splitlines():
            name, state = line.split(" ", 1)
            [job_id] = re.findall(r"^\d+", name)
            found[int(job_id)] = (*found.get(int(job_id), ()), state)
        return cls(found)

    def fate(self, job_id: int) -> str:
        """Tell whether a job has ended, is held or waits for a time, or waits or runs."""
        states = self.states[job_id]
        if all(state.split()[0] in _ENDED for state in states):
            return "ended"
        is_held = any(reason in state for state in states for reason in _HOLDS)
        return "held" if is_held else "to do"

    def lacks_nodes(self, job_id: int) -> bool:
        """Tell whether a job waits for nodes, not for licences, a time or another job."""
        return "PENDING Resources" in self.states[job_id]


def _last_lines(said: bytes) -> str:
    return said[-500:].decode(errors="backslashreplace")
