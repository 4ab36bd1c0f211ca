"""The notebook of docs/ runs from its first to its last cell, in a kernel of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).resolve().parents[1] / "docs" / "python.ipynb"
NUMBER = re.compile(r"-?\d+\.\d+")

pytestmark = [
    pytest.mark.slow,
    # Jupyter's own libraries warn of each other.
    pytest.mark.filterwarnings("default"),
]


@pytest.fixture(scope="module")
def notebooks() -> tuple[Any, Any]:
    """The stored notebook, and the same after it ran."""
    stored, run = (nbformat.read(NOTEBOOK, as_version=4) for _ in range(2))
    for cell in run.cells:
        cell.get("outputs", []).clear()
    NotebookClient(run, resources={"metadata": {"path": NOTEBOOK.parent}}).execute()
    return stored, run


def texts(notebook: Any) -> Iterator[str]:
    for cell in notebook.cells:
        outputs = cell.get("outputs", [])
        # Jupyter may divide what a cell prints.
        yield "".join(each["text"] for each in outputs if "text" in each)
        yield "".join(each["data"]["text/plain"] for each in outputs if "data" in each)


def test_the_notebook_runs_and_shows_the_measured_means(notebooks: tuple[Any, Any]) -> None:
    _, run = notebooks
    # HACC-IO with 0, 1, 2, 4 and 8 I/O nodes, from the README of experiments/data/testbed.
    assert "[44.6 26.9 52.9 70.1 77.6]\n" in texts(run)


def test_the_stored_outputs_are_those_of_this_version(notebooks: tuple[Any, Any]) -> None:
    stored, run = (list(texts(notebook)) for notebook in notebooks)
    assert len(stored) == len(run)
    for before, now in zip(stored, run, strict=True):
        assert NUMBER.sub("#", before).split() == NUMBER.sub("#", now).split()
        numbers = [[float(each) for each in NUMBER.findall(text)] for text in (before, now)]
        # Other libraries round otherwise.
        assert numbers[0] == pytest.approx(numbers[1], rel=0.02, abs=0.02)
    images = [str(notebook).count("data:image/svg") for notebook in notebooks]
    assert images[0] == images[1] >= 6
