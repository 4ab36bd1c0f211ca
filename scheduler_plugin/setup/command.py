"""`ioncast slurm setup`: everything beside Slurm up to shadow mode, from a few answers."""

from __future__ import annotations

import grp
import os
import pwd
import re
from pathlib import Path

import click

from ioncast_base.command_options import WholeNumber
from ioncast_base.errors import InputError
from ioncast_base.visible_text import visible
from scheduler_plugin.check.controller import ask_controller
from scheduler_plugin.setup.applying import carry_out, differences, state_of
from scheduler_plugin.setup.plan import (
    PACKAGED_UNITS,
    SLURMRESTD,
    Answers,
    SetupPlan,
    WantedFile,
    setup_plan,
)

_ENVIRONMENT, _SERVICE = Path("/etc/ioncast/environment"), Path("/etc/ioncast/service.toml")
_INSTALL = "install the service first (docs/service.md, Installing)"


@click.command(
    "setup",
    epilog="""\b
Examples:
  ioncast slurm setup --system mysite --pool 8
  ioncast slurm setup --system mysite --pool 8 --yes
""",
)
@click.option("--system", required=True, metavar="NAME", help="The system's name in ioncast.")
@click.option("--pool", required=True, type=WholeNumber(1, 65_536), help="The number of I/O nodes.")
@click.option(
    "--darshan",
    metavar="DIR",
    default="/var/log/darshan",
    show_default=True,
    help="The folder of Darshan's logs: `darshan-config --log-path`.",
)
@click.option(
    "--slurmrestd",
    metavar="ADDRESS",
    default=SLURMRESTD,
    show_default=True,
    help="A slurmrestd that accepts tokens: unix:/PATH or http://HOST:PORT. With the default this"
    " command sets slurmrestd up.",
)
@click.option("--yes", is_flag=True, help="Do it; without this, only show it.")
def setup(system: str, pool: int, darshan: str, slurmrestd: str, yes: bool) -> None:
    """Make users, tokens, settings and units for the watch and the plugin in shadow mode.

    Run it as root on slurmctld's machine, after the service is installed. Without --yes it only
    shows what it would do. Existing files stay as they are, and those with another content are
    listed. It changes no file of Slurm: the last lines say which commands remain.
    """
    answers = Answers(system, pool, darshan.rstrip("/") or "/", slurmrestd)
    slurm = ask_controller()
    has_units = (Path(PACKAGED_UNITS) / "ioncast-watch.service").exists()
    plan = setup_plan(answers, slurm, _group_of(slurm.user), has_packaged_units=has_units)
    if yes:
        if os.geteuid() != 0:
            raise InputError("only root can do this", where="--yes")
        carry_out(plan, _database(), click.echo)
    else:
        _show(plan)
    for file in plan.files:
        if state_of(file) == "differs":
            click.echo(f"differs, and stays: {file.path}")
            for line in differences(file):
                click.echo(f"    {visible(line)}")
    if not Path(answers.darshan).is_dir():
        click.echo(f"missing: {visible(answers.darshan)}, the folder of Darshan's logs")
        click.echo("    The watch starts when it is there: docs/slurm.md, Darshan's folders;")
        click.echo("    for another folder give --darshan, or change watch.toml.")
    click.echo("\nThen run:" if yes else "\nThen, after the same command with --yes, run:")
    for line in plan.by_hand:
        click.echo(f"  {line}")


def _show(plan: SetupPlan) -> None:
    """Print the plan: lines of systemd-sysusers and systemd-tmpfiles, then the files."""
    for title, text in (("systemd-sysusers", plan.sysusers), ("systemd-tmpfiles", plan.tmpfiles)):
        click.echo(f"{title} would get:")
        for line in text.splitlines():
            if not line.startswith("#"):
                click.echo(f"    {line}")
    for file in plan.files:
        state = state_of(file)
        if state == "missing":
            click.echo(f"would make: {_described(file)}")
        elif state != "differs":
            click.echo(f"stays: {file.path}")


def _described(file: WantedFile) -> str:
    content = ", a new secret" if file.is_secret else ""
    if file.client:
        content = f", a new token {file.client!r} of the role {file.role}"
    return f"{file.path} ({file.owner}:{file.group}, mode {file.mode:o}{content})"


def _group_of(user: str) -> str:
    """The group of SlurmUser."""
    try:
        return grp.getgrgid(pwd.getpwnam(user).pw_gid).gr_name
    except KeyError as error:
        raise InputError(
            f"this machine has no user {user!r}, which is SlurmUser",
            remedy="run this command on slurmctld's machine",
        ) from error


def _database() -> dict[str, str]:
    """The service's database, for `ioncast token add`."""
    for path, form in (
        (_ENVIRONMENT, r"^IONCAST_DB=(.+)$"),
        (_SERVICE, r'^database = "(.+)"'),
    ):
        try:
            match = re.search(form, path.read_text(), re.MULTILINE)
        except FileNotFoundError:
            continue
        if match:
            return {"IONCAST_DB": match[1]}
    raise InputError("this file with `database` is missing", where=str(_SERVICE), remedy=_INSTALL)
