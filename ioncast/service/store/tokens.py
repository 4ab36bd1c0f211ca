"""Tokens of the service's clients: names, roles and hashes."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, insert, select, update

from benchdb.store.accepted_values import check_text
from ioncast.service.store.credentials import ROLES, digest
from ioncast.service.store.tables import tokens as tokens_table
from ioncast_base.errors import ConflictError, InputError, UnknownNameError
from ioncast_base.times import in_utc, now

_PREFIX = "ion_"
_RANDOM_BYTES = 32


@dataclass(frozen=True)
class Token:
    """A token as the database has it, without its text; times are ISO 8601 in UTC or None."""

    name: str
    role: str
    created_at: str
    revoked_at: str | None
    expires_at: str | None


_TOKENS = select(
    tokens_table.c.name,
    tokens_table.c.role,
    tokens_table.c.created_at,
    tokens_table.c.revoked_at,
    tokens_table.c.expires_at,
)


def add_token(
    connection: Connection, name: str, role: str, expires_at: datetime | None = None
) -> str:
    """Create a token: "ion_" and 43 characters, which cannot be read from the database later.

    The name of the client has printable words with single blanks between them; an existing name,
    valid or revoked, is a ConflictError. The role is one of `ROLES`. By default the token never
    expires.
    """
    if role not in ROLES:
        raise InputError(f"{role!r} is not a role", remedy=f"roles are {', '.join(ROLES)}")
    if not name or name != " ".join(name.split()) or not name.isprintable():
        raise InputError(
            f"{name!r} is not a valid name of a token",
            remedy="use printable characters, with single blanks between words",
        )
    check_text("the name of the token", name, tokens_table.c.name)
    if (known := _known(connection, name)) is not None:
        raise ConflictError(
            f"there is already a{' revoked' if known.revoked_at else ''} token {name!r}",
            remedy="choose another name",
        )
    token = _PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
    values = {"name": name, "role": role, "sha256": digest(token), "created_at": now()}
    expiry = {"expires_at": in_utc(expires_at) if expires_at else None}
    connection.execute(insert(tokens_table).values(values | expiry))
    return token


def revoke_token(connection: Connection, name: str) -> bool:
    """Revoke a token; it can never become valid again."""
    known = _known(connection, name) if name.isprintable() else None
    if known is None:
        names = [token.name for token in tokens(connection)]
        raise UnknownNameError(
            f"the database has no token {name!r}",
            remedy=f"its tokens are {', '.join(names)}" if names else "it has no tokens",
        )
    if known.revoked_at is not None:
        return False
    query = update(tokens_table).where(tokens_table.c.name == name)
    connection.execute(query.values(revoked_at=now()))
    return True


def tokens(connection: Connection) -> list[Token]:
    """All tokens, also the revoked ones, in the order in which they were added."""
    return [Token(*row) for row in connection.execute(_TOKENS.order_by(tokens_table.c.id))]


def valid_tokens(connection: Connection) -> list[tuple[str, str, str, str | None]]:
    """Hash (see `digest`), name, role and expiry of each token that was not revoked.

    Expired tokens are listed too, so that their owners learn the reason of a rejection.
    """
    table = tokens_table.c
    query = select(table.sha256, table.name, table.role, table.expires_at)
    valid = query.where(table.revoked_at.is_(None)).order_by(table.id)
    return [(row[0], row[1], row[2], row[3]) for row in connection.execute(valid)]


def _known(connection: Connection, name: str) -> Token | None:
    row = connection.execute(_TOKENS.where(tokens_table.c.name == name)).one_or_none()
    return Token(*row) if row else None
