"""Darshan's runtime: where it is installed, and the variables of a process that it traces."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

LIBRARY = "libdarshan.so"
_HOMES = ("DARSHAN_RUNTIME_DIR", "DARSHAN_DIR", "DARSHAN_ROOT")
_COMMON_PLACES = (
    "usr/local/lib*/", "usr/lib*/", "usr/lib/*/", "opt/*/lib*/", "opt/*/*/lib*/", "opt/*/*/*/lib*/"
)  # fmt: skip
_DARSHANS_OWN = ("DARSHAN_", "DXT_")


def find_darshan() -> Path | None:
    """Find the libdarshan.so of this machine.

    The places are LD_PRELOAD, the variables that modules set, the folder of the `darshan-config`
    on the PATH, and the system's folders, in this order.

    Returns
    -------
    Path or None
        None if it is not installed.
    """
    return next((path.absolute() for path in _libraries() if path.is_file()), None)


def without_darshan(environment: Mapping[str, str]) -> dict[str, str]:
    """Leave Darshan's library and settings out: they may leave files out, or move the log."""
    plain = {n: value for n, value in environment.items() if not n.startswith(_DARSHANS_OWN)}
    others = [word for word in _preloaded(environment) if not Path(word).name.startswith(LIBRARY)]
    return plain | ({"LD_PRELOAD": ":".join(others)} if "LD_PRELOAD" in plain else {})


def darshan_variables(library: Path, folder: Path, plain: Mapping[str, str]) -> dict[str, str]:
    """Name the variables that load Darshan, beside those `without_darshan`.

    `folder` gets the files that Darshan leaves instead of a log after MPI_Abort.
    """
    return {
        "LD_PRELOAD": ":".join([str(library), *_preloaded(plain)]),
        "DARSHAN_MMAP_LOGPATH": str(folder),
        # By default versions before 3.4 leave out files below /var, /usr and others.
        "DARSHAN_EXCLUDE_DIRS": "none",
    }


def _libraries() -> Iterator[Path]:
    """List the places where the library may be."""
    yield from (
        Path(word) for word in _preloaded(os.environ) if Path(word).name.startswith(LIBRARY)
    )
    homes = [Path(os.environ[name]) for name in _HOMES if os.environ.get(name)]
    script = shutil.which("darshan-config")
    if script is not None:
        homes.append(Path(script).resolve().parent.parent)
    for home in homes:
        yield from sorted(home.glob(f"lib*/{LIBRARY}"))
    for pattern in _COMMON_PLACES:
        yield from sorted(Path("/").glob(f"{pattern}{LIBRARY}"))


def _preloaded(environment: Mapping[str, str]) -> list[str]:
    return [word for word in re.split(r"[ :]", environment.get("LD_PRELOAD", "")) if word]
