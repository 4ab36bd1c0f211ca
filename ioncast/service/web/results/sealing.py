"""Sealed results: a page carries its result to the button that keeps it.

Nothing is stored before somebody presses the button, so the page has the whole result in a field of
its form. The seal shows that this service made the result, and when.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import NamedTuple

from itsdangerous import BadData, URLSafeTimedSerializer

from ioncast.service.web.results.result import UploadResult, of_values
from ioncast_base.errors import InputError

LIFE = timedelta(days=1)
_SECRET_BYTES = 32


class Unsealed(NamedTuple):
    """A result, and the secret part of the address at which it is kept."""

    secret: str
    result: UploadResult


def seal(key: bytes, result: UploadResult) -> str:
    """Compress and sign a result, together with the secret of its address.

    The secret is drawn here, so that pressing the button twice keeps one result at one address.
    """
    payload = {"secret": secrets.token_urlsafe(_SECRET_BYTES), "result": asdict(result)}
    return _serializer(key).dumps(payload)


def unseal(key: bytes, sealed: str, now: datetime) -> Unsealed:
    """Open a sealed result.

    Parameters
    ----------
    sealed : str
        Anything that a client sent. It is inflated only after its signature proved that `seal`
        made it, so a small text cannot become a huge one.
    """
    try:
        # A seal is ASCII, and half a character could not be encoded.
        payload, sealed_at = _serializer(key).loads(
            sealed.encode("ascii", "replace"), return_timestamp=True
        )
    except BadData as error:
        raise InputError(
            "the result is not as this service sent it", remedy="send the log again"
        ) from error
    if now - sealed_at > LIFE:
        hours = LIFE // timedelta(hours=1)
        raise InputError(
            f"the page is older than {hours} hours, so its result can no longer be kept",
            remedy="send the log again",
        )
    return Unsealed(payload["secret"], of_values(payload["result"]))


def _serializer(key: bytes) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(
        key,
        salt="ioncast kept result",
        # Half a character cannot be encoded otherwise.
        serializer_kwargs={"ensure_ascii": True},
        signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256},
    )
