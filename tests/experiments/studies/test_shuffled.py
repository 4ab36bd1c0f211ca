from __future__ import annotations

from pathlib import Path

import pytest

from benchdb.campaigns.folder import CampaignCell, CampaignRun
from experiments.applications.spec import single_b
from experiments.studies.rerunning import Planned, plan_reruns
from experiments.studies.shuffled import shuffled
from ior_configs import IorConfig

CELL = CampaignCell("cell", IorConfig.from_command_line("ior -w"), 0)
BENCHMARKS = [
    CampaignRun(CELL, repetition, Path(f"cell-r{repetition}")) for repetition in range(1, 51)
]
RERUNS = plan_reruns([single_b(4, 2, 1.0)], range(10), 5, Path("reruns"))


def test_every_run_is_in_the_order_once() -> None:
    order = shuffled(BENCHMARKS, RERUNS, seed=1)
    assert len(order) == 100
    assert {id(one) for one in order} == {id(one) for one in [*BENCHMARKS, *RERUNS]}


@pytest.mark.parametrize("seed", range(5))
def test_benchmarks_and_reruns_take_turns_over_the_whole_study(seed: int) -> None:
    """So that a machine that becomes slower slows both down alike."""
    order = shuffled(BENCHMARKS, RERUNS, seed)
    for quarter in range(4):
        reruns = sum(isinstance(one, Planned) for one in order[quarter * 25 : quarter * 25 + 25])
        # The hypergeometric distribution leaves these limits once in 1,500 quarters.
        assert 5 <= reruns <= 20


def test_the_seed_decides_the_order() -> None:
    assert shuffled(BENCHMARKS, RERUNS, 1) == shuffled(BENCHMARKS, RERUNS, 1)
    assert shuffled(BENCHMARKS, RERUNS, 1) != shuffled(BENCHMARKS, RERUNS, 2)
