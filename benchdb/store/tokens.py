"""Who may do what over HTTP: tokens, of which the database has only hashes."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

from sqlalchemy import Connection, insert, select, update

from benchdb.store.accepted_values import check_text
from benchdb.store.schema import tokens as tokens_table
from ioncast_base.errors import ConflictError, InputError, UnknownNameError
from ioncast_base.times import now

# From the one that may least to the one that may all.
ROLES = ("reader", "scheduler", "admin")
_PREFIX = "ion_"
_RANDOM_BYTES = 32


@dataclass(frozen=True)
class Token:
    """What is known of a token.

    Attributes
    ----------
    name : str
        Who has it.
    role : str
        One of `ROLES`.
    created_at : str
        When, ISO 8601 in UTC.
    revoked_at : str or None
        Since when it is not valid any more.
    """

    name: str
    role: str
    created_at: str
    revoked_at: str | None


_TOKENS = select(
    tokens_table.c.name,
    tokens_table.c.role,
    tokens_table.c.created_at,
    tokens_table.c.revoked_at,
)


def digest(token: str) -> str:
    """What the database keeps of a token: its SHA-256.

    A token is 256 random bits, which no table and no guessing finds, so it needs no salt and
    no slow hash.
    """
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def add_token(connection: Connection, name: str, role: str) -> str:
    """Make a token.

    Parameters
    ----------
    connection : Connection
        In a transaction that writes (see `benchdb.store.database.transaction`).
    name : str
        Who will have it; words with single blanks between them.
    role : str
        One of `ROLES`.

    Returns
    -------
    str
        The token, which cannot be had again: "ion_" and 43 characters.

    Raises
    ------
    ConflictError
        When there is one of that name, valid or not.
    InputError
        For a name or a role that is none.
    """
    if role not in ROLES:
        raise InputError(f"{role!r} is no role", remedy=f"roles are {', '.join(ROLES)}")
    if not name or name != " ".join(name.split()) or not name.isprintable():
        raise InputError(f"{name!r} is no name of a token", remedy="use words and single blanks")
    check_text("the name of the token", name, tokens_table.c.name)
    if (known := _known(connection, name)) is not None:
        raise ConflictError(
            f"there is a token {name!r} already{', revoked' if known.revoked_at else ''}",
            remedy="choose another name",
        )
    token = _PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
    values = {"name": name, "role": role, "sha256": digest(token), "created_at": now()}
    connection.execute(insert(tokens_table).values(values))
    return token


def revoke_token(connection: Connection, name: str) -> bool:
    """Make a token invalid, for good.

    Parameters
    ----------
    connection : Connection
        In a transaction that writes (see `benchdb.store.database.transaction`).
    name : str
        Whose token.

    Returns
    -------
    bool
        False where it was revoked before.

    Raises
    ------
    UnknownNameError
        When there is none of that name.
    """
    known = _known(connection, name) if name.isprintable() else None
    if known is None:
        names = [token.name for token in tokens(connection)]
        raise UnknownNameError(
            f"no token {name!r} in the database",
            remedy=f"known are {', '.join(names)}" if names else "there are none",
        )
    if known.revoked_at is not None:
        return False
    query = update(tokens_table).where(tokens_table.c.name == name)
    connection.execute(query.values(revoked_at=now()))
    return True


def tokens(connection: Connection) -> list[Token]:
    """All tokens, also revoked ones, in the order in which they were added."""
    return [Token(*row) for row in connection.execute(_TOKENS.order_by(tokens_table.c.id))]


def valid_tokens(connection: Connection) -> list[tuple[str, str, str]]:
    """Hash (see `digest`), name and role of each token that may be used."""
    query = select(tokens_table.c.sha256, tokens_table.c.name, tokens_table.c.role)
    valid = query.where(tokens_table.c.revoked_at.is_(None)).order_by(tokens_table.c.id)
    return [(row[0], row[1], row[2]) for row in connection.execute(valid)]


def _known(connection: Connection, name: str) -> Token | None:
    row = connection.execute(_TOKENS.where(tokens_table.c.name == name)).one_or_none()
    return Token(*row) if row else None
