from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictor.matching.configurations import configuration
from predictor.matching.same_application import identities, scaled, variants, weights
from summario.phases.values import Part, Phase

MIB = 1 << 20
MakePhase = Callable[..., Phase]

# Identities


def said(executable: str | None, user: str | None, name: str | None) -> list[str]:
    return [found.says for found in identities(executable, user, name)]


def test_the_executable_tells_more_than_its_name_and_a_name_more_than_none() -> None:
    assert said("/opt/bin/hacc_io", "ada", "night") == [
        "the same executable, user and job name",
        "the same executable and user",
        "the same program, user and job name",
        "the same program and user",
        "the same executable, by anybody",
        "the same program, by anybody",
        "the same user and job name",
    ]


@pytest.mark.parametrize("executable", ["hacc_io", "./hacc_io", "../bin/hacc_io"])
def test_of_a_relative_path_only_the_program_counts(executable: str) -> None:
    assert identities(executable, "ada", "night") == identities("hacc_io", "ada", "night")


def test_a_script_finds_by_its_program_what_ran_by_its_path() -> None:
    keys = {found.key for found in identities("/opt/bin/hacc_io", "ada", "night")}
    assert [found.key in keys for found in identities("hacc_io", "ada", None)] == [True, True]


@pytest.mark.parametrize("nothing", [None, ""])
def test_unknown_values_count_for_nothing(nothing: str | None) -> None:
    assert said(nothing, "ada", "night") == ["the same user and job name"]
    assert said("hacc_io", nothing, "night") == ["the same program, by anybody"]
    assert said(nothing, "ada", nothing) == []
    assert said(nothing, nothing, "night") == []
    assert said("/", "ada", nothing) == []


names = st.none() | st.text(alphabet="ab/'\",() \\\0", max_size=4)


@given(names, names, names, names, names, names)
def test_a_key_is_of_one_identity_only(
    executable: str | None,
    user: str | None,
    name: str | None,
    executable2: str | None,
    user2: str | None,
    name2: str | None,
) -> None:
    found = [*identities(executable, user, name), *identities(executable2, user2, name2)]
    assert len({each.key for each in found}) == len({each[:3] for each in found})


# Variants


def test_a_run_counts_four_fifths_of_the_next_newer_one() -> None:
    assert weights(4) == pytest.approx([1, 0.8, 0.64, 0.512])


def test_runs_that_do_the_same_are_one_variant(a_phase: MakePhase) -> None:
    [found] = variants([[a_phase()], [a_phase((64, 100 * MIB))], [a_phase(job=7)]])
    assert (found.runs, found.share) == ((0, 1, 2), 1)


@pytest.mark.parametrize(
    "other",
    [
        {"operation": "read"},
        {"api": "MPIIO"},
        {"spatiality": "random"},
        {"file_access": "unique"},
    ],
)
def test_another_kind_of_io_is_another_variant(a_phase: MakePhase, other: dict[str, str]) -> None:
    found = variants([[a_phase(**other)], [a_phase()], [a_phase()]])
    # The two older runs weigh 0.8 + 0.64 = 1.44 of 2.44, the newest run 1.
    assert [variant.runs for variant in found] == [(1, 2), (0,)]
    assert [variant.share for variant in found] == pytest.approx([1.44 / 2.44, 1 / 2.44])


@pytest.mark.parametrize(
    ("fsync", "count"), [("none", 1), ("end", 1), (None, 1), ("each", 2)], ids=str
)
def test_an_fsync_after_each_write_is_another_variant(
    a_phase: MakePhase, fsync: str | None, count: int
) -> None:
    assert len(variants([[a_phase()], [a_phase(fsync=fsync)]])) == count


@pytest.mark.parametrize(("mebibytes", "count"), [(33, 1), (32, 1), (31, 2), (128, 1), (129, 2)])
def test_more_than_twice_the_bytes_are_another_variant(
    a_phase: MakePhase, mebibytes: int, count: int
) -> None:
    assert len(variants([[a_phase()], [a_phase((64, mebibytes * MIB))]])) == count


@pytest.mark.parametrize(("read", "count"), [(20, 1), (21, 2)])
def test_up_to_a_fifth_of_the_bytes_may_be_of_other_kinds(
    a_phase: MakePhase, read: int, count: int
) -> None:
    mixed = [a_phase((1, (100 - read) * MIB)), a_phase((1, read * MIB), operation="read")]
    assert len(variants([[a_phase((1, 100 * MIB))], mixed])) == count


@pytest.mark.parametrize(("requests", "count"), [(255, 1), (257, 2), (17, 1), (15, 2)])
def test_requests_of_more_than_four_times_the_size_are_another_variant(
    a_phase: MakePhase, requests: int, count: int
) -> None:
    assert len(variants([[a_phase((64, 64 * MIB))], [a_phase((requests, 64 * MIB))]])) == count


