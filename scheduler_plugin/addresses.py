"""Address of a server: a unix socket, or a URL of HTTP without a path."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import httpx

from ioncast_base.errors import InputError

_UNIX = "unix:"
_LARGEST_PORT = 65_535


@dataclass(frozen=True)
class Address:
    """Where a server listens.

    Attributes
    ----------
    text : str
        The address as a user wrote it, without a slash at the end of a URL.
    socket : str or None
        Path of the unix socket; None for TCP.
    """

    text: str
    url: str
    socket: str | None

    @classmethod
    def of(cls, text: str, schemes: Container[str] = ("http",)) -> Address:
        """Read ``unix:/path/of/socket`` or ``http://host:port``.

        Examples
        --------
        >>> Address.of("unix:/run/ioncast/ioncast.sock").socket
        '/run/ioncast/ioncast.sock'
        >>> Address.of("http://127.0.0.1:8420/").url
        'http://127.0.0.1:8420'
        """
        if text.startswith(f"{_UNIX}/"):
            return cls(text, "http://localhost", text.removeprefix(_UNIX))
        if _is_server(text, schemes):
            url = text.rstrip("/")
            return cls(url, url, None)
        raise InputError(
            f"{text!r} is not an address", remedy="give unix:/PATH or http://HOST:PORT"
        )


def _is_server(text: str, schemes: Container[str]) -> bool:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        return False
    is_port = url.port is None or 0 < url.port <= _LARGEST_PORT
    return url.scheme in schemes and bool(url.host) and url.raw_path == b"/" and is_port
