"""Sending logs to the service: each at least once, and again later while the service is away."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from io import BytesIO
from itertools import zip_longest
from pathlib import Path
from typing import Any, Protocol

from ioncast_base.errors import InputError, IoncastError
from ioncast_base.times import in_utc
from ioncast_base.visible_text import visible
from ioncast_base.wording import alike_first
from scheduler_plugin.collector.darshan_logs import copied_log
from scheduler_plugin.collector.log_queue import MOST_BYTES
from scheduler_plugin.collector.state import Delivery, JobRun, WatchState
from scheduler_plugin.service_client import NamedLog, RunOf, ServiceRefusedError

_LOG = logging.getLogger("ioncast.watch")
# Statuses that the service would give to the same log again: the log cannot be used, or it
# contradicts stored data.
_FINAL = frozenset([400, 409, 413, 415, 422])
_LONGEST_PAUSE_S = 60.0
_LONGEST_WAIT_S = 600.0


class Receiver(Protocol):
    """The part of `scheduler_plugin.service_client.Ioncast` that the watch needs."""

    def measured_systems(self) -> list[str]:
        """Names of the systems with measurements."""

    def send_trace(self, logs: Sequence[NamedLog], run: RunOf) -> dict[str, Any]:
        """Add a run to the history."""

    def send_outcome(self, logs: Sequence[NamedLog], run: RunOf) -> dict[str, Any]:
        """Report a job's outcome."""

    def send_queue(self, report: Mapping[str, Any]) -> None:
        """Report the queue."""


