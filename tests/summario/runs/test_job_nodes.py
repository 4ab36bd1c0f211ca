"""The number of compute nodes of a job, from the user or from the log."""

import pytest

from summario.runs.hosts import NodeCount, job_nodes, node_warnings

ALL_OF_4 = NodeCount(4)
AT_LEAST_4 = NodeCount(4, are_all=False)


def test_a_log_that_names_all_compute_nodes_needs_no_number() -> None:
    found = job_nodes(None, ALL_OF_4)
    assert found == NodeCount(4, source="log")
    assert found.in_words == "compute nodes: 4, from the host names in the log"
    assert node_warnings(None, ALL_OF_4) == ()


@pytest.mark.parametrize("named", [None, ALL_OF_4, AT_LEAST_4])
def test_a_given_number_counts_and_is_not_said_again(named: NodeCount | None) -> None:
    found = job_nodes(5, named)
    assert found == NodeCount(5, source="given")
    assert found.in_words is None


def test_a_lower_bound_is_said_and_not_used() -> None:
    assert job_nodes(None, AT_LEAST_4) is None
    assert node_warnings(None, AT_LEAST_4) == (
        "the log does not name the compute node of every process: the job had at least 4; give the"
        " number",
    )


def test_nothing_is_known_of_a_log_without_host_names() -> None:
    assert job_nodes(None, None) is None
    assert node_warnings(None, None) == ()


@pytest.mark.parametrize("given", [1, 3, 5])
def test_another_number_than_the_logs_is_a_warning(given: int) -> None:
    are_given = "1 compute node is given" if given == 1 else f"{given} compute nodes are given"
    assert node_warnings(given, ALL_OF_4) == (
        f"{are_given}, but the log names 4; the given number is used",
    )


def test_fewer_than_the_lower_bound_is_a_warning() -> None:
    [warning] = node_warnings(3, AT_LEAST_4)
    assert warning.endswith("but the log names at least 4; the given number is used")


@pytest.mark.parametrize("given", [4, 5, 100])
def test_as_many_as_the_lower_bound_or_more_contradict_nothing(given: int) -> None:
    assert node_warnings(given, AT_LEAST_4) == ()


@pytest.mark.parametrize("named", [None, ALL_OF_4])
def test_the_number_itself_contradicts_nothing(named: NodeCount | None) -> None:
    assert node_warnings(4, named) == ()
