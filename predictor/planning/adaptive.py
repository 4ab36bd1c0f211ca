"""An adaptive campaign: the next run is chosen after each result, until the goal is reached."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine

from benchdb.campaigns.adaptive_notes import AdaptiveNotes, read_notes, write_notes
from benchdb.campaigns.collecting import RunResult, result_of, store_results
from benchdb.campaigns.folder import AdaptiveGoal, CampaignCell, CampaignFolder, CampaignRun
from benchdb.campaigns.running import BegunRun, in_any_order
from benchdb.measurements.curves import curves
from benchdb.store.database import transaction
from ioncast_base import signals
from predictor.model.gaussian import Posterior
from predictor.planning.knowledge import (
    FEWEST_RUNS,
    believed,
    hours_of,
    is_time_to_learn,
    learn,
    places_of,
)
from predictor.planning.needs import run_seconds, start_seconds
from predictor.planning.next_run import after_run, expected_regret, next_cell

Array = NDArray[np.float64]

_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class EndedRun:
    """A run that has ended, the notes after it, and the number of ended runs of the campaign."""

    run: CampaignRun
    result: RunResult
    notes: AdaptiveNotes
    runs: int


def run_adaptive(
    folder: CampaignFolder,
    goal: AdaptiveGoal,
    database: Engine,
    report: Callable[[EndedRun], None],
) -> AdaptiveNotes:
    """Run the runs of a campaign that teach most, one after the other, until a goal is reached.

    The measurement of a run is stored before the next one is chosen. With Slurm one job waits while
    another one runs, so it was chosen without the result of that one.

    Parameters
    ----------
    report : callable
        Called after each run.

    Returns
    -------
    AdaptiveNotes
        With the reason why the campaign ended.

    Raises
    ------
    IoncastError
        If several runs failed with the same error in a row.
    KeyboardInterrupt
        If a signal stopped it. It can be resumed.
    """
    most_begun = 1 if folder.platform.slurm is None else 2
    with in_any_order(folder) as begin, signals.noted() as asked_to_stop:
        store_results(database, folder, folder.runs)
        campaign = _Knowledge(folder, goal, database)
        begun: list[BegunRun] = []
        while not asked_to_stop():
            while len(begun) < most_begun:
                run = campaign.next_run([one.run for one in begun])
                if run is None:
                    break
                # A crash must not lose the choice: the run may go on without this process.
                campaign.note([*(one.run for one in begun), run])
                begun.append(begin(run))
            if not begun:
                return campaign.note([], campaign.why_ended())
            time.sleep(_POLL_SECONDS)
            ended = [one for one in begun if one.has_ended()]
            begun = [one for one in begun if one not in ended]
            for one in ended:
                result = one.result()
                campaign.learn_from(one.run, result)
                notes = campaign.note([other.run for other in begun])
                report(EndedRun(one.run, result, notes, campaign.ended_runs))
        campaign.note([one.run for one in begun])
    raise KeyboardInterrupt


class _Knowledge:
    """The results of a campaign so far, and what is believed after them."""

    def __init__(self, folder: CampaignFolder, goal: AdaptiveGoal, database: Engine) -> None:
        self._folder, self._goal, self._database = folder, goal, database
        self._results = {run: result_of(folder, run) for run in folder.runs}
        self._configs = tuple(dict.fromkeys(cell.ior_config for cell in folder.cells))
        before = read_notes(folder)
        # Runs that were begun before a crash come first: they may have ended since, or still run.
        self._unended = [run for run in folder.runs if run.path.name in before.begun]
        self._start_s = time.monotonic() - before.elapsed_s
        self._numbers: set[int] = set()
        self._known, self._belief = self._learned()

    @property
    def ended_runs(self) -> int:
        """Number of runs that have ended."""
        return sum(result is not None for result in self._results.values())

    def next_run(self, begun: Sequence[CampaignRun]) -> CampaignRun | None:
        """Choose a run to begin beside others; None if none is to begin."""
        while self._unended:
            run = self._unended.pop(0)
            if self._results[run] is None:
                return run
        belief = self._belief
        for run in begun:
            belief = after_run(belief, self._cells[run.cell])
        if self._is_reached(belief):
            return None
        free = self._free_runs(begun)
        seconds = self._seconds(belief)
        allowed = np.array([run is not None for run in free])
        if self._goal.budget_s is not None:
            allowed &= seconds <= self._goal.budget_s - self._elapsed_s
        turn = self.ended_runs + len(begun)
        cell = next_cell(belief, self._hours(belief), seconds, turn, allowed)
        return None if cell is None else free[cell]

    def learn_from(self, run: CampaignRun, result: RunResult) -> None:
        """Store the measurement of a run, and learn from it."""
        self._results[run] = result
        if result.bandwidth_mib_s is None:
            return
        store_results(self._database, self._folder, [run])
        self._known += 1
        self._numbers.add(run.cell.io_nodes)
        if is_time_to_learn(self._known):
            self._known, self._belief = self._learned()
        else:
            log_mib_s = math.log(result.bandwidth_mib_s)
            self._belief = after_run(self._belief, self._cells[run.cell], log_mib_s)

    def note(self, begun: Sequence[CampaignRun], ended: str | None = None) -> AdaptiveNotes:
        """Write the notes of the campaign into its folder."""
        notes = AdaptiveNotes(
            regret=self._regret(self._belief),
            elapsed_s=self._elapsed_s,
            begun=tuple(run.path.name for run in begun),
            ended=ended,
        )
        write_notes(self._folder, notes)
        return notes

    def why_ended(self) -> str:
        """Tell why no run is to begin."""
        if self._is_reached(self._belief):
            return "the expected regret is as low as wanted"
        if not any(self._free_runs([])):
            return "every cell had all of its repetitions"
        return "no run fits into the rest of the budget"

    @property
    def _elapsed_s(self) -> float:
        return time.monotonic() - self._start_s

    @cached_property
    def _cells(self) -> dict[CampaignCell, int]:
        return {cell: place for place, cell in enumerate(self._folder.cells)}

    def _is_reached(self, belief: Posterior) -> bool:
        wanted, regret = self._goal.regret, self._regret(belief)
        return wanted is not None and regret is not None and regret <= wanted

    def _regret(self, belief: Posterior) -> float | None:
        """The expected regret; None while it rests on other systems more than on this one."""
        if self._known < FEWEST_RUNS or not set(self._folder.platform.io_nodes) <= self._numbers:
            return None
        return expected_regret(belief, self._hours(belief))

    def _free_runs(self, begun: Sequence[CampaignRun]) -> list[CampaignRun | None]:
        """The next repetition of each cell; None after the last, or after a failed one."""
        free: dict[CampaignCell, CampaignRun | None] = dict.fromkeys(self._folder.cells)
        for run, result in reversed(self._results.items()):
            if result is None and run not in begun:
                free[run.cell] = run
        for run, result in self._results.items():
            if result is not None and result.state == "failed":
                free[run.cell] = None
        return list(free.values())

    def _seconds(self, belief: Posterior) -> Array:
        start_s = start_seconds(self._folder.platform)
        pairs = zip(self._folder.cells, np.exp(belief.mean), strict=True)
        return np.array(
            [run_seconds(cell.ior_config, float(mib_s), start_s) for cell, mib_s in pairs]
        )

    def _hours(self, belief: Posterior) -> Array:
        return hours_of(self._configs, self._folder.campaign.application_bytes, belief)

    def _learned(self) -> tuple[int, Posterior]:
        """Read all measurements of the system: their number, and what they tell."""
        platform = self._folder.platform
        with transaction(self._database) as connection:
            now, earlier = (
                [
                    curve
                    for curve in curves(connection, platform.system, before_change=before_change)
                    if curve.engine == self._folder.engine
                ]
                for before_change in (False, True)
            )
        self._numbers |= {n for curve in now for n in curve.bandwidths_mib_s}
        places = places_of(self._configs, platform.io_nodes, [*now, *earlier])
        runs = sum(len(values) for curve in now for values in curve.bandwidths_mib_s.values())
        return runs, believed(places, learn(places))
