"""The client of slurmrestd: the requests that ioncast needs, each with a deadline."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

import httpx

from ioncast_base.errors import InputError
from ioncast_base.wording import listed
from scheduler_plugin.addresses import Address
from scheduler_plugin.slurm import refusals
from scheduler_plugin.slurm.errors import (
    SlurmAnswerError,
    SlurmClusterError,
    SlurmRefusedError,
    SlurmUnreachableError,
)
from scheduler_plugin.slurm.exchange import Answer, at_once, connections, exchange
from scheduler_plugin.slurm.job_changes import JobChange
from scheduler_plugin.slurm.jobs import Job
from scheduler_plugin.slurm.licence_limits import (
    Limits,
    association,
    is_named,
    limits_of,
    qos_limit,
)
from scheduler_plugin.slurm.licences import Licence
from scheduler_plugin.slurm.versions import NEWEST_FIRST, Version38, without_unread

_LOG = logging.getLogger("ioncast.slurm")
_Read = TypeVar("_Read")
_NOT_FOUND = 404


class Slurm:
    """A client of one slurmrestd.

    Every method raises `SlurmUnreachableError` if Slurm does not answer in time,
    `SlurmRefusedError` if Slurm rejects the token or its user lacks a right, and
    `SlurmAnswerError` if Slurm rejects the request or its answer cannot be read.

    Parameters
    ----------
    address : str
        Where slurmrestd listens: ``unix:/path/of/socket`` or ``http://host:port``.
    token : callable
        Returns the JWT. It is called for every request, so that the token can be renewed.
    timeout_s : float
        Seconds that one request may take in all.
    cluster : str, optional
        The cluster's name in slurmdbd. It is needed only if slurmdbd has several clusters; without
        it, a question that concerns several of them raises `SlurmClusterError`.

    Raises
    ------
    InputError
        If the address is not valid, or the user's name cannot be sent in a header.
    """

    def __init__(
        self,
        address: str,
        user: str,
        token: Callable[[], str],
        timeout_s: float = 10.0,
        *,
        cluster: str | None = None,
    ) -> None:
        self._address = Address.of(address)
        if not _is_one_line(user):
            raise InputError("this is not a valid user name", where=repr(user))
        self._user = user
        self._token = token
        self._timeout_s = timeout_s
        # Slurm has names of clusters in lower case.
        self._cluster = cluster and cluster.lower()
        self._known: Version38 | None = None
        self._unreadable: set[str] = set()

    def __enter__(self) -> Slurm:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Forget the version; connections end with each request."""
        self._known = None

    @property
    def version(self) -> str:
        """The newest version of the interface that both sides support, such as ``0.0.38``."""
        return self._version.name

    def ping(self) -> None:
        """Return if slurmctld answers; raise `SlurmUnreachableError` otherwise."""
        pings = _listed(self._ask("GET", "slurm", "ping"), "pings", lambda entry: entry)
        if not any(_has_answered(ping) for ping in pings):
            # With a bad token, 24.11 says so too. Other questions tell the reason.
            self.licences()
            raise SlurmUnreachableError(
                "slurmctld does not answer slurmrestd",
                where=self._address.text,
                remedy="check that it runs",
            )

    def jobs(self) -> list[Job]:
        """All jobs that slurmctld knows.

        It forgets a job `MinJobAge` (300 s by default) after its end. Times are those of its
        clock. A job that cannot be read is left out with a warning. If no job can be read, the
        first problem is raised.
        """
        return self._readable(self._ask("GET", "slurm", "jobs"), self._version.job)

    def job(self, job_id: int) -> Job | None:
        """One job; None if slurmctld does not know it, or has forgotten it."""
        jobs = self._jobs_of(job_id)
        return next((job for job in jobs if job.id == job_id), None)

    def change_all(
        self,
        changes: Iterable[JobChange],
        note: Callable[[JobChange, SlurmAnswerError | None], None],
    ) -> None:
        """Change jobs, some at the same time, over connections that stay open.

        Each change is one request, or two if the licences of a job change that may start at any
        time: Slurm lets operators change those of a running job, but the job goes on using the old
        ones. So such a change is rejected here.

        Parameters
        ----------
        note : callable
            It is called after each change, with the error if Slurm rejects this change. All other
            errors end the changes, and are raised.
        """

        async def work(client: httpx.AsyncClient, change: JobChange) -> None:
            try:
                await self._change(client, change)
            except SlurmAnswerError as error:
                note(change, error)
            else:
                note(change, None)

        self._run(lambda client: at_once(partial(work, client), changes))

    def licences(self) -> list[Licence]:
        """The cluster's licences."""
        return _listed(self._ask("GET", "slurm", "licenses"), "licenses", self._version.licence)

    def limits(self, licence: str, total: int) -> Limits:
        """Slurm's limits on a licence, of which it has `total`."""
        found = self._ask_slurmdbd("qos")
        key = "qos" if "qos" in found else "QOS"
        qos = dict(_listed(found, key, lambda each: (each["name"], qos_limit(each, licence))))
        found = self._ask("GET", "slurm", "partitions")
        partitions = dict(_listed(found, "partitions", self._version.partition))
        found = self._ask_slurmdbd("associations")
        self._check_cluster(found)
        own = self._of_this_cluster(found, "associations")
        rows = _listed(own, "associations", lambda each: association(each, licence))
        return limits_of(licence, total, qos, partitions, rows)

    def licence_total(self, licence: str) -> int:
        """The number that Slurm has of a licence; 0 if it does not know the licence."""
        return sum(each.total for each in self.licences() if is_named(each.name, licence))

    def ended_jobs(self, since_s: int, until_s: int) -> list[Job]:
        """Jobs of slurmdbd with `since_s` <= end < `until_s`, in Unix times.

        As for `accounted_jobs`.
        """
        jobs = self.accounted_jobs(since_s, until_s)
        return [job for job in jobs if job.ended_s is not None and since_s <= job.ended_s < until_s]

    def accounted_jobs(self, since_s: int, until_s: int) -> list[Job]:
        """Jobs of slurmdbd that waited or ran between two Unix times.

        A requeued job is listed once for each of its runs. A job that cannot be read is left out
        with a warning. If no job can be read, the first problem is raised.
        """
        # Versions before 0.0.40 read a number without "uts" as a date.
        span = {"start_time": f"uts{since_s}", "end_time": f"uts{until_s}"}
        document = self._ask_slurmdbd("jobs", params=span)
        own = self._of_this_cluster(document, "jobs")
        return self._readable(own, self._version.accounted_job)

    @property
    def _version(self) -> Version38:
        return self._known or self._run(self._find_version)

    def _run(self, work: Callable[[httpx.AsyncClient], Awaitable[_Read]]) -> _Read:
        """Do work with a client of its own; its connections end with it."""

        async def with_client() -> _Read:
            async with connections(self._address, self._timeout_s) as client:
                return await work(client)

        return asyncio.run(with_client())

    async def _find_version(self, client: httpx.AsyncClient) -> Version38:
        if self._known is None:
            self._known = await self._newest_version(client)
        return self._known

    async def _newest_version(self, client: httpx.AsyncClient) -> Version38:
        for version in NEWEST_FIRST:
            token = self._checked_token()
            answer = await self._send(client, "GET", f"/slurm/v{version.name}/ping", token)
            if answer.status != _NOT_FOUND:
                self._read(answer, token)
                return version
        raise SlurmAnswerError(
            f"slurmrestd offers no version of the interface from {NEWEST_FIRST[-1].name} to"
            f" {NEWEST_FIRST[0].name}",
            where=self._address.text,
            remedy="let it load one, with its option -s or SLURMRESTD_OPENAPI_PLUGINS",
        )

    def _jobs_of(self, job_id: int) -> list[Job]:
        """A job, or all tasks of an array, or all components of a heterogeneous job."""
        document = self._ask("GET", "slurm", f"job/{job_id}", may_be_unknown=True)
        return _listed(document, "jobs", self._version.job)

    def _of_this_cluster(self, document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        """An answer of slurmdbd without the entries of other clusters."""
        entries = _entries(document, key)
        clusters = _clusters(entries)
        if self._cluster is None and len(clusters) > 1:
            raise SlurmClusterError(
                f"slurmdbd has the clusters {listed(clusters)}; it is unknown which is this one",
                where=self._address.text,
                remedy="set `slurmrestd.cluster` to slurm.conf's ClusterName",
            )
        # An entry without a cluster cannot be read, which is said later.
        own = {"", *([self._cluster] if self._cluster else clusters)}
        return {key: [entry for entry in entries if _cluster(entry) in own]}

    def _check_cluster(self, associations: Mapping[str, Any]) -> None:
        """Reject a name that slurmdbd does not know: each cluster has associations."""
        clusters = _clusters(_entries(associations, "associations"))
        if self._cluster is not None and clusters and self._cluster not in clusters:
            raise SlurmClusterError(
                f"slurmdbd has no cluster {self._cluster!r}, but {listed(clusters)}",
                where=self._address.text,
                remedy="set `slurmrestd.cluster` to slurm.conf's ClusterName",
            )

    def _readable(
        self, document: Mapping[str, Any], read: Callable[[Mapping[str, Any]], Job]
    ) -> list[Job]:
        entries = _entries(document, "jobs")
        found, errors = [], []
        for entry in entries:
            try:
                found.append(_read_entry(entry, "jobs", read))
            except SlurmAnswerError as error:
                errors.append(error)
                self._warn_of_unreadable(entry, error)
        # One unreadable job must not hide the others. If no job can be read, the interface has
        # changed, and an empty list would mean that all jobs have ended.
        if errors and not found:
            raise errors[0]
        return found

    def _warn_of_unreadable(self, entry: object, error: SlurmAnswerError) -> None:
        """Warn once for each job: it stays unreadable as long as Slurm knows it."""
        job_id = str(entry.get("job_id") if isinstance(entry, Mapping) else None)
        if job_id not in self._unreadable:
            self._unreadable.add(job_id)
            _LOG.warning("job %.20r is left out: %s", job_id, error.what)

    async def _change(self, client: httpx.AsyncClient, change: JobChange) -> None:
        version = await self._find_version(client)
        # With a begin time Slurm itself rejects the change of a job that has started.
        if change.licenses is not None and change.begins_s is None:
            await self._refuse_running(client, change.job_id)
        begin_time = None if change.begins_s is None else version.begin_time(change.begins_s)
        wanted = {"licenses": change.licenses, "begin_time": begin_time}
        body = {key: value for key, value in wanted.items() if value is not None}
        await self._asked(client, "POST", "slurm", change.path, json=body)

    async def _refuse_running(self, client: httpx.AsyncClient, job_id: int) -> None:
        path = f"job/{job_id}"
        document = await self._asked(client, "GET", "slurm", path, may_be_unknown=True)
        jobs = _listed(document, "jobs", (await self._find_version(client)).job)
        running = next((job for job in jobs if job.is_running), None)
        if running is not None:
            raise SlurmAnswerError(
                f"job {running.id} is {running.state}",
                where=self._address.text,
                remedy="change licences only while a job waits",
            )

    def _ask_slurmdbd(self, path: str, **content: Any) -> Mapping[str, Any]:
        try:
            return self._ask("GET", "slurmdb", path, **content)
        except SlurmUnreachableError:
            # With a bad token, 24.11 says that slurmdbd cannot be reached. slurmctld tells the
            # reason.
            self.licences()
            raise

    def _ask(
        self,
        method: str,
        part: str,
        path: str,
        *,
        may_be_unknown: bool = False,
        **content: Any,
    ) -> Mapping[str, Any]:
        return self._run(
            lambda client: self._asked(
                client, method, part, path, may_be_unknown=may_be_unknown, **content
            )
        )

    async def _asked(
        self,
        client: httpx.AsyncClient,
        method: str,
        part: str,
        path: str,
        *,
        may_be_unknown: bool = False,
        **content: Any,
    ) -> Mapping[str, Any]:
        token = self._checked_token()
        version = (await self._find_version(client)).name
        answer = await self._send(client, method, f"/{part}/v{version}/{path}", token, **content)
        if _is_unknown_path(answer):
            # slurmrestd may have been upgraded.
            self._known = None
            version = (await self._find_version(client)).name
            path_now = f"/{part}/v{version}/{path}"
            answer = await self._send(client, method, path_now, token, **content)
        if _is_unknown_path(answer):
            raise SlurmAnswerError(
                f"slurmrestd does not offer /{part}/v{version}/{path.partition('/')[0]}",
                where=self._address.text,
                remedy="check that slurmdbd is set up, and what slurmrestd's option -s loads",
            )
        return self._read(answer, token, may_be_unknown=may_be_unknown)

    async def _send(
        self, client: httpx.AsyncClient, method: str, path: str, token: str, **content: Any
    ) -> Answer:
        return await exchange(
            client,
            self._address,
            method,
            path,
            headers={"X-SLURM-USER-NAME": self._user, "X-SLURM-USER-TOKEN": token},
            timeout_s=self._timeout_s,
            **content,
        )

    def _checked_token(self) -> str:
        token = self._token()
        if not _is_one_line(token):
            raise SlurmRefusedError(
                "the token is not one line of printable characters",
                where=self._address.text,
                remedy="create one with `scontrol token lifespan=SECONDS`",
            )
        return token

    def _read(
        self, answer: Answer, token: str, *, may_be_unknown: bool = False
    ) -> Mapping[str, Any]:
        where = self._address.text
        document = _decoded(answer.body)
        errors = None if document is None else refusals.real_errors(document)
        if document is None or errors is None:
            raise refusals.not_slurm(where, token, answer.status, answer.body)
        if may_be_unknown and any(
            entry.get("error_number") == refusals.UNKNOWN_JOB for entry in errors
        ):
            return {"jobs": []}
        if errors or answer.status >= 400:
            raise refusals.refusal(where, token, answer.took_s, answer.status, errors)
        return document


def _decoded(body: bytes) -> Mapping[str, Any] | None:
    """Decode a JSON object; None if the bytes are not one.

    Users can write any bytes into names, comments and folders, and slurmrestd passes them on.
    """
    try:
        text = body.decode(errors="replace")
        document = json.loads(text, object_hook=without_unread, strict=False)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _is_one_line(text: str) -> bool:
    return bool(text) and text.isascii() and text.isprintable()


def _is_unknown_path(answer: Answer) -> bool:
    """Whether slurmrestd does not know the path; for an unknown job it answers 404 with JSON."""
    return answer.status == _NOT_FOUND and _decoded(answer.body) is None


def _has_answered(ping: Mapping[str, Any]) -> bool:
    return "UP" in (ping.get("pinged"), ping.get("ping")) or ping.get("responding") is True


def _listed(
    document: Mapping[str, Any], key: str, read: Callable[[Mapping[str, Any]], _Read]
) -> list[_Read]:
    return [_read_entry(entry, key, read) for entry in _entries(document, key)]


def _entries(document: Mapping[str, Any], key: str) -> list[Any]:
    entries = document.get(key)
    if not isinstance(entries, list):
        raise SlurmAnswerError(f"the answer's {key} cannot be read (not a list)")
    return entries


def _cluster(entry: Any) -> str:
    """The cluster of an entry of slurmdbd; empty if the entry cannot be read."""
    return str(entry.get("cluster") or "") if isinstance(entry, Mapping) else ""


def _clusters(entries: list[Any]) -> list[str]:
    return sorted({_cluster(entry) for entry in entries} - {""})


def _read_entry(entry: Any, key: str, read: Callable[[Mapping[str, Any]], _Read]) -> _Read:
    try:
        return read(entry)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise SlurmAnswerError(
            f"the answer's {key} cannot be read ({type(error).__name__}: {error})"
        ) from None
