"""The I/O nodes that a run had beside those that ioncast would give it."""

from __future__ import annotations

from dataclasses import dataclass

from ioncast.insights.checks.values import IoNodesOfRun
from ioncast_base.wording import counted
from predictor.commands import at, command_line
from predictor.curve.asking import PredictionRequest, ask
from summario.phases.extract import extract_run
from summario.phases.settings import DEFAULTS
from summario.runs.logs_of_run import Run


@dataclass(frozen=True)
class RunQuestion:
    """A question for the decision on a run.

    Attributes
    ----------
    ran_with : int
        The number of I/O nodes that the run had.
    system : str
        The system.
    nodes : int or None
        The number of compute nodes; None for that of the log.
    location : str or None
        The benchmark database, as the command line names it.
    """

    ran_with: int
    system: str
    nodes: int | None = None
    location: str | None = None

    def answer(self, run: Run) -> tuple[IoNodesOfRun | None, tuple[str, ...]]:
        """Ask the predictor.

        Returns
        -------
        IoNodesOfRun or None
            The I/O nodes and the bandwidths; None if nothing is known about one of them.
        tuple of str
            The reason, if nothing is known.

        Raises
        ------
        UnknownNameError
            When nothing was measured on the system.
        """
        asked = PredictionRequest(system=self.system, nodes=self.nodes, ran_with=self.ran_with)
        with at(run.name):
            prediction = ask(command_line(self.location), asked, extract_run(run, DEFAULTS))
        expected = {point.io_nodes: point.bandwidth_mib_s.mean for point in prediction.curve}
        decided = prediction.decision.io_nodes
        if decided is None or decided not in expected:
            return None, (f"I01 is left out: {prediction.decision.why}",)
        if self.ran_with not in expected:
            known = f"no bandwidth is known with {counted(self.ran_with, 'I/O node')}"
            return None, (f"I01 is left out: {known}",)
        allocation = IoNodesOfRun(
            io_nodes=self.ran_with,
            decided=decided,
            expected_mib_s=expected[self.ran_with],
            decided_mib_s=expected[decided],
        )
        return allocation, ()
