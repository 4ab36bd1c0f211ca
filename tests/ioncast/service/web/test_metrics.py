"""The numbers for Prometheus are over all processes, whichever of them answers."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.serving import Served, running, wait_for

pytestmark = pytest.mark.serving

DECIDE = "/v1/decisions?system=testbed&user=ada&executable=/opt/app&tasks=16"


def decisions(served: Served) -> float:
    text = served.ask("/metrics").body.decode()
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "ioncast_decisions_total"
    )


def test_decisions_are_counted_over_all_processes_also_those_of_one_that_was_killed(
    tmp_path: Path,
) -> None:
    with running(tmp_path, "--db", str(tmp_path / "db.sqlite")) as served:
        first, second = served.all_deciders()
        for decider, number in ((first, 3), (second, 5)):
            with served.alone(decider):
                for _ in range(number):
                    assert served.decide(DECIDE).status == 200
        assert served.ask(DECIDE).status == 200
        assert decisions(served) == 9
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: first not in served.all_deciders(), "another process")
        assert decisions(served) == 9
        assert served.decide(DECIDE).status == 200
        assert decisions(served) == 10
