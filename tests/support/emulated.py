"""Emulated platforms for tests, and a search for their leftovers.

They need root, FUSE, GlusterFS and iproute2.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.platform.description import (
    ComputeNodes,
    Description,
    Links,
    Storage,
    read_description,
)
from experiments.platform.emulated import Emulated
from experiments.platform.emulator import down, up
from tests.support.services import use

_PATIENCE_S = 120.0
_numbers = itertools.count()


def unique_name() -> str:
    """Make a name that no other platform on this machine has."""
    return f"test{os.getpid()}-{next(_numbers)}"


def small(name: str, **changes: object) -> Description:
    """Describe a platform that starts in a second: 2 compute nodes, 2 I/O nodes, 2 servers."""
    description = Description(
        name=name,
        io_nodes=(0, 1, 2),
        compute_nodes=ComputeNodes(count=2, processes=2),
        storage=Storage.model_validate({"servers": 2, "replicas": 2, "memory": "1g"}),
        links=Links(compute_nodes="1gbit", io_nodes="1gbit", storage="1gbit", burst="1mb"),
    )
    return description.model_copy(update=changes)


def bundled(name: str) -> Description:
    """Describe the platform that is part of ioncast, under another name."""
    return read_description().model_copy(update={"name": name})


@contextmanager
def emulated(description: Description) -> Iterator[Emulated]:
    """Start a platform for the time of a test."""
    use("platform")
    try:
        yield up(description)
    finally:
        down(description.name)


def wait_until(condition: Callable[[], object]) -> None:
    """Wait until another process has made a condition true."""
    give_up_at = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.005)


def received_bytes(platform: Emulated, node: str) -> int:
    """Bytes that a node's link has received so far."""
    command = ["ip", "-n", f"{platform.name}-{node}", "-s", "-json", "link", "show", "e0"]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(json.loads(said.stdout)[0]["stats64"]["rx"]["bytes"])


def leftovers(name: str) -> list[str]:
    """Find everything on this machine that has a platform's name, without using ioncast.

    Parameters
    ----------
    name : str
        The platform's name.

    Returns
    -------
    list of str
        Network namespaces, mounts, files, and processes: those that name the platform's folder,
        have its mark in their environment or are in its network namespaces.
    """
    folder = f"/run/ioncast-platform/{name}"
    # Another platform's name may begin with this one's.
    within = f"{folder}/"
    files = (folder, f"/run/ioncast-platform/.{name}.lock")
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    namespaces = [line.split()[0] for line in listed.stdout.splitlines()]
    own = [namespace for namespace in namespaces if namespace.startswith(f"{name}-")]
    inodes = {Path("/run/netns", namespace).stat().st_ino for namespace in own}
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    return [
        *(f"namespace {namespace}" for namespace in own),
        *(f"mount {line}" for line in mounts if within in line or f"/{name}-" in line),
        *(f"process {line}" for line in _processes(name, within, inodes)),
        *(f"file {file}" for file in files if os.path.lexists(file)),
    ]


def _processes(name: str, folder: str, inodes: set[int]) -> Iterator[str]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_text(errors="replace").replace("\0", " ")
            variables = (process / "environ").read_bytes().decode(errors="replace")
            network = (process / "ns/net").stat().st_ino
        except OSError:
            # It has ended, although its parent may not have noticed that yet.
            continue
        is_ours = process.name in {str(os.getpid()), str(os.getppid())}
        marked = f"IONCAST_PLATFORM_MEMBER={name}/" in variables
        if not is_ours and (folder in command or marked or network in inodes):
            yield f"{process.name} {command}"
