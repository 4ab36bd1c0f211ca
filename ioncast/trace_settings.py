"""Darshan's configuration of a traced run, and the programs that it cannot trace."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from pathlib import Path

# Darshan asks for the memory of DXT as records of 1 KiB.
_RECORDS_IN_MIB = 1024
# MiB for the other modules, Darshan's default.
_OTHER_MODULES_MIB = 4
_ELF_64_BIT = b"\x7fELF\x02\x01"
_HEADER_BYTES = 56
_INTERPRETER = b"\x03\0\0\0"  # PT_INTERP


def is_static(program: Path) -> bool:
    """Whether a program is a static ELF file of 64 bits, so that LD_PRELOAD cannot reach it."""
    try:
        with program.open("rb") as file:
            head = file.read(4096)
    except OSError:
        # A program may be run by those who cannot read it.
        return False
    if len(head) < 64 or not head.startswith(_ELF_64_BIT):
        return False
    (start,) = struct.unpack_from("<Q", head, 32)
    (count,) = struct.unpack_from("<H", head, 56)
    table = head[start : start + count * _HEADER_BYTES]
    kinds = {table[i : i + 4] for i in range(0, len(table), _HEADER_BYTES)}
    return bool(kinds) and _INTERPRETER not in kinds


def darshan_configuration(
    files: str | None, memory_mib: int | None, ranks: Sequence[tuple[int, int]] | None
) -> str:
    """Write Darshan's configuration file (Darshan 3.4 and newer).

    `files` is a pattern of paths, such as "*.h5"; `ranks` are first and last ones.
    """
    lines = []
    if memory_mib is not None:
        lines.append(f"MAX_RECORDS {memory_mib * _RECORDS_IN_MIB} DXT_POSIX,DXT_MPIIO")
        # Darshan drops a trace that, compressed, is larger than this memory.
        lines.append(f"MODMEM {2 * memory_mib + _OTHER_MODULES_MIB}")
    if files is not None:
        anywhere = "" if files.startswith("/") else ".*/"
        lines += ["NAME_EXCLUDE .* *", f"NAME_INCLUDE ^{anywhere}{_expression(files)}$ *"]
    if ranks is not None:
        lines += ["RANK_EXCLUDE 0:", f"RANK_INCLUDE {','.join(f'{a}:{b}' for a, b in ranks)}"]
    return "".join(f"{line}\n" for line in lines)


def _expression(pattern: str) -> str:
    """Translate a pattern of paths to POSIX's extended regular expressions."""
    # White space and commas end an expression in Darshan's file, so any character stands for them.
    wild = {"*": ".*", "?": ".", ",": "."}
    return "".join(
        wild.get(each) or ("." if each.isspace() else re.sub(r"([.^$+(){}|\\])", r"\\\1", each))
        for each in pattern
    ).replace("[!", "[^")
