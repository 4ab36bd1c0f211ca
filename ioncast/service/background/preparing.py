"""Prepares entries: the answers for jobs that are like the runs in the history."""

from __future__ import annotations

import json
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from typing import TypeVar

from sqlalchemy import Connection

from benchdb.store.system_changes import change_of
from ioncast.service.background.deciding_ahead import (
    Decided,
    OtherVariant,
    decide_all,
    prepare_group,
)
from ioncast.service.decide.answers import Entry, PreparedGroup, is_same_size, ratio
from ioncast.service.decide.prepared import Untried, WantedSize
from ioncast.service.settings import Settings
from ioncast.service.store.applications import Application, application
from ioncast.service.store.deleting_runs import DeletedRun
from ioncast.service.store.outcomes import JoinedOutcome, joined_outcomes
from ioncast.service.store.runs import StoredRun, runs_like, runs_of
from ioncast.service.store.same_run import Outcome, Report, outcomes_of_run, whole_second
from ioncast_base.errors import InputError
from ioncast_base.files import program_of
from ioncast_base.times import instant
from predictor.curve.overlap import timeline_of
from predictor.curve.prediction import DecisionRules, EarlierRun, Prediction, predict_together
from predictor.matching.configurations import configuration
from predictor.matching.same_application import Identity, Variant, identities, scaled, variants
from predictor.model.measurement_summary import MeasurementSummary, read_summary
from predictor.model.plausible import impossible, is_implausible
from predictor.model.system_model import SystemModel
from summario.phases.tables import from_record, to_record
from summario.phases.values import Phase

MOST_SIZES = 20
# Runs of an application with each number of I/O nodes from which it is predicted.
_RUNS = 50
# Each variant takes a prediction. Further ones count as if they got another number.
_MOST_OTHERS = 3
# Applications that are prepared one after the other often need the same benchmarks.
_MOST_KNOWN = 4
# Many applications have the same phases. The decisions for one of them take some kilobytes.
_MOST_DECIDED = 5_000
# The identities of an application have the same variants with other shares. Predictions are large.
_MOST_PREDICTIONS = 20
_MOST_REMEMBERED = 10_000
# For more applications than these, the outcomes of a system are read all at once.
_FEW = 10

_LOG = logging.getLogger("ioncast.keeper")


@dataclass(frozen=True)
class Prepared:
    """The entries that an application's runs make on its system, by `Identity.key`.

    And by the application's id the number of I/O nodes that it may try.
    """

    system: str
    entries: Mapping[str, Entry]
    untried: Mapping[int, Untried | None]


@dataclass(frozen=True)
class JobPhases:
    """The phases of a job, and the number of its compute nodes if it is known."""

    phases: tuple[Phase, ...]
    nodes: int | None


