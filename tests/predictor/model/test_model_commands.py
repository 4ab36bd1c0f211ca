"""`ioncast model` on real databases."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from benchdb.measurements.storing import Measurement, store
from benchdb.store.database import opened_database, transaction
from benchdb.store.fitted_models import state_of, store_model
from ioncast.cli import cli
from ioncast_base.errors import DatabaseError, IoncastError, UnknownNameError
from ior_configs import IorConfig
from predictor.model.gaussian import Hyperparameters
from predictor.model.summary import Shown, reaches, to_json, to_text
from predictor.model.system_model import Model, SystemModel

pytestmark = pytest.mark.slow

MIB = 1 << 20
PATTERN = IorConfig(write=True, block_size=4 * MIB, transfer_size=MIB, tasks=16, nodes=8)
REQUESTS = (1 << 16, 1 << 18, MIB, 4 * MIB)
Ioncast = Callable[..., Result]


def put(location: str, *rows: Measurement, system: str = "here") -> None:
    with opened_database(location) as engine, transaction(engine, write=True) as connection:
        store(
            connection,
            system=system,
            file="file",
            content=repr(rows).encode(),
            file_format="test",
            rows=rows,
        )


def runs(engine: str = "ior", speed: float = 1.0) -> list[Measurement]:
    """Make two repetitions of four configurations with 0 and 4 I/O nodes."""
    return [
        Measurement(
            replace(PATTERN, transfer_size=size),
            io_nodes,
            speed * math.sqrt(size) * (1 + io_nodes / 4) * (1 + 0.02 * repetition),
            engine=engine,
        )
        for size in REQUESTS
        for io_nodes in (0, 4)
        for repetition in range(2)
    ]


@pytest.fixture
def location(tmp_path: Path) -> str:
    return str(tmp_path / "bench.sqlite")


@pytest.fixture
def ioncast(location: str) -> Ioncast:
    def run(*args: str, db: str = location) -> Result:
        return CliRunner().invoke(cli, ["model", *args, "--db", db])

    return run


@pytest.fixture
def shown(ioncast: Ioncast) -> Callable[..., list[dict[str, Any]]]:
    def read(*args: str) -> list[dict[str, Any]]:
        records: list[dict[str, Any]] = json.loads(
            ioncast("show", "--format", "json", *args).stdout
        )
        return records

    return read


def failed(result: Result) -> IoncastError:
    assert isinstance(result.exception, IoncastError), result.output
    assert result.exception.exit_code == 2
    assert "\n" not in str(result.exception)
    assert result.stdout == ""
    return result.exception


def test_a_fitted_model_is_stored_and_shown(
    location: str, ioncast: Ioncast, shown: Callable[..., list[dict[str, Any]]]
) -> None:
    put(location, *runs())
    result = ioncast("fit", "--system", "here")
    assert result.exit_code == 0
    assert result.stderr == "ioncast: fitting a model to 4 configurations\n"
    assert result.stdout == ioncast("show").stdout
    assert "here, ior: current, fitted 2" in result.stdout
    assert "on 16 measurements of 4 configurations" in result.stdout
    [record] = shown("--system", "here")
    assert (record["system"], record["engine"], record["status"]) == ("here", "ior", "current")
    assert (record["measurements"], record["configurations"]) == (16, 4)
    assert set(record["interval_factors"]) == {
        *("measured", "new", "of_processes", "unmeasured_io_nodes"),
    }
    assert record["scores"]["patterns"] == 4
    # Features that never differ are not used.
    assert [feature["name"] for feature in record["features"]] == [
        "request size",
        "I/O nodes",
        "processes per I/O node",
        "direct access",
    ]
    assert set(record["widening_factors"]) == {
        "processes",
        "processes per node",
        "request size",
        "bytes per process",
    }
    for factors in record["widening_factors"].values():
        assert set(factors) == {"between", "beyond"}
        assert min(factors.values()) >= 1


def test_the_error_of_a_configuration_with_hardly_any_bytes_does_not_count(
    location: str, ioncast: Ioncast, shown: Callable[..., list[dict[str, Any]]]
) -> None:
    tiny = replace(PATTERN, block_size=512, transfer_size=512)
    hardly = [Measurement(tiny, n, 1e-4 * (1 + 0.02 * r)) for n in (0, 4) for r in range(2)]
    put(location, *runs(), *hardly)
    assert ioncast("fit", "--system", "here").exit_code == 0
    [record] = shown()
    assert record["scores"]["small_patterns"] == 1
    assert record["scores"]["cell_error"] > 100
    assert record["scores"]["median_error"] < 1
    assert "5 configurations, each held back: median error" in ioncast("show").stdout


def test_it_is_outdated_when_more_was_measured_until_it_is_fitted_again(
    location: str, ioncast: Ioncast, shown: Callable[..., list[dict[str, Any]]]
) -> None:
    put(location, *runs())
    ioncast("fit", "--system", "here")
    put(location, *runs(speed=2))
    assert [record["status"] for record in shown()] == ["outdated"]
    assert "the measurements have changed" in ioncast("show").stdout
    ioncast("fit", "--system", "here")
    [record] = shown()
    assert (record["status"], record["measurements"]) == ("current", 32)


def test_each_engine_has_its_own_and_iors_comes_first(
    location: str, ioncast: Ioncast, shown: Callable[..., list[dict[str, Any]]]
) -> None:
    put(location, *runs(), *runs("fio"), *runs("fio", 3))
    put(location, *runs("forge"), system="there")
    for told in (("here",), ("here", "--engine", "fio"), ("there",)):
        assert ioncast("fit", "--system", *told).exit_code == 0
    assert [(record["system"], record["engine"]) for record in shown()] == [
        ("here", "fio"),
        ("here", "ior"),
        ("there", "forge"),
    ]
    assert [record["engine"] for record in shown("--system", "there")] == ["forge"]


def test_show_says_so_without_a_model(
    location: str, ioncast: Ioncast, shown: Callable[..., list[dict[str, Any]]]
) -> None:
    put(location, *runs())
    for args in ((), ("--system", "here")):
        result = ioncast("show", *args)
        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout.startswith("no models")
        assert shown(*args) == []


def test_a_model_of_another_version_is_called_so(
    location: str, ioncast: Ioncast, shown: Callable[..., list[dict[str, Any]]]
) -> None:
    put(location, *runs())
    with opened_database(location) as engine, transaction(engine, write=True) as connection:
        state = state_of(connection, "here", "ior")
        store_model(connection, "here", "ior", state, '{"version": 0}')
    assert "another version" in ioncast("show").stdout
    [record] = shown()
    assert record["status"] == "unreadable"


@pytest.mark.parametrize("command", ["fit", "show"])
def test_a_system_that_is_not_there_lists_the_known_ones(
    location: str, ioncast: Ioncast, command: str
) -> None:
    put(location, *runs())
    error = failed(ioncast(command, "--system", "nowhere"))
    assert isinstance(error, UnknownNameError)
    assert "nowhere" in str(error)
    assert "its only system is here" in str(error)


def test_an_engine_that_measured_nothing_lists_those_that_did(
    location: str, ioncast: Ioncast
) -> None:
    put(location, *runs())
    error = failed(ioncast("fit", "--system", "here", "--engine", "fio"))
    assert "engines with measurements: ior" in str(error)


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path, ioncast: Ioncast) -> None:
    missing = tmp_path / "typo.sqlite"
    failed(ioncast("fit", "--system", "here", db=str(missing)))
    failed(ioncast("show", db=str(missing)))
    assert not missing.exists()


def test_a_database_that_can_only_be_read_keeps_no_model(location: str, ioncast: Ioncast) -> None:
    put(location, *runs())
    read_only = f"sqlite:///file:{location}?mode=ro&uri=true"
    result = ioncast("fit", "--system", "here", db=read_only)
    assert isinstance(failed(result), DatabaseError)
    assert "readonly" in str(result.exception)
    assert ioncast("show", db=read_only).stdout.startswith("no models")


def test_without_measurements_no_model_is_fitted(location: str, ioncast: Ioncast) -> None:
    put(location, Measurement(PATTERN, 0, 100.0, used=False))
    error = failed(ioncast("fit", "--system", "here"))
    assert isinstance(error, UnknownNameError)
    assert "nothing was measured on 'here'" in str(error)


def test_one_run_is_enough_for_a_model_that_is_not_tested(location: str, ioncast: Ioncast) -> None:
    put(location, Measurement(PATTERN, 0, 100.0))
    result = ioncast("fit", "--system", "here")
    assert result.exit_code == 0, result.output
    assert "too few configurations" in result.stdout
    assert "on 1 measurement of 1 configuration\n" in result.stdout


def test_a_jump_at_large_requests_is_shown(jumping: SystemModel) -> None:
    shown = Shown("here", "ior", "2026-11-26", "current", jumping.model)
    assert "not measured: with a jump at 512 KiB\n" in to_text([shown])
    assert to_json(shown)["large_requests_bytes"] == 512 * 1024


def model_with(lengths: list[float], weights: list[float]) -> Model:
    """Make a model of two features: a size that is scaled by 2, and a flag."""
    components = len(weights)
    return Model(
        features=("request size", "direct access"),
        usual=(4.0, 1.0, 20.0, 22.0),
        large_requests=None,
        parameters=Hyperparameters(
            centre=np.zeros(2),
            scale=np.array([2.0, 1.0]),
            offset=0.0,
            spread=1.0,
            trend=np.zeros(2),
            weights=np.array(weights),
            lengths=np.array([[9.0, 9.0], *([length] * 2 for length in lengths)]),
            noise=np.zeros(3),
            residual=0.1,
        ),
        with_jump=None,
        widening=dict.fromkeys(("processes",), (0.0, 0.0)),
        tails=(0.5, 1.0),
        known_factor=1.0,
        new_factors={1: 1.0},
        factors_of_processes={8: 1.0},
        unmeasured_factor=1.0,
        scores=None,
        measurements=components,
        configurations=components,
    )


def test_the_reach_is_where_a_matern_covariance_is_a_half() -> None:
    # (1 + x) exp(-x) = 1/2 at x = 1.67835, with x = √3 · distance / length.
    [size, flag] = reaches(model_with([1.5], [0.7]))
    assert size.reaches == pytest.approx(2 ** (2.0 * 1.5 * 1.67835 / math.sqrt(3)), rel=0.01)
    one = math.sqrt(3) * (1 / 2.0) / 1.5
    assert size.in_common == pytest.approx((1 + one) * math.exp(-one))
    one = math.sqrt(3) / 1.5
    assert flag.in_common == pytest.approx((1 + one) * math.exp(-one))
    assert flag.reaches is None


def test_components_count_by_their_weights() -> None:
    near, far = (reaches(model_with([length], [1.0]))[0].in_common for length in (0.5, 5.0))
    both = reaches(model_with([0.5, 5.0], [3.0, 1.0]))[0].in_common
    assert both == pytest.approx((3 * near + far) / 4)


def test_a_reach_of_more_than_a_thousandfold_has_no_number() -> None:
    assert reaches(model_with([50.0], [1.0]))[0].reaches is None
