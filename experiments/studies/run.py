"""Running a case study: logs of its applications, benchmarks of what is in them, reruns."""

from __future__ import annotations

import importlib.util
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import click

from benchdb.campaigns import folder as folders
from benchdb.campaigns.collecting import failures, measurement_of, result_of
from benchdb.campaigns.commands import find_engine, reporting
from benchdb.campaigns.folder import CampaignFolder
from benchdb.campaigns.platform_file import Platform, read_platform
from benchdb.campaigns.running import Progress, run_campaign
from benchdb.measurements.storing import Measurement
from benchdb.store.database import opened_database
from experiments import datasets
from experiments.applications.running import (
    Run,
    find_darshan,
    find_hacc_io,
    run_application,
)
from experiments.applications.spec import Application
from experiments.datasets import LOGS, BenchmarkRun, DataSet, Log, Provenance, printable
from experiments.platform.description import Description
from experiments.platform.emulator import Emulated
from experiments.studies.machine import this_machine, versions
from experiments.studies.study import Study
from ioncast_base.errors import InputError, IoncastError
from ioncast_base.sizes import format_size
from ioncast_base.toml_files import read_text
from ior_configs import IorConfig
from ior_configs.campaign_files import Campaign, to_toml
from predictor.planning.needs import wanted_of
from summario.phases.extract import extract_phases
from summario.phases.values import Phase
from summario.reading.log import LogReader

CAMPAIGN = "campaign"
# Share of a job's bytes.
_WORTH = 0.05
# What the platform's campaigns leave free.
_SPARE_BYTES = 64 << 20
_THOUSANDTHS = 1000
_LAYOUTS = {"contiguous": "contig", "1d-strided": "strided", "random": "random"}
_DARSHAN = "Darshan's runtime"
_COUNTERS = "libdarshan-util's writer, with the true counters of the run"


@dataclass(frozen=True)
class Settings:
    """How a study is run.

    Attributes
    ----------
    scale : float
        Of the applications' bytes per process.
    repetitions : int
        Of each benchmark and each application with each number of I/O nodes.
    seed : int
        Of the random order of the runs.
    engine : str or None
        The benchmark program; None for the first that is found.
    darshan : Path or None
        The library of Darshan's runtime; None for the one that is found and can be used. Without
        any, logs are written from the runs' own counters.
    command : str
        What runs the same again.
    """

    scale: float
    repetitions: int
    seed: int
    engine: str | None
    darshan: Path | None
    command: str


def run_study(study: Study, emulated: Emulated, folder: Path, settings: Settings) -> DataSet:
    """Measure what a study needs; progress goes to the standard error.

    Parameters
    ----------
    study : Study
        What to run.
    emulated : Emulated
        On what; it is up.
    folder : Path
        Of the data set; new or empty. The campaign's own folder, with all that its
        benchmarks printed, is in it.
    settings : Settings
        How.

    Raises
    ------
    InputError
        When nothing of the study can be run here.
    IoncastError
        When an application's run for its log fails, or every benchmark, or every rerun.
    """
    site = read_platform(emulated.campaign_platform)
    engine, program = find_engine(site, settings.engine)
    asked = study.applications(site.nodes * site.processes_per_node, site.nodes, settings.scale)
    left_out = {one.name: why for one in asked if (why := obstacle(one, engine))}
    applications = [one for one in asked if one.name not in left_out]
    notes = [f"{name} was left out: {why}" for name, why in left_out.items()]
    if not applications:
        raise InputError("; ".join(notes))
    notes += [note for one in applications if (note := _untraced(one, settings))]
    # Before anything is measured: what it refuses must not cost hours.
    provenance = _provenance(study, applications, emulated, site, engine, settings)

    (folder / LOGS).mkdir(parents=True)
    _reference_runs(applications, emulated, folder / LOGS, settings)
    campaign = folders.create(
        folder / CAMPAIGN,
        campaign=to_toml(_campaign(study, folder / LOGS, provenance.logs, site.nodes, settings)),
        platform=read_text(emulated.campaign_platform),
        system=site.system,
        engine=engine,
        program=program,
        database=None,
    )
    _tell_plan(campaign, applications)
    notes += _run_benchmarks(campaign)
    runs, failed = rerun(applications, emulated, site, settings)
    measured = {run.name for run in runs}
    return datasets.write(
        folder,
        provenance.model_copy(
            update={
                "versions": {**provenance.versions, **_engine_version(campaign)},
                "logs": tuple(log for log in provenance.logs if log.application in measured),
                "notes": tuple(map(printable, [*notes, *_failure_notes(failed, measured)])),
            }
        ),
        _benchmark_runs(campaign),
        runs,
    )