class LogSender:
    """Sends the logs that wait in the watch's state.

    Parameters
    ----------
    is_dry : bool
        Whether the receiver sends nothing; then the log says "would be sent".
    """

    def __init__(
        self,
        state: WatchState,
        service: Receiver,
        counted: Counter[str],
        *,
        system: str,
        period_s: float,
        is_dry: bool,
        clock: Callable[[], float],
    ) -> None:
        self._state = state
        self._service = service
        self._counted = counted
        self._system = system
        self._period_s = period_s
        self._clock = clock
        self.sent = "would be sent" if is_dry else "sent"
        self._failures_in_a_row = 0
        self._paused_until_s = 0.0
        self._is_system_checked = False
        self._warnings: set[str] = set()
        # The number of the last request of each user.
        self._last_turns: dict[str, int] = {}
        self._requests = 0

    def is_paused(self, now_s: float) -> bool:
        """Whether the service is left alone for now, because it did not answer before."""
        return now_s < self._paused_until_s

    def send(self, until_s: float) -> bool:
        """Send the logs that are due; without one, only check the service once."""
        if not self._is_system_checked:
            self._check_system()
        is_complete = True
        for delivery in self._due(until_s):
            run = self._state.run_of(delivery)
            try:
                is_complete &= self._deliver(delivery, run)
            except IoncastError as error:
                self._put_off(delivery)
                self._pause(error)
                raise
            except Exception as error:
                # A fault that only this log reaches must not keep back the others.
                self._put_off(delivery)
                is_complete = False
                self._warn_once(
                    f"logs that cannot be sent are tried again later: {type(error).__name__}:"
                    f" {visible(error)}"
                )
            else:
                self._failures_in_a_row = 0
        return is_complete

    def _due(self, until_s: float) -> Iterator[Delivery]:
        """Yield the logs that are due, users in turn, until a Unix time."""
        while self._clock() <= until_s and (
            due := self._state.due_requests(self._clock(), _LONGEST_WAIT_S)
        ):
            for user, batch in in_turns(due, self._last_turns):
                if self._clock() > until_s:
                    return
                self._requests += 1
                self._last_turns[user] = self._requests
                if delivery := self._state.delivery(batch):
                    yield delivery

    def _check_system(self) -> None:
        try:
            measured = self._service.measured_systems()
        except IoncastError as error:
            self._pause(error)
            raise
        if self._system not in measured:
            self._reject_other_spelling(measured)
            others = alike_first(self._system, measured)
            _LOG.warning(
                "the service has no measurements of system %r and cannot decide for its jobs%s",
                self._system,
                f"; systems with measurements: {others}" if others else "",
            )
        self._is_system_checked = True

    def _reject_other_spelling(self, measured: list[str]) -> None:
        """The service would reject every log finally, so stop before the first one is sent."""
        for name in measured:
            if name.casefold() == self._system.casefold():
                raise InputError(
                    f"the system is called {name!r} in ioncast, not {self._system!r}",
                    where="system",
                    remedy="change it in the settings",
                )

    def _deliver(self, delivery: Delivery, run: JobRun) -> bool:
        """Send logs, then note it; if the watch is killed in between, it sends them again.

        Logs that cannot be read now are sent later, so that they do not keep back the others.
        Return whether all could be read.
        """
        copies: dict[Path, BytesIO] = {}
        later, room_bytes, are_readable = [], MOST_BYTES, True
        for path in delivery.paths:
            if room_bytes <= 0:
                later.append(path)
                continue
            try:
                copy = self._copy(delivery, run, path)
            except OSError as error:
                self._tell_unreadable(delivery, run, path, error)
                later.append(path)
                are_readable = False
                continue
            if copy is None:
                continue
            room_bytes -= copy.getbuffer().nbytes
            # Logs may have grown since they were put into this request.
            if room_bytes < 0 and copies:
                later.append(path)
            else:
                copies[path] = copy
        if copies:
            due_s = self._clock() + self._delay_s(delivery.attempts, _LONGEST_WAIT_S)
            with self._state.transaction():
                self._state.set_apart(delivery, later, due_s)
            try:
                self._send(delivery, run, copies)
            finally:
                # A request is a part of cycles, which Python may collect much later.
                for copy in copies.values():
                    copy.close()
        else:
            self._put_off(delivery)
        return are_readable

    def _copy(self, delivery: Delivery, run: JobRun, path: Path) -> BytesIO | None:
        """Copy a log; None if it is given up, because it is not a log of the job."""
        try:
            return copied_log(path, run.user)
        except FileNotFoundError:
            why = "the file does not exist any more"
        except InputError as error:
            why = error.what
        self._give_up(delivery, [path], run, why, is_log=False)
        return None

    def _tell_unreadable(self, delivery: Delivery, run: JobRun, path: Path, error: OSError) -> None:
        """Log that a log is put off, at the first attempt."""
        if not delivery.attempts:
            _LOG.warning(
                "job %d of %s: %s cannot be read and is tried again later: %s",
                run.id,
                run.user,
                visible(path),
                error.strerror or error,
            )

    def _send(self, delivery: Delivery, run: JobRun, copies: Mapping[Path, BytesIO]) -> None:
        send = {"trace": self._service.send_trace, "outcome": self._service.send_outcome}
        paths, logs = list(copies), [NamedLog(path.name, copy) for path, copy in copies.items()]
        facts = self._facts(run, has_many_logs=len(logs) > 1)
        try:
            answer = send[delivery.kind](logs, facts)
        except ServiceRefusedError as error:
            if error.status not in _FINAL:
                raise
            self._refused(delivery, run, paths, error)
            return
        with self._state.transaction():
            self._state.note_sent(delivery, self._clock(), answer.get("bytes"))
            self._choose_outcome(run)
        self._counted[delivery.kind] += 1
        for warning in answer.get("warnings") or []:
            self._warn_once(f"the service warns: {' '.join(str(warning).split())}")
        self._sum_up(run)

    def _refused(
        self, delivery: Delivery, run: JobRun, paths: list[Path], error: ServiceRefusedError
    ) -> None:
        """Send the logs in other requests; give up a log that the service cannot use."""
        bad = {place: why for place, why in error.bad_logs.items() if place < len(paths)}
        if len(paths) > 1 and bad:
            for place, why in bad.items():
                self._give_up(delivery, [paths[place]], run, why, is_log=False)
        elif len(paths) > 1 and _are_runs(error.runs, len(paths)):
            self._divide(delivery, run, [[paths[place] for place in each] for each in error.runs])
        elif delivery.kind == "outcome" and len(paths) > 1 and not self._state.largest_trace(run):
            # Perhaps only the outcome contradicts stored data, not its logs.
            self._divide(delivery, run, [paths])
        elif delivery.kind == "outcome" or len(paths) == 1:
            self._give_up(delivery, paths, run, error.detail)
        else:
            # The service does not say which logs belong together, for example because some of
            # them are stored with others, or all are too much for it.
            self._divide(delivery, run, [[path] for path in paths])

    def _divide(self, delivery: Delivery, run: JobRun, requests: list[list[Path]]) -> None:
        """Send logs as traces, in other requests."""
        now_s = self._clock()
        with self._state.transaction():
            self._state.withdraw(delivery)
            for together in requests:
                self._state.add_delivery(run, "trace", together, now_s)

    def _give_up(
        self, delivery: Delivery, paths: list[Path], run: JobRun, why: str, *, is_log: bool = True
    ) -> None:
        """Never send logs again as the same kind.

        A file that is not a log of the job (`is_log` is false) leaves the outcome to other logs.
        """
        now_s = self._clock()
        kind = delivery.kind if is_log else "trace"
        with self._state.transaction():
            self._state.note_rejected(delivery, paths, now_s, kind, why)
            if kind == "outcome":
                # The history can still use the run. If it has it already, sending changes nothing.
                self._state.add_delivery(run, "trace", paths, now_s)
            else:
                self._choose_outcome(run)
        self._counted["refused"] += 1
        what = "its outcome" if kind == "outcome" else "its trace"
        where = visible(paths[0])
        if len(paths) > 1:
            where += f" and {counted(len(paths) - 1, 'more log')}"
        _LOG.warning("job %d of %s: %s is rejected (%s): %s", run.id, run.user, what, where, why)
        self._sum_up(run)

    def _choose_outcome(self, run: JobRun) -> None:
        """Of several runs of a job, send the one that moved most bytes as its outcome."""
        if run.io_nodes is None or self._state.account_of(run).waiting:
            return
        if not self._state.has_outcome(run) and (paths := self._state.largest_trace(run)):
            self._state.add_delivery(run, "outcome", paths, self._clock())

    def _sum_up(self, run: JobRun) -> None:
        """Log a line about a job when all its logs are sent or rejected."""
        account = self._state.account_of(run)
        if account.waiting or not account.traces + account.outcomes:
            return
        numbers = [
            counted(number, what)
            for number, what in ((account.outcomes, "outcome"), (account.traces, "trace"))
            if number
        ]
        had = "I/O nodes unknown" if run.io_nodes is None else counted(run.io_nodes, "I/O node")
        _LOG.info(
            "job %d of %s: %s %s, %s", run.id, run.user, " and ".join(numbers), self.sent, had
        )

    def _warn_once(self, warning: str) -> None:
        if warning not in self._warnings:
            self._warnings.add(warning)
            _LOG.warning("%s", warning)

    def _facts(self, run: JobRun, *, has_many_logs: bool) -> RunOf:
        return RunOf(
            system=self._system,
            job_id=str(run.id),
            user=run.user,
            name=run.name,
            nodes=run.nodes,
            io_nodes=run.io_nodes,
            decision_id=run.decision_id,
            # A program without MPI has more processes than Slurm started.
            tasks=run.tasks if has_many_logs else None,
            # The start tells the runs of a job id apart, because a requeued job keeps its id, and
            # Slurm uses ids again.
            started=_in_utc(run.started_s),
            io_node_names=self._state.names_of(run),
            submitted=_in_utc(run.submitted_s),
            ended=_in_utc(run.ended_s),
        )

    def _put_off(self, delivery: Delivery) -> None:
        wait_s = self._delay_s(delivery.attempts, _LONGEST_WAIT_S)
        with self._state.transaction():
            self._state.put_off(delivery, self._clock() + wait_s)

    def _pause(self, error: IoncastError) -> None:
        """Leave the service alone for a while, at least as long as it asks for."""
        pause_s = self._delay_s(self._failures_in_a_row, _LONGEST_PAUSE_S)
        if isinstance(error, ServiceRefusedError) and error.retry_after_s:
            pause_s = max(pause_s, error.retry_after_s)
        self._paused_until_s = self._clock() + pause_s
        self._failures_in_a_row += 1

    def _delay_s(self, failures: int, longest_s: float) -> float:
        """Seconds until the next attempt: one period, doubled with each failure before."""
        return min(self._period_s * 2.0 ** min(failures, 20), longest_s)


