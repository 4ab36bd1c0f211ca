"""`ioncast doctor`: what is installed, reachable, writable and current here, on one page."""

from __future__ import annotations

import json
import locale
import os
import platform
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import click

from benchdb.store.database import (
    default_location,
    existing_database,
    missing_file,
    transaction,
    without_password,
)
from benchdb.store.fitted_models import stored_models
from benchdb.store.systems import measured_systems
from ioncast_base.command_options import format_option, in_colour
from ioncast_base.darshan_runtime import find_darshan
from ioncast_base.errors import EXTRAS, DatabaseError
from ioncast_base.wording import counted, size
from predictor.model.summary import summarise
from scheduler_plugin.check.asking_sources import Row, SiteCheck, exit_code, fail, ok, rows_of, warn
from scheduler_plugin.check.row_lines import lines_of
from scheduler_plugin.service_client import Ioncast

# The service as it is installed by docs/service.md.
_SOCKET = Path("/run/ioncast/ioncast.sock")
_DATABASE_S, _SERVICE_S = 10.0, 5.0
_PROGRAMS = {
    "benchmark programs": ("ior", "mdtest", "fio"),
    "launchers": ("mpiexec", "srun"),
    "Slurm": ("sbatch", "scontrol", "slurmctld"),
}
_NO_DATABASE = "look whether the file or its server can be used; --db or IONCAST_DB names another"
_NO_SERVICE = "start it (systemctl start ioncast), or give another --address"
# Logs of applications have up to some hundred MiB, and uploads are written there first.
_LITTLE_ROOM = 1 << 30
# Other variables of ioncast may hold secrets.
_SHOWN_VARIABLES = ("IONCAST_ADDRESS", "IONCAST_CHECKS", "IONCAST_DARSHAN_LIB", "IONCAST_QUERIES")


