"""The number of compute nodes of a job: as it is given, or from the host names in its log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ioncast_base.wording import counted
from summario.runs.hosts import NodeCount


@dataclass(frozen=True)
class JobNodes:
    """The number of compute nodes of a job.

    Attributes
    ----------
    number : int or None
        The number; None if it is unknown.
    source : str or None
        Its source: "given", or "log" for the host names in the log.
    warnings : tuple of str
        A sentence if the log names other compute nodes, or not those of all processes.
    """

    number: int | None = None
    source: Literal["given", "log"] | None = None
    warnings: tuple[str, ...] = ()

    @property
    def in_words(self) -> str | None:
        """The number and its source, if it is from the log."""
        if self.source != "log":
            return None
        return f"compute nodes: {self.number}, from the host names in the log"


def job_nodes(given: int | None, named: NodeCount | None) -> JobNodes:
    """Choose the number of compute nodes of a job.

    Parameters
    ----------
    given : int or None
        The number that the user gives, which always counts.
    named : NodeCount or None
        The compute nodes that the log names. They count if the log names those of all processes;
        else they are only a lower bound.

    Examples
    --------
    >>> job_nodes(None, NodeCount(2, are_all=True)).in_words
    'compute nodes: 2, from the host names in the log'
    >>> job_nodes(None, NodeCount(1, are_all=False)).number is None
    True
    """
    if given is not None:
        return JobNodes(given, "given", _contradictions(given, named))
    if named is None:
        return JobNodes()
    if named.are_all:
        return JobNodes(named.number, "log")
    return JobNodes(
        warnings=(
            "the log does not name the compute node of every process: the job had at least"
            f" {named.number}; give the number",
        )
    )


def _contradictions(given: int, named: NodeCount | None) -> tuple[str, ...]:
    if named is None or given == named.number or (given > named.number and not named.are_all):
        return ()
    are_given = f"{counted(given, 'compute node')} {'is' if given == 1 else 'are'} given"
    how_many = named.number if named.are_all else f"at least {named.number}"
    return (f"{are_given}, but the log names {how_many}; the given number is used",)
