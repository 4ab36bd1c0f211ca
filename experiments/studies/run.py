"""Runs a case study: its applications' logs, benchmarks of the phases in them, and reruns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import click

from benchdb.campaigns import folder as folders
from benchdb.campaigns.folder import CampaignFolder
from benchdb.campaigns.platform_file import Platform, read_platform
from benchdb.campaigns.progress_lines import reporting
from benchdb.campaigns.readiness.prerequisites import find_engine
from benchdb.campaigns.standing import Progress
from experiments import datasets
from experiments.applications.running import run_application
from experiments.applications.spec import Application
from experiments.datasets import LOGS, DataSet
from experiments.platform.emulated import Emulated
from experiments.provenance import Log, Provenance, printable
from experiments.studies.benchmarking import (
    benchmark_runs,
    campaign_of,
    engine_version,
    run_benchmarks,
)
from experiments.studies.machine import this_machine, versions
from experiments.studies.rerunning import failure_notes, rerun
from experiments.studies.settings import Settings, obstacle, own_program, tracer, untraced
from experiments.studies.study import Study
from ioncast_base.errors import InputError
from ioncast_base.toml_files import read_text
from ior_configs.campaign_files import to_toml

CAMPAIGN = "campaign"
_DARSHAN = "Darshan's runtime"
_COUNTERS = "libdarshan-util's writer, with the true counters of the run"


def run_study(study: Study, emulated: Emulated, folder: Path, settings: Settings) -> DataSet:
    """Run everything that a study measures; progress goes to the standard error.

    Parameters
    ----------
    study : Study
        The study.
    emulated : Emulated
        The platform; it is up.
    folder : Path
        Folder for the data set, new or empty. It gets the campaign's folder too, with all that
        its benchmarks print.
    settings : Settings
        The settings of the study.

    Returns
    -------
    DataSet
        The results.

    Raises
    ------
    InputError
        If no application of the study can run here.
    IoncastError
        If an application's run for its log fails, or all benchmarks or all reruns fail.
    """
    site = read_platform(emulated.campaign_platform)
    engine, program = find_engine(site, settings.engine)
    asked = study.applications(site.nodes * site.processes_per_node, site.nodes, settings.scale)
    left_out = {one.name: why for one in asked if (why := obstacle(one, engine))}
    applications = [one for one in asked if one.name not in left_out]
    notes = [f"{name} was left out: {why}" for name, why in left_out.items()]
    if not applications:
        raise InputError("; ".join(notes))
    notes += [note for one in applications if (note := untraced(one))]
    # Make this first, because an error in it must not cost hours of measuring.
    provenance = _provenance(study, applications, emulated, site, engine, settings)

    (folder / LOGS).mkdir(parents=True)
    _reference_runs(applications, emulated, folder / LOGS, settings)
    logs = [folder / LOGS / log.file for log in provenance.logs]
    campaign = folders.create(
        folder / CAMPAIGN,
        campaign=to_toml(campaign_of(study, logs, site.nodes, settings)),
        platform=read_text(emulated.campaign_platform),
        system=site.system,
        engine=engine,
        program=program,
        database=None,
    )
    _tell_plan(campaign, applications)
    notes += run_benchmarks(campaign)
    runs, failed = rerun(applications, emulated, site.io_nodes, settings)
    measured = {run.name for run in runs}
    return datasets.write(
        folder,
        provenance.model_copy(
            update={
                "versions": {**provenance.versions, **engine_version(campaign)},
                "logs": tuple(log for log in provenance.logs if log.application in measured),
                "notes": tuple(map(printable, [*notes, *failure_notes(failed, measured)])),
            }
        ),
        benchmark_runs(campaign),
        runs,
    )


def _provenance(
    study: Study,
    applications: Sequence[Application],
    emulated: Emulated,
    site: Platform,
    engine: str,
    settings: Settings,
) -> Provenance:
    """Make the provenance as it is known before the first run, which is about to start."""
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
    """Describe the log that the reference run of an application leaves."""
    io_nodes = min(emulated.description.io_nodes)
    return Log(
        file=f"{application.name}-ionodes{io_nodes}.darshan",
        application=application.name,
        io_nodes=io_nodes,
        source=_DARSHAN if tracer(application, settings) else _COUNTERS,
    )


def _reference_runs(
    applications: Sequence[Application], emulated: Emulated, folder: Path, settings: Settings
) -> None:
    """Run each application once with the fewest I/O nodes, for its log."""
    with reporting("reference runs: ") as report:
        for number, application in enumerate(applications):
            report(Progress(len(applications), done=number, failed=0))
            log = _log(application, emulated, settings)
            darshan = tracer(application, settings)
            run_application(
                application,
                emulated,
                log.io_nodes,
                log=folder / log.file,
                darshan=darshan,
                hacc_io_program=own_program(application) if darshan else None,
            )
        report(Progress(len(applications), done=len(applications), failed=0))


def _tell_plan(campaign: CampaignFolder, applications: Sequence[Application]) -> None:
    """Print how many runs are to come."""
    configs = {run.cell.config for run in campaign.runs}
    numbers, repetitions = len(campaign.platform.io_nodes), campaign.campaign.repetitions
    reruns = len(applications) * numbers * repetitions
    click.echo(
        f"ioncast: {len(campaign.runs) + reruns} runs: benchmarks: {len(configs)}, applications:"
        f" {len(applications)}, numbers of I/O nodes: {numbers}, repetitions: {repetitions}",
        err=True,
    )
