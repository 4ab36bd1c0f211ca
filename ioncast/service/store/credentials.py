"""Roles of tokens, and the digest that stands for a token; this module needs no database."""

from __future__ import annotations

import hashlib

# From the fewest rights to all rights.
ROLES = ("reader", "scheduler", "admin")


def digest(token: str) -> str:
    """The SHA-256 of a token, which the database stores instead of the token.

    A token has 256 random bits. No table and no guessing can find it, so it needs neither a salt
    nor a slow hash.
    """
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
