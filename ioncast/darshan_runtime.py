"""Darshan's runtime: where it is installed, and the variables that make it trace a program."""

from __future__ import annotations

import os
import re
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

_LIBRARY = "libdarshan.so"
_HOMES = ("DARSHAN_RUNTIME_DIR", "DARSHAN_DIR", "DARSHAN_ROOT")
_SYSTEM = (
    "usr/lib*/", "usr/lib/*/", "usr/local/lib*/", "opt/*/lib*/", "opt/*/*/lib*/", "opt/*/*/*/lib*/"
)  # fmt: skip
# Darshan asks for the memory of DXT as records of 1 KiB.
_RECORDS_IN_MIB = 1024
# MiB for the other modules, Darshan's default.
_OTHER_MODULES_MIB = 4
_ELF = b"\x7fELF"
_INTERPRETER = 3  # PT_INTERP


def find_darshan() -> Path | None:
    """Find libdarshan.so of the Darshan runtime of this machine.

    The places are LD_PRELOAD, the variables that modules set, the folder of the `darshan-config`
    on the PATH, and the system's folders, in this order.

    Returns
    -------
    Path or None
        None if it is not installed.
    """
    return next((path for path in _libraries() if path.is_file()), None)


def _libraries() -> Iterator[Path]:
    """Places where the library may be."""
    for word in re.split(r"[ :]", os.environ.get("LD_PRELOAD", "")):
        if Path(word).name.startswith(_LIBRARY):
            yield Path(word).absolute()
    homes = [Path(os.environ[name]) for name in _HOMES if os.environ.get(name)]
    program = shutil.which("darshan-config")
    if program is not None:
        homes.append(Path(program).resolve().parent.parent)
    for home in homes:
        yield from (home / folder / _LIBRARY for folder in ("lib", "lib64"))
    for pattern in _SYSTEM:
        yield from sorted(Path("/").glob(f"{pattern}{_LIBRARY}"))


def is_static(program: Path) -> bool:
    """Whether a program is a static ELF file, so that LD_PRELOAD cannot reach it.

    A file without a whole ELF header, such as a script, is not static.
    """
    with program.open("rb") as file:
        head = file.read(64)
        if len(head) < 64 or not head.startswith(_ELF) or head[4] not in (1, 2):
            return False
        order = "<" if head[5] == 1 else ">"
        place = 32 if head[4] == 2 else 28
        (offset,) = struct.unpack_from(f"{order}{'Q' if head[4] == 2 else 'I'}", head, place)
        size, count = struct.unpack_from(f"{order}HH", head, 54 if head[4] == 2 else 42)
        if offset > program.stat().st_size or size < 4:
            return False
        file.seek(offset)
        headers = file.read(size * count)
    kinds = [
        struct.unpack_from(f"{order}I", headers, start)[0]
        for start in range(0, len(headers) - 3, size)
    ]
    return bool(kinds) and _INTERPRETER not in kinds


def traced_variables(
    library: Path,
    configuration: Path,
    *,
    has_launcher: bool,
    memory_mib: int | None,
    ranks: list[tuple[int, int]] | None,
) -> dict[str, str]:
    """Name the variables of a traced program; `ranks` are first and last ones."""
    before = os.environ.get("LD_PRELOAD", "")
    variables = {
        "LD_PRELOAD": f"{library}{f':{before}' if before else ''}",
        # Versions before 3.4 know only this name, and newer ones still do.
        "DXT_ENABLE_IO_TRACE": "1",
        "DARSHAN_CONFIG_PATH": str(configuration),
    }
    if not has_launcher:
        variables["DARSHAN_ENABLE_NONMPI"] = "1"
    if memory_mib is not None:
        variables["DARSHAN_MODMEM"] = str(2 * memory_mib + _OTHER_MODULES_MIB)
    if ranks is not None:
        variables["DARSHAN_RANK_EXCLUDE"] = "0:"
        variables["DARSHAN_RANK_INCLUDE"] = ",".join(f"{first}:{last}" for first, last in ranks)
    return variables


def configuration_of(files: str | None, memory_mib: int | None) -> str:
    """Write Darshan's configuration, for the settings that have no variable.

    `files` is a pattern of paths, such as "*.h5".
    """
    lines = []
    if memory_mib is not None:
        lines.append(f"MAX_RECORDS {memory_mib * _RECORDS_IN_MIB} DXT_POSIX,DXT_MPIIO")
    if files is not None:
        lines += ["NAME_EXCLUDE .* *", f"NAME_INCLUDE ^{_expression(files)}$ *"]
    return "".join(f"{line}\n" for line in lines)


def _expression(pattern: str) -> str:
    """Translate a pattern of paths to POSIX's extended regular expressions."""
    # White space and commas end an expression in Darshan's file, so any character stands for them.
    wild = {"*": ".*", "?": ".", ",": "."}
    return "".join(
        wild.get(each) or ("." if each.isspace() else re.sub(r"([.^$+(){}|\\])", r"\\\1", each))
        for each in pattern
    )
