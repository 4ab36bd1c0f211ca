"""Kept results in the database: results of uploads, each at an address that nobody can guess."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, delete, exists, func, insert, select

from benchdb.store.schema import kept_results
from benchdb.store.tokens import digest
from ioncast_base.errors import InputError
from ioncast_base.times import in_utc

# A page reads the document as a whole.
MOST_DOCUMENT_BYTES = 4 << 20

_BYTES = select(func.coalesce(func.sum(kept_results.c.bytes), 0))
_KEPT = select(kept_results.c.document, kept_results.c.kept_at, kept_results.c.expires_at).where(
    kept_results.c.sha256 == bindparam("digest"), kept_results.c.expires_at > bindparam("now")
)
_FORGET = delete(kept_results).where(kept_results.c.sha256 == bindparam("digest"))
_HAS_EXPIRED = select(exists().where(kept_results.c.expires_at <= bindparam("now")))
_FORGET_EXPIRED = delete(kept_results).where(kept_results.c.expires_at <= bindparam("now"))


@dataclass(frozen=True)
class KeptResult:
    """A result that a user chose to keep.

    Attributes
    ----------
    document : str
        JSON, as it was given.
    kept_at, expires_at : str
        Times, ISO 8601 in UTC.
    """

    document: str
    kept_at: str
    expires_at: str


def keep_result(
    connection: Connection,
    secret: str,
    document: str,
    *,
    now: datetime,
    days: int,
    room_bytes: int,
) -> bool:
    """Keep a result; one that is kept already stays as it is.

    Parameters
    ----------
    connection : Connection
        A connection in a transaction that writes, so that all others wait until the room is
        counted and used.
    secret : str
        The secret part of the result's address: at least 128 random bits. The database gets only
        its SHA-256.
    document : str
        JSON of at most `MOST_DOCUMENT_BYTES`.
    now : datetime
        The present time, with its zone.
    days : int
        Number of days until the result expires.
    room_bytes : int
        Room for the documents of all kept results.

    Returns
    -------
    bool
        False if there is no room. Nothing is deleted to make room, except for expired results.

    Raises
    ------
    InputError
        If the document is too large.
    """
    size_bytes = len(document.encode())
    if size_bytes > MOST_DOCUMENT_BYTES:
        raise InputError(f"the result has {size_bytes} bytes, more than {MOST_DOCUMENT_BYTES}")
    forget_expired(connection, now)
    if kept_result(connection, secret, now) is not None:
        return True
    if connection.execute(_BYTES).scalar_one() + size_bytes > room_bytes:
        return False
    values = {
        "sha256": digest(secret),
        "document": document,
        "bytes": size_bytes,
        "kept_at": in_utc(now),
        "expires_at": in_utc(now + timedelta(days=days)),
    }
    connection.execute(insert(kept_results).values(values))
    return True


def kept_result(connection: Connection, secret: str, now: datetime) -> KeptResult | None:
    """Read a kept result; None if it never existed, was deleted, or has expired."""
    row = connection.execute(_KEPT, {"digest": digest(secret), "now": in_utc(now)}).one_or_none()
    return None if row is None else KeptResult(*row)


def forget_result(connection: Connection, secret: str, now: datetime) -> bool:
    """Delete a kept result; False if `kept_result` would not find it."""
    is_kept = kept_result(connection, secret, now) is not None
    connection.execute(_FORGET, {"digest": digest(secret)})
    return is_kept


def has_expired(connection: Connection, now: datetime) -> bool:
    """Whether `forget_expired` would delete anything."""
    return bool(connection.execute(_HAS_EXPIRED, {"now": in_utc(now)}).scalar_one())


def forget_expired(connection: Connection, now: datetime) -> int:
    """Delete all results that have expired, and return their number."""
    return connection.execute(_FORGET_EXPIRED, {"now": in_utc(now)}).rowcount
