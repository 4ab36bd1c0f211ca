"""Builds a platform: its folders, network, daemons, mounts, and the files that users run."""

from __future__ import annotations

import json
import shlex
import shutil
from contextlib import suppress
from pathlib import Path

from experiments.platform import remains
from experiments.platform.daemons import clients, start_all
from experiments.platform.description import FREE_SPACE_LIMIT_BYTES, Description
from experiments.platform.emulated import Emulated, exec_command
from experiments.platform.folders import description_of, mount_of
from experiments.platform.network import batches, namespaces
from experiments.platform.programs import run
from ioncast_base.errors import IoncastError
from ioncast_base.sizes import format_size

# The folder of mount points is a file system of its own, so that a rank can unmount all at once.
_MOUNT_POINTS_BYTES = 1 << 20


def build(description: Description) -> Emulated:
    """Build a platform; an error leaves its parts behind, for `remains.clear`.

    Parameters
    ----------
    description : Description
        The platform. Nothing of that name exists on this machine.

    Returns
    -------
    Emulated
        The platform; all its mounts answer.

    Raises
    ------
    IoncastError
        If the network cannot be built, a daemon does not start or a mount does not answer.
    """
    emulated = Emulated(description)
    _make_folders(emulated)
    _build_network(description)
    start_all(description)
    _compile_yielding(emulated)
    rank = emulated.folder / "rank"
    rank.write_text(_rank_script(emulated), encoding="utf-8")
    rank.chmod(0o755)
    # Write this file last: its existence says that the platform is up.
    emulated.campaign_platform.write_text(_platform_file(emulated), encoding="utf-8")
    return emulated


def _make_folders(emulated: Emulated) -> None:
    folder, description = emulated.folder, emulated.description
    folder.mkdir(mode=0o700)
    description_of(emulated.name).write_text(description.model_dump_json(), encoding="utf-8")
    for name in ("bricks", "logs", "mounts", "scratch", "volumes"):
        (folder / name).mkdir()
    sizes = {"bricks": description.storage.memory, "mounts": _MOUNT_POINTS_BYTES}
    for name, size_bytes in sizes.items():
        options = f"size={size_bytes},mode=700"
        command = ["mount", "-t", "tmpfs", "-o", options, f"ioncast-{name}", str(folder / name)]
        run(*command, member=emulated.name)
    for number in description.all_servers:
        (folder / "bricks" / str(number)).mkdir()
    for client in clients(description):
        client.mount.mkdir(parents=True, exist_ok=True)


def _build_network(description: Description) -> None:
    remains.write_namespaces(description.name, namespaces(description))
    for batch in batches(description):
        try:
            run(*batch.command, told=batch.text, member=description.name)
        except IoncastError as error:
            raise IoncastError(
                f"the network cannot be built: {error.what}",
                where=error.where,
                remedy="the kernel needs network namespaces and its modules veth, bridge and"
                " sch_tbf, and you the right to use them (CAP_SYS_ADMIN, CAP_NET_ADMIN)",
            ) from error


def _compile_yielding(emulated: Emulated) -> None:
    if compiler := shutil.which("cc"):
        source = Path(__file__).with_name("yielding.c")
        options = ["-O2", "-shared", "-fPIC", "-o", str(emulated.yielding)]
        # MPI programs run without the library too, only slower.
        with suppress(IoncastError):
            run(compiler, *options, str(source), "-ldl", member=emulated.name)


def _rank_script(emulated: Emulated) -> str:
    """Text of rank.sh after the settings of this platform."""
    settings = {
        "name": emulated.name,
        "folder": str(emulated.folder),
        "compute_nodes": emulated.description.compute_nodes.count,
    }
    lines = ["#!/bin/sh", *(f"{key}={value}" for key, value in settings.items())]
    body = Path(__file__).with_name("rank.sh").read_text(encoding="utf-8")
    return "\n".join([*lines, body])


def _platform_file(emulated: Emulated) -> str:
    """Text of the platform file for `ioncast campaign`."""
    description = emulated.description
    launch = " ".join(
        [
            *map(shlex.quote, exec_command(emulated.name)),
            "--io-nodes={io_nodes} --tasks={tasks} --nodes={nodes} --mpi --",
        ]
    )
    values = {
        "system": description.name,
        "io_nodes": list(description.io_nodes),
        "nodes": description.compute_nodes.count,
        "processes_per_node": description.compute_nodes.processes,
        "test_directory": str(emulated.scratch),
        "node_directory": str(mount_of(emulated.name, "{io_nodes}", "{node}")),
        "free_space_limit": format_size(FREE_SPACE_LIMIT_BYTES),
        "launch": launch,
    }
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
