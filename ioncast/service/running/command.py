"""`ioncast serve`: starts the processes of the service, and keeps them running."""

from __future__ import annotations

import fcntl
import logging
import os
import resource
import shutil
import signal
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import click

from benchdb.store.database import existing_database, opened_database, transaction
from ioncast.service.decide.spool import spool_folder
from ioncast.service.folders.known_database import is_known
from ioncast.service.folders.usable_state import usable_state
from ioncast.service.running.binding import (
    check_binds,
    counts_folder,
    listening,
    with_decisions_bind,
)
from ioncast.service.running.service_log import begin_log
from ioncast.service.settings import Settings, read_settings
from ioncast_base.command_options import database_option, warn
from ioncast_base.errors import DatabaseError, InputError, NewerDatabaseError, require_package

# A service that was asked to end may be answering its last requests.
_LONGEST_WAIT_FOR_LOCK_S = 10.0
_UPGRADE_S = 3600
_DECISIONS, _WEB, _BACKGROUND = PARTS = ("decisions", "web", "background")
# Each log of a request is an open file until its answer, and a run may have hundreds of logs.
_OPEN_FILES = 16_384


@click.command(
    "serve",
    epilog="""\b
Examples:
  ioncast serve --demo
  ioncast serve --bind 0.0.0.0:8420 --threads 16
  ioncast serve --config /etc/ioncast/service.toml
  ioncast serve --bind unix:/run/ioncast/ioncast.sock --bind 127.0.0.1:8420
  ioncast serve --decisions-bind unix:/run/ioncast/decisions.sock
  ioncast serve --part web --config /etc/ioncast/service.toml
""",
)
@click.option("--config", metavar="FILE.toml", type=click.Path(), help="The file of settings.")
@click.option(
    "--bind",
    multiple=True,
    metavar="HOST:PORT|unix:/PATH",
    help="Where to listen; can be given several times.  [default: 127.0.0.1:8420]",
)
@click.option(
    "--decisions-bind",
    multiple=True,
    metavar="unix:/PATH|HOST:PORT",
    help="Where to answer only decisions, whatever happens to the rest of the service."
    "  [default: decisions.sock in systemd's runtime folder, else in the state folder]",
)
@click.option("--workers", metavar="N", help="Processes that answer decisions.  [default: 2]")
@click.option("--threads", metavar="N", help="Simultaneous requests.  [default: 8]")
@click.option(
    "--state",
    metavar="FOLDER",
    help="Folder for prepared answers and decisions not yet in the database; on a local disk.",
)
@click.option(
    "--part",
    type=click.Choice(PARTS),
    help="Only the processes of this part, where systemd starts each part by itself.",
)
@click.option("--demo", is_flag=True, help="Serve the demonstration's data, from a new database.")
@database_option
def serve(
    config: str | None,
    bind: tuple[str, ...],
    decisions_bind: tuple[str, ...],
    workers: str | None,
    threads: str | None,
    state: str | None,
    part: str | None,
    demo: bool,
    location: str | None,
) -> None:
    """Answer schedulers' questions over HTTP, and show pages.

    Settings come from the file, from environment variables such as IONCAST_WORKERS, and from
    these options. Options win over the environment, and the environment over the file.
    docs/service.md lists all settings.
    """
    require_package("gunicorn", "ioncast serve")
    flags: dict[str, Any] = {
        "bind": bind or None,
        "decisions_bind": decisions_bind or None,
        "workers": workers,
        "threads": threads,
        "state": state,
        "database": location,
    }
    with ExitStack() as stack:
        if demo and part:
            raise click.UsageError("--demo starts all parts; leave --part out")
        if demo:
            folder = stack.enter_context(_demo_folder())
            flags |= {"database": str(Path(folder) / "demo.sqlite"), "state": folder}
        settings = read_settings(config, flags)
        stack.enter_context(_only_one(settings.state, part))
        if part is None:
            # Of the parts, only the keeper needs to write to it, and chooses its folder itself.
            usable = stack.enter_context(usable_state(settings.state))
            settings = settings.model_copy(update={"state": usable})
        settings = with_decisions_bind(settings, os.environ)
        begun = {part} if part else set(PARTS)
        check_binds(
            [
                *(settings.bind if _WEB in begun else ()),
                *(settings.decisions_bind if _DECISIONS in begun else ()),
            ]
        )
        # A mistake in these files must be one line, before anything starts.
        if settings.checks is not None:
            # The usual thresholds load NumPy, which takes time and memory.
            settings.thresholds()
        settings.named_queries()
        if _BACKGROUND in begun:
            # It would end the upgrade of a large database after 90 seconds, again and again.
            _tell_systemd(f"EXTEND_TIMEOUT_USEC={_UPGRADE_S * 1_000_000}")
            _prepare_database(settings)
        if demo:
            # It loads libraries that other services do not need in this process.
            from ioncast.service.running.demo_data import fill  # noqa: PLC0415

            click.echo("ioncast: importing the demonstration's benchmarks and runs", err=True)
            fill(flags["database"])
            click.echo("ioncast: the demonstration's data are imported", err=True)
        _run(settings, begun)


