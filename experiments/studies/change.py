"""Benchmarks before and after a change of the platform.

The same campaign runs on the bundled platform, and on one whose I/O nodes and storage have slower
links. The ratio of both rates is not the same, so the best numbers of I/O nodes change too.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import product
from pathlib import Path

from benchdb.campaigns import folder as folders
from benchdb.campaigns.folder import CampaignFolder
from benchdb.campaigns.platform_file import read_platform
from benchdb.campaigns.prerequisites import find_engine
from benchdb.campaigns.progress_lines import reporting
from benchdb.campaigns.running import one_by_one
from benchdb.campaigns.standing import CampaignProgress
from experiments.datasets import BenchmarkRun, csv_of
from experiments.platform.description import Description, read_description
from experiments.platform.emulated import Emulated
from experiments.provenance import PROVENANCE, Provenance, printable
from experiments.published import PrintedTable, publish
from experiments.studies.benchmarking import benchmark_runs, engine_version, failed_benchmarks
from experiments.studies.change_tables import AFTER, BEFORE, NAME, change_tables
from experiments.studies.conducting import brought_up
from experiments.studies.machine import this_machine, versions
from experiments.studies.settings import check_new
from ioncast_base import signals
from ioncast_base.errors import IoncastError
from ioncast_base.files import write_file
from ioncast_base.toml_files import read_text
from ior_configs import IorConfig
from ior_configs.campaign_files import Campaign, to_toml

_KIB, _MIB = 1 << 10, 1 << 20
# The links of the bundled platform have 480 and 400 Mbit/s.
_NEW_RATES = {"io_nodes": "240mbit", "storage": "300mbit"}
# Small requests are limited by the servers' time for each, so few bytes take as long.
_SIZES = ((64 * _KIB, _MIB), (_MIB, 4 * _MIB))


@dataclass(frozen=True)
class ChangeOptions:
    """How much the study measures, and with which engine (None: IOR, or else fio)."""

    repetitions: int
    seed: int
    engine: str | None


def patterns(description: Description) -> tuple[IorConfig, ...]:
    """Make the patterns: reads and writes, of shared and own files, small and large requests."""
    return tuple(
        IorConfig(
            write=not is_read,
            read=is_read,
            file_per_process=is_own,
            transfer_size=request,
            block_size=block,
            fsync="end",
            tasks=description.tasks,
            nodes=description.compute_nodes.count,
        )
        for is_read, is_own, (request, block) in product((False, True), (False, True), _SIZES)
    )


def changed(description: Description) -> Description:
    """Describe the platform after the change."""
    links = description.links.model_copy(update=_NEW_RATES)
    return description.model_copy(update={"links": links})


def conduct(folder: Path, options: ChangeOptions, command: str) -> tuple[PrintedTable, ...]:
    """Bring both platforms up, one after the other, measure, and write a data set with its tables.

    Raises
    ------
    InputError
        If the folder exists, or there is no program for the benchmarks.
    IoncastError
        If all benchmarks of a campaign fail.
    """
    check_new(folder)
    first = read_description()
    with signals.raised():
        with brought_up(first) as emulated:
            campaign = measure(emulated, folder, BEFORE, options)
            provenance = _provenance(emulated, campaign, options, command)
        with brought_up(changed(first)) as emulated:
            notes = (*provenance.notes, *_notes(measure(emulated, folder, AFTER, options), AFTER))
    provenance = provenance.model_copy(update={"notes": notes})
    write_file(folder / PROVENANCE, provenance.model_dump_json(indent=1) + "\n")
    tables = change_tables(folder)
    publish(folder, tables)
    return tables


def measure(emulated: Emulated, folder: Path, name: str, options: ChangeOptions) -> CampaignFolder:
    """Run the patterns with all numbers of I/O nodes in random order, and write their runs.

    Parameters
    ----------
    name : str
        The name of the CSV file, `BEFORE` or `AFTER`; the campaign's folder is named after it.

    Raises
    ------
    IoncastError
        If all benchmarks fail.
    """
    site = read_platform(emulated.campaign_platform)
    engine, program = find_engine(site, options.engine)
    planned = Campaign(
        name=NAME,
        description="Benchmarks before and after a change of the platform",
        repetitions=options.repetitions,
        seed=options.seed,
        spread_s=None,
        configurations=patterns(emulated.description),
    )
    folder.mkdir(parents=True, exist_ok=True)
    campaign = folders.create(
        folder / Path(name).stem.replace("benchmarks", "campaign"),
        campaign=to_toml(planned),
        platform=read_text(emulated.campaign_platform),
        system=site.system,
        engine=engine,
        program=program,
        database=None,
    )
    order = random.Random(options.seed).sample(campaign.runs, len(campaign.runs))  # noqa: S311
    done = 0
    with one_by_one(campaign) as run_benchmark, reporting("runs: ") as report:
        for number, run in enumerate(order, start=1):
            done += run_benchmark(run).state == "done"
            report(CampaignProgress(len(order), done=done, failed=number - done))
    if not done:
        raise IoncastError(failed_benchmarks(campaign)[0], where=str(campaign.path))
    write_file(folder / name, csv_of(BenchmarkRun, benchmark_runs(campaign)))
    return campaign


def _provenance(
    emulated: Emulated, campaign: CampaignFolder, options: ChangeOptions, command: str
) -> Provenance:
    description = emulated.description
    rates = ", ".join(f"{kind} {rate}" for kind, rate in _NEW_RATES.items())
    return Provenance(
        study=NAME,
        command=printable(command),
        date=datetime.now(timezone.utc).date().isoformat(),
        seeds=(options.seed,),
        scale=None,
        system=description.name,
        tasks=description.tasks,
        nodes=description.compute_nodes.count,
        engine=campaign.engine,
        platform=description.model_dump(mode="json"),
        machine=this_machine(),
        versions={**versions(), **engine_version(campaign)},
        logs=(),
        notes=(
            f"the platform is that before the change; links after it: {rates}",
            *_notes(campaign, BEFORE),
        ),
    )


def _notes(campaign: CampaignFolder, name: str) -> tuple[str, ...]:
    return tuple(printable(f"{name}: {failure}") for failure in failed_benchmarks(campaign))
