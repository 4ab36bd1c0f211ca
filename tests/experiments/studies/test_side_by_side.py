"""What is found here beside what RR-9366 reports of it."""

from __future__ import annotations

from experiments.datasets import DataSet
from experiments.studies.side_by_side import direct_runs, phase_rows
from predictor.validation.reruns import Rerun

_RERUNS = (Rerun("hacc-io", 0, 1, 100.0), Rerun("hacc-io", 4, 1, 200.0))


def test_a_periodic_application_is_held_against_the_first_phase_of_the_report(
    testbed: DataSet,
) -> None:
    first, *ours = phase_rows("periodic-a", testbed.jobs["periodic"])
    assert first["of"] == "RR-9366, first of 8"
    assert [row["of"] for row in ours] == ["here, 1", "here, 2", "here, 3", "here, 4"]
    assert {row["spatiality"] for row in ours} == {first["spatiality"]}


def test_an_application_that_the_report_does_not_know_stands_alone(testbed: DataSet) -> None:
    rows = phase_rows("multiphase", testbed.jobs["multiphase"])
    assert [row["of"] for row in rows] == ["here, 1", "here, 2", "here, 3"]


def test_runs_without_i_o_nodes_are_as_they_were_measured() -> None:
    found = direct_runs("hacc-io", "bundled hacc-io", _RERUNS, benchmark=[50.0, 51.0])
    assert found["RR-9366, HACC-IO"][3] == 41971.4
    assert found["here, bundled hacc-io"] == [100.0]
    assert found["here, benchmarks"] == [50.0, 51.0]


def test_runs_that_nobody_says_the_program_of_have_the_applications_name() -> None:
    assert "here, hacc-io" in direct_runs("hacc-io", "", _RERUNS, benchmark=[])


def test_table_9_is_of_hacc_io_alone() -> None:
    assert direct_runs("single-a", "bundled single-a", _RERUNS, benchmark=[50.0]) == {}
