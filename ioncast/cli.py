"""The `ioncast` command, which collects the commands of all rooms."""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import os
import sys
from collections.abc import Mapping

import click

from ioncast.next_steps import suggest_next
from ioncast_base.command_options import CommandGroup, complain
from ioncast_base.errors import IoncastError, missing_package

# The place of each command and the first sentence of its help. A command is imported when it is
# used, so it starts without the libraries of other rooms, and `ioncast --help` without all.
COMMANDS = {
    "phases": ("summario.commands:phases", "Print the I/O phases of Darshan logs."),
    "characterize": (
        "ioncast.insights.characterize_command:characterize",
        "Print tables of what an application does to storage, from its Darshan logs.",
    ),
    "check": (
        "ioncast.checks_command:check",
        "Tell why the I/O of a run is slow: causes in the order of the time that each could save.",
    ),
    "timeline": (
        "ioncast.timeline_command:timeline",
        "Draw which ranks read and wrote when: MPI-IO above POSIX.",
    ),
    "layers": (
        "ioncast.layers_command:layers",
        "Tell how long MPI-IO calls take in each layer, and at which servers.",
    ),
    "trace": (
        "ioncast.trace_command:trace",
        "Run a program under Darshan, and tell why its I/O is slow.",
    ),
    "sql": ("ioncast.sql_command:sql", "Ask about the facts of Darshan logs in SQL."),
    "ingest": (
        "ioncast.ingest_command:ingest",
        "Put the facts of Darshan logs into a store, on all cores or with Spark.",
    ),
    "store": (
        "ioncast.store_command:store",
        "Look at a store of logs' facts, and remove logs from it.",
    ),
    "servers": (
        "ioncast.servers_command:servers",
        "Put samples of servers' logs into a store.",
    ),
    "survey": (
        "ioncast.survey_command:survey",
        "Describe the I/O of all jobs: users, programs, files, MPI-IO, slow runs.",
    ),
    "interference": (
        "ioncast.interference_command:interference",
        "Tell which jobs disturb each other on servers and I/O nodes.",
    ),
    "worth": (
        "ioncast.worth_command:worth",
        "Tell what I/O nodes would be worth for a centre's own queue.",
    ),
    "diagnose": (
        "ioncast.diagnose_command:diagnose",
        "Tell whether a run was slow, and by which cause: configuration, application or system.",
    ),
    "match": (
        "predictor.commands:match",
        "Print the IOR run that does the same I/O as each phase, ready to paste.",
    ),
    "predict": (
        "predictor.commands:predict_command",
        "Predict a job's bandwidth with each number of I/O nodes, and decide on one.",
    ),
    "advise": (
        "ioncast.advise_command:advise",
        "Predict what following advice would save, in MiB/s and in seconds a run.",
    ),
    "validate": (
        "predictor.validation.command:validate",
        "Compare predictions with measured reruns.",
    ),
    "model": (
        "predictor.model.commands:model",
        "Fit the models that predictions use, and show them.",
    ),
    "bench": (
        "benchdb.commands:bench",
        "Import benchmark results into the database, show them and export them.",
    ),
    "campaign": (
        "benchdb.campaigns.commands:campaign",
        "Run benchmarks in random order, and store every result in the database.",
    ),
    "history": (
        "ioncast.service.history_commands:history",
        "Change the history of applications, which decisions rest on.",
    ),
    "serve": (
        "ioncast.service.running.command:serve",
        "Answer schedulers' questions over HTTP, and show pages.",
    ),
    "token": (
        "ioncast.service.token_commands:token",
        "Manage the tokens that let clients use the service.",
    ),
    "decisions": (
        "ioncast.service.pausing_commands:decisions",
        "Pause and resume the decisions for a system.",
    ),
    "system": (
        "benchdb.system_commands:system",
        "Note that a machine has changed: older measurements and outcomes no longer count.",
    ),
    "why": (
        "scheduler_plugin.why_command:why",
        "Say why a job got its number of I/O nodes, what bandwidth it got, and whether it was"
        " slow.",
    ),
    "allocate": (
        "scheduler_plugin.allocate_command:allocate_command",
        "Divide a pool of I/O nodes among several jobs.",
    ),
    "doctor": (
        "ioncast.doctor_command:doctor",
        "Tell what is installed, reachable, writable and current here, and what to do.",
    ),
    "slurm": (
        "scheduler_plugin.commands:slurm",
        "Set up and check all parts, send Darshan logs, and divide I/O nodes among jobs.",
    ),
    "platform": (
        "experiments.platform.commands:platform",
        "Emulate I/O nodes on one machine, with real daemons and shaped links.",
    ),
    "experiment": (
        "experiments.commands:experiment",
        "Rerun case studies on an emulated platform, check published tables, and simulate queues.",
    ),
}
# Commands without linear algebra. When numpy is imported, its OpenBLAS starts a thread for each
# core, which takes as long as the import itself.
WITHOUT_LINEAR_ALGEBRA = ("phases", "characterize", "check", "timeline", "trace", "match")
# Subcommands from other rooms: the predictor decides what a campaign should measure, and sees a
# change of a system in its outcomes.
SUBCOMMANDS = {
    "campaign": {
        "plan": "predictor.planning.plan_command:plan",
        "run": "predictor.planning.run_command:run",
        "resume": "predictor.planning.run_command:resume",
    },
    "system": {"show": "ioncast.service.system_command:show"},
}


