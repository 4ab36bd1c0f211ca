"""Runs a case study: its applications' logs, benchmarks of the phases in them, and reruns."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import click

from benchdb.campaigns import folder as folders
from benchdb.campaigns.folder import CampaignFolder
from benchdb.campaigns.platform_file import Platform, read_platform
from benchdb.campaigns.prerequisites import find_engine, find_mdtest
from benchdb.campaigns.progress_lines import reporting
from benchdb.campaigns.standing import CampaignProgress
from experiments import datasets
from experiments.applications.running import run_application
from experiments.applications.spec import Application
from experiments.datasets import LOGS, DataSet
from experiments.platform.emulated import Emulated
from experiments.provenance import Log, Provenance, printable
from experiments.studies.begun import Begun, has_begun, read_begun, write_begun
from experiments.studies.benchmarking import (
    benchmark_runs,
    campaign_of,
    engine_version,
    failed_benchmarks,
    rates,
)
from experiments.studies.machine import this_machine, versions
from experiments.studies.rerunning import Planned, failure_notes, plan_reruns
from experiments.studies.settings import Settings, obstacle, own_program, tracer, untraced
from experiments.studies.shuffled import run_shuffled
from experiments.studies.study import Study
from ioncast_base.errors import InputError
from ioncast_base.files import whole_file
from ioncast_base.toml_files import read_text
from ior_configs.campaign_files import Campaign, to_toml

CAMPAIGN = "campaign"
_RERUNS = "reruns"
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
        Folder for the data set: new, empty, or with the part of the study that ran before it was
        stopped. It gets the campaign's folder too, with all that its benchmarks print.
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
    begun = _begin(study, emulated, folder, replace(settings, engine=engine))
    # Make this first, because an error in it must not cost hours of measuring.
    provenance = _provenance(begun, applications, emulated, site)

    (folder / LOGS).mkdir(exist_ok=True)
    _reference_runs(applications, emulated, folder / LOGS, settings)
    logs = [folder / LOGS / log.file for log in provenance.logs]
    benchmarks = campaign_of(study, logs, site.nodes, settings)
    campaign = _campaign(folder / CAMPAIGN, emulated, site, benchmarks, engine, program)
    (folder / _RERUNS).mkdir(exist_ok=True)
    reruns = plan_reruns(applications, site.io_nodes, settings.repetitions, folder / _RERUNS)
    _tell_plan(campaign, applications, reruns)
    failed = run_shuffled(campaign, reruns, emulated, settings.seed)
    notes += failed_benchmarks(campaign)
    runs = [run for planned in reruns if (run := planned.result)]
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
        rates(campaign),
    )


def _begin(study: Study, emulated: Emulated, folder: Path, settings: Settings) -> Begun:
    """Note in the folder which study it belongs to, unless the study continues there."""
    if has_begun(folder):
        return read_begun(folder)
    begun = Begun(
        study=study.name,
        date=datetime.now(timezone.utc).date().isoformat(),
        platform=emulated.description,
        settings=settings,
    )
    folder.mkdir(parents=True, exist_ok=True)
    write_begun(folder, begun)
    return begun


def _campaign(
    path: Path, emulated: Emulated, site: Platform, benchmarks: Campaign, engine: str, program: str
) -> CampaignFolder:
    """Open the campaign of a study, or create it."""
    if folders.is_campaign(path):
        return folders.read(path)
    # A study that was stopped may have left a part of it.
    shutil.rmtree(path, ignore_errors=True)
    return folders.create(
        path,
        campaign=to_toml(benchmarks),
        platform=read_text(emulated.campaign_platform),
        system=site.system,
        engine=engine,
        program=program,
        mdtest=find_mdtest(site, benchmarks),
        database=None,
    )


def _provenance(
    begun: Begun, applications: Sequence[Application], emulated: Emulated, site: Platform
) -> Provenance:
    """Make the provenance as far as it is known before the first run."""
    settings = begun.settings
    return Provenance(
        study=begun.study,
        command=printable(settings.command),
        date=begun.date,
        seeds=(settings.seed,),
        scale=settings.scale,
        system=site.system,
        tasks=site.nodes * site.processes_per_node,
        nodes=site.nodes,
        engine=settings.engine or "",
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
            report(CampaignProgress(len(applications), done=number, failed=0))
            log = _log(application, emulated, settings)
            if (folder / log.file).exists():
                continue
            darshan = tracer(application, settings)
            with whole_file(folder / log.file) as part:
                run_application(
                    application,
                    emulated,
                    log.io_nodes,
                    log=part,
                    darshan=darshan,
                    hacc_io_program=own_program(application) if darshan else None,
                )
        report(CampaignProgress(len(applications), done=len(applications), failed=0))


def _tell_plan(
    campaign: CampaignFolder, applications: Sequence[Application], reruns: Sequence[Planned]
) -> None:
    """Print how many runs are to come."""
    configs = {run.cell.config for run in campaign.runs}
    numbers, repetitions = len(campaign.platform.io_nodes), campaign.campaign.repetitions
    click.echo(
        f"ioncast: {len(campaign.runs) + len(reruns)} runs: benchmarks: {len(configs)},"
        f" applications: {len(applications)}, numbers of I/O nodes: {numbers}, repetitions:"
        f" {repetitions}",
        err=True,
    )
