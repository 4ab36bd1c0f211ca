"""The number of compute nodes of a job, from the user or from the log."""

import pytest

from predictor.matching.job_nodes import JobNodes, job_nodes
from summario.runs.hosts import NodeCount

ALL_OF_4 = NodeCount(4, are_all=True)
AT_LEAST_4 = NodeCount(4, are_all=False)


def test_a_log_that_names_all_compute_nodes_needs_no_number() -> None:
    found = job_nodes(None, ALL_OF_4)
    assert found == JobNodes(4, "log")
    assert found.in_words == "compute nodes: 4, from the host names in the log"


def test_a_given_number_counts_and_is_not_said_again() -> None:
    found = job_nodes(4, ALL_OF_4)
    assert found == JobNodes(4, "given")
    assert found.in_words is None


def test_a_lower_bound_is_said_and_not_used() -> None:
    found = job_nodes(None, AT_LEAST_4)
    assert (found.number, found.source, found.in_words) == (None, None, None)
    assert found.warnings == (
        "the log does not name the compute node of every process: the job had at least 4; give the"
        " number",
    )


def test_nothing_is_known_of_a_log_without_host_names() -> None:
    assert job_nodes(None, None) == JobNodes(None, None, ())


@pytest.mark.parametrize("given", [1, 3, 5])
def test_another_number_than_the_logs_is_a_warning(given: int) -> None:
    found = job_nodes(given, ALL_OF_4)
    assert (found.number, found.source) == (given, "given")
    are_given = "1 compute node is given" if given == 1 else f"{given} compute nodes are given"
    assert found.warnings == (f"{are_given}, but the log names 4; the given number is used",)


def test_fewer_than_the_lower_bound_is_a_warning() -> None:
    [warning] = job_nodes(3, AT_LEAST_4).warnings
    assert warning.endswith("but the log names at least 4; the given number is used")


@pytest.mark.parametrize("given", [4, 5, 100])
def test_as_many_as_the_lower_bound_or_more_contradict_nothing(given: int) -> None:
    assert job_nodes(given, AT_LEAST_4) == JobNodes(given, "given")


@pytest.mark.parametrize("named", [None, ALL_OF_4])
def test_the_number_itself_contradicts_nothing(named: NodeCount | None) -> None:
    assert job_nodes(4, named).warnings == ()
