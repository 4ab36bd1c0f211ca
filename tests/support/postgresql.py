"""A PostgreSQL server for tests, with Debian's programs, in a temporary folder."""

from __future__ import annotations

import getpass
import itertools
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg import sql
from sqlalchemy import make_url

from tests.support.services import postgresql_programs, use
from tests.support.serving import children_of

# No data must survive the tests, so do not wait for the disk.
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
}
_PATIENCE_S = 600
_NOTHING = "DROP SCHEMA public CASCADE; CREATE SCHEMA public"


@dataclass(frozen=True)
class Server:
    """A running server.

    Attributes
    ----------
    folder : Path
        The folder of its socket and its data.
    port : int, optional
        Where it also listens on 127.0.0.1; by default it only has its socket.
    """

    folder: Path
    port: int | None = None
    _names: Iterator[int] = field(default_factory=itertools.count)
    _free: list[str] = field(default_factory=list)
    _dumps: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def database(self, name: str) -> Iterator[str]:
        """Create an empty database, yield its URL and drop it at the end."""
        self._create(name)
        try:
            yield self._url(name)
        finally:
            self._dumps.pop(name, None)
            self._drop(name)

    @contextmanager
    def lent_database(self) -> Iterator[str]:
        """Yield the URL of an emptied database; to empty one costs far less than to create one."""
        name = self._free.pop() if self._free else self._create(self._new_name())
        try:
            yield self._url(name)
        finally:
            self._take_back(name)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        told = _SETTINGS
        if self.port is not None:
            told = told | {"listen_addresses": "127.0.0.1", "port": str(self.port)}
        settings = " ".join(f"-c {name}='{value}'" for name, value in told.items())
        options = f"{settings} -k {self.folder}"
        self._control("--log", self.folder / "log", "--options", options, "start")

    def stop(self) -> None:
        """Stop the server at once, as a failing machine would."""
        self._control("--mode", "immediate", "stop")

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop all processes of the server for a while: its sockets stay open and say nothing."""
        postmaster = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        stopped = [postmaster]
        try:
            os.kill(postmaster, signal.SIGSTOP)
            # A stopped postmaster has no more children.
            for child in children_of(postmaster):
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGSTOP)
                    stopped.append(child)
            yield
        finally:
            for pid in reversed(stopped):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def _control(self, *command: str | Path) -> None:
        bin_folder = postgresql_programs()
        assert bin_folder is not None
        options = ("--pgdata", self.folder / "data", "--wait", f"--timeout={_PATIENCE_S}")
        _as_user(bin_folder / "pg_ctl", *options, *command)

    def copy(self, template: str, name: str) -> None:
        """Replace a database by a copy of another one, as that was when it was first copied."""
        if template not in self._dumps:
            self._dumps[template] = self._dump(template)
        self._end_connections(name)
        self._run(_NOTHING, name)
        self._run(self._dumps[template], name)

    def _dump(self, name: str) -> str:
        bin_folder = postgresql_programs()
        assert bin_folder is not None
        arguments = ["--no-owner", "--inserts", "--rows-per-insert", "500", "--host", self.folder]
        if self.port is not None:
            arguments += ["--port", str(self.port)]
        command = [bin_folder / "pg_dump", *arguments, "--username", _user(), name]
        dump = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        # Only psql knows these commands.
        return re.sub(r"^\\(un)?restrict .*$", "", dump, flags=re.MULTILINE)

    def _create(self, name: str) -> str:
        self._run(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return name

    def _drop(self, name: str) -> None:
        dropping = sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
        give_up_at = time.monotonic() + _PATIENCE_S
        while True:
            try:
                self._run(dropping)
                return
            except psycopg.errors.ObjectInUse:
                # The server waits only a short time for connections that close slowly.
                if time.monotonic() > give_up_at:
                    raise

    def _take_back(self, name: str) -> None:
        """Keep a database for other tests, under a name that no earlier user of it knows."""
        old, new = sql.Identifier(name), self._new_name()
        self._run(sql.SQL("ALTER DATABASE {} RESET ALL").format(old))
        self._end_connections(name)
        try:
            self._run(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(old, sql.Identifier(new)))
        except psycopg.errors.ObjectInUse:
            # A connection closes slowly. Leave the database to it until the server stops.
            return
        self._run(_NOTHING, new)
        self._free.append(new)

    def _end_connections(self, name: str) -> None:
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = {}"
        self._run(sql.SQL(ended).format(name))

    def _new_name(self) -> str:
        return f"lent{next(self._names)}"

    def _url(self, name: str) -> str:
        at_port = "" if self.port is None else f"&port={self.port}"
        return f"postgresql://{_user()}@/{name}?host={self.folder}{at_port}"

    def over_tcp(self, url: str) -> str:
        """The URL of the same database by the server's port instead of its socket."""
        return f"postgresql://{_user()}@127.0.0.1:{self.port}/{make_url(url).database}"

    def _run(self, statement: sql.Composed | str, name: str = "postgres") -> None:
        with psycopg.connect(
            host=str(self.folder), port=self.port, user=_user(), dbname=name, autocommit=True
        ) as connection:
            connection.execute(statement)


@contextmanager
def running_server(port: int | None = None) -> Iterator[Server]:
    """Start a server, and stop it at the end."""
    use("postgresql")
    bin_folder = postgresql_programs()
    assert bin_folder is not None
    folder = Path(tempfile.mkdtemp(prefix="ioncast-postgresql-"))
    if os.geteuid() == 0:
        shutil.chown(folder, _user())
    server = Server(folder, port)
    try:
        _as_user(
            bin_folder / "initdb",
            *("--pgdata", folder / "data", "--username", _user(), "--auth", "trust", "--no-sync"),
            *("--encoding", "UTF8", "--locale", "C.UTF-8", *_collation(bin_folder)),
        )
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _collation(bin_folder: Path) -> tuple[str, ...]:
    """Sort texts as a dictionary does, like most sites, if the server can do that by itself."""
    if int(bin_folder.parent.name) < 15:
        return ()
    return ("--locale-provider", "icu", "--icu-locale", "en")


def _user() -> str:
    """Name the user of the server, which does not run as root."""
    return "postgres" if os.geteuid() == 0 else getpass.getuser()


def _as_user(*command: str | Path) -> None:
    prefix = ["runuser", "-u", _user(), "--"] if os.geteuid() == 0 else []
    # The server keeps its output open, so a pipe would never end.
    with tempfile.TemporaryFile() as output:
        code = subprocess.call(
            [*prefix, *map(str, command)], cwd="/", stdout=output, stderr=subprocess.STDOUT
        )
        output.seek(0)
        if code:
            raise RuntimeError(f"{command[0]}: {output.read().decode(errors='replace')}")
