"""Keeping results of uploads: what a page offers, and what its buttons do."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from datetime import datetime, timezone

from benchdb.store.database import transaction
from ioncast.service.context import service
from ioncast.service.store.kept_results import (
    MOST_DOCUMENT_BYTES,
    forget_result,
    keep_result,
    kept_result,
)
from ioncast.service.web.http.problems import RequestError
from ioncast.service.web.results.result import UploadResult, of_values, to_document
from ioncast.service.web.results.sealing import LIFE, seal, unseal
from ioncast.service.web.results.service_key import service_key
from ioncast_base.errors import BusyError, UnknownNameError
from ioncast_base.wording import size

_LOG = logging.getLogger("ioncast.service")
_MIB = 1 << 20


@dataclass(frozen=True)
class Offer:
    """The offer to keep a result.

    Attributes
    ----------
    sealed : str
        The sealed result for the form; empty if the result cannot be kept.
    """

    days: int
    sealed: str = ""
    why_not: str = ""


@dataclass(frozen=True)
class Kept:
    """A kept result, the secret of its address, and the time when it expires in ISO 8601."""

    result: UploadResult
    secret: str
    expires_at: str


def offer_to_keep(result: UploadResult) -> Offer | None:
    """Offer to keep a result, which stores nothing; None if the site keeps no results."""
    settings = service().settings
    if settings.keeping == "off":
        return None
    size_bytes = len(to_document(result))
    if size_bytes > MOST_DOCUMENT_BYTES:
        said = f"it has {size(size_bytes)}, more than {size(MOST_DOCUMENT_BYTES)}"
        return Offer(settings.kept_days, why_not=said)
    try:
        return Offer(settings.kept_days, seal(service_key(settings.state), result))
    except OSError as error:
        _LOG.error("results cannot be kept: %s", error)
        return Offer(settings.kept_days, why_not="the service cannot use its state folder")


def keep(sealed: str) -> str:
    """Store a sealed result, and return the secret of its address.

    The same sealed result has the same address, so pressing the button twice changes nothing.
    """
    of = service()
    settings = of.settings
    if settings.keeping == "off":
        raise RequestError(
            403, "not-allowed", "this service keeps no results", remedy="print or save the page"
        )
    now = datetime.now(timezone.utc)
    try:
        key = service_key(settings.state)
    except OSError as error:
        raise BusyError(f"results cannot be kept: {error}") from error
    secret, result = unseal(key, sealed, now)
    document, room_bytes = to_document(result), settings.kept_mib * _MIB
    with transaction(of.database, write=True) as connection:
        is_kept = keep_result(
            connection, secret, document, now=now, days=settings.kept_days, room_bytes=room_bytes
        )
    if not is_kept:
        raise RequestError(
            409,
            "no-room",
            f"the room for kept results, {size(room_bytes)}, is full, so this one was not stored",
            remedy="go back and print or save the page, or try again on another day",
        )
    return secret


def kept(secret: str) -> Kept:
    """Read a kept result."""
    of = service()
    with transaction(of.database) as connection:
        found = kept_result(connection, secret, datetime.now(timezone.utc))
    if found is None:
        raise _unknown()
    return Kept(of_values(json.loads(found.document)), secret, found.expires_at)


def forget(secret: str) -> None:
    """Delete a kept result."""
    with transaction(service().database, write=True) as connection:
        # The page of the upload can still send the sealed result.
        is_forgotten = forget_result(
            connection, secret, datetime.now(timezone.utc), barred_for=LIFE
        )
    if not is_forgotten:
        raise _unknown()


def _unknown() -> UnknownNameError:
    # Nobody may learn whether an address had a result before.
    return UnknownNameError(
        "this address has no result: it is misspelled, or the result expired or was deleted",
        remedy="send the log again",
    )
