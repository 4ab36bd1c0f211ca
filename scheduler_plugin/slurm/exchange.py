"""One HTTP request and its answer, within a deadline for all of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from ioncast_base.errors import InputError
from scheduler_plugin.slurm.errors import SlurmAnswerError, SlurmUnreachableError

# 100,000 jobs of Slurm 25.11 are 1.2 GB.
_LARGEST_ANSWER_BYTES = 2 << 30


@dataclass(frozen=True)
class Address:
    """Where a server listens: a unix socket, or a URL without a path."""

    text: str
    url: str
    socket: str | None

    @classmethod
    def of(cls, text: str) -> Address:
        """Read ``unix:/path/of/socket`` or ``http://host:port``.

        Raises
        ------
        InputError
            If it is neither.
        """
        if text.startswith("unix:/"):
            return cls(text, "http://localhost", text.removeprefix("unix:"))
        if _is_plain_http(text):
            return cls(text, text.rstrip("/"), None)
        raise InputError(
            "not an address",
            where=text,
            remedy="give unix:/path/of/socket or http://host:port",
        )


@dataclass(frozen=True)
class Answer:
    """What a server said, and how long it took."""

    status: int
    body: bytes
    took_s: float


def exchange(
    address: Address,
    method: str,
    path: str,
    *,
    headers: Mapping[str, str],
    timeout_s: float,
    **content: Any,
) -> Answer:
    """Send one request over a connection of its own.

    httpx limits each step of a request, so a server that sends a byte now and then could take
    for ever; here the whole request has `timeout_s`. Only looking up a host's name may take longer.

    Parameters
    ----------
    content
        `params` and `json` of `httpx.Client.request`.

    Raises
    ------
    SlurmUnreachableError
        If nobody is there, or the answer is not complete in time.
    SlurmAnswerError
        If what comes is not HTTP, or larger than 2 GiB.
    """
    began = time.monotonic()
    try:
        status, body = asyncio.run(
            asyncio.wait_for(_ask(address, method, path, headers, timeout_s, content), timeout_s)
        )
    except (asyncio.TimeoutError, httpx.TimeoutException):
        raise SlurmUnreachableError(
            f"no answer within {timeout_s:g} s",
            where=address.text,
            remedy="see whether slurmrestd and slurmctld run, or raise the timeout",
        ) from None
    except httpx.NetworkError as error:
        raise SlurmUnreachableError(
            f"nobody answers ({_words(error)})",
            where=address.text,
            remedy="see whether slurmrestd runs and listens there",
        ) from None
    except (httpx.RemoteProtocolError, httpx.DecodingError) as error:
        raise SlurmAnswerError(
            f"the answer is not HTTP ({_words(error)})",
            where=address.text,
            remedy="see whether slurmrestd listens there",
        ) from None
    return Answer(status, body, time.monotonic() - began)


async def _ask(
    address: Address,
    method: str,
    path: str,
    headers: Mapping[str, str],
    timeout_s: float,
    content: Mapping[str, Any],
) -> tuple[int, bytes]:
    # There is no TLS here; to prepare for it would take longer than the request.
    transport = httpx.AsyncHTTPTransport(uds=address.socket, verify=False, trust_env=False)
    async with (
        httpx.AsyncClient(transport=transport, timeout=timeout_s, trust_env=False) as client,
        client.stream(method, address.url + path, headers=dict(headers), **content) as answer,
    ):
        body = bytearray()
        async for part in answer.aiter_bytes():
            body += part
            if len(body) > _LARGEST_ANSWER_BYTES:
                raise SlurmAnswerError("the answer is larger than 2 GiB", where=address.text)
        return answer.status_code, bytes(body)


def _is_plain_http(text: str) -> bool:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        return False
    return url.scheme == "http" and bool(url.host) and url.raw_path == b"/"


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
