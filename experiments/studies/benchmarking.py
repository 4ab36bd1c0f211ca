"""The benchmarks that stand for the phases in the applications' logs, and their results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchdb.campaigns import folder as folders
from benchdb.campaigns.collecting import failures, measurement_of, rates_of, result_of
from benchdb.campaigns.folder import CampaignFolder
from benchdb.measurements.file_rates import FileRate
from benchdb.measurements.storing import Measurement
from experiments.datasets import BenchmarkRun, phases_of_log
from experiments.studies.settings import Settings
from experiments.studies.study import Study
from ioncast_base.sizes import format_size
from ioncast_base.wording import in_words
from ior_configs import IorConfig, MdtestConfig
from ior_configs.campaign_files import Campaign
from predictor.matching.configurations import tasks
from predictor.planning.needs import wanted_of
from summario.phases.values import Extraction, Phase

# A configuration gets a benchmark if it stands for at least this share of a job's bytes.
_WORTH = 0.05
# Runs of mdtest with fewer files of a process would mostly measure when the processes start.
_FEWEST_FILES = 10
_LAYOUTS = {"contiguous": "contig", "1d-strided": "strided", "random": "random"}


def worth_measuring(phases: Sequence[Phase], nodes: int) -> list[IorConfig]:
    """Choose the configurations that stand for most of a job's bytes.

    The others are left to the model: a benchmark of a few bytes measures how long it takes to
    open a file.

    Parameters
    ----------
    phases : sequence of Phase
        The job's phases.
    nodes : int
        Compute nodes of the platform.
    """
    wanted = wanted_of([Extraction(tuple(phases))], lambda _, tasks: min(nodes, tasks))
    enough = _WORTH * sum(one.bytes for one in wanted.values())
    return [config for config, one in wanted.items() if one.bytes >= enough]


def files_worth_measuring(phases: Sequence[Phase], nodes: int) -> list[MdtestConfig]:
    """Choose the runs of mdtest for phases of many files that are mostly metadata.

    The studies' applications have a folder for each process; a log does not tell.

    Parameters
    ----------
    phases : sequence of Phase
        The job's phases.
    nodes : int
        Compute nodes of the platform.
    """
    return [
        MdtestConfig(
            files_per_process=phase.n_files // tasks(phase),
            bytes_per_file=phase.bytes // phase.n_files,
            own_directory=True,
            tasks=tasks(phase),
            nodes=min(nodes, tasks(phase)),
        )
        for phase in phases
        if phase.is_mostly_metadata
        and phase.file_access == "unique"
        and phase.n_files >= _FEWEST_FILES * tasks(phase)
    ]


def campaign_of(study: Study, logs: Sequence[Path], nodes: int, settings: Settings) -> Campaign:
    """Plan the benchmarks that do the I/O in Darshan logs.

    Parameters
    ----------
    study : Study
        The study, for the campaign's name and description.
    logs : sequence of Path
        One log of each application.
    nodes : int
        Compute nodes of the platform.
    settings : Settings
        The settings of the study.
    """
    jobs = [phases_of_log(log) for log in logs]
    return Campaign(
        name=study.name,
        description=study.title,
        repetitions=settings.repetitions,
        seed=settings.seed,
        spread_s=None,
        configurations=tuple(
            dict.fromkeys(config for phases in jobs for config in worth_measuring(phases, nodes))
        ),
        files=tuple(
            dict.fromkeys(one for phases in jobs for one in files_worth_measuring(phases, nodes))
        ),
    )


def failed_benchmarks(campaign: CampaignFolder) -> list[str]:
    """Say in clauses which benchmarks of a campaign failed."""
    return [
        f"a benchmark failed: {run.cell.config.command_line(launcher=True)} with"
        f" {in_words(run.cell.io_nodes)}, repetition {run.repetition}: {result.reason}"
        for run, result in failures(campaign)
    ]


def benchmark_runs(campaign: CampaignFolder) -> Iterator[BenchmarkRun]:
    """Rows of `benchmarks.csv`, one for each benchmark that succeeded."""
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


def rates(campaign: CampaignFolder) -> list[FileRate]:
    """Rows of `file_rates.csv`, four for each run of mdtest that succeeded."""
    return [
        rate
        for run in _succeeded(campaign)
        if isinstance(run.cell.config, MdtestConfig)
        for rate in rates_of(campaign, run)[-1]
    ]


def engine_version(campaign: CampaignFolder) -> dict[str, str]:
    """The benchmark programs and their versions, for `provenance.json`."""
    known = {campaign.engine: {one.engine_version for _, one in _measurements(campaign)}}
    if campaign.campaign.files:
        known["mdtest"] = {rate.engine_version for rate in rates(campaign)}
    return {
        name: ", ".join(sorted(filter(None, versions))) or "not known"
        for name, versions in known.items()
    }


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
        *([f"cb{config.aggregators}"] if config.aggregators else []),
        "shared" if config.file_access == "shared" else "fpp",
        _LAYOUTS[config.layout],
        format_size(config.transfer_size),
        "of",
        format_size(config.bytes_per_process),
        f"{config.tasks}p",
    ]
    return "-".join(words)


def _measurements(campaign: CampaignFolder) -> Iterator[tuple[folders.CampaignRun, Measurement]]:
    for run in _succeeded(campaign):
        if isinstance(run.cell.config, IorConfig):
            yield run, measurement_of(campaign, run)[-1]


def _succeeded(campaign: CampaignFolder) -> Iterator[folders.CampaignRun]:
    for run in campaign.runs:
        result = result_of(campaign, run)
        if result is not None and result.state == "done":
            yield run
