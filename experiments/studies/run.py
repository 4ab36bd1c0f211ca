"""Running a case study: logs of its applications, benchmarks of what is in them, reruns."""

from __future__ import annotations

import importlib.util
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from benchdb.campaigns import folder as folders
from benchdb.campaigns.commands import find_engine
from benchdb.campaigns.folder import CampaignFolder
from benchdb.campaigns.platform import Platform, read_platform
from benchdb.campaigns.results import failures, measurement_of, result_of
from benchdb.campaigns.running import Progress, run_campaign
from benchdb.measurements import Measurement
from benchdb.store import opened_database
from experiments import datasets
from experiments.applications.running import Run, find_hacc_io, run_application
from experiments.applications.spec import Application
from experiments.datasets import LOGS, BenchmarkRun, DataSet, Log, Provenance
from experiments.platform.emulator import Emulated
from experiments.studies.machine import this_machine, versions
from experiments.studies.study import Study
from ioncast_errors import InputError, IoncastError
from ior_configs import IorConfig
from ior_configs.campaign import Campaign, to_toml
from ior_configs.sizes import format_size
from ior_configs.toml_files import read_text
from predictor.needs import wanted_of
from summario.extract import extract_phases
from summario.log import LogReader
from summario.phases import Phase

CAMPAIGN = "campaign"
# Share of a job's bytes.
_WORTH = 0.05
_DAY = len("2026-11-21")
_LAYOUTS = {"contiguous": "contig", "1d-strided": "strided", "random": "random"}
_LOG_SOURCES = {
    "darshan": "Darshan's runtime",
    "counters": "libdarshan-util's writer, with the true counters of the run",
}


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
        The library of Darshan's runtime; without it, logs are written from the runs' own counters.
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
        When an application's run for its log fails, or all of its others, or every benchmark.
    """
    site = read_platform(emulated.campaign_platform)
    engine, program = find_engine(site, settings.engine)
    asked = study.applications(site.nodes * site.processes_per_node, site.nodes, settings.scale)
    left_out = {one.name: why for one in asked if (why := obstacle(one, engine))}
    applications = [one for one in asked if one.name not in left_out]
    notes = [f"{name} was left out: {why}" for name, why in left_out.items()]
    if not applications:
        raise InputError("; ".join(notes))

    (folder / LOGS).mkdir(parents=True)
    logs = _reference_runs(applications, emulated, folder / LOGS, settings)
    campaign = folders.create(
        folder / CAMPAIGN,
        campaign=to_toml(_campaign(study, folder / LOGS, logs, site.nodes, settings)),
        platform=read_text(emulated.campaign_platform),
        system=site.system,
        engine=engine,
        program=program,
        database=None,
    )
    notes += _run_benchmarks(campaign)
    runs, failed = _reruns(applications, emulated, site, settings)
    provenance = Provenance(
        study=study.name,
        command=settings.command,
        date=min(run.started for run in runs)[:_DAY],
        seeds=(settings.seed,),
        scale=settings.scale,
        system=site.system,
        tasks=site.nodes * site.processes_per_node,
        nodes=site.nodes,
        engine=engine,
        platform=emulated.description.model_dump(mode="json"),
        machine=this_machine(),
        versions={**versions(), **_engine_version(campaign)},
        logs=tuple(logs),
        notes=(*notes, *failed),
    )
    return datasets.write(folder, provenance, _benchmark_runs(campaign), runs)


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
    return None if importlib.util.find_spec("mpi4py") else "mpi4py is not installed"


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


def _reference_runs(
    applications: Sequence[Application], emulated: Emulated, folder: Path, settings: Settings
) -> list[Log]:
    """Run each application once without I/O nodes, for its log."""
    logs = []
    io_nodes = min(emulated.description.io_nodes)
    with _progress("reference runs", len(applications)) as show:
        for application in applications:
            file = f"{application.name}-ionodes{io_nodes}.darshan"
            run = run_application(
                application,
                emulated,
                io_nodes,
                log=folder / file,
                darshan=settings.darshan,
                hacc_io_program=_own_program(application, settings) if settings.darshan else None,
            )
            source = _LOG_SOURCES[run.log_source or "counters"]
            logs.append(
                Log(file=file, application=application.name, io_nodes=io_nodes, source=source)
            )
            show(len(logs))
    return logs


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


def _run_benchmarks(campaign: CampaignFolder) -> list[str]:
    """Run a campaign to its end; what failed of it, as clauses."""
    with (
        tempfile.TemporaryDirectory(prefix="ioncast-") as scratch,
        opened_database(Path(scratch) / "campaign.sqlite") as database,
        _progress("benchmarks", len(campaign.runs)) as show,
    ):

        def report(progress: Progress) -> None:
            show(progress.runs - progress.left)

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


def _reruns(
    applications: Sequence[Application], emulated: Emulated, site: Platform, settings: Settings
) -> tuple[list[datasets.Run], list[str]]:
    """Run the applications with all numbers of I/O nodes, in random order; what failed of it."""
    plan = [
        (application, io_nodes, repetition)
        for application in applications
        for io_nodes in site.io_nodes
        for repetition in range(1, settings.repetitions + 1)
    ]
    random.Random(settings.seed).shuffle(plan)  # noqa: S311
    rows, failed = [], []
    with _progress("reruns", len(plan)) as show:
        for application, io_nodes, repetition in plan:
            own = _own_program(application, settings)
            try:
                run = run_application(application, emulated, io_nodes, hacc_io_program=own)
            except IoncastError as error:
                failed.append(f"a rerun failed: {error}")
            else:
                rows.append(_row(application, run, repetition, own))
            show(len(rows) + len(failed))
    for application in applications:
        if all(row.name != application.name for row in rows):
            raise IoncastError(f"every rerun of {application.name} failed: {failed[0]}")
    return rows, failed


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


@contextmanager
def _progress(label: str, length: int) -> Iterator[Callable[[int], None]]:
    """Show how many are done: in place on a terminal, else in a line now and then."""
    if sys.stderr.isatty():
        with click.progressbar(length=length, label=label, file=sys.stderr, show_pos=True) as bar:
            yield lambda done: bar.update(done - bar.pos)
        return
    step, shown = max(1, length // 10), 0
    click.echo(f"{label}: {length}", err=True)

    def show(done: int) -> None:
        nonlocal shown
        if done >= min(shown + step, length) and done > shown:
            shown = done
            click.echo(f"{label}: {done} of {length}", err=True)

    yield show
