"""Token files: each token is in a file of its own, and only there."""

from __future__ import annotations

import math
from pathlib import Path

from ioncast_base.errors import InputError
from ioncast_base.toml_files import read_text
from scheduler_plugin.slurm.jwt_claims import claims_of

# `scontrol token` prints the JWT in this form.
_VARIABLE = "SLURM_JWT="


def read_token(path: str) -> str:
    """Read the token in a file, alone or as `scontrol token` prints it."""
    token = read_text(Path(path)).strip().removeprefix(_VARIABLE)
    if not token.isascii() or not token.isprintable() or " " in token:
        raise InputError(
            "this is not a token", where=path, remedy="a token is one line without blanks"
        )
    if not token:
        raise InputError("this file has no token", where=path)
    return token


def token_ends_s(path: str) -> float:
    """The Unix time of the end of the token of Slurm in a file; infinite if it is unknown."""
    try:
        return claims_of(read_token(path)).ends_s
    except InputError:
        return math.inf