class Rooms(CommandGroup):
    """A group whose commands are in modules of the rooms."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands in the order in which a new user needs them."""
        return list(COMMANDS)

    def first_sentence(self, ctx: click.Context, name: str) -> str:
        """Describe a command without importing it."""
        return COMMANDS[name][1]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        if cmd_name in WITHOUT_LINEAR_ALGEBRA:
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        command = _load(COMMANDS[cmd_name][0])
        if isinstance(command, click.Group) and cmd_name in SUBCOMMANDS:
            return Extended(command, SUBCOMMANDS[cmd_name])
        return command


class Extended(CommandGroup):
    """A room's group with commands of other rooms, imported when used.

    Parameters
    ----------
    group : click.Group
        The room's group.
    others : mapping of str to str
        The other commands: "module:function" by name.
    """

    def __init__(self, group: click.Group, others: Mapping[str, str]) -> None:
        super().__init__(
            group.name,
            group.commands,
            callback=group.callback,
            params=group.params,
            help=group.help,
            epilog=group.epilog,
        )
        self._others = others

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name all commands of the group."""
        return sorted([*self.commands, *self._others])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the room's own command, or import another room's."""
        if cmd_name in self._others:
            return _load(self._others[cmd_name])
        return super().get_command(ctx, cmd_name)


def _load(place: str) -> click.Command:
    module, attribute = place.split(":")
    command: click.Command = getattr(importlib.import_module(module), attribute)
    return command


@click.group(
    cls=Rooms,
    epilog="""\b
Examples:
  ioncast phases app.darshan
  ioncast bench import results/*.json --system mysite --io-nodes 4
  ioncast predict app.darshan --system mysite --nodes 16
""",
)
@click.version_option(package_name="ioncast")
def cli() -> None:
    """Predict I/O bandwidth with 0, 1, 2, 4, 8 … I/O nodes from a Darshan log."""


def _run() -> None:
    try:
        code = cli.main(prog_name="ioncast", standalone_mode=False)
    except SystemExit as ended:
        code = ended.code
    if not code:
        suggest_next(sys.argv[1:])
    sys.exit(code)


def main() -> None:
    """Run the command; a problem that a user can solve is one line and exit code 2."""
    # At its end Python searches all objects for cycles, which takes a tenth of a command's time.
    # Frozen objects are freed without that.
    atexit.register(gc.freeze)
    for stream in (sys.stdout, sys.stderr):
        # Names in files may have letters that the terminal cannot show.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        _run()
    except IoncastError as error:
        complain(str(error))
        sys.exit(error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "ioncast"
        message = " ".join(error.format_message().split()).rstrip(".")
        complain(f"{message}; see `{command} --help`")
        sys.exit(2)
    except click.Abort:
        complain("stopped")
        sys.exit(130)
    except BrokenPipeError:
        # The reader of the output closed the pipe, as `head` does. Python must not flush into it
        # at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except MemoryError:
        click.echo(
            "ioncast: the memory is not enough; give fewer or smaller files, or use a computer"
            " with more memory",
            err=True,
        )
        sys.exit(2)
    except ModuleNotFoundError as error:
        missing = missing_package(error, f"ioncast {sys.argv[1]}")
        if missing is None:
            raise
        complain(str(missing))
        sys.exit(missing.exit_code)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        complain(f"{where}{error.strerror or error}")
        sys.exit(2)
