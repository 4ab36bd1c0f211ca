"""The web process: gunicorn with one worker of several threads, for all but decisions.

`ioncast serve` starts it and writes the settings to its standard input. One worker can count in its
own memory, but for decisions; uploads and other long work have processes of their own.
"""

from __future__ import annotations

from typing import Any

import click
from gunicorn.app.base import BaseApplication

from ioncast.service.decide.counts import counts_file
from ioncast.service.decide.prepared import keep_reading
from ioncast.service.decide.worker import OPTIONS
from ioncast.service.running.binding import counts_folder
from ioncast.service.running.supervisor import NICENESS, begin, end_with
from ioncast.service.settings import Settings
from ioncast.service.web.app import create_app

_GRACE_S = 10
# Longer than reading an upload may take.
_BEYOND_UPLOAD_S = 60


class _Server(BaseApplication):
    """gunicorn with the settings of the service; it reads neither a file nor arguments."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        super().__init__()

    def load_config(self) -> None:
        """Set gunicorn's settings."""
        options: dict[str, Any] = {
            **OPTIONS,
            "bind": list(self._settings.bind),
            "workers": 1,
            "threads": self._settings.threads,
            "worker_class": "gthread",
            "preload_app": True,
            "timeout": self._settings.upload_s + _BEYOND_UPLOAD_S,
            "graceful_timeout": _GRACE_S,
            "proc_name": "ioncast web",
            "when_ready": lambda _server: _say_where(self._settings),
            "post_fork": lambda arbiter, _worker: end_with(arbiter.pid),
            "post_worker_init": _begin_reading,
            "control_socket_disable": True,
        }
        for name, value in options.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """Return the application."""
        # Not one of the files of the processes for decisions, which are added to its own.
        counts = counts_folder(self._settings) / "web-decisions"
        return create_app(self._settings, counts_file(counts))


def _begin_reading(worker: Any) -> None:
    """Know what was prepared before the first answer."""
    keep_reading(worker.app.wsgi().extensions["ioncast"].prepared)


def _say_where(settings: Settings) -> None:
    for bind in settings.bind:
        if bind.startswith("unix:"):
            click.echo(f"ioncast: interface on {bind}", err=True)
        else:
            host, _, port = bind.rpartition(":")
            shown = "127.0.0.1" if host in {"0.0.0.0", "[::]"} else host  # noqa: S104
            click.echo(f"ioncast: pages and interface on http://{shown}:{port}/", err=True)


if __name__ == "__main__":
    _Server(begin(Settings, niceness=NICENESS)).run()
