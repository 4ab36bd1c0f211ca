"""What can go wrong between us and Slurm, told apart by what helps."""

from __future__ import annotations

from ioncast_base.errors import IoncastError


class SlurmError(IoncastError):
    """Slurm did not do what it was asked."""

    http_status = 502
    title = "Slurm failed"


class SlurmUnreachableError(SlurmError):
    """Nobody answers, or not in time: slurmrestd, or slurmctld or slurmdbd behind it."""

    http_status = 503
    title = "Slurm unreachable"


class SlurmRefusedError(SlurmError):
    """The token or the user's rights are not enough."""

    title = "Slurm refused"


class SlurmAnswerError(SlurmError):
    """Slurm says no, or something that cannot be understood."""

    title = "Unusable answer of Slurm"
