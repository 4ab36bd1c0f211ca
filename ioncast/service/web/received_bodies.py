"""Receives bodies of requests, and gives up clients that send too slowly."""

from __future__ import annotations

import socket
from time import monotonic

from ioncast.service.web.http.problems import RequestError

# A client may be silent for this long in total; bytes earn it more time, up to the same.
_SILENCE_S = 10.0
_SLOWEST_BYTES_S = 16 << 10
# If this process itself was stopped, the client is not charged for all of that time.
_LARGEST_CHARGE_S = 1.0


class BodySocket:
    """The socket of a client that sends one request, as gunicorn's parser uses it."""

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self._left_s = _SILENCE_S

    def gettimeout(self) -> float | None:
        """The time limit of a call that reads, in seconds."""
        return self._client.gettimeout()

    def settimeout(self, limit_s: float | None) -> None:
        """Set the time limit of a call that reads, in seconds."""
        self._client.settimeout(limit_s)

    def recv(self, most_bytes: int) -> bytes:
        """Receive some bytes; empty if the client sends no more.

        Raises
        ------
        RequestError
            408 when the client sends too slowly. If the caller has set a limit, TimeoutError
            after that.
        """
        limit_s = self._client.gettimeout()
        if limit_s is not None:
            return self._client.recv(most_bytes)
        began_s = monotonic()
        self._client.settimeout(self._left_s)
        try:
            received = self._client.recv(most_bytes)
        except TimeoutError:
            raise _too_slow() from None
        finally:
            self._client.settimeout(limit_s)
        took_s = min(monotonic() - began_s, _LARGEST_CHARGE_S)
        self._left_s = min(self._left_s - took_s + len(received) / _SLOWEST_BYTES_S, _SILENCE_S)
        if self._left_s <= 0:
            raise _too_slow()
        return received


def _too_slow() -> RequestError:
    return RequestError(
        408,
        "request-timeout",
        "the body of the request comes too slowly",
        remedy=f"send at least {_SLOWEST_BYTES_S >> 10} KiB/s",
    )