@click.command(
    epilog="""\b
Examples:
  ioncast doctor
  ioncast doctor --db /srv/ioncast/benchmarks.sqlite --address unix:/run/ioncast/ioncast.sock
  ioncast doctor --format json > for-the-ticket.json
"""
)
@click.option(
    "--db",
    envvar="IONCAST_DB",
    show_envvar=True,
    metavar="FILE|URL",
    help="The database of benchmarks.",
)
@click.option(
    "--address",
    envvar="IONCAST_ADDRESS",
    show_envvar=True,
    metavar="URL|unix:/PATH",
    help=f"Where the service is; by default {_SOCKET}, if it exists.",
)
@format_option
def doctor(db: str | None, address: str | None, output_format: str) -> None:
    """Tell what is installed, reachable, writable and current here, and what to do.

    The output has no passwords and tokens, so it can go into a support ticket. The command changes
    nothing. Each row is OK, WARN or FAIL; the exit code is 1 if a row is FAIL. `ioncast slurm
    check` looks at everything beside Slurm.
    """
    rows = list(
        rows_of(
            SiteCheck("ioncast", _installed),
            SiteCheck("programs", _programs),
            SiteCheck("database", _database, db),
            SiteCheck("service", _service, address, remedy=_NO_SERVICE),
            SiteCheck("temporary files", _room),
            SiteCheck("terminal", _terminal),
        )
    )
    if output_format == "json":
        click.echo(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        click.echo("\n".join(lines_of(rows)), color=in_colour())
    sys.exit(exit_code(rows))


def _installed() -> Iterator[Row]:
    """Versions, the packages of extras, and ioncast's variables."""
    where = f"{version('ioncast')} in {Path(__file__).parents[1]}"
    python = f"Python {platform.python_version()}"
    yield ok("ioncast", f"{where}, {python}, {platform.platform(terse=True)}")
    missing = [package for package in EXTRAS if find_spec(package) is None]
    there = sorted({EXTRAS[package] for package in EXTRAS} - {EXTRAS[each] for each in missing})
    yield ok("extras", f"installed: {', '.join(there) or 'no extra'}")
    for extra in sorted({EXTRAS[package] for package in missing}):
        lacking = [package for package in missing if EXTRAS[package] == extra]
        yield ok(f"extra {extra}", f"not installed: {', '.join(lacking)}")
    ours = sorted(name for name in os.environ if name.startswith("IONCAST_"))
    told = [f"{name}={os.environ[name]}" if name in _SHOWN_VARIABLES else name for name in ours]
    yield ok("variables", ", ".join(told) or "IONCAST_… are not set")


def _programs() -> Iterator[Row]:
    """Programs that campaigns and the plugin use; a machine may well do without them."""
    for subject, names in _PROGRAMS.items():
        found = [path for name in names if (path := shutil.which(name))]
        yield ok(subject, ", ".join(found) or f"not on the PATH: {', '.join(names)}")
    library = find_darshan()
    yield ok(
        "Darshan's runtime", str(library) if library else "not found; `ioncast trace` needs it"
    )


def _database(location: str | None) -> Iterator[Row]:
    """The database: its version, its systems, and whether it can be written."""
    missing = missing_file(location)
    if missing is not None:
        yield warn(
            "database",
            f"{missing} does not exist, so nothing can be predicted",
            "`ioncast bench import` creates it; --db or IONCAST_DB names another one",
        )
        return
    place = without_password(location) if location else str(default_location())
    # `open_database` would upgrade an old one.
    engine = existing_database(location, patience_s=_DATABASE_S)
    try:
        with transaction(engine) as connection:
            names, stored = measured_systems(connection), stored_models(connection)
            models = [summarise(connection, name, model) for name, model in stored]
    except DatabaseError as error:
        yield fail("database", f"{place}: {' '.join(error.what.split())}", _NO_DATABASE)
        return
    finally:
        engine.dispose()
    yield ok("database", f"{place}, {counted(len(names), 'system')} with measurements")
    if not names:
        advice = "measure (`ioncast campaign run`), or import results (`ioncast bench import`)"
        yield warn("systems", "no measurements, so nothing can be predicted", advice)
    for name in names:
        fitted = [model for model in models if model.system == name]
        stale = [model.engine for model in fitted if model.status != "current"]
        if stale or not fitted:
            advice = f"`ioncast model fit --system {shlex.quote(name)}`, or the next prediction"
            yield warn(f"model of {name}", "not fitted to the newest measurements", advice)
        else:
            yield ok(f"model of {name}", "current")
    if "://" not in (location or ""):
        file = Path(location or default_location())
        may_write = os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)
        said = "your user may write" if may_write else "your user may only read"
        yield ok("rights", f"{said}; {size(shutil.disk_usage(file.parent).free)} free")


def _service(address: str | None) -> Iterator[Row]:
    """The service: whether it answers, is ready, and has this version."""
    if address is None and not _SOCKET.exists():
        yield ok(
            "service", f"not looked at: {_SOCKET} does not exist, and --address names no other"
        )
        return
    place = address or f"unix:{_SOCKET}"
    with Ioncast(place, lambda: os.environ.get("IONCAST_TOKEN", ""), _SERVICE_S) as service:
        state, release = service.readiness(), service.release()
    parts = ", ".join(f"{part} {state.get(part)}" for part in ("database", "keeper"))
    if state.get("ready"):
        yield ok("service", f"{place} is ready: {parts}")
    else:
        advice = "its log says why: journalctl -u 'ioncast@*'"
        yield fail("service", f"{place} is not ready: {parts}", advice)
    if release != version("ioncast"):
        advice = "upgrade the older one (docs/service.md, Upgrading)"
        yield warn("versions", f"the service has {release}, here is {version('ioncast')}", advice)


def _room() -> Iterator[Row]:
    """The folder for temporary files, which large logs need."""
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    told = f"{size(free)} free in {folder}"
    if free < _LITTLE_ROOM:
        yield warn("temporary files", told, "make room there, or set TMPDIR to another folder")
    else:
        yield ok("temporary files", told)


def _terminal() -> Iterator[Row]:
    """Whether the terminal shows the signs in tables."""
    name = locale.getpreferredencoding(False)
    if name.lower().replace("-", "") == "utf8":
        yield ok("terminal", name)
    else:
        yield warn("terminal", f"{name} lacks signs such as → and ×", "set LC_ALL=C.UTF-8")
