"""A database with the benchmarks of the testbed."""

from __future__ import annotations

from pathlib import Path

import pytest

import ioncast

BENCHMARKS = Path(__file__).resolve().parents[3] / "experiments/data/testbed/benchmarks.csv"


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("testbed") / "bench.sqlite"
    ioncast.import_results(BENCHMARKS, "testbed", tasks=16, nodes=8, db=place)
    return place
