"""The claims in a token of Slurm, a JWT: its user and its end. They are read, not verified."""

from __future__ import annotations

import base64
import json
import math
from typing import NamedTuple


class Claims(NamedTuple):
    """The user and the Unix time of the end of a token; empty and infinite if it does not tell."""

    user: str
    ends_s: float


def claims_of(token: str) -> Claims:
    """Read the claims of a token; any text is accepted.

    Examples
    --------
    >>> claims_of("header.eyJleHAiOjUsInN1biI6ImFubiJ9.signature")
    Claims(user='ann', ends_s=5.0)
    >>> claims_of("nonsense")
    Claims(user='', ends_s=inf)
    """
    try:
        body = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return Claims(str(claims.get("sun", "")), float(claims["exp"]))
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        return Claims("", math.inf)