@contextmanager
def _demo_folder() -> Iterator[str]:
    """Make a folder for all files of the demonstration, and remove it at the end.

    Until the processes are kept running, SIGTERM and SIGHUP remove it and end this one at once: an
    exception would be lost where a library or a destructor catches all.
    """
    ending = (signal.SIGTERM, signal.SIGHUP)

    def end(number: int, _frame: object) -> NoReturn:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(128 + number)

    # No signal may come between the folder and its handler.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    try:
        # All processes of the service keep their temporary files there.
        folder = os.environ["TMPDIR"] = tempfile.mkdtemp(prefix="ioncast-demo-")
        before = {number: signal.signal(number, end) for number in ending}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _only_one(state: str, part: str | None) -> Iterator[None]:
    """Hold the lock on the state folder, which only one service, or its parts, may use."""
    folder = Path(state)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # A lock on the folder itself needs no file, which a read-only or full disk could not have.
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise InputError(
            f"the state folder cannot be used: {error.strerror}",
            where=state,
            remedy="choose another folder with --state",
        ) from error
    with ExitStack() as stack:
        stack.callback(os.close, descriptor)
        _lock(descriptor, fcntl.LOCK_SH if part else fcntl.LOCK_EX, state)
        if part == _BACKGROUND:
            # Two keepers would do all work twice. Other parts would miss their addresses.
            with suppress(OSError):
                spool = spool_folder(state)
                spool.mkdir(exist_ok=True, mode=0o700)
                own = os.open(spool, os.O_RDONLY | os.O_DIRECTORY)
                stack.callback(os.close, own)
                _lock(own, fcntl.LOCK_EX, state)
        yield


def _lock(descriptor: int, how: int, state: str) -> None:
    give_up_at = time.monotonic() + _LONGEST_WAIT_FOR_LOCK_S
    while True:
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > give_up_at:
                raise InputError(
                    "another service uses this state folder",
                    where=state,
                    remedy="stop it, or choose another folder with --state",
                ) from error
            time.sleep(0.1)
        else:
            return


def _tell_systemd(state: str) -> None:
    """Tell systemd, where it started this process, how far the start is."""
    from gunicorn.systemd import sd_notify  # noqa: PLC0415

    # It only calls `debug`.
    sd_notify(state, logging.getLogger("ioncast.service"))  # type: ignore[arg-type]


def _prepare_database(settings: Settings) -> None:
    """Create or upgrade the database; if it is missing, the service starts without it.

    A database that this state folder has used before is not created anew: it may have been
    moved, or its file system may not be mounted. A database of a newer ioncast ends the service.
    """
    try:
        _refuse_to_replace(settings)
        with opened_database(settings.database, patience_s=settings.patience_s):
            pass
    except NewerDatabaseError:
        # Its rows may mean something else than this program writes.
        raise
    except DatabaseError as error:
        warn(f"{error}; the service starts without it")


def _refuse_to_replace(settings: Settings) -> None:
    database = existing_database(settings.database, patience_s=settings.patience_s)
    try:
        with transaction(database):
            pass
    except DatabaseError:
        if is_known(settings):
            raise
    finally:
        database.dispose()


def _allow_open_files() -> None:
    """Raise this process's limit of open files as far as the system allows; workers inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _run(settings: Settings, begun: Collection[str]) -> None:
    """Keep the processes of some parts running until a signal asks to end."""
    from ioncast.service.decide.counts import counts_files  # noqa: PLC0415
    from ioncast.service.decide.server_config import ServerConfig  # noqa: PLC0415
    from ioncast.service.running.supervisor import Process, keep_running  # noqa: PLC0415

    begin_log()
    _allow_open_files()
    # Each process is told its settings; those that need no database must not know its password.
    os.environ.pop("IONCAST_DB", None)
    processes: list[Process] = []
    with ExitStack() as stack:
        if _DECISIONS in begun:
            sockets = stack.enter_context(listening(settings))
            # The processes need no database, and its address may contain a password.
            told = settings.model_copy(update={"database": None})
            for counts in counts_files(counts_folder(settings), settings.workers):
                orders = ServerConfig(sockets=sockets, counts=counts, settings=told)
                name, module = "a process for decisions", "ioncast.service.decide.server"
                processes.append(Process(name, module, orders, (*sockets, counts)))
        if _BACKGROUND in begun:
            processes.append(Process("the keeper", "ioncast.service.background.process", settings))
        if _WEB in begun:
            # Its gunicorn tells systemd itself that it is ready.
            processes.append(Process("the web process", "ioncast.service.web", settings))
        else:
            _tell_systemd("READY=1")
        keep_running(processes)
