from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.applications.spec import (
    Application,
    Step,
    collective,
    hacc_io,
    irregular,
    multiphase,
    periodic_a,
    periodic_b,
    single_a,
    single_b,
    small_files,
)
from ioncast_base.errors import InputError

_MIB = 1024**2


@pytest.mark.parametrize(
    ("application", "n_bytes", "n_requests", "n_steps"),
    [
        (single_a(128, 16, 1.0), 17_179_869_184, 8192, 1),
        (single_b(512, 64, 1.0), 34_359_738_368, 8192, 1),
        (periodic_a(24, 24, 1.0), 3_221_225_472, 6144, 8),
        (periodic_b(24, 24, 1.0), 3_221_225_472, 786_432, 8),
        (hacc_io(64, 8, 1.0), 1_853_812_736, 640, 1),
    ],
    ids=lambda value: value.name if isinstance(value, Application) else None,
)
def test_unscaled_applications_move_the_bytes_and_requests_of_the_reports_tables(
    application: Application, n_bytes: int, n_requests: int, n_steps: int
) -> None:
    assert len(application.steps) == n_steps
    (step,) = {replace(step, name="any") for step in application.steps}
    assert application.step_bytes(step) == n_bytes
    requests = (step.accesses(rank, application.tasks) for rank in range(application.tasks))
    assert sum(map(len, requests)) == n_requests


def test_a_scale_changes_the_bytes_but_not_the_size_of_requests() -> None:
    (step,) = single_a(16, 8, 1 / 32).steps

    assert step.requests == ((2 * _MIB, 2),)


def test_a_process_with_fewer_bytes_than_a_request_makes_a_smaller_one() -> None:
    (step,) = single_b(16, 8, 1 / 1000).steps

    assert step.requests == ((67_112, 1),)
    assert step.requests[0][0] % 8 == 0


def test_the_multiphase_application_is_that_of_the_testbed_at_a_32nd() -> None:
    application = multiphase(16, 8, 1 / 32)

    read, checkpoint, output = application.steps
    assert [application.step_bytes(step) / _MIB for step in application.steps] == [64, 64, 32]
    assert (read.operation, read.file_access) == ("read", "shared")
    assert checkpoint.file_access == "unique"
    assert (output.layout, output.requests[0][0]) == ("1d-strided", 64 * 1024)


def test_each_small_file_has_one_request_of_the_next_size() -> None:
    written, read = small_files(16, 8, 1.0).steps
    assert (written.operation, read.operation) == ("write", "read")
    files = written.uses(3, 16)
    assert len({name for name, _ in files}) == len(files) == 200
    assert {name.split("/")[0] for name, _ in files} == {"results.00000003"}
    assert [accesses for _, accesses in files[:4]] == [
        [(0, 4096)],
        [(0, 8192)],
        [(0, 16384)],
        [(0, 4096)],
    ]
    assert written.process_bytes(3) == 67 * 4096 + 67 * 8192 + 66 * 16384


@pytest.mark.parametrize(
    "changes",
    [
        {"file_access": "shared"},
        {"weights": (1, 2)},
        {"header_bytes": 8},
        {"requests": ((4096, 2),)},
    ],
)
def test_other_steps_have_one_file_for_each_process(changes: dict[str, Any]) -> None:
    [step, _] = small_files(2, 1, 1.0).steps
    with pytest.raises(InputError, match="several files of a process need POSIX"):
        replace(step, **changes)


def test_hacc_io_writes_its_header_last_at_the_start_of_the_file() -> None:
    (step,) = hacc_io(8, 8, 1.0).steps

    *arrays, header = step.accesses(3, 8)
    sizes = [400_000] * 7 + [800_000, 200_000]
    assert arrays == [(24 * _MIB + sum(sizes[:k]), size) for k, size in enumerate(sizes)]
    assert header == (0, 24 * _MIB)


def test_an_irregular_application_has_uneven_processes_and_some_that_do_nothing() -> None:
    domain, report = irregular(8, 4, 1 / 32).steps

    assert [domain.process_bytes(rank) // _MIB for rank in range(4)] == [1, 2, 3, 4]
    assert [rank for rank in range(8) if report.accesses(rank, 8)] == [0, 4]


def test_the_collective_application_uses_mpi_io() -> None:
    (step,) = collective(16, 8, 1 / 32).steps

    assert (step.api, step.file_access) == ("MPIIO", "shared")


_REQUESTS = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 5)), min_size=1, max_size=3).map(
    tuple
)


@given(requests=_REQUESTS, weights=st.lists(st.integers(0, 3), min_size=1, max_size=6).filter(any))
def test_contiguous_processes_cover_a_shared_file_once_in_the_order_of_ranks(
    requests: tuple[tuple[int, int], ...], weights: list[int]
) -> None:
    step = Step("f", "write", "shared", "contiguous", requests, weights=tuple(weights))

    accesses = [a for rank in range(len(weights)) for a in step.accesses(rank, len(weights))]
    ends = [0, *(offset + size for offset, size in accesses)]
    assert [offset for offset, _ in accesses] == ends[:-1]


@given(
    size=st.integers(1, 50),
    count=st.integers(1, 5),
    taking_part=st.lists(st.booleans(), min_size=1, max_size=6).filter(any),
)
def test_processes_that_take_turns_cover_a_shared_file_once(
    size: int, count: int, taking_part: list[bool]
) -> None:
    weights = tuple(map(int, taking_part))
    step = Step("f", "write", "shared", "1d-strided", ((size, count),), weights=weights)

    turns = [step.accesses(rank, len(weights)) for rank in range(len(weights))]
    offsets = [
        offset
        for one_of_each in zip(*filter(None, turns), strict=True)
        for offset, _ in one_of_each
    ]
    assert offsets == [k * size for k in range(count * sum(weights))]


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"requests": ()}, "need a size and a number"),
        ({"requests": ((0, 1),)}, "need a size and a number"),
        ({"header_bytes": 8}, "only files per process can have a header"),
        ({"layout": "1d-strided", "requests": ((8, 1), (16, 1))}, "of one size"),
        ({"layout": "1d-strided", "weights": (1, 2)}, "equally many"),
        ({"api": "MPIIO", "weights": (1, 0)}, "collective"),
        ({"weights": (0, 0)}, "at least one process must take part"),
    ],
)
def test_an_impossible_step_is_rejected(changes: dict[str, object], refusal: str) -> None:
    step = {"layout": "contiguous", "requests": ((8, 1),), **changes}

    with pytest.raises(InputError, match=refusal):
        Step("f", "write", "shared", **step)  # type: ignore[arg-type]


def test_weights_are_one_for_each_process() -> None:
    step = Step("f", "write", "unique", "contiguous", ((8, 1),), weights=(1, 2))

    with pytest.raises(InputError, match="2 weights for 3 processes"):
        Application("uneven", 3, 1, (step,))


def test_steps_do_not_share_their_files() -> None:
    step = Step("f", "write", "unique", "contiguous", ((8, 1),))

    with pytest.raises(InputError, match="two steps have the same name"):
        Application("twice", 2, 1, (step, step))
