"""The programs, rights and memory that a platform needs on this machine."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from experiments.platform.description import Description
from experiments.platform.programs import system_path
from ioncast_base.errors import InputError, IoncastError
from ioncast_base.wording import size

# Debian's package of each program.
_PACKAGES = {
    "ip": "iproute2",
    "tc": "iproute2",
    "ss": "iproute2",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "unshare": "util-linux",
    "hostname": "hostname",
    "glusterfs": "glusterfs-client",
    "glusterfsd": "glusterfs-server",
}
_FUSE = Path("/dev/fuse")
# Linux's documentation (admin-guide/devices.txt) gives /dev/fuse this major and minor number.
_FUSE_DEVICE = os.makedev(10, 229)


def check_machine() -> None:
    """Check that this machine can run platforms at all.

    Raises
    ------
    IoncastError
        Naming the first right, program or device that is missing.
    """
    check_root()
    missing = [name for name in _PACKAGES if shutil.which(name, path=system_path()) is None]
    if missing:
        packages = " ".join(sorted({_PACKAGES[name] for name in missing}))
        raise IoncastError(
            f"{', '.join(missing)} cannot be found on this machine",
            remedy=f"install Debian's packages {packages}, or those of your system like them",
        )
    if not _has_fuse():
        raise IoncastError(
            "FUSE cannot be used here",
            where=str(_FUSE),
            remedy="load the kernel module fuse; a container needs access to the device",
        )


def check_root() -> None:
    """Check that this process is root's.

    Raises
    ------
    IoncastError
        If it is not: only root may see and create a platform's namespaces and mounts.
    """
    if os.geteuid() != 0:
        raise IoncastError(
            "only root can use a platform, its network namespaces and mounts",
            remedy="run the command with sudo",
        )


def check_memory(description: Description) -> None:
    """Check that this machine could hold a platform's storage when it is full.

    Raises
    ------
    InputError
        If its memory and swap are smaller.
    """
    wanted_bytes, there_bytes = description.storage.memory, _memory_bytes()
    if wanted_bytes > there_bytes:
        raise InputError(
            f"its storage may hold {size(wanted_bytes)}, but this machine's memory"
            f" and swap only {size(there_bytes)}",
            where=f"platform {description.name}",
            remedy="write less as `storage.memory` in its description",
        )


def _has_fuse() -> bool:
    with suppress(OSError), _FUSE.open("rb"):
        return _FUSE.stat().st_rdev == _FUSE_DEVICE
    return False


def _memory_bytes() -> int:
    lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    sizes_kib = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return 1024 * (sizes_kib["MemTotal"] + sizes_kib["SwapTotal"])
