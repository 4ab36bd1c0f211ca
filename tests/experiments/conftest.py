"""The testbed's measurements and their evaluation, which takes seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments import datasets
from experiments.datasets import DataSet
from experiments.evaluation import Evaluation, evaluate


@pytest.fixture(scope="session")
def testbed() -> DataSet:
    return datasets.read(Path(datasets.__file__).parent / "data" / "testbed")


@pytest.fixture(scope="session")
def evaluated(testbed: DataSet) -> Evaluation:
    return evaluate(testbed)
