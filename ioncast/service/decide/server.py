"""A process that only answers schedulers: it starts gunicorn's worker on given sockets.

`ioncast serve` starts it and writes its `ServerConfig` to standard input. Its modules load neither
SQLAlchemy nor Flask nor prometheus_client, so nothing in it can wait for a database.
"""

from __future__ import annotations

import os
import resource
import socket
import sys
from typing import Any

from gunicorn.app.base import BaseApplication

from ioncast.service.decide.counts import DecisionCounts
from ioncast.service.decide.prepared import Reader, keep_reading, prepared_files
from ioncast.service.decide.resources import Resources
from ioncast.service.decide.server_config import ServerConfig
from ioncast.service.decide.spool import SpoolWriter, spool_folder
from ioncast.service.decide.worker import OPTIONS, SharingWorker
from ioncast.service.decide.wsgi import application
from ioncast.service.running.supervisor import begin
from ioncast.service.settings import Settings

# A script of 4 MiB arrives within a fraction of a second. Only a client with a token can hold a
# thread for so long.
_BODY_S = 10
_GRACE_S = 2
# Further connections take the places of others.
_MOST_CONNECTIONS = 2_000
# One peer may hold half of the threads.
_FEWEST_THREADS = 2
# A thread receives a question, and another one answers it. By default a thread may keep the other
# one waiting for 5 ms; this made 0.7 of the throughput.
_SWITCH_S = 0.0005
# Descriptors of the process for anything but connections: some 20.
_OTHER_FILES = 64


class _Server(BaseApplication):
    """gunicorn's settings and the application for its worker."""

    def __init__(self, of: Resources) -> None:
        self._of = of
        super().__init__()

    def load_config(self) -> None:
        """Set gunicorn's settings."""
        for name, value in options(self._of.settings).items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """Return the application."""
        return application(self._of)


def options(settings: Settings) -> dict[str, Any]:
    """Return gunicorn's settings for this process."""
    most_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {
        "threads": max(settings.threads, _FEWEST_THREADS),
        **OPTIONS,
        "timeout": _BODY_S,
        "graceful_timeout": _GRACE_S,
        "worker_connections": min(_MOST_CONNECTIONS, most_files - _OTHER_FILES),
        "proc_name": "ioncast decisions",
    }


def serve(orders: ServerConfig) -> None:
    """Answer until a signal asks to end."""
    settings = orders.settings
    of = Resources(
        settings=settings,
        prepared=Reader(*prepared_files(settings.state)),
        spool=SpoolWriter(spool_folder(settings.state)),
        counts=DecisionCounts(orders.counts),
    )
    keep_reading(of.prepared)
    app = _Server(of)
    sockets = [socket.socket(fileno=descriptor) for descriptor in orders.sockets]
    log = app.cfg.logger_class(app.cfg)
    SharingWorker(0, os.getppid(), sockets, app, _BODY_S, app.cfg, log).init_process()


def main() -> None:
    """Run the process."""
    sys.setswitchinterval(_SWITCH_S)
    serve(begin(ServerConfig))


if __name__ == "__main__":
    main()
