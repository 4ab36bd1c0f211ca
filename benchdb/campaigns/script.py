"""The shell script that runs one cell; its argument is the repetition.

It runs where the benchmark is launched, perhaps on a compute node, and so needs nothing but
a shell. A run that ended is not run again, whoever starts it: what it did is in its folder.
"""

from __future__ import annotations

import shlex
from string import Template

from benchdb.campaigns.engines import ENGINES, Job
from benchdb.campaigns.folder import CampaignFolder, Cell
from benchdb.campaigns.platform import fill

OUTPUT = "output.json"


def cell_script(folder: CampaignFolder, cell: Cell) -> str:
    """Write the script of a cell.

    Parameters
    ----------
    folder : CampaignFolder
        The campaign.
    cell : Cell
        One of its cells.

    Returns
    -------
    str
        For bash.
    """
    platform, config, engine = folder.platform, cell.config, ENGINES[folder.engine]
    job = job_of(folder, cell)
    directory = filled(platform.test_directory, folder, cell)
    needed = (config.tasks or 1) * config.bytes_per_process + platform.free_space_limit
    switch = platform.io_nodes_switch
    environment = {name: filled(value, folder, cell) for name, value in switch.environment.items()}
    return _SCRIPT.substitute(
        what=f"{config.command_line(launcher=True)} with {cell.io_nodes} I/O nodes",
        runs=shlex.quote(str(folder.path / "runs" / cell.name)),
        running=shlex.quote(str(folder.path / "running")),
        stopped=shlex.quote(str(folder.path / "stopped")),
        directory=shlex.quote(directory),
        needed=needed,
        environment="\n".join(
            f"export {name}={shlex.quote(value)}" for name, value in environment.items()
        ),
        before=filled(switch.before or "true", folder, cell),
        after=filled(switch.after or "true", folder, cell),
        prepare="\n".join(f"{line} || fail" for line in engine.prepare(job)) or "true",
        measure=engine.measure(job),
        remove="; ".join(engine.remove(job)),
        wait=_wait_line(folder),
    )


def job_of(folder: CampaignFolder, cell: Cell) -> Job:
    """What the engine is told of a cell."""
    directory = filled(folder.platform.test_directory, folder, cell)
    return Job(
        config=cell.config,
        program=folder.program,
        launch=filled(folder.platform.launch, folder, cell),
        test_file=f"{directory.rstrip('/')}/ioncast.{cell.name}",
        output=OUTPUT,
    )


def filled(template: str, folder: CampaignFolder, cell: Cell) -> str:
    """A template of the platform with the numbers of a cell."""
    tasks, nodes = cell.config.tasks or 1, cell.config.nodes or 1
    return fill(
        template,
        tasks=tasks,
        nodes=nodes,
        processes_per_node=-(-tasks // nodes),
        io_nodes=cell.io_nodes,
    )


def slot_s(folder: CampaignFolder) -> float:
    """Seconds from the start of one run to that of the next, where they are spread over time."""
    return (folder.campaign.spread_s or 0) / (len(folder.cells) * folder.campaign.repetitions)


def _wait_line(folder: CampaignFolder) -> str:
    """Wait for the next run's turn; a job does not hold its nodes for that."""
    slot = round(slot_s(folder))
    if folder.platform.slurm is not None or not slot:
        return ""
    return f"flock --unlock 9\n[ $SECONDS -ge {slot} ] || sleep $(({slot} - SECONDS))"


_SCRIPT = Template("""#!/bin/bash
# $what
run=$runs-r$$1
mkdir -p "$$run" && cd "$$run" || exit 1

# A run that outlived its campaign comes to its end first: two would disturb each other.
exec 9>> $running
flock 9 || true
if [ -s exit_code ]; then exit "$$(cat exit_code)"; fi

exec > log 2>&1
record() { echo "$$1" > exit_code.new && mv exit_code.new exit_code; }
fail() { record 1; exit 1; }
remove() { $remove; }
clean() {
    remove
    $after
}

if ! [ -d $directory ]; then
    echo "the test directory" $directory "is not there"
    fail
fi
free=$$(df --output=avail --block-size=1 $directory | tail -n 1)
if [ "$$free" -lt $needed ]; then
    echo $directory "has $$free bytes free, the next run and the limit need $needed" > $stopped
    exit 75
fi

$environment
trap clean EXIT
remove
if ! { $before; }; then
    echo "the command before the run failed"
    fail
fi
$prepare
date --utc +%Y-%m-%dT%H:%M:%S+00:00 > started
$measure
code=$$?
trap - EXIT
clean
record "$$code"
$wait
exit "$$code"
""")