def check_new(folder: Path) -> None:
    """Refuse a folder that holds something.

    Raises
    ------
    InputError
        Naming it.
    """
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise InputError(
            "there is something already", where=str(folder), remedy="name another with --output"
        )


def check_settings(study: Study, description: Description, settings: Settings) -> None:
    """Refuse what cannot be run on a platform, before it is brought up.

    Parameters
    ----------
    study : Study
        What would be run.
    description : Description
        On what.
    settings : Settings
        How.

    Raises
    ------
    InputError
        When the storage cannot hold an application's files, or the Darshan library that was
        asked for cannot trace it.
    """
    for application in _applications(study, description, settings.scale):
        if not _fits(application, description):
            needed = application.bytes * description.storage.replicas
            raise InputError(
                f"{application.name} at scale {settings.scale:g} needs {format_size(needed)} of"
                f" storage, which has {format_size(description.storage.memory)} and keeps"
                f" {format_size(_SPARE_BYTES)} free",
                where=f"platform {description.name}",
                remedy=_what_fits(study, description),
            )
        if settings.darshan is not None and not _can_be_traced(application, settings):
            raise InputError(
                "Darshan traces processes under MPI, for which Python needs mpi4py",
                where=application.name,
                remedy="install it for this machine's MPI, or leave --darshan out",
            )


def _applications(study: Study, description: Description, scale: float) -> tuple[Application, ...]:
    nodes = description.compute_nodes
    return study.applications(nodes.count * nodes.processes, nodes.count, scale)


def _fits(application: Application, description: Description) -> bool:
    storage = description.storage
    return application.bytes * storage.replicas + _SPARE_BYTES <= storage.memory


def _what_fits(study: Study, description: Description) -> str:
    for thousandths in range(_THOUSANDTHS, 0, -1):
        scale = thousandths / _THOUSANDTHS
        if all(_fits(one, description) for one in _applications(study, description, scale)):
            return f"the largest scale that fits is {scale:g}"
    return "give it more memory"


def has_mpi4py() -> bool:
    """Whether Python can use MPI."""
    return importlib.util.find_spec("mpi4py") is not None


def obstacle(application: Application, engine: str) -> str | None:
    """Why an application or its benchmarks cannot be run here, as a clause; None if they can.

    Parameters
    ----------
    application : Application
        What would be run.
    engine : str
        The benchmark program's name.
    """
    if all(step.api == "POSIX" for step in application.steps):
        return None
    if engine != "ior":
        return f"{engine} does no MPI-IO"
    return None if has_mpi4py() else "mpi4py is not installed"


def worth_measuring(phases: Sequence[Phase], nodes: int) -> list[IorConfig]:
    """The configurations that stand for most of what a job does.

    The rest is left to what the others tell of it: a benchmark of a few bytes measures how
    long it takes to open a file.

    Parameters
    ----------
    phases : sequence of Phase
        Of the job.
    nodes : int
        Compute nodes that there are.
    """
    wanted = wanted_of([phases], lambda tasks: min(nodes, tasks))
    enough = _WORTH * sum(one.bytes for one in wanted.values())
    return [config for config, one in wanted.items() if one.bytes >= enough]