class KnownSystems:
    """Keeps what is read about systems and what was decided, for many applications."""

    def __init__(self) -> None:
        self._summaries: dict[str, MeasurementSummary] = {}
        # In the dictionaries below the entry that was used last comes last.
        self._known: dict[tuple[str, tuple[int, ...]], SystemModel] = {}
        self._predictions: dict[tuple[str, bytes], Prediction] = {}
        self._decided: dict[
            tuple[str, bytes, DecisionRules, float, tuple[OtherVariant, ...]], Decided
        ] = {}

    def put(self, summary: MeasurementSummary) -> None:
        """Replace everything about a system by a new summary."""
        self.forget(summary.system)
        self._summaries[summary.system] = summary

    def forget(self, system: str) -> None:
        """Forget everything about a system, so that it is read again."""
        self._summaries.pop(system, None)
        self._known = {key: known for key, known in self._known.items() if key[0] != system}
        self._predictions = {
            key: known for key, known in self._predictions.items() if key[0] != system
        }
        self._decided = {key: known for key, known in self._decided.items() if key[0] != system}

    def decided(
        self,
        connection: Connection,
        system: str,
        job: JobPhases,
        ran: JobPhases,
        earlier: Sequence[EarlierRun],
        policy: DecisionRules,
        share: float = 1.0,
        others: Sequence[OtherVariant] = (),
        explore: float = 0.0,
    ) -> Decided:
        """Decide for a job by earlier runs of `ran`; the same decisions are made once."""
        asked = system, _digest(job, ran, earlier)

        def predicted() -> Prediction:
            return _kept(
                self._predictions,
                asked,
                lambda: self._predict(connection, system, job, ran, earlier),
                most=_MOST_PREDICTIONS,
            )

        return _kept(
            self._decided,
            (*asked, policy, share, tuple(others)),
            lambda: decide_all(predicted(), policy, share, others, explore),
            most=_MOST_DECIDED,
        )

    def _predict(
        self,
        connection: Connection,
        system: str,
        job: JobPhases,
        ran: JobPhases,
        earlier: Sequence[EarlierRun],
    ) -> Prediction:
        summary = self._summary(connection, system)
        versions = [job] if job == ran else [ran, job]
        near = summary.near(
            configuration(phase, part, version.nodes)
            for version in versions
            for phase in version.phases
            for part in phase.parts
        )
        knowledge = _kept(
            self._known,
            (system, near),
            lambda: summary.knowledge(connection, near),
            most=_MOST_KNOWN,
        )
        # Draws that belong together tell how far runs of another size hold for this one.
        return predict_together(
            [version.phases for version in versions],
            knowledge,
            system=system,
            nodes=[version.nodes for version in versions],
            earlier=earlier,
        )[-1]

    def _summary(self, connection: Connection, system: str) -> MeasurementSummary:
        if system not in self._summaries:
            summary = read_summary(connection, system)
            if summary.needs_model:
                summary = summary.fitted_to(summary.curves_to_fit(connection))
            self._summaries[system] = summary
        return self._summaries[system]


def _digest(job: JobPhases, ran: JobPhases, earlier: Sequence[EarlierRun]) -> bytes:
    """SHA-256 of everything that a prediction depends on, besides the system."""
    asked = [_records(job), job.nodes, [asdict(run) for run in earlier]]
    if ran != job:
        asked += [_records(ran), ran.nodes]
    return sha256(json.dumps(asked).encode()).digest()


def _records(job: JobPhases) -> list[dict[str, object]]:
    """Write the phases of a job, as far as a prediction depends on them."""
    # The job id, the log's name and times do not change a prediction. But it matters which phases
    # share time, and whether a phase is mostly metadata, which is never matched exactly.
    times_count = timeline_of(job.phases).shared.size > 0
    return [
        to_record(
            replace(
                phase,
                job=0,
                start_seconds=phase.start_seconds if times_count else 0.0,
                end_seconds=phase.end_seconds if times_count else 0.0,
                io_time_seconds=0.0,
                metadata_seconds=float(phase.is_mostly_metadata),
                elapsed_seconds=None,
                log="",
            )
        )
        for phase in job.phases
    ]


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def _kept(
    values: dict[_Key, _Value], key: _Key, make: Callable[[], _Value], *, most: int
) -> _Value:
    """Return a kept value, or make it; at most `most` values are kept, the last used ones."""
    value = values.pop(key) if key in values else make()
    values[key] = value
    while len(values) > most:
        del values[next(iter(values))]
    return value


