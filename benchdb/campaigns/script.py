"""Writes the shell script that runs one cell; the argument of the script is the repetition.

The script may run on a compute node, so it needs only bash, flock and the GNU core utilities. A run
that has finished is never repeated, because its folder has its exit code.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable
from functools import partial
from string import Template
from typing import Any

from benchdb.campaigns.engines import BenchmarkJob
from benchdb.campaigns.folder import CampaignCell, CampaignFolder, digest_of
from benchdb.campaigns.mdtest_engine import engine_for
from benchdb.campaigns.platform_file import Platform, fill
from ioncast_base.wording import in_words
from ior_configs import MdtestConfig


def cell_script(folder: CampaignFolder, cell: CampaignCell) -> str:
    """Write the script of a cell."""
    platform, engine = folder.platform, engine_for(cell.config, folder.engine)
    job = job_of(folder, cell)
    switch = platform.io_nodes_switch
    return _SCRIPT.substitute(
        what=f"{cell.config.command_line(launcher=True)} with {in_words(cell.io_nodes)}",
        runs=shlex.quote(str(folder.path / "runs" / cell.name)),
        running=shlex.quote(str(folder.path / "running")),
        stopped=shlex.quote(str(folder.path / "stopped")),
        directory=shlex.quote(filled(platform.test_directory, cell)),
        needed=cell.bytes + platform.free_space_limit,
        environment=exports(platform, partial(filled, cell=cell)),
        before=filled(switch.before, cell),
        after=filled(switch.after, cell),
        prepare="\n".join(f"{line} || return" for line in engine.prepare(job)) or ":",
        measure=engine.measure(job),
        remove="; ".join(engine.remove(job)),
        wait=_wait_line(folder),
    )


def job_of(folder: CampaignFolder, cell: CampaignCell) -> BenchmarkJob[Any]:
    """The run of a cell, as its engine needs it."""
    platform, is_files = folder.platform, isinstance(cell.config, MdtestConfig)
    # Two campaigns may use one directory, so the name has a part of the campaign. It has no number
    # of I/O nodes, because a file system that places files by their names must place them equally.
    campaign = hashlib.sha256(str(folder.path).encode()).hexdigest()[:8]
    name = f"ioncast.{campaign}.{digest_of(cell.config)}"
    return BenchmarkJob(
        config=cell.config,
        program=(folder.mdtest or "") if is_files else folder.program,
        launch=filled(platform.launch, cell),
        test_file=_within(filled(platform.test_directory, cell), name),
        output=engine_for(cell.config, folder.engine).output,
        node_files=tuple(
            _within(directory, name)
            for directory in platform.node_directories(cell.nodes, cell.io_nodes)
        ),
    )


def _within(directory: str, name: str) -> str:
    return f"{directory.rstrip('/')}/{name}"


def filled(template: str, cell: CampaignCell) -> str:
    """Fill a template of the platform with the numbers of a cell."""
    return fill(
        template,
        tasks=cell.tasks,
        nodes=cell.nodes,
        processes_per_node=cell.processes_per_node,
        io_nodes=cell.io_nodes,
    )


def exports(platform: Platform, fill_in: Callable[[str], str]) -> str:
    """The commands that set the environment variables of a run; `fill_in` fills a template."""
    return "\n".join(
        f"export {name}={_in_double_quotes(fill_in(value))}"
        for name, value in platform.io_nodes_switch.environment.items()
    )


def _in_double_quotes(text: str) -> str:
    """Quote a word so that the shell still replaces variables in it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def slot_s(folder: CampaignFolder) -> float:
    """Seconds between the starts of two runs of a campaign that is spread over time; else 0."""
    return (folder.campaign.spread_s or 0) / (len(folder.cells) * folder.campaign.repetitions)


def _wait_line(folder: CampaignFolder) -> str:
    """The command that waits for the next start; a Slurm job does not wait on its nodes."""
    slot = round(slot_s(folder))
    if folder.platform.slurm is not None or not slot:
        return ""
    return f"flock --unlock 9\n[ $SECONDS -ge {slot} ] || sleep $(({slot} - SECONDS))"


# Commands of the platform run in subshells, so that they may call `exit` or `cd`. `9>&-` closes the
# lock there, so that a program that they leave running does not hold it. The colon is the command
# of a function that is empty otherwise.
_SCRIPT = Template("""#!/bin/bash
# $what
run=$runs-r$$1
mkdir -p "$$run" && cd "$$run" || exit 1

stop() {
    echo "$$*" > $stopped.new && mv $stopped.new $stopped
    exit 75
}
# A run of a campaign that was killed may still be running. Wait for its end: two runs would disturb
# each other and remove each other's files.
exec 9>> $running
flock 9 || stop "the file running cannot be locked: flock must work in this folder on all nodes"
if [ -s exit_code ]; then exit "$$(cat exit_code)"; fi
# The orchestrator may start another run before it is stopped.
if [ -e $stopped ]; then exit 75; fi

rm -f cause
exec > log 2>&1
record() {
    echo "$$1" > exit_code.new
    sync ./*
    mv exit_code.new exit_code
}
fail() {
    echo "$$*" | tee cause
    record 1
    exit 1
}
switch_on() (
:
$before
) 9>&-
switch_off() (
:
$after
) 9>&-
prepare() (
$prepare
) 9>&-
measure() (
$measure
) 9>&-
remove() { $remove; }
clean() {
    # A signal that stops the run must not stop the cleaning.
    trap '' TERM INT HUP
    remove
    switch_off || echo "the command after the run failed"
}
room() { df --output="$$1" --block-size=1 $directory | tail -n 1; }

$environment
trap clean EXIT
switch_on || fail "the command before the run failed"
[ -d $directory ] || fail "the test directory" $directory "does not exist"
remove
short() { numfmt --to=iec-i --suffix=B "$$1"; }
[ "$$(room size)" -ge $needed ] ||
    fail $directory "is too small for the test files and free_space_limit: $$(short $needed)"
left=$$(room avail)
if [ "$$left" -lt $needed ]; then
    stop $directory "has $$(short "$$left") free, but the next run and free_space_limit need" \
        "$$(short $needed)"
fi
prepare || fail "the test files could not be prepared"
date --utc +%Y-%m-%dT%H:%M:%S+00:00 > started
measure
code=$$?
clean
trap - EXIT
record "$$code"
trap - TERM INT HUP
$wait
exit "$$code"
""")