def rerun(
    applications: Sequence[Application], emulated: Emulated, site: Platform, settings: Settings
) -> tuple[list[datasets.Run], dict[str, list[str]]]:
    """Run applications with all numbers of I/O nodes, in random order.

    Parameters
    ----------
    applications : sequence of Application
        What to run.
    emulated, site : Emulated, Platform
        On what, and the numbers of I/O nodes.
    settings : Settings
        How.

    Returns
    -------
    list of datasets.Run
        What was measured.
    dict of str to list of str
        By application, why runs failed.

    Raises
    ------
    IoncastError
        When all did.
    """
    plan = [
        (application, io_nodes, repetition)
        for application in applications
        for io_nodes in site.io_nodes
        for repetition in range(1, settings.repetitions + 1)
    ]
    random.Random(settings.seed).shuffle(plan)  # noqa: S311
    rows: list[datasets.Run] = []
    failed: dict[str, list[str]] = {}
    with reporting("reruns: ") as report:
        for number, (application, io_nodes, repetition) in enumerate(plan, start=1):
            own = _own_program(application, settings)
            try:
                run = run_application(application, emulated, io_nodes, hacc_io_program=own)
            except IoncastError as error:
                failed.setdefault(application.name, []).append(str(error))
            else:
                rows.append(_row(application, run, repetition, own))
            report(Progress(len(plan), done=len(rows), failed=number - len(rows)))
    if not rows:
        reasons = (f"{name}: {errors[0]}" for name, errors in failed.items())
        raise IoncastError(f"every rerun failed: {'; '.join(reasons)}")
    return rows, failed


def pattern_name(config: IorConfig) -> str:
    """A short name for a configuration.

    Examples
    --------
    >>> pattern_name(IorConfig.from_command_line("mpiexec -n 16 ior -w -F -b 4m -t 1m"))
    'w-fpp-contig-1m-of-4m-16p'
    """
    words = [
        config.operation[0],
        *(["mpiio"] if config.api == "MPIIO" else []),
        *(["coll"] if config.collective else []),
        "shared" if config.file_access == "shared" else "fpp",
        _LAYOUTS[config.layout],
        format_size(config.transfer_size),
        "of",
        format_size(config.bytes_per_process),
        f"{config.tasks}p",
    ]
    return "-".join(words)


def _can_be_traced(application: Application, settings: Settings) -> bool:
    """Whether an application runs under MPI here, where alone Darshan's runtime traces."""
    return has_mpi4py() or _own_program(application, settings) is not None


def _tracer(application: Application, settings: Settings) -> Path | None:
    """The library of Darshan's runtime that traces an application."""
    library = settings.darshan or find_darshan()
    return library if _can_be_traced(application, settings) else None


def _untraced(application: Application, settings: Settings) -> str | None:
    """Why Darshan's runtime does not write a log though it is there."""
    if find_darshan() is None or _can_be_traced(application, settings):
        return None
    return (
        f"the log of {application.name} has the run's own counters: Darshan's runtime is there,"
        " but mpi4py is not, without which it traces nothing here"
    )


def _provenance(
    study: Study,
    applications: Sequence[Application],
    emulated: Emulated,
    site: Platform,
    engine: str,
    settings: Settings,
) -> Provenance:
    """What is known before anything ran; the day of the first run is now."""
    return Provenance(
        study=study.name,
        command=printable(settings.command),
        date=datetime.now(timezone.utc).date().isoformat(),
        seeds=(settings.seed,),
        scale=settings.scale,
        system=site.system,
        tasks=site.nodes * site.processes_per_node,
        nodes=site.nodes,
        engine=engine,
        platform=emulated.description.model_dump(mode="json"),
        machine=this_machine(),
        versions=versions(),
        logs=tuple(_log(one, emulated, settings) for one in applications),
    )


def _log(application: Application, emulated: Emulated, settings: Settings) -> Log:
    """The log that the reference run of an application leaves."""
    io_nodes = min(emulated.description.io_nodes)
    return Log(
        file=f"{application.name}-ionodes{io_nodes}.darshan",
        application=application.name,
        io_nodes=io_nodes,
        source=_DARSHAN if _tracer(application, settings) else _COUNTERS,
    )


def _reference_runs(
    applications: Sequence[Application], emulated: Emulated, folder: Path, settings: Settings
) -> None:
    """Run each application once with the fewest I/O nodes, for its log."""
    with reporting("reference runs: ") as report:
        for number, application in enumerate(applications):
            report(Progress(len(applications), done=number, failed=0))
            log = _log(application, emulated, settings)
            darshan = _tracer(application, settings)
            run_application(
                application,
                emulated,
                log.io_nodes,
                log=folder / log.file,
                darshan=darshan,
                hacc_io_program=_own_program(application, settings) if darshan else None,
            )
        report(Progress(len(applications), done=len(applications), failed=0))


