"""The store of a site: queries, the survey and diagnoses of its logs, one question at a time."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import Field

from ioncast.service.settings import Settings
from ioncast.service.store.recorded_queues import RecordedQueue
from ioncast.service.web.http.problems import StoreLimitError, StoreUnavailableError
from ioncast.service.web.sandbox.child import Children, TooMuchWorkError
from ioncast.service.web.sandbox.tasks import Place
from ioncast.show.survey import SurveyShown, survey_shown
from ioncast.warehouse.queries import Query, query_of
from ioncast.warehouse.survey import by_name, survey_of, survey_queries
from ioncast_base.errors import BusyError, InputError, UnknownNameError
from ioncast_base.visible_text import visible
from ioncast_base.wording import alike_first

if TYPE_CHECKING:
    from ioncast.warehouse.engine import Ask
    from ioncast.warehouse.pairs import DisturbingPair
    from ioncast.worth.valuing import QueueWorth

MOST_ROWS = 10_000
# A survey asks two dozen queries.
_QUERY_S, _SURVEY_S, _PAIRS_S, _DIAGNOSES_S = 20.0, 60.0, 10.0, 10.0
_MEMORY_MIB = 512
_WORTH_S = 60
_KEPT_SURVEYS, _KEPT_PAIRS, _KEPT_DIAGNOSES, _KEPT_WORTHS = 8, 100, 1_000, 8
# More runs of the months of a program would need too much time and memory for a page.
_MOST_PLACES = 50_000
# A trace may have more requests, and a program more runs.
_MOST_ROWS_OF_RUN = 500_000
_NO_LOG = "the store of this service has no log of the run"
_LATER = "the store needs more time for it; ask again"
# The bundles of a store, and the logs of a run.
_KeyOfRun = tuple[tuple[str, ...], tuple[str, ...]]
_Key = TypeVar("_Key")
_Answer = TypeVar("_Answer")
_LOG = logging.getLogger("ioncast.service")


@dataclass(frozen=True)
class RowsOfQuery:
    """An answer of a query; `truncated` tells that it has more rows than these."""

    columns: tuple[str, ...]
    rows: list[dict[str, Any]]
    truncated: bool


@dataclass(frozen=True)
class SurveyOfStore:
    """A survey of some jobs, and the systems and months of all jobs in the store."""

    systems: tuple[str, ...]
    months: tuple[str, ...]
    shown: SurveyShown


@dataclass(frozen=True)
class ChosenJobs:
    """The jobs that a survey is about: of a system, and from a month to a month; None: all."""

    system: str | None = None
    first: str | None = None
    last: str | None = None


@dataclass(frozen=True)
class PartOfLostTime:
    """A part of the time that a slow run lost."""

    cause: Annotated[
        str,
        Field(
            description="configuration, trailing writes, stragglers, system or unknown.",
            examples=["system"],
        ),
    ]
    seconds: float
    share: Annotated[float, Field(description="The share of the lost time, from 0 to 1.")]
    reason: Annotated[str | None, Field(description="Why an unknown cause is unknown.")]


@dataclass(frozen=True)
class DiagnosisOfRun:
    """Whether a run was slow, and by which cause, as `ioncast diagnose` tells it."""

    verdict: Annotated[
        str,
        Field(
            description="normal, configuration, application, system or unknown.",
            examples=["system"],
        ),
    ]
    reason: Annotated[str | None, Field(description="Why the verdict is unknown.")]
    headline: Annotated[str, Field(description="The verdict in words.")]
    slowdown: Annotated[
        float | None,
        Field(description="The usual bandwidth by that of the run; null if nothing is comparable."),
    ]
    lost_seconds: Annotated[float | None, Field(description="The I/O time beyond the usual one.")]
    parts: Annotated[
        tuple[PartOfLostTime, ...],
        Field(description="The parts of the time that a slow run lost."),
    ]
    evidence: Annotated[
        tuple[str, ...],
        Field(description="The evidence in words; other jobs are counted, not named."),
    ]


class SiteStore:
    """The store and the named queries of the settings; without a store nothing can be asked.

    DuckDB takes its memory from a worker, so that a worker answers one question at a time.
    """

    def __init__(self, settings: Settings) -> None:
        self.folder = None if settings.store is None else Path(settings.store).absolute()
        self.queries: Mapping[str, Query] = {each.name: each for each in settings.named_queries()}
        self._patience_s = settings.patience_s
        self._place = BoundedSemaphore(1)
        self._kept: dict[tuple[tuple[str, ...], ChosenJobs], SurveyOfStore] = {}
        self._pairs: dict[tuple[tuple[str, ...], str, str], list[DisturbingPair]] = {}
        self._worths: dict[tuple[object, ...], QueueWorth] = {}
        self._diagnoses: dict[_KeyOfRun, DiagnosisOfRun | str] = {}

    def query(self, name: str) -> Query:
        """Find a named query; UnknownNameError with similar names for any other one."""
        if name not in self.queries:
            remedy = f"there are {alike_first(name, self.queries)}; GET /v1/queries lists all"
            raise UnknownNameError(f"there is no query {visible(name)!r}", remedy=remedy)
        return self.queries[name]

    def answer(self, name: str, given: Mapping[str, str]) -> RowsOfQuery:
        """Answer a named query, with values of its parameters as the command line has them.

        Raises
        ------
        UnknownNameError
            If there is no such query, or no store.
        InputError
            If a value cannot be used.
        StoreUnavailableError, BusyError
            If the store cannot be read, the query takes too much, or another one is being answered.
        """
        query, folder = self.query(name), self._folder()
        values = query.values(given)
        _bundles(folder)
        with self._asking(folder, _QUERY_S) as ask:
            table = ask(query, values)
        rows = table.slice(0, MOST_ROWS).to_pylist()
        return RowsOfQuery(tuple(table.column_names), rows, len(table) > MOST_ROWS)

    def survey(self, chosen: ChosenJobs) -> SurveyOfStore:
        """Make the survey of some jobs, or find it as it was made from the same bundles.

        Raises
        ------
        UnknownNameError
            If the store has no job of the system or month, or there is no store.
        InputError
            If the last month is before the first one.
        StoreUnavailableError, BusyError
            As for a query.
        """
        folder = self._folder()
        key = _bundles(folder), chosen
        if (kept := self._kept.get(key)) is not None:
            return kept
        with self._asking(folder, _SURVEY_S, survey_queries()) as ask:
            # Perhaps another request made it while this one waited.
            made = self._kept.get(key) or _survey(ask, chosen)
            return _keep(self._kept, key, made, _KEPT_SURVEYS)

    def pairs(self, system: str, program: str) -> list[DisturbingPair]:
        """Test the pairs of a program with others, or find the answer from the same bundles.

        Raises
        ------
        StoreUnavailableError, BusyError
            As for a query, and if there are too many runs.
        """
        # Without a store the service does without these libraries.
        from ioncast.warehouse.pairs import pairs_of  # noqa: PLC0415

        folder = self._folder()
        key = _bundles(folder), system, program
        if (kept := self._pairs.get(key)) is not None:
            return kept
        query = query_of("run-places")
        with self._asking(folder, _PAIRS_S, rows=_MOST_PLACES + 1) as ask:
            places = ask(query, query.values({"system": system, "program": program}))
            if len(places) > _MOST_PLACES:
                remedy = "ask `ioncast interference --store DIR`"
                raise StoreLimitError("the store has too many runs for a page", remedy)
            return _keep(self._pairs, key, pairs_of(places, program), _KEPT_PAIRS)

    def diagnoses(self, runs: Sequence[tuple[str, ...]]) -> list[DiagnosisOfRun | str]:
        """Diagnose runs, or find the answers from the same bundles; else tell why, as a clause.

        All runs together may take as long as one question. A later one is diagnosed next time.

        Parameters
        ----------
        runs : sequence of tuple of str
            SHA-256 of the logs of each run.

        Raises
        ------
        StoreUnavailableError, BusyError
            If the store cannot be read, or another question is being answered.
        """
        folder = self._folder()
        bundles = _bundles(folder)
        keys = [(bundles, logs) for logs in runs]
        missing = [key for key in dict.fromkeys(keys) if key not in self._diagnoses]
        if missing:
            self._diagnose(folder, missing)
        return [self._diagnoses.get(key, _LATER) for key in keys]

    def worth(
        self, children: Children, place: Place, queue: RecordedQueue, pools: tuple[int, ...]
    ) -> QueueWorth:
        """Replay a queue with the logs of the store, or find the answer of the same question.

        It is made in a process of its own, because DuckDB's limits do not hold for replays.

        Raises
        ------
        InputError
            If nothing is known of the queue's I/O, or a pool is too small.
        StoreUnavailableError, BusyError
            As for a query.
        """
        # Without a store the service does without these libraries.
        from ioncast.service.web.sandbox.worth_task import worth_of_history  # noqa: PLC0415
        from ioncast.warehouse.engine import TooLargeQueryError  # noqa: PLC0415

        folder = self._folder()
        key = _bundles(folder), queue, pools
        if (kept := self._worths.get(key)) is not None:
            return kept
        with self._answering():
            try:
                made = self._worths.get(key) or children.run_within(
                    _WORTH_S, worth_of_history, place, folder, queue, pools
                )
            except (TooLargeQueryError, TooMuchWorkError) as error:
                remedy = "ask for fewer pools, or ask `ioncast worth`"
                raise StoreLimitError(error.what, remedy) from error
            return _keep(self._worths, key, made, _KEPT_WORTHS)

    def _diagnose(self, folder: Path, missing: Sequence[_KeyOfRun]) -> None:
        """Diagnose runs for some seconds, and keep the answers."""
        try:
            with self._asking(folder, _DIAGNOSES_S, rows=_MOST_ROWS_OF_RUN + 1) as ask:
                for key in missing:
                    _keep(self._diagnoses, key, _diagnosis(ask, key[1]), _KEPT_DIAGNOSES)
        except StoreLimitError as error:
            # If the first run had all the time, it would fail each time.
            reason = f"{error.what}; ask `ioncast diagnose JOB --store DIR`"
            self._diagnoses.setdefault(missing[0], reason)

    def _folder(self) -> Path:
        if self.folder is None:
            remedy = "`ioncast ingest` makes one, and the setting `store` names it"
            raise UnknownNameError("this service has no store", remedy=remedy)
        return self.folder

    @contextmanager
    def _asking(
        self,
        folder: Path,
        seconds: float,
        queries: Sequence[Query] = (),
        rows: int = MOST_ROWS + 1,
    ) -> Iterator[Ask]:
        """Open the store within the limits of a worker."""
        # Without a store the service does without these libraries.
        from ioncast.warehouse.engine import (  # noqa: PLC0415
            EngineLimits,
            TooLargeQueryError,
            asking,
        )

        limits = EngineLimits(seconds, _MEMORY_MIB, threads=1, rows=rows)
        with self._answering():
            try:
                with asking(folder, limits=limits, queries=queries) as ask:
                    yield ask
            except TooLargeQueryError as error:
                remedy = "ask for fewer months, or ask the store itself with `ioncast sql`"
                raise StoreLimitError(error.what, remedy) from error

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Wait for the only place for a question; why a store is unreadable is not told."""
        # Without a store the service does without these libraries.
        from ioncast.warehouse.views import UnreadableStoreError  # noqa: PLC0415

        if not self._place.acquire(timeout=self._patience_s):
            raise BusyError("the store answers another question")
        try:
            yield
        except UnreadableStoreError as error:
            raise _unreadable(error) from error
        finally:
            self._place.release()


