"""`ioncast platform`: brings emulated platforms up and down, and runs programs on them."""

from __future__ import annotations

import json
from dataclasses import replace

import click

from experiments.platform.description import BUNDLED, check_name, read_description
from experiments.platform.emulator import chosen_name, down, find, up
from experiments.platform.ranks import run_ranks
from experiments.platform.status import status_of
from ioncast_base.command_options import CommandGroup, WholeNumber, table_format_option


@click.group(
    cls=CommandGroup,
    epilog="""\b
Examples:
  ioncast platform up
  ioncast platform status
  ioncast platform exec --io-nodes 4 --tasks 16 -- ./writer /run/ioncast-platform/testbed/scratch
  ioncast platform down
""",
)
def platform() -> None:
    """Emulate I/O nodes on one machine, with real daemons and shaped links."""


@platform.command(
    "up",
    epilog="""\b
Examples:
  ioncast platform up
  ioncast platform up mine.toml
  ioncast platform up --name second
""",
)
@click.argument("file", metavar="[FILE.toml]", type=click.Path(), default=str(BUNDLED))
@click.option("--name", help="Name of the platform.  [default: the name in the file]")
def up_command(file: str, name: str | None) -> None:
    """Bring a platform up, from a description in TOML or from the one that comes with ioncast.

    The output names its file system and its platform file for `ioncast campaign`. Root only.
    """
    description = read_description(file)
    if name is not None:
        description = description.model_copy(update={"name": check_name(name)})
    emulated = up(description)
    click.echo(f"{emulated.name} is up: its file system is {emulated.scratch},")
    click.echo(f"its platform file for `ioncast campaign` is {emulated.campaign_platform}")


@platform.command(
    "down",
    epilog="""\b
Examples:
  ioncast platform down
  ioncast platform down second
""",
)
@click.argument("name", default=lambda: read_description().name)
def down_command(name: str) -> None:
    """Remove a platform, or what is left of it: namespaces, processes, mounts and files.

    Without NAME, this is the platform that comes with ioncast. If nothing of it exists, the
    command does nothing.
    """
    click.echo(f"{name} is {'down' if down(name) else 'not up'}")


@platform.command(
    "status",
    epilog="""\b
Examples:
  ioncast platform status
  ioncast platform status second --format json
""",
)
@click.argument("name", required=False)
@table_format_option
def status_command(name: str | None, output_format: str) -> None:
    """Show which nodes of a platform work, or what is left of one that is not up.

    The exit code is 0 if everything works, else 1. NAME can be left out if there is only one
    platform.
    """
    status = status_of(chosen_name(name))
    if output_format == "json":
        click.echo(json.dumps(status.to_record(), indent=2))
    else:
        click.echo(status.to_text())
    click.get_current_context().exit(0 if status.works else 1)


@platform.command(
    "exec",
    context_settings={"ignore_unknown_options": True},
    epilog="""\b
Examples:
  ioncast platform exec --io-nodes 4 -- ./writer --size 64m
  ioncast platform exec --io-nodes 0 --tasks 16 --mpi -- ior -a POSIX -w -F -b 4m -t 1m
  ioncast platform exec --name second --io-nodes 2 --tasks 4 --nodes 4 -- hostname
  ioncast platform exec --on cn0,cn1 --through io3 -- ./writer --size 64m
""",
)
@click.option("--name", help="Name of the platform.  [default: the only one that is up]")
@click.option(
    "--io-nodes",
    type=WholeNumber(min=0),
    help="Number of I/O nodes; 0 is direct access.",
)
@click.option(
    "--tasks",
    type=WholeNumber(1, 100_000),
    help="Number of processes.  [default: the processes per node of the description, on all nodes]",
)
@click.option(
    "--nodes",
    type=WholeNumber(min=1),
    help="Number of compute nodes, over which the processes are spread in blocks.  [default: all]",
)
@click.option(
    "--first-node",
    type=WholeNumber(min=0),
    default=0,
    show_default=True,
    help="The first of the compute nodes, for programs that run side by side.",
)
@click.option(
    "--on",
    metavar="NAME,...",
    help="The compute nodes by their names, such as cn0,cn1, for a run with --through.",
)
@click.option(
    "--through",
    metavar="NAME,...",
    help="The I/O nodes by their names, such as io3, instead of --io-nodes.",
)
@click.option("--mpi", is_flag=True, help="Start the processes with mpiexec.")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def exec_command(
    name: str | None,
    io_nodes: int | None,
    tasks: int | None,
    nodes: int | None,
    first_node: int,
    on: str | None,
    through: str | None,
    mpi: bool,
    program: tuple[str, ...],
) -> None:
    """Run a program with its processes spread over the compute nodes.

    Every process finds the file system at the same path, as its own compute node sees it.
    Without --mpi, IONCAST_RANK and IONCAST_TASKS tell a process its number and the number of
    all. The standard input is empty. If a process fails, or on Ctrl-C, all are ended; the exit
    code is that of the first process that failed. --on and --through need a platform with
    `[placement] any = true`.
    """
    by_name = on is not None and through is not None and nodes is None and not first_node
    by_number = io_nodes is not None and on is None and through is None
    if (not by_name and not by_number) or (by_name and io_nodes is not None):
        raise click.UsageError(
            "give either --on and --through, or --io-nodes with --nodes and --first-node"
        )
    emulated = replace(find(chosen_name(name)), first_node=first_node)
    if io_nodes is not None:
        placement = emulated.place(io_nodes=io_nodes, tasks=tasks, nodes=nodes)
    else:
        names = ((text or "").split(",") for text in (on, through))
        placement = emulated.place_through(*names, tasks=tasks)
    click.get_current_context().exit(run_ranks(emulated, program, placement, mpi=mpi))
