"""Changes of waiting jobs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class JobChange:
    """New values for a waiting job; None keeps a value.

    Attributes
    ----------
    job_id : int
        Slurm's id. The id of an array stands for all its tasks.
    licenses : str or None
        Licences in Slurm's notation.
    begins_s : int or None
        The Unix time before which it does not start; a past time counts as now.
    is_leader : bool
        Whether the job is the first component of a heterogeneous job. Its other components do not
        change.
    """

    job_id: int
    licenses: str | None = None
    begins_s: int | None = None
    is_leader: bool = False

    @property
    def path(self) -> str:
        """The job in slurmrestd's paths."""
        # Up to Slurm 24.05, the mere id of a leader changes all components: their licences too.
        return f"job/{self.job_id}%2B0" if self.is_leader else f"job/{self.job_id}"