def _in_utc(time_s: float | None) -> str | None:
    return None if time_s is None else in_utc(datetime.fromtimestamp(time_s, timezone.utc))


def _are_runs(runs: list[list[int]], logs: int) -> bool:
    """Whether the service divides all logs among several runs."""
    return len(runs) > 1 and sorted(place for run in runs for place in run) == list(range(logs))


def in_turns(
    requests: Iterable[tuple[str, int]], last_turns: Mapping[str, int]
) -> Iterator[tuple[str, int]]:
    """Order requests so that users take turns, first the user whose last turn is longest ago."""
    of_users = defaultdict(list)
    for user, number in requests:
        of_users[user].append((user, number))
    users = sorted(of_users, key=lambda user: last_turns.get(user, 0))
    for turn in zip_longest(*(of_users[user] for user in users)):
        yield from filter(None, turn)


def summary(count: Counter[str], sent: str, waiting: int) -> str:
    """Write the numbers of jobs and logs; `sent` is "sent" or "would be sent"."""
    return (
        f"{counted(count['done'], 'job')} done, {count['without']} without a log;"
        f" {counted(count['trace'], 'trace')} and {counted(count['outcome'], 'outcome')} {sent},"
        f" {count['refused']} rejected, {waiting} waiting"
    )


def counted(number: int, what: str) -> str:
    """Write a number with its noun, as the watch's log has them: without thousands separators."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
