"""A server that answers like slurmrestd of a given version.

The folder `answers` has the same jobs and licences in the form of each version, with the fields
that the client reads. 0.0.38 is an answer of Slurm 22.05. The others have the form that Slurm's own
data_parser plugins write and that captures of Slurm 23.02 to 25.11 show.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import BaseServer, ThreadingTCPServer, ThreadingUnixStreamServer
from typing import Any

ANSWERS = Path(__file__).parent / "answers"
VERSIONS = tuple(f"0.0.{number}" for number in range(38, 45))
_UNKNOWN_PATH = "Unable find requested URL. Please view /openapi/v3 for API reference."
_UNKNOWN_JOB = {
    "description": "Unable to query JobId=999",
    "error_number": 2017,
    "error": "Invalid job id specified",
    "source": "_handle_job_get",
}


@dataclass
class Slurmrestd:
    """A slurmrestd: its versions, its answers, and the requests to it.

    Attributes
    ----------
    versions : tuple of str
        Versions of the interface that it offers.
    instead : dict
        Other answers for some paths (without version): status, body, and seconds to wait before.
    asked : list of tuple
        Method, path, headers and body of each request.
    drops : int
        So many of the next requests get no answer: the connection is closed.
    """

    versions: tuple[str, ...]
    instead: dict[str, tuple[int, str, float]] = field(default_factory=dict)
    asked: list[tuple[str, str, dict[str, str], Any]] = field(default_factory=list)
    has_accounting: bool = True
    drops: int = 0

    def paths(self) -> list[str]:
        """The paths of the requests."""
        return [path for _, path, _, _ in self.asked]

    def answer(self, path: str) -> tuple[int, str]:
        """Status and body of the answer to a request."""
        _, part, version, what = path.partition("?")[0].split("/", 3)
        version = version.removeprefix("v")
        if version not in self.versions or (part == "slurmdb" and not self.has_accounting):
            return 404, _UNKNOWN_PATH
        if what in self.instead:
            status, body, delay_s = self.instead[what]
            time.sleep(delay_s)
            return status, body
        if what == "ping":
            told = "ping" if version == "0.0.38" else "pinged"
            return 200, json.dumps({"pings": [{"hostname": "ctl", told: "UP"}], "errors": []})
        if what.startswith("job/"):
            return self._job(version, int(what.removeprefix("job/")))
        name = "accounted_jobs" if (part, what) == ("slurmdb", "jobs") else what
        return 200, recorded(version, name)

    def _job(self, version: str, job_id: int) -> tuple[int, str]:
        jobs = json.loads(recorded(version, "jobs"))["jobs"]
        found = [job for job in jobs if job["job_id"] == job_id]
        if found:
            return 200, json.dumps({"jobs": found, "errors": []})
        status = 500 if version == "0.0.38" else 404
        return status, json.dumps({"jobs": [], "errors": [_UNKNOWN_JOB]})


def recorded(version: str, name: str) -> str:
    """An answer from the folder."""
    return (ANSWERS / version / f"{name}.json").read_text(encoding="utf-8")


class _Unix(ThreadingUnixStreamServer):
    daemon_threads = True


class _Tcp(ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


@contextmanager
def served(slurmrestd: Slurmrestd, socket: Path | None = None) -> Iterator[str]:
    """Serve over TCP or a unix socket, and yield the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            self._answer(json.loads(self.rfile.read(length)))

        def _answer(self, body: Any) -> None:
            slurmrestd.asked.append((self.command, self.path, dict(self.headers), body))
            if slurmrestd.drops:
                slurmrestd.drops -= 1
                self.close_connection = True
                return
            status, text = slurmrestd.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def address_string(self) -> str:
            return "client"

        def log_message(self, *_: Any) -> None:
            pass

    server: BaseServer
    if socket is None:
        tcp = _Tcp(("127.0.0.1", 0), Handler)
        server, address = tcp, f"http://127.0.0.1:{tcp.server_address[1]}"
    else:
        server, address = _Unix(str(socket), Handler), f"unix:{socket}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield address
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
