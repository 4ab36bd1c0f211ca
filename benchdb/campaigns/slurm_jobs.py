"""Single runs of a campaign as jobs of Slurm, for an order that IOPS does not know."""

from __future__ import annotations

import hashlib
import shlex
import subprocess
from contextlib import suppress
from pathlib import Path

from benchdb.campaigns.folder import CampaignFolder, CampaignRun
from benchdb.campaigns.script import filled

_CANCEL_SECONDS = 30.0


def job_script(folder: CampaignFolder, run: CampaignRun, script: Path) -> str:
    """Write the job script of a run: the platform's directives, and the script of its cell."""
    slurm = folder.platform.slurm
    directives = () if slurm is None else slurm.directives
    lines = [f"#SBATCH {filled(line, run.cell)}" for line in directives]
    command = f"exec bash {shlex.quote(str(script))} {run.repetition}"
    return "\n".join(["#!/bin/bash", *lines, command, ""])


def sbatch_command(folder: CampaignFolder) -> list[str]:
    """The command that submits the job script on its standard input, and waits for the job.

    Runs disturb each other, so a job waits in the queue until the one before it has ended.
    """
    name = _job_name(folder)
    return ["sbatch", "--wait", "--quiet", f"--job-name={name}", "--dependency=singleton"]


def cancel_jobs(folder: CampaignFolder) -> None:
    """Cancel the waiting and running jobs of a campaign, if it uses Slurm."""
    if folder.platform.slurm is None:
        return
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(  # noqa: S603 - Slurm's own program, found on the path
            ["scancel", "--me", f"--name={_job_name(folder)}"],  # noqa: S607
            check=False,
            capture_output=True,
            timeout=_CANCEL_SECONDS,
        )


def _job_name(folder: CampaignFolder) -> str:
    """The name of a campaign's jobs, which no other campaign has."""
    return f"ioncast-{hashlib.sha256(str(folder.path).encode()).hexdigest()[:16]}"
