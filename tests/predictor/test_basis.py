from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Connection

from benchdb.curves import curves
from benchdb.importers import Source, read_measurements
from benchdb.measurements import Measurement, store
from benchdb.store import open_database, transaction
from ioncast import cli
from ioncast_errors import UnknownNameError
from ior_configs import IorConfig
from predictor.basis import choose_engine, read_basis
from predictor.matching import configuration, find
from predictor.prediction import predict
from summario.extract import extract_phases
from summario.log import read_log
from summario.phases import Phase
from summario.tables import to_csv

MakePhase = Callable[..., Phase]
# What `a_phase` of conftest.py is in IOR's terms.
SAME = IorConfig(write=True, block_size=4 << 20, transfer_size=1 << 20, tasks=16, nodes=8)


@pytest.mark.parametrize(
    ("configurations", "chosen"),
    [
        ({"ior": 1}, "ior"),
        ({"fio": 1}, "fio"),
        ({"fio": 99, "ior": 1}, "ior"),
        ({"fio": 2, "forge": 3}, "forge"),
        ({"forge": 2, "fio": 2}, "fio"),
    ],
)
def test_the_engine_is_ior_or_the_one_that_measured_most(
    configurations: dict[str, int], chosen: str
) -> None:
    assert choose_engine(configurations) == chosen


@pytest.fixture
def location(tmp_path: Path) -> Path:
    return tmp_path / "bench.sqlite"


def put(location: Path, *rows: Measurement) -> None:
    with transaction(open_database(location), write=True) as connection:
        store(
            connection,
            system="here",
            file="file",
            content=repr(rows).encode(),
            file_format="test",
            rows=rows,
        )


def far(config: IorConfig) -> IorConfig:
    return replace(config, tasks=1024, nodes=64)


@pytest.fixture
def mixed(location: Path) -> Path:
    """IOR measured a far configuration; fio and forge the very one, forge another one too."""
    put(
        location,
        *(Measurement(far(SAME), n, 10.0, engine="ior") for n in (0, 1)),
        *(Measurement(SAME, n, 20.0, engine="fio") for n in (0, 1, 2)),
        *(Measurement(SAME, n, 40.0, engine="forge") for n in (0, 4)),
        *(Measurement(far(SAME), n, 40.0, engine="forge") for n in (0, 4)),
    )
    return location


@pytest.mark.parametrize(
    ("asked", "chosen", "config"),
    [(None, "ior", far(SAME)), ("fio", "fio", SAME), ("forge", "forge", SAME)],
)
def test_a_basis_is_of_one_engine_even_if_another_is_nearer(
    mixed: Path, asked: str | None, chosen: str, config: IorConfig
) -> None:
    with transaction(open_database(mixed)) as connection:
        basis = read_basis(connection, "here", [SAME], asked)
    assert basis.engine == chosen
    assert basis.engines == ("fio", "forge", "ior")
    assert [(curve.engine, curve.config) for curve in basis.curves] == [(chosen, config)]


@pytest.mark.parametrize(("system", "engine"), [("here", "x"), ("nowhere", None), ("x", "ior")])
def test_where_nothing_was_measured_there_is_no_curve(
    mixed: Path, system: str, engine: str | None
) -> None:
    with transaction(open_database(mixed)) as connection:
        basis = read_basis(connection, system, [SAME], engine)
    assert basis.curves == ()
    assert basis.engine == engine
    assert basis.engine not in basis.engines


@pytest.fixture
def phases_csv(a_phase: MakePhase, tmp_path: Path) -> Path:
    path = tmp_path / "phases.csv"
    path.write_text(to_csv([a_phase()]), encoding="utf-8")
    return path


def predicted(phases: Path, location: Path, *options: str) -> Result:
    args = ["predict", str(phases), "--system", "here", "--nodes", "8", "--db", str(location)]
    return CliRunner().invoke(cli, [*args, *options])


def test_the_engines_that_are_left_out_are_named(mixed: Path, phases_csv: Path) -> None:
    for options, engine, others in (
        ((), "ior", "fio, forge"),
        (("--engine", "fio"), "fio", "forge, ior"),
    ):
        result = predicted(phases_csv, mixed, *options)
        assert result.exit_code == 0
        [warning] = [line for line in result.stderr.splitlines() if "engine" in line]
        assert warning.startswith("ioncast: warning: ")
        assert f"rests on what {engine} measured; {others} " in warning
        record = json.loads(predicted(phases_csv, mixed, *options, "--format", "json").stdout)
        assert any(others in warning for warning in record["warnings"])
        assert record["curve"][0]["bandwidth_mib_s"]["mean"] == {"ior": 10, "fio": 20}[engine]


def test_where_one_engine_measured_none_is_left_out(location: Path, phases_csv: Path) -> None:
    put(location, Measurement(SAME, 0, 20.0, engine="fio"))
    result = predicted(phases_csv, location)
    assert (result.exit_code, result.stderr) == (0, "")


def test_an_engine_that_measured_nothing_is_an_error(mixed: Path, phases_csv: Path) -> None:
    result = predicted(phases_csv, mixed, "--engine", "iperf")
    assert isinstance(result.exception, UnknownNameError)
    assert result.stdout == ""
    assert "on 'here' with 'iperf'" in str(result.exception)
    assert "known are fio, forge, ior" in str(result.exception)


@pytest.fixture(scope="session")
def testbed(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    content = (shared_data / "testbed" / "benchmarks.csv").read_bytes()
    source = Source("benchmarks.csv", content.decode(), tasks=16, nodes=8)
    file_format, rows = read_measurements(source)
    engine = open_database(tmp_path_factory.mktemp("basis") / "bench.sqlite")
    with transaction(engine, write=True) as connection:
        store(
            connection,
            system="testbed",
            file="benchmarks.csv",
            content=content,
            file_format=file_format,
            rows=rows,
        )
        yield connection
    engine.dispose()


def test_the_nearest_curves_predict_the_same_as_all(shared_data: Path, testbed: Connection) -> None:
    everything = curves(testbed, "testbed")
    for path in sorted((shared_data / "runs" / "logs").glob("*.darshan")):
        phases = extract_phases(read_log(path))
        wanted = [configuration(phase, part, 8) for phase in phases for part in phase.parts]
        nearest = read_basis(testbed, "testbed", wanted).curves
        for config in wanted:
            assert find(config, nearest) == find(config, everything), path.name
        expected = predict(phases, everything, system="testbed", nodes=8)
        assert predict(phases, nearest, system="testbed", nodes=8) == expected, path.name
