"""Our results beside those of RR-9366."""

from __future__ import annotations

from experiments.datasets import DataSet
from experiments.studies.side_by_side import direct_runs, phase_rows
from predictor.validation.reruns import Rerun

_RERUNS = (Rerun("hacc-io", 0, 1, 100.0), Rerun("hacc-io", 4, 1, 200.0))


def test_a_periodic_application_stands_beside_the_first_phase_of_the_report(
    testbed: DataSet,
) -> None:
    first, *ours = phase_rows("periodic-a", testbed.jobs["periodic"])
    assert first["of"] == "RR-9366, first of 8"
    assert [row["of"] for row in ours] == ["here, 1", "here, 2", "here, 3", "here, 4"]
    assert {row["spatiality"] for row in ours} == {first["spatiality"]}


def test_an_application_that_the_report_lacks_has_only_our_rows(testbed: DataSet) -> None:
    rows = phase_rows("multiphase", testbed.jobs["multiphase"])
    assert [row["of"] for row in rows] == ["here, 1", "here, 2", "here, 3"]


def test_the_runs_with_direct_access_are_listed_as_measured() -> None:
    found = direct_runs("hacc-io", "bundled hacc-io", _RERUNS, benchmark=[50.0, 51.0])
    assert found["RR-9366, HACC-IO"][3] == 41971.4
    assert found["here, bundled hacc-io"] == [100.0]
    assert found["here, benchmarks"] == [50.0, 51.0]


def test_runs_of_an_unknown_program_have_the_name_of_the_application() -> None:
    assert "here, hacc-io" in direct_runs("hacc-io", "", _RERUNS, benchmark=[])


def test_only_hacc_io_has_runs_as_in_table_9() -> None:
    assert direct_runs("single-a", "bundled single-a", _RERUNS, benchmark=[50.0]) == {}
