"""The store of a site: named queries and the survey of its logs, one question at a time."""

from __future__ import annotations

import logging
import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ioncast.service.settings import Settings
from ioncast.service.web.concurrency_limits import Places
from ioncast.service.web.http.problems import StoreUnavailableError
from ioncast.show.survey import SurveyShown, survey_shown
from ioncast.warehouse.queries import Query, query_of
from ioncast.warehouse.survey import by_name, survey_of, survey_queries
from ioncast_base.errors import BusyError, InputError, UnknownNameError
from ioncast_base.visible_text import visible
from ioncast_base.wording import alike_first

if TYPE_CHECKING:
    from ioncast.warehouse.engine import Ask
    from ioncast.warehouse.pairs import DisturbingPair

MOST_ROWS = 10_000
# A survey asks two dozen queries.
_QUERY_S, _SURVEY_S, _PAIRS_S = 20.0, 60.0, 10.0
_MEMORY_MIB = 512
_KEPT_SURVEYS, _KEPT_PAIRS = 8, 100
# More runs of the months of a program would need too much time and memory for a page.
_MOST_PLACES = 50_000
_LOG = logging.getLogger("ioncast.service")


@dataclass(frozen=True)
class RowsOfQuery:
    """An answer of a query; `is_cut` tells that it has more rows than these."""

    columns: tuple[str, ...]
    rows: list[dict[str, Any]]
    is_cut: bool


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


class SiteStore:
    """The store and the named queries of the settings; without a store nothing can be asked.

    DuckDB takes its memory from a worker, so that a worker answers one question at a time.
    """

    def __init__(self, settings: Settings) -> None:
        self.folder = None if settings.store is None else Path(settings.store).absolute()
        self.queries: Mapping[str, Query] = {each.name: each for each in settings.named_queries()}
        self._patience_s = settings.patience_s
        self._place = Places(1)
        self._kept: OrderedDict[tuple[tuple[str, ...], ChosenJobs], SurveyOfStore] = OrderedDict()
        self._pairs: OrderedDict[tuple[tuple[str, ...], str, str], list[DisturbingPair]]
        self._pairs = OrderedDict()

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
            made = self._kept[key] = self._kept.get(key) or _survey(ask, chosen)
            while len(self._kept) > _KEPT_SURVEYS:
                self._kept.popitem(last=False)
        return made

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
                raise StoreUnavailableError("the store has too many runs for a page", remedy)
            found = self._pairs[key] = pairs_of(places, program)
            while len(self._pairs) > _KEPT_PAIRS:
                self._pairs.popitem(last=False)
        return found

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
        from ioncast.warehouse.views import UnreadableStoreError  # noqa: PLC0415

        limits = EngineLimits(seconds, _MEMORY_MIB, threads=1, rows=rows)
        if not self._place.enter(self._patience_s):
            raise BusyError("the store answers another question")
        try:
            with asking(folder, limits=limits, queries=queries) as ask:
                yield ask
        except TooLargeQueryError as error:
            remedy = "ask for fewer months, or ask the store itself with `ioncast sql`"
            raise StoreUnavailableError(error.what, remedy) from error
        except UnreadableStoreError as error:
            raise _unreadable(error) from error
        finally:
            self._place.leave()


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
