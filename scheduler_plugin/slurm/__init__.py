"""Client of Slurm's REST interface, for slurmrestd of Slurm 22.05 to 25.11."""

from scheduler_plugin.slurm.client import Slurm
from scheduler_plugin.slurm.errors import (
    SlurmAnswerError,
    SlurmClusterError,
    SlurmError,
    SlurmRefusedError,
    SlurmUnreachableError,
)
from scheduler_plugin.slurm.job_changes import JobChange
from scheduler_plugin.slurm.jobs import Job
from scheduler_plugin.slurm.licences import Licence, licence_count, with_licence

__all__ = [
    "Job",
    "JobChange",
    "Licence",
    "Slurm",
    "SlurmAnswerError",
    "SlurmClusterError",
    "SlurmError",
    "SlurmRefusedError",
    "SlurmUnreachableError",
    "licence_count",
    "with_licence",
]
