"""`ioncast serve`: the service under gunicorn."""

from __future__ import annotations

import fcntl
import os
import resource
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NoReturn

import click

from benchdb.store.database import existing_database, opened_database, transaction
from ioncast.service.folders.known_database import is_known
from ioncast.service.folders.usable_state import usable_state
from ioncast.service.running.binding import check_binds, runtime_folder, with_decisions_bind
from ioncast.service.running.delayed_signals import delayed
from ioncast.service.running.demo_step import let_import
from ioncast.service.settings import Settings, read_settings
from ioncast_base.command_options import database_option, warn
from ioncast_base.errors import DatabaseError, InputError, NewerDatabaseError, require_package

# After a service was killed, its workers release the lock within a second.
_LONGEST_WAIT_FOR_LOCK_S = 10.0
_GRACE_S = 10
# Pages and uploads take the time of processors that decisions do not need.
_NICENESS = 5
# While a request with hundreds of large logs arrives, each log is an open file.
_OPEN_FILES = 16_384


@click.command(
    "serve",
    epilog="""\b
Examples:
  ioncast serve --demo
  ioncast serve --bind 0.0.0.0:8420 --workers 4
  ioncast serve --config /etc/ioncast/service.toml
  ioncast serve --bind unix:/run/ioncast/ioncast.sock --bind 127.0.0.1:8420
  ioncast serve --decisions-bind unix:/run/ioncast/decisions.sock
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
@click.option("--workers", metavar="N", help="Processes that answer requests.  [default: 2]")
@click.option("--threads", metavar="N", help="Simultaneous requests in each.  [default: 8]")
@click.option(
    "--state",
    metavar="FOLDER",
    help="Folder for prepared answers and decisions not yet in the database; on a local disk.",
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
        if demo:
            folder = stack.enter_context(_demo_folder())
            flags |= {"database": str(Path(folder) / "demo.sqlite"), "state": folder}
        settings = read_settings(config, flags)
        lock = stack.enter_context(_only_one(settings.state))
        state = stack.enter_context(usable_state(settings.state))
        settings = with_decisions_bind(settings.model_copy(update={"state": state}), os.environ)
        check_binds([*settings.bind, *settings.decisions_bind])
        # A mistake in these files must be one line, before gunicorn starts.
        settings.thresholds()
        settings.named_queries()
        _prepare_database(settings)
        if demo:
            let_import(settings)
            click.echo("ioncast: importing the demonstration's benchmarks and runs", err=True)
        _run(settings, lock)


@contextmanager
def _demo_folder() -> Iterator[str]:
    """Make a folder for all files of the demonstration, and remove it at the end.

    Until gunicorn handles signals, SIGTERM and SIGHUP remove it and end the process at once: an
    exception would be lost where a library or a destructor catches all.
    """
    ending, maker = (signal.SIGTERM, signal.SIGHUP), os.getpid()

    def remove() -> None:
        # Workers come through here, too.
        if os.getpid() == maker:
            shutil.rmtree(folder, ignore_errors=True)

    def end(number: int, _frame: object) -> NoReturn:
        remove()
        os._exit(128 + number)

    with delayed(ending):
        folder = tempfile.tempdir = tempfile.mkdtemp(prefix="ioncast-demo-")
        before = {number: signal.signal(number, end) for number in ending}
    try:
        yield folder
    finally:
        remove()
        tempfile.tempdir = None
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _only_one(state: str) -> Iterator[int]:
    """Hold the lock on the state folder, which only one service may use; return its descriptor."""
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
    give_up_at = time.monotonic() + _LONGEST_WAIT_FOR_LOCK_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError as error:
            if time.monotonic() > give_up_at:
                os.close(descriptor)
                raise InputError(
                    "another service uses this state folder",
                    where=state,
                    remedy="stop it, or choose another folder with --state",
                ) from error
            time.sleep(0.1)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _say_where(settings: Settings) -> None:
    for bind in settings.bind:
        if bind.startswith("unix:"):
            click.echo(f"ioncast: interface on {bind}", err=True)
        else:
            host, _, port = bind.rpartition(":")
            shown = "127.0.0.1" if host in {"0.0.0.0", "[::]"} else host  # noqa: S104
            click.echo(f"ioncast: pages and interface on http://{shown}:{port}/", err=True)


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


def _run(settings: Settings, lock: int) -> None:
    from gunicorn.app.base import BaseApplication  # noqa: PLC0415

    from ioncast.service.running.background import start  # noqa: PLC0415
    from ioncast.service.running.deciders import Deciders, Master  # noqa: PLC0415
    from ioncast.service.running.service_log import begin_log  # noqa: PLC0415
    from ioncast.service.running.shared_counts import SharedCounts  # noqa: PLC0415
    from ioncast.service.running.worker import OPTIONS, Worker  # noqa: PLC0415
    from ioncast.service.web import metrics  # noqa: PLC0415
    from ioncast.service.web.app import create_app  # noqa: PLC0415

    begin_log()
    _allow_open_files()
    # systemd's runtime folder is in memory, so a full disk does not stop counting.
    counts = SharedCounts(Path(runtime_folder(os.environ) or settings.state) / "metrics")
    counts.prepare()
    deciders = Deciders(settings, lock)

    class Server(BaseApplication):
        """gunicorn with our settings; it reads neither a file nor arguments."""

        def load_config(self) -> None:
            for name, value in options.items():
                self.cfg.set(name, value)

        def load(self) -> Any:
            return create_app(settings)

    def listening(_server: Any) -> None:
        _say_where(settings)

    def is_to_come(server: Any, worker: Any) -> None:
        others = (each.slot for each in server.WORKERS.values())
        worker.slot = counts.free_slot(others)

    def began(worker: Any) -> None:
        # The worker's keeper and readers of uploads follow it.
        os.nice(_NICENESS)
        counts.enter(worker.slot)
        metrics.count_in(counts, deciders.counts)
        worker.end_background = start(worker.app.wsgi().extensions["ioncast"])

    def ended(_server: Any, worker: Any) -> None:
        if end := getattr(worker, "end_background", None):
            end()

    options: dict[str, Any] = {
        **OPTIONS,
        "bind": list(settings.bind),
        "workers": settings.workers,
        "threads": settings.threads,
        "worker_class": Worker,
        "preload_app": True,
        "timeout": settings.upload_s + 60,
        "graceful_timeout": _GRACE_S,
        "proc_name": "ioncast",
        "when_ready": listening,
        "pre_fork": is_to_come,
        "post_worker_init": began,
        "worker_exit": ended,
        "control_socket_disable": True,
    }
    Master(Server(), deciders).run()
