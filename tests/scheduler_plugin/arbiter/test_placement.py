"""Placement: waiting jobs on shared I/O nodes, and the files from which the arbiter reads it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import OptimizeResult

from ioncast_base.errors import InputError
from scheduler_plugin.arbiter.placement import Names, PlacedJob, Sharing, placed
from scheduler_plugin.arbiter.placement_list import (
    LONGEST_BYTES,
    disturbing_pairs,
    list_text,
    names_of_jobs,
)
from tests.support.examples import examples

NAMES = ("io1", "io2", "io3")


def job(number: int, io_nodes: int, load: float, *names: str, program: str = "") -> PlacedJob:
    key = (program, 4) if program else None
    return PlacedJob(number, io_nodes, load, key, names)


def met(jobs: Sequence[PlacedJob], chosen: Mapping[int, Names]) -> Counter[frozenset[int]]:
    """How many I/O nodes each pair of jobs shares."""
    names = {each.id: each.names or chosen.get(each.id, ()) for each in jobs}
    found: Counter[frozenset[int]] = Counter()
    for one, other in combinations(jobs, 2):
        found[frozenset((one.id, other.id))] += len({*names[one.id]} & {*names[other.id]})
    return found


def cost(jobs: Sequence[PlacedJob], chosen: Mapping[int, Names], sharing: Sharing) -> float:
    """The cost of a placement: of each I/O node and each pair of jobs there."""
    by_id = {each.id: each for each in jobs}
    total = 0.0
    for pair, shared in met(jobs, chosen).items():
        one, other = (by_id[number] for number in pair)
        programs = frozenset((one.program, other.program))
        total += shared * one.load_mib_s * other.load_mib_s
        total += shared * 1e9 * (programs in sharing.disturbing)
    return total


def cheapest(jobs: Sequence[PlacedJob], sharing: Sharing) -> float:
    """The lowest cost of all placements."""
    waiting = [each for each in jobs if not each.names]
    choices = [list(combinations(sharing.io_nodes, each.io_nodes)) for each in waiting]
    costs = []
    for chosen in product(*choices):
        names = dict(zip((each.id for each in waiting), chosen, strict=True))
        loads = Counter(name for own in names.values() for name in own)
        loads.update(name for each in jobs for name in each.names)
        if max(loads.values(), default=0) <= sharing.jobs_each:
            costs.append(cost(jobs, names, sharing))
    return min(costs)


def test_nobody_shares_while_there_are_free_io_nodes() -> None:
    jobs = [job(1, 1, 900.0, "io2"), job(2, 1, 500.0), job(3, 1, 400.0)]
    assert placed(jobs, Sharing(NAMES, 2)) == {2: ("io1",), 3: ("io3",)}


def test_the_jobs_with_most_expected_bandwidth_do_not_meet() -> None:
    jobs = [job(1, 1, 900.0, "io1"), job(2, 1, 10.0, "io2"), job(3, 1, 800.0), job(4, 1, 20.0)]
    found = placed(jobs, Sharing(("io1", "io2"), 2))
    assert found == {3: ("io2",), 4: ("io1",)}


def test_programs_that_were_measured_to_disturb_each_other_are_kept_apart() -> None:
    jobs = [
        *(job(1, 1, 10.0, "io1", program="a"), job(2, 1, 900.0, "io2", program="b")),
        *(job(3, 1, 800.0, program="c"), job(4, 1, 5.0, program="d")),
    ]
    measured = frozenset({frozenset({("c", 4), ("a", 4)})})
    assert placed(jobs, Sharing(("io1", "io2"), 2))[3] == ("io1",)
    assert placed(jobs, Sharing(("io1", "io2"), 2, measured))[3] == ("io2",)


def test_two_runs_of_a_program_that_disturbs_itself_are_kept_apart() -> None:
    jobs = [job(1, 1, 1.0, "io1", program="a"), job(2, 1, 9.0, "io2"), job(3, 1, 9.0, program="a")]
    measured = frozenset({frozenset({("a", 4)})})
    assert placed(jobs, Sharing(("io1", "io2"), 2, measured)) == {3: ("io2",)}


def test_slow_io_nodes_are_used_last_and_by_the_jobs_with_least_bandwidth() -> None:
    slow = Sharing(("io1", "io2", "io3", "io4"), 1, slow=frozenset({"io1", "io3"}))
    assert placed([job(1, 2, 900.0)], slow) == {1: ("io2", "io4")}
    assert placed([job(1, 1, 5.0), job(2, 2, 900.0)], slow) == {1: ("io1",), 2: ("io2", "io4")}
    # Rather share with another job.
    shared = Sharing(("io1", "io2"), 2, slow=frozenset({"io1"}))
    jobs = [job(1, 1, 900.0), job(2, 1, 800.0)]
    assert placed(jobs, shared) == {1: ("io2",), 2: ("io2",)}
    # But nobody waits.
    jobs += [job(3, 1, 1.0)]
    assert placed(jobs, shared) == {1: ("io2",), 2: ("io2",), 3: ("io1",)}
    many = [job(number, 1, float(number + 1)) for number in range(20)]
    found = placed(many, Sharing(tuple(f"io{n}" for n in range(10)), 2, slow=frozenset({"io0"})))
    assert [number for number, names in found.items() if names == ("io0",)] == [0, 1]


@st.composite
def queues(draw: st.DrawFn) -> tuple[list[PlacedJob], Sharing]:
    """Running and waiting jobs that have room together."""
    names = NAMES[: draw(st.integers(2, 3))]
    jobs_each = draw(st.integers(1, 3))
    loads = dict.fromkeys(names, 0)
    jobs: list[PlacedJob] = []
    for number in range(draw(st.integers(1, 5))):
        free = [name for name in names if loads[name] < jobs_each]
        io_nodes = draw(st.integers(1, 3))
        load, program = draw(st.sampled_from([0.0, 1.0, 30.0, 900.0])), draw(st.sampled_from("abc"))
        if io_nodes > len(free):
            break
        chosen = draw(st.permutations(free))[:io_nodes]
        loads.update({name: loads[name] + 1 for name in chosen})
        own = chosen if draw(st.booleans()) else ()
        jobs.append(job(number, io_nodes, load, *own, program=program))
    pairs = [frozenset({("a", 4), ("b", 4)}), frozenset({("c", 4)})]
    disturbing = frozenset(draw(st.lists(st.sampled_from(pairs))))
    return jobs, Sharing(names, jobs_each, disturbing)


@settings(max_examples=examples(300), deadline=None)
@given(queues())
def test_no_other_placement_of_few_jobs_costs_less(queue: tuple[list[PlacedJob], Sharing]) -> None:
    jobs, sharing = queue
    found = placed(jobs, sharing)
    # They were drawn with room for all of them.
    assert {each.id for each in jobs if not each.names} == found.keys()
    for each in jobs:
        assert each.names or len(set(found[each.id])) == each.io_nodes
    loads = Counter(name for own in found.values() for name in own)
    loads.update(name for each in jobs for name in each.names)
    assert max(loads.values(), default=0) <= sharing.jobs_each
    lowest = cheapest(jobs, sharing)
    assert cost(jobs, found, sharing) == pytest.approx(lowest, rel=1e-6, abs=1e-3)


def test_many_jobs_are_placed_within_the_limits() -> None:
    names = tuple(f"io{number}" for number in range(32))
    jobs = [job(number, 2, float(number + 1)) for number in range(40)]
    found = placed(jobs, Sharing(names, 2))
    loads = Counter(name for own in found.values() for name in own)
    # 64 places hold the first 32 jobs; the others wait.
    assert sorted(found) == list(range(32))
    assert set(loads.values()) == {2}


def test_small_jobs_behind_one_without_room_are_placed() -> None:
    # Slurm's backfill starts them first.
    jobs = [job(1, 2, 9.0, "io1", "io2"), job(2, 3, 9.0), job(3, 1, 5.0), job(4, 1, 4.0)]
    assert placed(jobs, Sharing(NAMES, 1)) == {3: ("io3",)}


@pytest.mark.parametrize(
    ("running", "jobs_each", "sizes"),
    [
        # No, one or two of 12 jobs on each of 25 I/O nodes: 25 (1 + 12 + 66) groups.
        (25, 3, [1975]),
        (26, 3, []),
        (2, 8, []),
        (32, 8, []),
    ],
)
def test_jobs_are_placed_exactly_if_they_form_at_most_two_thousand_groups(
    monkeypatch: pytest.MonkeyPatch, running: int, jobs_each: int, sizes: list[int]
) -> None:
    found: list[int] = []

    def noting(costs: Sequence[float], **program: Any) -> OptimizeResult:
        found.append(len(costs))
        return OptimizeResult(success=False)

    monkeypatch.setattr("scipy.optimize.milp", noting)
    names = tuple(f"io{number}" for number in range(running))
    jobs = [job(number, 1, 9.0, name) for number, name in enumerate(names, 100)]
    jobs += [job(number, 1, float(number + 1)) for number in range(12)]
    chosen = placed(jobs, Sharing(names, jobs_each))
    assert found == sizes
    assert [len(chosen[number]) for number in range(12)] == [1] * 12


# Files -------------------------------------------------------------------------------------------


def test_the_list_is_at_most_as_long_as_the_hooks_read() -> None:
    names = dict.fromkeys(range(10000), NAMES)
    text = list_text(names, 1_764_355_000)
    assert LONGEST_BYTES - 40 < len(text) <= LONGEST_BYTES
    first, *lines, last = text.splitlines()
    assert first == "ioncast-placement 1764355000"
    assert (lines[0], last) == ("0 io1 io2 io3", "end 1764355000")
    slow = list_text(names, 1_764_355_000, ["io1", "io2"])
    assert LONGEST_BYTES - 40 < len(slow) <= LONGEST_BYTES
    assert slow.splitlines()[1:3] == ["last io1 io2", "0 io1 io2 io3"]


def test_names_of_jobs_are_those_that_the_hooks_noted(tmp_path: Path) -> None:
    (tmp_path / "1.hosts").write_text("io1\nio2\n")
    (tmp_path / "2.hosts").write_text("io3 ofi+tcp://10.0.0.3:50000\n\n")
    (tmp_path / "3.hosts").write_bytes(b"")
    assert names_of_jobs(str(tmp_path), [1, 2, 3, 4]) == {1: ("io1", "io2"), 2: ("io3",)}
    (tmp_path / "5.hosts").mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        names_of_jobs(str(tmp_path), [5])


def pair(program: str, by_program: str, *, is_disturbing: bool) -> dict[str, object]:
    return {
        "program": program,
        "processes": 4,
        "by_program": by_program,
        "by_processes": 8,
        "is_disturbing": is_disturbing,
    }


def test_only_pairs_that_surely_disturb_each_other_are_read(tmp_path: Path) -> None:
    file = tmp_path / "pairs.json"
    pairs = [pair("/opt/a", "b", is_disturbing=True), pair("c", "d", is_disturbing=False)]
    file.write_text(json.dumps(pairs))
    assert disturbing_pairs(str(file)) == {frozenset({("a", 4), ("b", 8)})}


@pytest.mark.parametrize(
    "text",
    ["", "{", "1", "null", "[1]", '[{"program": "a"}]', "[" * 100_000, '{"a": 1}', "\xff"],
)
def test_a_file_without_pairs_is_one_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "pairs.json"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match="not pairs of programs"):
        disturbing_pairs(str(file))
    with pytest.raises(InputError, match="cannot be read"):
        disturbing_pairs(str(tmp_path / "none"))
