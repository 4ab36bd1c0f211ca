"""Kept results in the database: results of uploads, each at an address that nobody can guess."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from ioncast.service.store.credentials import digest
from ioncast.service.store.tables import kept_results
from ioncast_base.errors import ConflictError, InputError
from ioncast_base.times import in_utc

# A page reads the document as a whole.
MOST_DOCUMENT_BYTES = 4 << 20

_HAS_EXPIRED = kept_results.c.expires_at <= bindparam("now")
_BYTES = select(func.coalesce(func.sum(kept_results.c.bytes), 0)).where(~_HAS_EXPIRED)
# A deleted result has no bytes; its row stays for a while, so that nobody keeps the result again.
_KNOWN = select(kept_results.c.document, kept_results.c.expires_at).where(
    kept_results.c.sha256 == bindparam("digest"), ~_HAS_EXPIRED
)
_KEPT = _KNOWN.where(kept_results.c.bytes > 0)


@dataclass(frozen=True)
class KeptResult:
    """A result that a user chose to keep."""

    document: str
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
    """Keep a result; one that is kept already stays as it is. False: there is no room.

    The transaction writes, so all others wait until the room is counted and used. The secret of the
    result's address has at least 128 random bits; the database gets only its SHA-256. Nothing is
    deleted to make room; expired results need none. A result that was deleted is a ConflictError.
    """
    size_bytes = len(document.encode())
    if size_bytes > MOST_DOCUMENT_BYTES:
        raise InputError(f"the result has {size_bytes} bytes, more than {MOST_DOCUMENT_BYTES}")
    known = connection.execute(_KNOWN, {"digest": digest(secret), "now": in_utc(now)}).first()
    if known is not None and not known.document:
        raise ConflictError("this result was deleted", remedy="send the log again")
    if known is not None:
        return True
    if connection.execute(_BYTES, {"now": in_utc(now)}).scalar_one() + size_bytes > room_bytes:
        return False
    # The clock may be wrong, so only the same result is replaced.
    connection.execute(delete(kept_results).where(kept_results.c.sha256 == digest(secret)))
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


def forget_result(
    connection: Connection, secret: str, now: datetime, *, barred_for: timedelta
) -> bool:
    """Delete a kept result, and bar its address; False if `kept_result` would not find it.

    `keep_result` rejects the same secret for `barred_for`, at most until the result would have
    expired.
    """
    found = kept_result(connection, secret, now)
    if found is None:
        return False
    until = min(found.expires_at, in_utc(now + barred_for))
    of_result = update(kept_results).where(kept_results.c.sha256 == digest(secret))
    connection.execute(of_result.values(document="", bytes=0, expires_at=until))
    return True