class Preparing:
    """Prepares applications in one transaction; entries in `done` only once."""

    def __init__(
        self,
        connection: Connection,
        settings: Settings,
        systems: KnownSystems,
        wanted: Mapping[int, Sequence[WantedSize]],
        several: int = 1,
        done: AbstractSet[tuple[str, str]] = frozenset(),
    ) -> None:
        self.done = set(done)
        self._connection = connection
        self._settings = settings
        self._systems = systems
        self._wanted = wanted
        self._together = several > _FEW
        self._outcomes: dict[int, list[JoinedOutcome]] = {}
        self._systems_with_outcomes: set[str] = set()
        # The identities of an application share runs, phases and answers: read and predict once.
        self._runs: dict[tuple[str, tuple[tuple[str, str | None], ...]], list[StoredRun]] = {}
        self._phases: dict[int, list[Phase] | None] = {}
        self._groups: dict[tuple[object, ...], tuple[PreparedGroup, Untried | None] | None] = {}

    def prepare(self, application_id: int) -> Prepared:
        """Prepare the entries of all identities that an application's runs have."""
        if len(self._phases) > _MOST_REMEMBERED:
            self._runs, self._phases, self._groups = {}, {}, {}
        of = application(self._connection, application_id).application
        names = dict.fromkeys(
            run.name for run in runs_of(self._connection, application_id, limit=_RUNS)
        )
        entries: dict[str, Entry] = {}
        for name in names:
            for identity in identities(of.executable, of.user, name):
                if identity.key not in entries and (of.system, identity.key) not in self.done:
                    entries[identity.key] = self._entry(of.system, self._runs_of(of, identity))
        self.done |= {(of.system, key) for key in entries}
        return Prepared(
            of.system,
            {key: entry for key, entry in entries.items() if entry},
            {application_id: self._untried(of.system, self._own_runs(of))},
        )

    def prepare_without(self, deleted: DeletedRun) -> Prepared:
        """Prepare the entries of a deleted run again, from the runs that are left.

        An entry is empty if no run is left.
        """
        of = Application(
            0, deleted.system, deleted.executable, program_of(deleted.executable), deleted.user
        )
        entries = {
            identity.key: self._entry(of.system, self._runs_of(of, identity))
            for identity in identities(of.executable, of.user, deleted.name)
            if (of.system, identity.key) not in self.done
        }
        self.done |= {(of.system, key) for key in entries}
        left = self._own_runs(of)
        untried = {run.application.id: self._untried(of.system, left) for run in left[:1]}
        return Prepared(of.system, entries, untried)

    def _own_runs(self, of: Application) -> list[StoredRun]:
        """Return the newest runs of an application, whatever its jobs are called."""
        return self._runs_of(of, identities(of.executable, of.user, None)[0])

    def _untried(self, system: str, runs: Sequence[StoredRun]) -> Untried | None:
        """Find the number that is most worth trying with any size of job that ran."""
        sized = self._sized(system, runs)
        found = [untried for group, untried in sized if untried and not group.is_scaled]
        return max(found, key=lambda untried: untried.gain, default=None)

    def _runs_of(self, of: Application, identity: Identity) -> list[StoredRun]:
        """Return the newest runs of one of an application's identities."""
        if identity.executable is None:
            return self._runs_like(of.system, user=identity.user, name=identity.name)
        everybody = self._runs_like(of.system, program=of.program)
        if len(everybody) < _RUNS:
            return [run for run in everybody if _has(run, identity)]
        which = "executable" if identity.executable.startswith("/") else "program"
        return self._runs_like(
            of.system,
            user=identity.user,
            name=identity.name,
            **{which: identity.executable},
        )

    def _runs_like(self, system: str, **told: str | None) -> list[StoredRun]:
        key = system, tuple(told.items())
        if key not in self._runs:
            self._runs[key] = runs_like(self._connection, system, limit=_RUNS, **told)
        return self._runs[key]

    def _entry(self, system: str, runs: Sequence[StoredRun]) -> Entry:
        return tuple(group for group, _ in self._sized(system, runs))

    def _sized(
        self, system: str, runs: Sequence[StoredRun]
    ) -> list[tuple[PreparedGroup, Untried | None]]:
        """Make the answers for each size of job, with the number that may be tried."""
        sizes: dict[tuple[int, int | None], list[StoredRun]] = defaultdict(list)
        for run in runs:
            if self._phases_of(run) is not None:
                sizes[run.tasks, run.nodes].append(run)
        groups = [self._group(system, own, *size) for size, own in sizes.items()]
        scaled_groups = (
            [
                self._group(
                    system, sizes[min(sizes, key=lambda size: ratio(size[0], tasks))], tasks, nodes
                )
                for tasks, nodes in self._sizes_wanted(runs)
                if not any(is_same_size(size[0], tasks) for size in sizes)
            ]
            if sizes
            else []
        )
        return [found for found in [*groups, *scaled_groups] if found is not None]

    def _sizes_wanted(self, runs: Sequence[StoredRun]) -> list[tuple[int, int | None]]:
        applications = dict.fromkeys(run.application.id for run in runs)
        asked = [size for key in applications for size in self._wanted.get(key, ())]
        return list(dict.fromkeys((size.tasks, size.nodes) for size in asked))[-MOST_SIZES:]

    def _group(
        self, system: str, runs: Sequence[StoredRun], tasks: int, nodes: int | None
    ) -> tuple[PreparedGroup, Untried | None] | None:
        """Make the answers for a size from runs of one size; None if predicting fails."""
        key = system, tasks, nodes, tuple(run.id for run in runs)
        if key not in self._groups:
            try:
                self._groups[key] = self._predicted(system, runs, tasks, nodes)
            except InputError as error:
                _LOG.warning("run %d cannot be predicted: %s", runs[0].id, error)
                self._groups[key] = None
        return self._groups[key]

    def _predicted(
        self, system: str, runs: Sequence[StoredRun], tasks: int, nodes: int | None
    ) -> tuple[PreparedGroup, Untried | None]:
        variant, *others = variants([self._phases_of(run) or [] for run in runs])
        alike = [runs[place] for place in variant.runs]
        policy = self._settings.rules_of(system)
        decide = partial(self._decided, system, runs, tasks, nodes)
        decided_others = [
            OtherVariant(other.share, decide(other, policy).chosen)
            for other in others[:_MOST_OTHERS]
        ]
        decided = decide(variant, policy, variant.share, decided_others)
        group = prepare_group(
            decided,
            tasks=tasks,
            nodes=nodes,
            application_id=alike[0].application.id,
            runs=len(runs),
            alike=len(alike),
            scaled_from=None if tasks == alike[0].tasks else alike[0].tasks,
        )
        return group, decided.untried

    def _decided(
        self,
        system: str,
        runs: Sequence[StoredRun],
        tasks: int,
        nodes: int | None,
        variant: Variant,
        policy: DecisionRules,
        share: float = 1.0,
        others: Sequence[OtherVariant] = (),
    ) -> Decided:
        """Decide for jobs of a variant of some runs, scaled to a size."""
        alike = [runs[place] for place in variant.runs]
        phases = self._phases_of(alike[0]) or []
        ran = JobPhases(tuple(phases), alike[0].nodes)
        decide = partial(
            self._systems.decided,
            self._connection,
            system,
            ran=ran,
            earlier=self._earlier(alike, runs),
            policy=policy,
            share=share,
            others=others,
            explore=self._settings.of_system(system).explore,
        )
        measured = decide(ran)
        is_scaled = tasks != alike[0].tasks
        decided = decide(JobPhases(tuple(scaled(phases, tasks)), nodes)) if is_scaled else measured
        cause = _impossible(alike, measured)
        return decided.without_basis(cause) if cause else decided

    def _phases_of(self, run: StoredRun) -> list[Phase] | None:
        """Return the phases of a run; None if the stored ones cannot be used."""
        if run.id not in self._phases:
            try:
                self._phases[run.id] = [from_record(record) for record in run.phases]
            except InputError as error:
                _LOG.warning("run %d is left out: %s", run.id, error)
                self._phases[run.id] = None
        return self._phases[run.id]

    def _earlier(self, alike: Sequence[StoredRun], runs: Sequence[StoredRun]) -> list[EarlierRun]:
        """Collect the bandwidths of runs that do the same I/O, and of jobs without a log.

        If a run of a job has an outcome and a log, only the outcome counts. A job without a log
        counts if it has the size of the runs. Runs from before a change of the system do not count.
        """
        change = change_of(self._connection, alike[0].application.system)
        outcomes = [
            joined
            for key in dict.fromkeys(run.application.id for run in alike)
            for joined in self._outcomes_of(alike[0].application.system, key)
        ]
        reported = _reported(runs, [joined.outcome for joined in outcomes])
        with_log = {outcome.id for outcome in reported.values()}
        cut = {joined.outcome.id for joined in outcomes if joined.is_cut}
        got = []
        for run in alike:
            if change and not change.is_followed_by(run.ran_at):
                continue
            told = reported.get(run.id) or run
            is_cut = told is not run and told.id in cut
            got.append(
                (
                    *(run.ran_at, told.io_nodes, told.bandwidth_mib_s),
                    *(is_cut, run.outcome_scatter),
                )
            )
        got += [
            (outcome.reported_at, outcome.io_nodes, outcome.bandwidth_mib_s, joined.is_cut, 0.0)
            for joined in outcomes
            for outcome in (joined.outcome,)
            if outcome.run_id is None
            and not joined.is_before_change
            and outcome.id not in with_log
            and _is_of_size(joined, alike[0])
        ]
        known = sorted(
            (
                EarlierRun(io_nodes, bandwidth, day=_day(when), scatter=scatter, is_cut=is_cut)
                for when, io_nodes, bandwidth, is_cut, scatter in got
                if io_nodes is not None and bandwidth
            ),
            key=lambda run: run.day or 0.0,
        )
        # Runs with one number must not hide those with another.
        return list(_newest_of_each(known))

    def _outcomes_of(self, system: str, application_id: int) -> list[JoinedOutcome]:
        if not self._together:
            if application_id not in self._outcomes:
                self._outcomes[application_id] = joined_outcomes(
                    self._connection, application_id=application_id
                )
            return self._outcomes[application_id]
        if system not in self._systems_with_outcomes:
            self._systems_with_outcomes.add(system)
            for joined in joined_outcomes(self._connection, system=system):
                if joined.application is not None:
                    self._outcomes.setdefault(joined.application.id, []).append(joined)
        return self._outcomes.get(application_id, [])


