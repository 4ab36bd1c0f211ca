"""Shows the progress of a campaign on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
import humanize

from benchdb.campaigns.standing import CampaignProgress
from ioncast_base.wording import counted


def progress_text(progress: CampaignProgress) -> str:
    """The progress in words, such as ``3 of 8 runs done, 1 failed, 2 minutes left``."""
    text = f"{progress.done} of {counted(progress.runs, 'run')} done"
    if progress.failed:
        text += f", {progress.failed} failed"
    if progress.left and progress.seconds_left is not None:
        text += f", {humanize.naturaldelta(progress.seconds_left)} left"
    return text


@contextmanager
def reporting(label: str = "") -> Iterator[Callable[[CampaignProgress], None]]:
    """Give a function that shows progress.

    A terminal gets one line that changes; a file gets a new line after each twentieth of the runs.
    """
    twentieth, within_line = -1, False

    def report(progress: CampaignProgress) -> None:
        nonlocal twentieth, within_line
        reached = 20 * (progress.runs - progress.left) // progress.runs
        if sys.stderr.isatty():
            click.echo(f"\r\033[K{label}{progress_text(progress)}", err=True, nl=False)
            within_line = True
        elif reached > twentieth:
            click.echo(f"{label}{progress_text(progress)}", err=True)
        twentieth = reached

    try:
        yield report
    finally:
        if within_line:
            click.echo(err=True)
