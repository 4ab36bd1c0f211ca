"""Questions that a plugin asks, and a service that answers them, of this or another version.

`neighbours/` has the plugin and its settings of the version before this one, and the answers of its
service, made by `record_answers.py`.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from sqlalchemy import insert

from benchdb.store.database import opened_database, transaction
from ioncast.service.running.demo_data import fill
from ioncast.service.store.tables import tokens
from tests.scheduler_plugin.lua.test_job_submit_lua import Controller
from tests.support.serving import PATIENCE_S, Served, running, wait_for

NEIGHBOURS = Path(__file__).parent / "neighbours"
TOKEN = "ion_of-neighbours"  # noqa: S105
PROGRAM = "hacc_io_write_posix_fpp"
HACC = f"/v1/decisions?system=testbed&executable={PROGRAM}&user=demo&tasks=16"
BATCH = {"user_name": "demo", "min_nodes": 8.0, "num_tasks": 16.0}
SCRIPT = {**BATCH, "script": f"#!/bin/sh\nsrun ./{PROGRAM} 100000 out\n"}
# Settings and job of each question.
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "by name": ({}, {**BATCH, "name": "hacc-io"}),
    "by script": ({"token": TOKEN}, SCRIPT),
    "few available": ({"token": TOKEN, "pool": 1}, SCRIPT),
    "other size": ({"token": TOKEN}, {**SCRIPT, "num_tasks": 256.0}),
    "unknown": ({}, {**BATCH, "user_name": "zo\xc3\xab", "name": "gr\xc3\xb6\xc3\x9fe \xff"}),
    "default": ({"system": "elsewhere"}, BATCH),
    "wrong token": ({"token": "ion_wrong"}, SCRIPT),
}


def question(controller: Controller, case: str) -> bytes:
    """The only request of a plugin about a job."""
    controller.requests.clear()
    settings, job = CASES[case]
    controller.submit(job, **settings)
    [request] = controller.requests
    return request


def answer(service: Served, request: bytes) -> bytes:
    """All bytes of a service's answer to a request."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(PATIENCE_S)
        client.connect(str(service.socket))
        client.sendall(request)
        return b"".join(iter(lambda: client.recv(1 << 16), b""))


@contextmanager
def demonstration(folder: Path) -> Iterator[Served]:
    """A service with the demonstration's history, `TOKEN`, and a default for another system."""
    location = str(folder / "demo.sqlite")
    fill(location)
    with opened_database(location) as database, transaction(database, write=True) as connection:
        row = {"name": "plugin", "role": "scheduler", "sha256": sha256(TOKEN.encode()).hexdigest()}
        connection.execute(insert(tokens).values(**row, created_at="2026-11-23T00:00:00+00:00"))
    configuration = folder / "service.toml"
    configuration.write_text("systems.elsewhere.default_io_nodes = 2\n")
    options = ("--db", location, "--config", str(configuration), "--workers", "1")
    with running(folder, *options) as service:
        wait_for(lambda: service.ask(HACC).json["source"] == "history", "prepared answers")
        yield service
