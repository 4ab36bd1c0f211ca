"""The notebook of docs/ runs from its first to its last cell, in a kernel of its own."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).resolve().parents[1] / "docs" / "python.ipynb"

pytestmark = [
    pytest.mark.slow,
    # Jupyter's own libraries warn of each other.
    pytest.mark.filterwarnings("default"),
]


def test_the_notebook_runs_and_shows_the_measured_means() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        cell.get("outputs", []).clear()
    NotebookClient(notebook, resources={"metadata": {"path": NOTEBOOK.parent}}).execute()
    # HACC-IO with 0, 1, 2, 4 and 8 I/O nodes, from the README of experiments/data/testbed.
    assert "[44.6 26.9 52.9 70.1 77.6]" in str(notebook.cells[-1])