def _day(time: str) -> float | None:
    """Convert a stored time to days since 1970."""
    found = instant(time)
    return None if found is None else found.timestamp() / 86_400


def _newest_of_each(runs: Sequence[EarlierRun]) -> Iterator[EarlierRun]:
    """Yield the newest runs with each number of I/O nodes, the oldest first."""
    left = Counter(run.io_nodes for run in runs)
    for run in runs:
        if left[run.io_nodes] <= _RUNS:
            yield run
        left[run.io_nodes] -= 1


def _impossible(runs: Sequence[StoredRun], decided: Decided) -> str | None:
    """Say that the bandwidths of all runs are impossible, if nothing corrected the prediction."""
    got_mib_s = [run.bandwidth_mib_s for run in runs if run.bandwidth_mib_s]
    if decided.is_corrected or not (got_mib_s and decided.p90_mib_s):
        return None
    slowest_mib_s = min(got_mib_s)
    if not is_implausible(slowest_mib_s, decided.p90_mib_s):
        return None
    return impossible(slowest_mib_s, decided.p90_mib_s)


def _has(run: StoredRun, identity: Identity) -> bool:
    """Tell whether a run of the same program has an identity."""
    of = run.application
    return (
        identity.executable in (of.executable, of.program)
        and identity.user in (None, of.user)
        and identity.name in (None, run.name)
    )


def _reported(runs: Iterable[StoredRun], outcomes: Sequence[Outcome]) -> dict[int, Outcome]:
    """Find the outcomes of runs, by the ids of the runs; a job id may have several runs."""
    of_job = defaultdict(list)
    for outcome in outcomes:
        of_job[outcome.job_id].append(outcome)
    of_log = {outcome.run_id: outcome for outcome in outcomes}
    found = {}
    for run in runs:
        start = whole_second(run.started)
        known = of_job[run.job_id] if run.job_id else []
        same = outcomes_of_run(known, Report(None, start, run.id, run.stored_at))
        if told := of_log.get(run.id) or next(iter(same), None):
            found[run.id] = told
    return found


def _is_of_size(joined: JoinedOutcome, run: StoredRun) -> bool:
    nodes = joined.decision and joined.decision.nodes
    return (joined.tasks, nodes) == (run.tasks, run.nodes)
