"""Client of ioncast's own service: one request at a time, each with a deadline."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from io import BytesIO
from types import TracebackType
from typing import Any
from urllib.parse import quote

import httpx

from ioncast_base.errors import IoncastError
from scheduler_plugin.addresses import Address

# The service takes up to 60 s to read a log.
LOG_TIMEOUT_S = 90.0
# A report that nobody waits for must not delay the watch.
_SHORT_S = 5.0
SCHEMES = ("http", "https")
_MOST_ANSWER_BYTES = 4 << 20
_LONGEST_DETAIL = 300
# Limits of the service's own fields.
LONGEST_NAME, LONGEST_USER = 200, 100
LARGEST_PAGE = 500
_LOG_PART = re.compile("form\\.log\\.([0-9]{1,9})")
_SUCCEEDED = (200, 201)
_OF_OUTCOME = ("decision_id", "started", "io_node_names", "submitted", "ended")
_NOT_FOUND = 404


class ServiceError(IoncastError):
    """The service did not do what it was asked."""

    http_status = 502
    title = "The service failed"


class ServiceUnreachableError(ServiceError):
    """The service does not answer in time, or another program answers."""


class ServiceRefusedError(ServiceError):
    """The service rejects the request.

    Attributes
    ----------
    detail : str
        The service's reason, in a sentence.
    retry_after_s : float or None
        Seconds after which the service wants to be asked again; None if it does not say.
    runs : list of list of int
        The places of the logs of each run, if the logs that were sent are of several runs.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        where: str,
        retry_after_s: float | None = None,
        document: dict[str, Any] | None = None,
    ) -> None:
        self.status = status
        self.detail = detail
        self.retry_after_s = retry_after_s
        self.runs = _runs(document or {})
        self.bad_logs = _bad_logs(document or {})
        super().__init__(f"the service answers {status}: {detail}", where=where)


@dataclass(frozen=True)
class NamedLog:
    """A copy of a Darshan log, which nobody changes while it is sent, and its name in messages."""

    name: str
    copy: BytesIO


@dataclass(frozen=True)
class RunOf:
    """Facts about a run that are not in its Darshan log; None if unknown.

    Attributes
    ----------
    decision_id : str or None
        The decision for the job; sent with an outcome only.
    tasks : int or None
        Processes that Slurm started; sent if a run has a log for each process.
    started : str or None
        When Slurm started this run of the job, ISO 8601; sent with an outcome only.
    io_node_names : str or None
        The names of its I/O nodes, with commas between; sent with an outcome only.
    submitted, ended : str or None
        When the job was submitted, and when this run ended, ISO 8601; sent with an outcome only.
    """

    system: str
    job_id: str | None = None
    user: str | None = None
    name: str | None = None
    nodes: int | None = None
    io_nodes: int | None = None
    decision_id: str | None = None
    tasks: int | None = None
    started: str | None = None
    io_node_names: str | None = None
    submitted: str | None = None
    ended: str | None = None


@dataclass(frozen=True)
class SlowIoNodes:
    """The slow I/O nodes of a system.

    Attributes
    ----------
    at_s : float
        The Unix time when they were found; 0 if the service has not looked for them yet.
    ratios : dict of str to float
        How many times slower jobs are on each, by name.
    """

    at_s: float = 0.0
    ratios: Mapping[str, float] = field(default_factory=dict)


