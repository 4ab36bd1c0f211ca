"""`ioncast platform`: an I/O-forwarding platform on one machine."""

from __future__ import annotations

import json

import click

from experiments.platform.description import BUNDLED, check_name, read_description
from experiments.platform.emulator import chosen_name, down, find, up
from experiments.platform.ranks import run_ranks
from experiments.platform.status import status_of
from ioncast_base.command_options import format_option


@click.group(
    epilog="""\b
Examples:
  ioncast platform up
  ioncast platform status
  ioncast platform exec --io-nodes 4 --tasks 16 -- ./writer /run/ioncast-platform/testbed/scratch
  ioncast platform down
"""
)
def platform() -> None:
    """Emulate I/O nodes on one machine: real daemons, shaped links."""


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
@click.option("--name", help="What to call it.  [default: the name in the file]")
def up_command(file: str, name: str | None) -> None:
    """Bring a platform up, from a description or the one that comes with ioncast.

    The last line says how to run something on it. Root only.
    """
    description = read_description(file)
    if name is not None:
        description = description.model_copy(update={"name": check_name(name)})
    emulated = up(description)
    click.echo(f"{emulated.name} is up: its file system is {emulated.scratch},")
    click.echo(f"its platform file for `ioncast campaign` {emulated.campaign_platform}")


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
    """Remove a platform, or whatever is left of one: namespaces, processes, mounts, files.

    Without a name, the one that comes with ioncast. Where nothing is there, nothing is done.
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
@format_option
def status_command(name: str | None, output_format: str) -> None:
    """Show what works of a platform, or what is left of one that is not up.

    The exit code is 0 if everything works, 1 otherwise. Without a name, the only one there is.
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
""",
)
@click.option("--name", help="Of the platform.  [default: the only one that is up]")
@click.option("--io-nodes", type=click.IntRange(min=0), required=True, help="0 is direct access.")
@click.option(
    "--tasks",
    type=click.IntRange(1, 100_000),
    help="Processes.  [default: as many as the description has places for]",
)
@click.option(
    "--nodes",
    type=click.IntRange(min=1),
    help="Compute nodes that they are spread over in blocks.  [default: all]",
)
@click.option("--mpi", is_flag=True, help="Start them with mpiexec.")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def exec_command(
    name: str | None,
    io_nodes: int,
    tasks: int | None,
    nodes: int | None,
    mpi: bool,
    program: tuple[str, ...],
) -> None:
    """Run a program with its processes spread over the compute nodes.

    Each finds the file system at the same path, as its own compute node sees it. Without
    --mpi the processes are told who they are by IONCAST_RANK and IONCAST_TASKS. Their standard
    input is empty. When one fails, or on Ctrl-C, all are ended; the exit code is that of the
    first that failed.
    """
    emulated = find(chosen_name(name))
    placement = emulated.place(io_nodes=io_nodes, tasks=tasks, nodes=nodes)
    click.get_current_context().exit(run_ranks(emulated, program, placement, mpi=mpi))