def _campaign(
    study: Study, folder: Path, logs: Sequence[Log], nodes: int, settings: Settings
) -> Campaign:
    """The benchmarks that do what is in the logs."""
    with LogReader() as reader:
        jobs = [extract_phases(reader.read(folder / log.file)) for log in logs]
    return Campaign(
        name=study.name,
        description=study.title,
        repetitions=settings.repetitions,
        seed=settings.seed,
        spread_s=None,
        configurations=tuple(
            dict.fromkeys(config for phases in jobs for config in worth_measuring(phases, nodes))
        ),
    )


def _tell_plan(campaign: CampaignFolder, applications: Sequence[Application]) -> None:
    """Say how much is going to be run."""
    configs = {run.cell.config for run in campaign.runs}
    numbers, repetitions = len(campaign.platform.io_nodes), campaign.campaign.repetitions
    reruns = len(applications) * numbers * repetitions
    click.echo(
        f"ioncast: {len(campaign.runs) + reruns} runs: benchmarks: {len(configs)}, applications:"
        f" {len(applications)}, numbers of I/O nodes: {numbers}, repetitions: {repetitions}",
        err=True,
    )


def _run_benchmarks(campaign: CampaignFolder) -> list[str]:
    """Run a campaign to its end; what failed of it, as clauses."""
    with (
        tempfile.TemporaryDirectory(prefix="ioncast-") as scratch,
        opened_database(Path(scratch) / "campaign.sqlite") as database,
        reporting("benchmarks: ") as report,
    ):
        left = run_campaign(campaign, database, report).left
    failed = failures(campaign)
    if left:
        raise IoncastError(f"{left} benchmarks never came to their end", where=str(campaign.path))
    if len(failed) == len(campaign.runs):
        reason = failed[0][1].reason
        raise IoncastError(f"every benchmark failed: {reason}", where=str(campaign.path))
    return [
        f"a benchmark failed: {run.cell.config.command_line(launcher=True)} with"
        f" {run.cell.io_nodes} I/O nodes, repetition {run.repetition}: {result.reason}"
        for run, result in failed
    ]


def _measurements(campaign: CampaignFolder) -> Iterator[tuple[folders.Run, Measurement]]:
    for run in campaign.runs:
        result = result_of(campaign, run)
        if result is not None and result.state == "done":
            yield run, measurement_of(campaign, run)[-1]


def _engine_version(campaign: CampaignFolder) -> dict[str, str]:
    known = {measured.engine_version for _, measured in _measurements(campaign)}
    return {campaign.engine: ", ".join(sorted(filter(None, known))) or "not known"}


def _benchmark_runs(campaign: CampaignFolder) -> Iterator[BenchmarkRun]:
    """What the campaign measured, run by run."""
    for run, measured in _measurements(campaign):
        config = measured.config
        yield BenchmarkRun(
            name=pattern_name(config),
            io_nodes=run.cell.io_nodes,
            repetition=run.repetition,
            bytes=run.cell.bytes,
            time_s=run.cell.bytes / measured.bandwidth_mib_s / (1 << 20),
            bandwidth_mib_s=measured.bandwidth_mib_s,
            started=measured.started or "",
            command=config.command_line(),
            operation=config.operation,
            tasks=run.cell.tasks,
            nodes=run.cell.nodes,
            engine=measured.engine,
        )


def _failure_notes(failed: Mapping[str, Sequence[str]], measured: set[str]) -> Iterator[str]:
    for name, errors in failed.items():
        if name in measured:
            yield from (f"a rerun failed: {error}" for error in errors)
        else:
            yield f"{name} was left out: every rerun failed: {errors[0]}"


def _own_program(application: Application, settings: Settings) -> Path | None:
    """HACC-IO's program in the place of the bundled processes, which do the same at any scale."""
    return find_hacc_io() if application.name == "hacc-io" and settings.scale == 1 else None


def _row(
    application: Application, run: Run, repetition: int, own_program: Path | None
) -> datasets.Run:
    return datasets.Run(
        name=application.name,
        io_nodes=run.io_nodes,
        repetition=repetition,
        bytes=run.bytes,
        time_s=run.time_s,
        bandwidth_mib_s=run.bandwidth_mib_s,
        started=run.started,
        command=own_program.name if own_program else f"bundled {application.name}",
    )
