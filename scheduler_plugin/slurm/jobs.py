"""A job as Slurm describes it, the same for all versions of its REST interface."""

from __future__ import annotations

from dataclasses import dataclass

# slurmdbd's state of a run that has ended and whose job was put back into the queue.
REQUEUED = "REQUEUED"
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
        REQUEUED,
        "REVOKED",
        "TIMEOUT",
    }
)


@dataclass(frozen=True)
class Job:
    """A job, or one task of an array, or one component of a heterogeneous job.

    Attributes
    ----------
    state : str
        Slurm's base state in capitals, such as PENDING, RUNNING, COMPLETED, FAILED, TIMEOUT,
        CANCELLED or NODE_FAIL; COMPLETING while Slurm cleans up its nodes; REQUEUED for a run of
        slurmdbd after which the job was put back into the queue.
    reason : str
        Slurm's reason for the state, such as Licenses; "None" without a reason.
    is_held : bool
        Whether it waits until somebody releases it.
    priority : int or None
        Slurm's priority; None if Slurm does not give it.
    submitted_s, started_s, ended_s : int or None
        Unix times. None for an expected time: the start of a waiting job, the end of a running job.
        While a job that was put back into the queue completes, its start is the present time.
    begins_s : int or None
        The Unix time before which Slurm does not start it, such as that of `sbatch --begin`; once
        the job may start, the time from which it may. None if Slurm has not looked at it yet.
    nodes, tasks : int or None
        Compute nodes and processes; while the job waits, the numbers that it asked for.
    licenses : str
        Licences in Slurm's notation, such as ``ionode:4,matlab:1``; empty without licences.
    array_job_id, array_task_id : int or None
        Set for the tasks of an array. Slurm gives waiting tasks as one job without a task id.
    het_job_id : int or None
        Set for the components of a heterogeneous job: the id of the first component.
    qos, account : str
        Slurm's names of them; empty for jobs from slurmdbd.
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
    qos: str = ""
    account: str = ""
    begins_s: int | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether it has not started yet, or was put back into the queue."""
        return self.state == "PENDING"

    @property
    def has_ended(self) -> bool:
        """Whether no part of it will run any more."""
        return self.state in ENDED

    @property
    def is_running(self) -> bool:
        """Whether it has started and not ended; only then it holds licences.

        A suspended job and one that completes count as running: Slurm keeps their licences.
        """
        return not self.is_waiting and not self.has_ended
