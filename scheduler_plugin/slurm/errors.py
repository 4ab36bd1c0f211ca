"""Errors of the client of slurmrestd, one class for each kind of remedy."""

from __future__ import annotations

from ioncast_base.errors import IoncastError


class SlurmError(IoncastError):
    """Slurm did not do what it was asked to do."""

    http_status = 502
    title = "Slurm failed"


class SlurmUnreachableError(SlurmError):
    """slurmrestd, or slurmctld or slurmdbd behind it, does not answer in time."""

    http_status = 503
    title = "Slurm unreachable"


class SlurmRefusedError(SlurmError):
    """Slurm rejects the token, or its user lacks a right."""

    title = "Slurm refused"


class SlurmAnswerError(SlurmError):
    """Slurm rejects the request, or its answer cannot be read."""

    title = "Unusable answer of Slurm"


class SlurmClusterError(SlurmError):
    """slurmdbd has several clusters, and which is this one is unknown."""

    title = "Unknown cluster"
