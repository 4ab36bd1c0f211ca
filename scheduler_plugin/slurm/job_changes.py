"""Changes of waiting jobs, and the order in which Slurm takes them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class JobChange:
    """New values for a waiting job; None keeps a value.

    Attributes
    ----------
    job_id : int
        Slurm's id. The id of an array stands for all its tasks; the id of a heterogeneous job's
        first component stands for all its components.
    licenses : str or None
        Licences in Slurm's notation.
    held : bool or None
        Whether it waits until somebody releases it.
    begins_s : int or None
        The Unix time before which it does not start; a past time counts as now.
    het_job_id : int or None
        Of a component of a heterogeneous job, the id of the first component.
    """

    job_id: int
    licenses: str | None = None
    held: bool | None = None
    begins_s: int | None = None
    het_job_id: int | None = None


def in_order(changes: Iterable[JobChange]) -> list[list[JobChange]]:
    """Group changes that must be made one after the other.

    Slurm applies a change of a heterogeneous job's first component to all of its components, so
    their own changes come after it.
    """
    groups: dict[int, list[JobChange]] = defaultdict(list)
    for change in changes:
        groups[change.het_job_id or change.job_id].append(change)
    return [sorted(group, key=lambda change: change.job_id) for group in groups.values()]
