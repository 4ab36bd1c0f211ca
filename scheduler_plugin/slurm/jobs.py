"""A job as Slurm tells of it, the same for all versions of its interface."""

from __future__ import annotations

from dataclasses import dataclass

ENDED = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    }
)


@dataclass(frozen=True)
class Job:
    """A job, or one task of an array, or one component of a heterogeneous job.

    Attributes
    ----------
    id : int
        Slurm's own number of it, as in SLURM_JOB_ID.
    state : str
        Slurm's base state in capitals, such as PENDING, RUNNING, COMPLETED, FAILED, TIMEOUT,
        CANCELLED or NODE_FAIL; COMPLETING while its nodes are being cleaned up.
    reason : str
        Why it waits or ended so, in Slurm's words; "None" where there is none.
    is_held : bool
        Whether it waits for somebody to release it.
    priority : int or None
        Slurm's own; None where it is not told, as of jobs that slurmdbd tells of.
    submitted_s, started_s, ended_s : int or None
        Unix times. An end that is only expected, of a job that runs, is None, and so is a start
        that is only expected, of a job that waits.
    nodes, tasks : int or None
        Compute nodes and processes; those asked for while it waits.
    licenses : str
        As Slurm gives them, such as ``ionode:4,matlab:1``; empty for none.
    array_job_id, array_task_id : int or None
        Of an array's tasks. While tasks wait together Slurm tells of them as of one job without
        a task's id.
    het_job_id : int or None
        Of a heterogeneous job's components: the id of the first one.
    burst_buffer : str
        What it asks of burst buffers, such as ``#BB_LUA pool=ionode capacity=4``; empty for
        nothing, and of jobs that slurmdbd tells of.
    """

    id: int
    user: str
    name: str
    partition: str
    state: str
    reason: str
    is_held: bool
    priority: int | None
    submitted_s: int | None
    started_s: int | None
    ended_s: int | None
    nodes: int | None
    tasks: int | None
    licenses: str
    admin_comment: str
    array_job_id: int | None = None
    array_task_id: int | None = None
    het_job_id: int | None = None
    burst_buffer: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it will run any more."""
        return self.state in ENDED
