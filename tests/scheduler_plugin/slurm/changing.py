"""Changes of single jobs, for tests."""

from __future__ import annotations

from typing import Any

from scheduler_plugin.slurm import JobChange, Slurm, SlurmAnswerError


def change(slurm: Slurm, job_id: int, **values: Any) -> None:
    """Change one job; raise the error if Slurm rejects it."""

    def note(_: JobChange, error: SlurmAnswerError | None) -> None:
        if error is not None:
            raise error

    slurm.change_all([JobChange(job_id, **values)], note)