def _keep(kept: dict[_Key, _Answer], key: _Key, answer: _Answer, most: int) -> _Answer:
    """Keep an answer, and forget the oldest of too many."""
    kept[key] = answer
    while len(kept) > most:
        del kept[next(iter(kept))]
    return answer


def _bundles(folder: Path) -> tuple[str, ...]:
    """List the bundles of a store, which name their content."""
    try:
        names = sorted(each.name for each in folder.iterdir() if each.name.startswith("bundle="))
    except OSError as error:
        raise _unreadable(error) from error
    # DuckDB would take a bundle that it cannot read for none.
    for name in names:
        if not os.access(folder / name, os.R_OK | os.X_OK):
            raise _unreadable(InputError("this bundle cannot be read", where=str(folder / name)))
    if not names:
        raise _unreadable(InputError("this folder is not a store", where=str(folder)))
    return tuple(names)


def _unreadable(error: Exception) -> StoreUnavailableError:
    """Make the error for clients; its reason, which names folders, is only in the log."""
    _LOG.error("the store: %s", error)
    remedy = "the service's log has the reason"
    return StoreUnavailableError("the store of this service cannot be read now", remedy)


def _diagnosis(ask: Ask, logs: Sequence[str]) -> DiagnosisOfRun | str:
    """Diagnose a run; a text tells that the store does not have it."""
    # Without a store the service does without these libraries.
    from ioncast.diagnosis.diagnosis_texts import evidence_lines, verdict_text  # noqa: PLC0415
    from ioncast.diagnosis.stored_runs import diagnosis_of_logs  # noqa: PLC0415
    from ioncast.warehouse.engine import all_rows  # noqa: PLC0415

    found = diagnosis_of_logs(all_rows(ask, _MOST_ROWS_OF_RUN), logs)
    if found is None:
        return _NO_LOG
    facts, judgement = found.facts, found.judgement
    return DiagnosisOfRun(
        *(judgement.verdict, judgement.reason, verdict_text(found)),
        *(facts.slowdown, facts.lost_seconds),
        parts=tuple(PartOfLostTime(**vars(part)) for part in judgement.parts),
        evidence=tuple(evidence_lines(found, names_others=False)),
    )


def _survey(ask: Ask, chosen: ChosenJobs) -> SurveyOfStore:
    rows = by_name(ask)
    systems = tuple(row["system"] for row in rows("by-system", {}) if row["system"])
    months = tuple(row["month"] for row in rows("by-month", {}) if row["month"])
    for name, known in ((chosen.system, systems), (chosen.first, months), (chosen.last, months)):
        if name is not None and name not in known:
            what = f"the store has no jobs of {visible(name)!r}"
            raise UnknownNameError(what, remedy=f"it has those of {alike_first(name, known)}")
    month = None
    if chosen.first or chosen.last:
        month = f"{chosen.first or months[0]}-{chosen.last or months[-1]}"
    return SurveyOfStore(
        systems, months, survey_shown(survey_of(rows, system=chosen.system, month=month))
    )
