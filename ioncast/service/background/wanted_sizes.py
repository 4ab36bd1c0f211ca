"""Sizes of jobs that schedulers asked for and that are far from all runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ioncast.service.background.preparing import MOST_SIZES
from ioncast.service.background.state_file import StateFile
from ioncast.service.decide.prepared import WantedSize, Writer
from ioncast.service.store.decisions import DecisionRow


class WantedSizes:
    """The newest sizes that were asked for, by application, kept in the state file."""

    def __init__(self, file: StateFile) -> None:
        self._file = file
        self._by_application: defaultdict[int, list[WantedSize]] = defaultdict(list)
        file.when_opened(self._load)

    @property
    def by_application(self) -> Mapping[int, Sequence[WantedSize]]:
        """At most `MOST_SIZES` sizes for the id of each application, the newest last."""
        return self._by_application

    def add(self, rows: Iterable[DecisionRow]) -> list[int]:
        """Add the sizes of decisions that no runs of this size could answer."""
        new = []
        for row in rows:
            if row.source != "model" or row.application_id is None or row.tasks is None:
                continue
            size = WantedSize(row.application_id, row.tasks, row.nodes)
            known = self._by_application[row.application_id]
            if size not in known:
                known.append(size)
                del known[:-MOST_SIZES]
                new.append(row.application_id)
        if new:
            writer = self._file.writer
            with writer.transaction():
                writer.put_wanted(size for known in self._by_application.values() for size in known)
        return new

    def _load(self, writer: Writer) -> None:
        self._by_application.clear()
        for size in writer.wanted():
            self._by_application[size.application_id].append(size)
