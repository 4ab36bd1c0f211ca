"""HTTP requests to slurmrestd and their answers, each with one deadline for both together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from scheduler_plugin.addresses import Address
from scheduler_plugin.slurm.errors import SlurmAnswerError, SlurmUnreachableError

# 100,000 jobs of Slurm 25.11 are 1.2 GB.
_LARGEST_ANSWER_BYTES = 2 << 30
# slurmrestd has 20 threads, and other clients need some of them.
MOST_AT_ONCE = 8

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Answer:
    """A server's answer, and the seconds from the request to its end."""

    status: int
    body: bytes
    took_s: float


def connections(address: Address, timeout_s: float) -> httpx.AsyncClient:
    """Make a client whose connections stay open between its requests."""
    # slurmrestd has no TLS, and creating an SSL context takes longer than the request.
    transport = httpx.AsyncHTTPTransport(
        uds=address.socket,
        verify=False,
        trust_env=False,
        limits=httpx.Limits(max_connections=MOST_AT_ONCE),
    )
    return httpx.AsyncClient(transport=transport, timeout=timeout_s, trust_env=False)


async def exchange(
    client: httpx.AsyncClient,
    address: Address,
    method: str,
    path: str,
    *,
    headers: Mapping[str, str],
    timeout_s: float,
    **content: Any,
) -> Answer:
    """Send one request; a GET once more if it is not answered.

    The timeout of httpx limits each step of a request, so a server that sends one byte now and
    then could take forever. Here `timeout_s` limits the whole request; only the look-up of a host
    name may take longer.
    """
    began = time.monotonic()
    try:
        status, body = await asyncio.wait_for(
            _answer(client, address, method, path, headers, content), timeout_s
        )
    except (asyncio.TimeoutError, httpx.TimeoutException):
        raise SlurmUnreachableError(
            f"no answer within {timeout_s:g} s",
            where=address.text,
            remedy="check that slurmrestd and slurmctld run, or raise the timeout",
        ) from None
    except httpx.NetworkError as error:
        raise SlurmUnreachableError(
            f"no server answers ({_words(error)})",
            where=address.text,
            remedy="check that slurmrestd runs and listens there",
        ) from None
    except (httpx.RemoteProtocolError, httpx.DecodingError) as error:
        raise SlurmAnswerError(
            f"the answer is not HTTP ({_words(error)})",
            where=address.text,
            remedy="check that slurmrestd listens there",
        ) from None
    return Answer(status, body, time.monotonic() - began)


async def at_once(work: Callable[[_Item], Awaitable[None]], items: Iterable[_Item]) -> None:
    """Do work for all items, for up to `MOST_AT_ONCE` of them at the same time.

    The first error ends all work and is raised.
    """
    left = iter(items)
    workers = [asyncio.ensure_future(_in_turn(work, left)) for _ in range(MOST_AT_ONCE)]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


async def _in_turn(work: Callable[[_Item], Awaitable[None]], left: Iterator[_Item]) -> None:
    for item in left:
        await work(item)


async def _answer(
    client: httpx.AsyncClient,
    address: Address,
    method: str,
    path: str,
    headers: Mapping[str, str],
    content: Mapping[str, Any],
) -> tuple[int, bytes]:
    try:
        return await _ask(client, address, method, path, headers, content)
    except httpx.RemoteProtocolError:
        # A busy slurmrestd closes a connection without an answer now and then. A question may be
        # repeated, but a change that was already made may not.
        if method != "GET":
            raise
        return await _ask(client, address, method, path, headers, content)


async def _ask(
    client: httpx.AsyncClient,
    address: Address,
    method: str,
    path: str,
    headers: Mapping[str, str],
    content: Mapping[str, Any],
) -> tuple[int, bytes]:
    async with client.stream(
        method, address.url + path, headers=dict(headers), **content
    ) as answer:
        body = bytearray()
        async for part in answer.aiter_bytes():
            body += part
            if len(body) > _LARGEST_ANSWER_BYTES:
                raise SlurmAnswerError("the answer is larger than 2 GiB", where=address.text)
        return answer.status_code, bytes(body)


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
