"""A client of ioncast's own service: one request at a time, each with a deadline."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, BinaryIO
from urllib.parse import quote

import httpx

from ioncast_base.errors import IoncastError

# The service reads a log for up to 60 s.
LOG_TIMEOUT_S = 90.0
_MOST_ANSWER_BYTES = 4 << 20
_LONGEST_DETAIL = 300
# What the service takes.
_LONGEST_NAME, _LONGEST_USER = 200, 100
_STORED = (200, 201)
_LARGEST_PAGE = 500
_NOT_FOUND = 404
_UNIX = "unix:"


class ServiceError(IoncastError):
    """The service did not do what it was asked."""

    http_status = 502
    title = "The service failed"


class ServiceUnreachableError(ServiceError):
    """Nobody answers, not in time, or something that is no answer of the service's."""


class ServiceRefusedError(ServiceError):
    """The service says no.

    Attributes
    ----------
    status : int
        Of HTTP.
    detail : str
        Why, in a sentence.
    retry_after_s : float or None
        When to ask again, where it says.
    """

    def __init__(
        self, status: int, detail: str, *, where: str, retry_after_s: float | None = None
    ) -> None:
        self.status = status
        self.detail = detail
        self.retry_after_s = retry_after_s
        super().__init__(f"the service answers {status}: {detail}", where=where)


@dataclass(frozen=True)
class RunOf:
    """What a Darshan log does not say of its run.

    Attributes
    ----------
    system : str
        Where it ran.
    job_id, user, name : str or None
        Of the job.
    nodes, io_nodes : int or None
        What the job had.
    decision_id : str or None
        The decision that it ran by; only outcomes have it.
    """

    system: str
    job_id: str | None = None
    user: str | None = None
    name: str | None = None
    nodes: int | None = None
    io_nodes: int | None = None
    decision_id: str | None = None


class Ioncast:
    """The service of one site.

    Parameters
    ----------
    address : str
        ``unix:/path/of/socket`` or ``http://host:port``.
    token : callable
        Gives the token; asked anew for every request, so that it can be replaced.
    timeout_s : float
        Seconds that one request may take in all.

    Every method raises `ServiceUnreachableError` where nobody answers in time and
    `ServiceRefusedError` where the service says no.
    """

    def __init__(
        self, address: str, token: Callable[[], str], timeout_s: float = LOG_TIMEOUT_S
    ) -> None:
        self._address = address
        self._token = token
        self._timeout_s = timeout_s
        is_socket = address.startswith(_UNIX)
        # Only what is awaited can be ended at a deadline, also while headers trickle.
        self._loop = asyncio.new_event_loop()
        self._client = httpx.AsyncClient(
            base_url="http://localhost" if is_socket else address,
            transport=httpx.AsyncHTTPTransport(
                uds=address.removeprefix(_UNIX) if is_socket else None,
                limits=httpx.Limits(max_keepalive_connections=0),
            ),
            timeout=timeout_s,
            trust_env=False,
        )

    def __enter__(self) -> Ioncast:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        if self._loop.is_closed():
            return
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(self._client.aclose())
        self._loop.close()

    def measured_systems(self) -> list[str]:
        """The systems that something was measured on, by name (`GET /v1/systems`).

        The service refuses a token that is none here too, also where reading needs none.
        """
        names: list[str] = []
        page_of = {"limit": str(_LARGEST_PAGE)}
        while True:
            page = self._ask("GET", "/v1/systems", params=page_of)
            try:
                names += [str(item["name"]) for item in page["items"] if item["imports"]]
                if page["next"] is None:
                    return names
                page_of["after"] = page["items"][-1]["name"]
            except (LookupError, TypeError) as error:
                raise self._stranger() from error

    def send_trace(self, log: BinaryIO, file_name: str, run: RunOf) -> dict[str, Any]:
        """Put a run into the history (`POST /v1/traces`); sent again it changes nothing.

        Parameters
        ----------
        log : file
            The Darshan log, open for reading bytes; it is read as it is sent.
        file_name : str
            What the service calls it in what it says.
        run : RunOf
            What the log does not say.

        Returns
        -------
        dict
            The service's answer.
        """
        return self._send("/v1/traces", log, file_name, {**_fields(run), "decision_id": None})

    def send_outcome(self, log: BinaryIO, file_name: str, run: RunOf) -> dict[str, Any]:
        """Report what a job got (`POST /v1/outcomes`) and put its run into the history.

        As `send_trace`; job and I/O nodes must be known.
        """
        return self._send("/v1/outcomes", log, file_name, _fields(run))

    def decision(self, decision_id: str) -> dict[str, Any] | None:
        """What was decided (`GET /v1/decisions/ID`); None where that is not known."""
        try:
            return self._ask("GET", f"/v1/decisions/{quote(decision_id, safe='')}")
        except ServiceRefusedError as error:
            if error.status == _NOT_FOUND:
                return None
            raise

    def _send(
        self, path: str, log: BinaryIO, file_name: str, fields: dict[str, Any]
    ) -> dict[str, Any]:
        given = {name: str(value) for name, value in fields.items() if value not in {None, ""}}
        called = "".join(each if each.isprintable() else "?" for each in file_name)
        return self._ask("POST", path, data=given, files={"log": (called, log)})

    def _ask(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        headers = {"Accept": "application/json", "Authorization": f"Bearer {self._token()}"}
        asking = self._answer(self._client.build_request(method, path, headers=headers, **content))
        try:
            return self._loop.run_until_complete(asyncio.wait_for(asking, self._timeout_s))
        except (TimeoutError, asyncio.TimeoutError) as error:
            raise ServiceUnreachableError(
                f"the service does not answer within {self._timeout_s:g} s", where=self._address
            ) from error
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise ServiceUnreachableError(
                f"the service cannot be reached: {reason}", where=self._address
            ) from error

    async def _answer(self, request: httpx.Request) -> dict[str, Any]:
        response = await self._client.send(request, stream=True)
        try:
            body = b""
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _MOST_ANSWER_BYTES:
                    break
        finally:
            await response.aclose()
        document = _document(body)
        if response.status_code not in _STORED:
            raise ServiceRefusedError(
                response.status_code,
                _detail(document, response.reason_phrase),
                where=self._address,
                retry_after_s=_seconds(response.headers.get("Retry-After")),
            )
        if document is None:
            raise self._stranger()
        return document

    def _stranger(self) -> ServiceUnreachableError:
        return ServiceUnreachableError("what answers is not ioncast", where=self._address)


def _fields(run: RunOf) -> dict[str, Any]:
    names = {
        "name": run.name and run.name[:_LONGEST_NAME],
        "user": run.user and run.user[:_LONGEST_USER],
    }
    return {**vars(run), **names}


def _document(body: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _detail(document: dict[str, Any] | None, otherwise: str) -> str:
    detail = str((document or {}).get("detail") or otherwise)
    return " ".join(detail.split())[:_LONGEST_DETAIL]


def _seconds(text: str | None) -> float | None:
    return float(text) if text and text.isascii() and text.isdecimal() else None
