"""Predictions show fidelities, and widen their interval by them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from benchdb.measurements.curves import Curve
from benchdb.measurements.storing import pattern_of
from benchdb.store.database import transaction_on
from benchdb.store.fidelities import NewFidelity, store_fidelities
from ior_configs import IorConfig
from predictor.curve.prediction import predict
from predictor.model.system_model import SystemModel
from summario.phases.values import Phase
from tests.support.command import run_ioncast

TESTBED = Path("experiments/data/testbed")
LOG = TESTBED / "logs/periodic-ionodes0.darshan"


def stored(location: str, config: IorConfig, fidelity: float) -> None:
    new = NewFidelity(pattern_of(config), fidelity, log="a.darshan", phase=0, aspects="[]")
    with transaction_on(location, write=True) as connection:
        store_fidelities(connection, "testbed", [new])


@pytest.fixture
def filled(location: str) -> str:
    options = ("--system", "testbed", "--tasks", "16", "--nodes", "8", "--db", location)
    done = run_ioncast("bench", "import", TESTBED / "benchmarks.csv", *options)
    assert done.returncode == 0, done.stderr
    return location


def predicted(location: str, *options: str) -> CompletedProcess[str]:
    system = ("--system", "testbed", "--nodes", "8", "--db", location)
    done = run_ioncast("predict", LOG, *system, *options)
    assert done.returncode == 0, done.stderr
    return done


def as_json(location: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(predicted(location, "--format", "json").stdout)
    return record


@pytest.mark.slow
def test_a_low_fidelity_widens_the_interval_and_is_shown(filled: str) -> None:
    before = as_json(filled)
    assert {phase["match"]["fidelity"] for phase in before["phases"]} == {None}
    assert "fidelity" not in predicted(filled).stdout
    wanted = IorConfig.from_command_line(before["phases"][0]["match"]["wanted"])
    stored(filled, replace(wanted, nodes=8), 0.5)
    after = as_json(filled)
    assert after["phases"][0]["match"]["fidelity"] == 0.5
    for one, other in zip(before["curve"], after["curve"], strict=True):
        narrow, wide = one["bandwidth_mib_s"], other["bandwidth_mib_s"]
        # Of a normal distribution, p10 and p90 are 2.56 standard deviations apart; 1,000 draws
        # come near to that.
        assert math.log(wide["p90"] / wide["p10"]) > 2.4 * math.log(2)
        assert wide["p90"] / wide["p10"] > narrow["p90"] / narrow["p10"]
        assert wide["median"] == pytest.approx(narrow["median"], rel=0.1)
    table = predicted(filled)
    assert "fidelity  benchmark" in table.stdout
    assert "the run of its IOR line has a fidelity of 0.50" in table.stderr


def test_a_fidelity_of_1_changes_nothing(
    a_phase: Callable[..., Phase], a_curve: Callable[..., Curve]
) -> None:
    curve, phase = a_curve({0: [100.0, 110.0], 4: [200.0, 210.0]}), a_phase((64, 64 << 20))
    [[wanted]] = [
        [found.wanted for _, found in item.parts]
        for item in predict([phase], SystemModel((curve,)), system="here").phases
    ]
    curves = {
        fidelity: predict(
            [phase], SystemModel((curve,), fidelities={pattern_of(wanted): fidelity}), system="here"
        ).curve
        for fidelity in (1.0, 0.5, 1e-9, 0.1)
    }
    plain = predict([phase], SystemModel((curve,)), system="here").curve
    assert curves[1.0] == plain
    assert curves[1e-9] == curves[0.1]
    widths = [
        points[0].bandwidth_mib_s.p90 / points[0].bandwidth_mib_s.p10
        for points in (plain, curves[0.5], curves[0.1])
    ]
    assert widths == sorted(widths)
    assert widths[1] > 2 * widths[0]
