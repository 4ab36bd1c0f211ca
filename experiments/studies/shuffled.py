"""Runs the benchmarks and reruns of a study in one random order.

If the machine becomes slower in the meantime, this slows benchmarks and applications down alike,
and does not look like an error of the predictions. The order follows from the seed alone, so a
study that was stopped continues in the same order.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from benchdb.campaigns.collecting import failures
from benchdb.campaigns.folder import CampaignFolder, CampaignRun
from benchdb.campaigns.progress_lines import reporting
from benchdb.campaigns.running import one_by_one
from benchdb.campaigns.standing import CampaignProgress
from experiments.applications.launching import Platform
from experiments.studies.rerunning import Planned, rerun
from ioncast_base.errors import IoncastError


def shuffled(
    benchmarks: Sequence[CampaignRun], reruns: Sequence[Planned], seed: int
) -> list[CampaignRun | Planned]:
    """Order the benchmarks and the reruns of a study at random, all together."""
    order: list[CampaignRun | Planned] = [*benchmarks, *reruns]
    random.Random(seed).shuffle(order)  # noqa: S311
    return order


def run_shuffled(
    campaign: CampaignFolder, reruns: Sequence[Planned], platform: Platform, seed: int
) -> dict[str, list[str]]:
    """Run the benchmarks and reruns that have not succeeded yet.

    Parameters
    ----------
    campaign : CampaignFolder
        The benchmarks.
    reruns : sequence of Planned
        The runs of applications.
    platform : Platform
        The platform; it is up.
    seed : int
        Seed of the random order.

    Returns
    -------
    dict of str to list of str
        The errors of the reruns that failed, by application.

    Raises
    ------
    IoncastError
        If all benchmarks or all reruns failed, or benchmarks failed with the same error several
        times in a row.
    """
    order = shuffled(campaign.runs, reruns, seed)
    failed: dict[str, list[str]] = {}
    done = 0
    with one_by_one(campaign) as run_benchmark, reporting("runs: ") as report:
        for number, one in enumerate(order, start=1):
            if isinstance(one, CampaignRun):
                done += run_benchmark(one).state == "done"
            else:
                try:
                    rerun(one, platform)
                    done += 1
                except IoncastError as error:
                    failed.setdefault(one.application.name, []).append(str(error))
            report(CampaignProgress(len(order), done=done, failed=number - done))
    _check_some(campaign, reruns, failed)
    return failed


def _check_some(
    campaign: CampaignFolder, reruns: Sequence[Planned], failed: dict[str, list[str]]
) -> None:
    """Reject a study of which all benchmarks, or all reruns, failed."""
    benchmarks = failures(campaign)
    if len(benchmarks) == len(campaign.runs):
        reason = benchmarks[0][1].reason
        raise IoncastError(f"every benchmark failed: {reason}", where=str(campaign.path))
    if sum(map(len, failed.values())) == len(reruns):
        reasons = (f"{name}: {errors[0]}" for name, errors in failed.items())
        raise IoncastError(f"every rerun failed: {'; '.join(reasons)}")
