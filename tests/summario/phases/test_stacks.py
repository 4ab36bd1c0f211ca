"""Runs that are extracted together have the phases and warnings of each alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ioncast_base.errors import IoncastError
from summario.phases.extract import extract_run, extract_stack
from summario.phases.stacks import stacks_of
from summario.reading.log import read_log
from summario.runs.logs_of_run import Run, run_of
from tests.ioncast.insights.checks.test_hostile_logs import logs as hostile_logs
from tests.support.examples import examples

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


def readable(paths: Sequence[Path]) -> list[Run]:
    runs = []
    for path in paths:
        try:
            runs.append(run_of([read_log(path)]))
        except IoncastError:
            continue
    return runs


def alone(run: Run) -> str:
    try:
        return repr(extract_run(run))
    except IoncastError as error:
        return repr(error)


def assert_alike_together(runs: Sequence[Run]) -> None:
    places = []
    for of_stack, stack in stacks_of(runs):
        places += of_stack
        if stack.has_several:
            found = extract_stack(stack)
            # Not a number never equals itself, but is written alike.
            assert list(map(repr, found)) == [alone(run) for run in stack.runs]
            assert [runs[place] for place in of_stack] == list(stack.runs)
    assert sorted(places) == list(range(len(runs)))


@pytest.mark.slow
def test_logs_of_all_versions_together_have_the_phases_of_each() -> None:
    runs = readable(sorted(FIXTURES.rglob("*.darshan")))
    assert len(runs) > 50
    # Each log is there twice, so that the same files are in several logs.
    assert_alike_together([*runs, *runs[::-1]])


@pytest.mark.slow
def test_genuine_logs_together_have_the_phases_of_each(shared_data: Path) -> None:
    runs = readable(sorted(shared_data.parent.rglob("*.darshan")))
    assert len(runs) > 100
    assert_alike_together(runs)


@settings(
    max_examples=examples(400),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(data=st.data())
def test_impossible_numbers_change_no_other_run(tmp_path: Path, data: st.DataObject) -> None:
    paths = sorted(FIXTURES.glob("*.darshan"))
    for index in range(data.draw(st.integers(1, 4))):
        folder = tmp_path / str(index)
        folder.mkdir(exist_ok=True)
        paths.append(data.draw(hostile_logs(folder)))
    assert_alike_together(readable(data.draw(st.permutations(paths))))