def test_runs_are_compared_with_the_newest_of_a_variant(a_phase: MakePhase) -> None:
    """Otherwise the runs of a variant could change their bytes step by step without limit."""
    runs = [[a_phase((1, mebibytes * MIB))] for mebibytes in (100, 55, 30)]
    assert [variant.runs for variant in variants(runs)] == [(0, 1), (2,)]


def test_runs_without_io_are_alike(a_phase: MakePhase) -> None:
    assert [variant.runs for variant in variants([[], [a_phase()], []])] == [(0, 2), (1,)]


def test_of_equals_the_newest_answers(a_phase: MakePhase) -> None:
    assert variants([[a_phase()]])[0].runs == (0,)
    assert variants([]) == []


@given(st.lists(st.sampled_from(["write", "read"]), min_size=1, max_size=20))
def test_each_run_is_in_one_variant_and_shares_add_up(operations: list[str]) -> None:
    found = variants([[phase(operation=operation)] for operation in operations])
    assert sorted(place for variant in found for place in variant.runs) == [*range(len(operations))]
    assert sum(variant.share for variant in found) == pytest.approx(1)
    assert found == sorted(found, key=lambda variant: -variant.share)


# Scaling


def phase(*parts: Part, operation: str = "write", **told: object) -> Phase:
    made = parts or (Part(64, 64 * MIB),)
    whole = Phase(
        job=1,
        start_seconds=0.0,
        end_seconds=1.0,
        operation=operation,
        rank=None,
        processes=16,
        nprocs=16,
        bytes=sum(part.bytes for part in made),
        io_time_seconds=1.0,
        api="POSIX",
        requests=sum(part.requests for part in made),
        spatiality="contiguous",
        file_access="shared",
        n_files=1,
        mode_processes=16,
        parts=made,
    )
    return replace(whole, **told)  # type: ignore[arg-type]


parts = st.lists(
    st.builds(Part, requests=st.integers(1, 10**6), bytes=st.integers(1, 1 << 45)),
    min_size=1,
    max_size=4,
)


@given(parts, st.integers(1, 64))
def test_each_process_has_as_much_to_do(found: list[Part], factor: int) -> None:
    before = phase(*found)
    [after] = scaled([before], 16 * factor)
    assert (after.processes, after.nprocs, after.mode_processes) == (16 * factor,) * 3
    assert (after.bytes, after.requests) == (before.bytes * factor, before.requests * factor)
    assert [part.request_bytes for part in after.parts] == [
        pytest.approx(part.request_bytes) for part in before.parts
    ]
    assert after.bytes == sum(part.bytes for part in after.parts)
    assert scaled([after], 16) == [before]


@given(parts, st.integers(1, 1000))
def test_any_number_of_processes_gives_a_phase_that_can_be_matched(
    found: list[Part], processes: int
) -> None:
    [after] = scaled([phase(*found)], processes)
    assert after.bytes == sum(part.bytes for part in after.parts)
    assert after.processes == processes
    assert all(part.requests >= 1 and part.bytes >= 1 for part in after.parts)
    assert configuration(after, after.parts[0]).tasks == processes


@given(parts)
def test_as_many_processes_change_nothing(found: list[Part]) -> None:
    before = phase(*found)
    assert scaled([before], 16) == [before]


def test_the_io_of_one_process_for_all_stays_as_it_is() -> None:
    alone = phase(rank=0, processes=1, mode_processes=1)
    assert scaled([alone, phase()], 64)[0] == replace(alone, nprocs=64)


def test_the_only_process_of_a_job_is_all_of_them() -> None:
    alone = phase(rank=0, processes=1, nprocs=1, mode_processes=1)
    [after] = scaled([alone], 8)
    assert (after.processes, after.bytes, after.mode_processes) == (8, 8 * alone.bytes, 8)
    assert (after.rank, after.ranks) == (None, "all")


def test_own_files_become_more_and_a_shared_one_grows() -> None:
    own = phase(file_access="unique", n_files=16, mode_processes=1)
    assert [(each.n_files, each.mode_processes) for each in scaled([own, phase()], 64)] == [
        (64, 1),
        (1, 64),
    ]


def test_files_that_some_processes_share_become_more() -> None:
    groups = phase(n_files=4, mode_processes=4)
    [after] = scaled([groups], 64)
    assert (after.n_files, after.mode_processes) == (16, 4)


def test_a_share_of_the_processes_stays_that_share() -> None:
    [after] = scaled([phase(processes=4, mode_processes=4)], 64)
    assert (after.processes, after.mode_processes) == (16, 16)


def test_requests_that_moved_nothing_are_still_counted() -> None:
    [after] = scaled([phase(requests=65)], 32)
    assert after.requests == 130


def test_nothing_scales_to_nothing() -> None:
    assert scaled([], 4) == []
