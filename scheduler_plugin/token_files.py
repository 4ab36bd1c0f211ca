"""Tokens, which stand in files of their own and nowhere else."""

from __future__ import annotations

import stat
from pathlib import Path

from ioncast_base.errors import InputError
from ioncast_base.toml_files import read_text

# `scontrol token` prints the JWT so.
_VARIABLE = "SLURM_JWT="


def read_token(path: str) -> str:
    """The token in a file, alone or as `scontrol token` prints it.

    Raises
    ------
    InputError
        When there is none.
    """
    token = read_text(Path(path)).strip().removeprefix(_VARIABLE)
    if not token.isascii() or not token.isprintable() or " " in token:
        raise InputError("this is no token", where=path, remedy="it has one line and no blanks")
    if not token:
        raise InputError("there is no token in this file", where=path)
    return token


def is_open(path: str) -> bool:
    """Whether a file that is there can be read by everybody."""
    try:
        return bool(Path(path).stat().st_mode & stat.S_IROTH)
    except OSError:
        return False