class Ioncast:
    """A client of one service.

    Every method raises `ServiceUnreachableError` if the service does not answer in time and
    `ServiceRefusedError` if it rejects the request.

    Parameters
    ----------
    address : str
        ``unix:/path/of/socket``, ``http://host:port`` or ``https://host:port``.
    token : callable
        Returns the token. It is called for every request, so that the token can be replaced. With
        an empty token requests have none, which is enough where reading is open.
    """

    def __init__(
        self, address: str, token: Callable[[], str], timeout_s: float = LOG_TIMEOUT_S
    ) -> None:
        server = Address.of(address, SCHEMES)
        self._address = server.text
        self._token = token
        self._timeout_s = timeout_s
        # Only asynchronous requests can be cancelled at a deadline, also while headers trickle in.
        self._loop = asyncio.new_event_loop()
        self._client = httpx.AsyncClient(
            base_url=server.url,
            transport=httpx.AsyncHTTPTransport(
                uds=server.socket,
                limits=httpx.Limits(max_keepalive_connections=0),
            ),
            # The deadline of the whole request covers connecting and each read.
            timeout=None,  # noqa: S113
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
        """Cancel requests and close connections."""
        if self._loop.is_closed():
            return
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(self._client.aclose())
        self._loop.close()

    def measured_systems(self) -> list[str]:
        """Names of the systems with measurements (`GET /v1/systems`).

        The service rejects a wrong token here too, even if reading needs no token.
        """
        return [str(item["name"]) for item in self.systems() if item["imports"]]

    def systems(self) -> list[dict[str, Any]]:
        """All systems (`GET /v1/systems`), each with at least `name` and `imports`."""
        items: list[dict[str, Any]] = []
        page_of = {"limit": str(LARGEST_PAGE)}
        while True:
            page = self._ask("GET", "/v1/systems", params=page_of)
            try:
                for item in page["items"]:
                    items.append(item | {"name": str(item["name"]), "imports": item["imports"]})
                if page["next"] is None:
                    return items
                page_of["after"] = page["items"][-1]["name"]
            except (LookupError, TypeError) as error:
                raise self._stranger() from error

    def token_rights(self) -> dict[str, Any]:
        """Name, role and end of the token (`GET /v1/token`)."""
        return self._ask("GET", "/v1/token")

    def readiness(self) -> dict[str, Any]:
        """The state of the service (`GET /readyz`), also while it is not ready."""
        return self._ask("GET", "/readyz")

    def release(self) -> str:
        """The service's version."""
        try:
            return str(self._ask("GET", "/openapi.json")["info"]["version"])
        except (LookupError, TypeError) as error:
            raise self._stranger() from error

    def try_question(self) -> None:
        """Ask for a decision for -1 compute nodes, which the service rejects without a trace."""
        self._ask("GET", "/v1/decisions", params={"system": "none", "nodes": "-1"})

    def send_trace(self, logs: Sequence[NamedLog], run: RunOf) -> dict[str, Any]:
        """Add a run to the history (`POST /v1/traces`); sending it again changes nothing."""
        facts = {**_fields(run), **dict.fromkeys(_OF_OUTCOME)}
        return self._send("/v1/traces", logs, facts)

    def send_outcome(self, logs: Sequence[NamedLog], run: RunOf) -> dict[str, Any]:
        """Report a job's outcome (`POST /v1/outcomes`) and add its run to the history.

        Parameters and answer as for `send_trace`; job id and I/O nodes must be known.
        """
        return self._send("/v1/outcomes", logs, _fields(run))

    def send_queue(self, report: Mapping[str, Any]) -> None:
        """Report I/O nodes in use and waiting jobs (`POST /v1/queue`)."""
        self._ask("POST", "/v1/queue", timeout_s=_SHORT_S, json=dict(report))

    def decision(self, decision_id: str) -> dict[str, Any] | None:
        """A decision (`GET /v1/decisions/ID`); None if the service does not know the id."""
        try:
            return self._ask("GET", f"/v1/decisions/{quote(decision_id, safe='')}")
        except ServiceRefusedError as error:
            if error.status == _NOT_FOUND:
                return None
            raise

    def slow_io_nodes(self, system: str) -> SlowIoNodes:
        """Slow I/O nodes of a system (`GET /v1/slow-io-nodes`); it is not waited for long."""
        asked = {"system": system}
        found = self._ask("GET", "/v1/slow-io-nodes", timeout_s=_SHORT_S, params=asked)
        try:
            names = tuple(str(item["name"]) for item in found["items"])
            at_s = datetime.fromisoformat(found["at"]).timestamp() if found["at"] else 0.0
            ratios = tuple(float(item["ratio"]) for item in found["items"])
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            raise self._stranger() from error
        return SlowIoNodes(at_s, dict(zip(names, ratios, strict=True)))

    def job(self, job_id: str, system: str | None) -> dict[str, Any]:
        """Everything that is known about a job (`GET /v1/jobs/ID`), on one system or on all."""
        asked = {} if system is None else {"system": system}
        found = self._ask("GET", f"/v1/jobs/{quote(job_id, safe='')}", params=asked)
        if not isinstance(found.get("items"), list):
            raise self._stranger()
        return found

    def _send(self, path: str, logs: Sequence[NamedLog], fields: dict[str, Any]) -> dict[str, Any]:
        given = {name: str(value) for name, value in fields.items() if value not in {None, ""}}
        files = [("log", (_printable(log.name), log.copy)) for log in logs]
        return self._ask("POST", path, data=given, files=files)

    def _ask(
        self, method: str, path: str, *, timeout_s: float | None = None, **content: Any
    ) -> dict[str, Any]:
        timeout_s = timeout_s or self._timeout_s
        headers = {"Accept": "application/json"}
        if token := self._token():
            headers["Authorization"] = f"Bearer {token}"
        asking = self._answer(self._client.build_request(method, path, headers=headers, **content))
        try:
            return self._loop.run_until_complete(asyncio.wait_for(asking, timeout_s))
        except (TimeoutError, asyncio.TimeoutError) as error:
            raise ServiceUnreachableError(
                f"the service does not answer within {timeout_s:g} s", where=self._address
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
        if response.status_code not in _SUCCEEDED:
            raise ServiceRefusedError(
                response.status_code,
                _detail(document, response.reason_phrase),
                where=self._address,
                retry_after_s=_seconds(response.headers.get("Retry-After")),
                document=document,
            )
        if document is None:
            raise self._stranger()
        return document

    def _stranger(self) -> ServiceUnreachableError:
        return ServiceUnreachableError("the answer does not come from ioncast", where=self._address)


def _fields(run: RunOf) -> dict[str, Any]:
    names = {
        "name": run.name and run.name[:LONGEST_NAME],
        "user": run.user and run.user[:LONGEST_USER],
    }
    return {**vars(run), **names}


def _document(body: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _printable(name: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in name)


def _runs(document: dict[str, Any]) -> list[list[int]]:
    """Read the runs of a problem document; nothing in it is trusted."""
    runs = document.get("runs")
    if not isinstance(runs, list) or not all(isinstance(run, list) for run in runs):
        return []
    return runs if all(isinstance(place, int) for run in runs for place in run) else []


def _bad_logs(document: dict[str, Any]) -> dict[int, str]:
    """Read the logs that a problem document is about; nothing in it is trusted."""
    errors = document.get("errors")
    bad = {}
    for error in errors if isinstance(errors, list) else []:
        if isinstance(error, dict) and (part := _LOG_PART.fullmatch(str(error.get("where")))):
            bad[int(part[1])] = _on_a_line(str(error.get("what")))
    return bad


def _detail(document: dict[str, Any] | None, otherwise: str) -> str:
    detail = str((document or {}).get("detail") or otherwise)
    return _on_a_line(detail)


def _on_a_line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_DETAIL]


def _seconds(text: str | None) -> float | None:
    return float(text) if text and text.isascii() and text.isdecimal() else None
