"""The settings of a study, the programs that follow from them, and what cannot run here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from experiments.applications.darshan_writer import check_writer
from experiments.applications.installed import find_hacc_io, has_mpi4py
from experiments.applications.spec import Application, hacc_io_particles
from experiments.platform.description import FREE_SPACE_LIMIT_BYTES, Description
from experiments.studies.study import Study
from ioncast_base.darshan_runtime import find_darshan
from ioncast_base.errors import InputError
from ioncast_base.sizes import format_size

# Scales are searched for one that fits in steps of a thousandth.
_THOUSANDTHS = 1000


@dataclass(frozen=True)
class Settings:
    """The settings of a study.

    Attributes
    ----------
    scale : float
        Share of the applications' bytes per process.
    repetitions : int
        Runs of each benchmark and each application with each number of I/O nodes.
    seed : int
        Seed of the random order of the runs.
    engine : str or None
        The benchmark program; None for the first one that is found.
    darshan : Path or None
        The library of Darshan's runtime; None for an installed one that works here. Without
        any, logs are written from the applications' own counters.
    command : str
        The command that runs the same study again.
    """

    scale: float
    repetitions: int
    seed: int
    engine: str | None
    darshan: Path | None
    command: str


def check_new(folder: Path) -> None:
    """Check that a folder for results does not exist or is empty.

    Raises
    ------
    InputError
        If there is something at its path.
    """
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise InputError(
            "it exists already", where=str(folder), remedy="name another folder with --output"
        )


def check_settings(study: Study, description: Description, settings: Settings) -> None:
    """Check that a platform can run a study, before the platform is brought up.

    Parameters
    ----------
    study : Study
        The study.
    description : Description
        The platform.
    settings : Settings
        The settings of the study.

    Raises
    ------
    InputError
        If the storage cannot hold an application's files, the given Darshan library cannot trace
        an application, or nothing here can write its log.
    """
    for application in _applications(study, description, settings.scale):
        if not description.holds(application.bytes):
            needed = application.bytes * description.storage.replicas
            raise InputError(
                f"{application.name} at scale {settings.scale:g} needs {format_size(needed)} of"
                f" storage, which has {format_size(description.storage.memory)} and keeps"
                f" {format_size(FREE_SPACE_LIMIT_BYTES)} free",
                where=f"platform {description.name}",
                remedy=_remedy(study, description),
            )
        if settings.darshan is not None and not _can_be_traced(application):
            raise InputError(
                "Darshan traces processes under MPI, for which Python needs mpi4py",
                where=application.name,
                remedy="install it for this machine's MPI, or leave --darshan out",
            )
        if tracer(application, settings) is None:
            check_writer()


def obstacle(application: Application, engine: str) -> str | None:
    """Say in a clause why an application or its benchmarks cannot run here; None if they can.

    Parameters
    ----------
    application : Application
        The application.
    engine : str
        The benchmark program's name.
    """
    if all(step.api == "POSIX" for step in application.steps):
        return None
    if engine != "ior":
        return f"{engine} does no MPI-IO"
    return None if has_mpi4py() else "mpi4py is not installed"


def own_program(application: Application) -> Path | None:
    """HACC-IO's program, if it is installed and can do the application's I/O."""
    return None if hacc_io_particles(application) is None else find_hacc_io()


def tracer(application: Application, settings: Settings) -> Path | None:
    """Library of Darshan's runtime that traces an application; None if none can."""
    library = settings.darshan or find_darshan()
    return library if _can_be_traced(application) else None


def untraced(application: Application) -> str | None:
    """Say why Darshan's runtime writes no log although it is installed; None if it does."""
    if find_darshan() is None or _can_be_traced(application):
        return None
    return (
        f"the log of {application.name} has the application's own counters: Darshan's runtime is"
        " installed, but it traces nothing here without mpi4py"
    )


def _can_be_traced(application: Application) -> bool:
    """Whether an application runs under MPI here: Darshan's runtime traces nothing else."""
    return has_mpi4py() or own_program(application) is not None


def _applications(study: Study, description: Description, scale: float) -> tuple[Application, ...]:
    return study.applications(description.tasks, description.compute_nodes.count, scale)


def _remedy(study: Study, description: Description) -> str:
    for thousandths in range(_THOUSANDTHS, 0, -1):
        scale = thousandths / _THOUSANDTHS
        applications = _applications(study, description, scale)
        if all(description.holds(application.bytes) for application in applications):
            return f"the largest scale that fits is {scale:g}"
    return "give it more memory"
