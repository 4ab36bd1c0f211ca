"""Stripes: too few and too many OSTs, as far as other jobs tell them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ioncast.diagnosis.stripes import StripedJobs, stripes_of

MIB = 1 << 20


def others(*runs: tuple[int, float]) -> StripedJobs:
    """Jobs with a stripe count and a bandwidth in MiB/s."""
    count, mib_s = np.array(runs or np.zeros((0, 2)), float).T
    return StripedJobs(np.arange(len(runs)), count, np.log(mib_s))


# One OST gives 100 MiB/s, and 8 of them 800; more are not faster.
KNOWN = others(*[(1, 100.0)] * 3, *[(8, 800.0)] * 3, *[(32, 780.0)] * 3)


def wrong(count: int, mib_s: float, other: StripedJobs = KNOWN, **changes: Any) -> str | None:
    usual = {"processes": 64, "file_bytes": 1 << 40, "bandwidth_mib_s": mib_s, "others": other}
    return stripes_of(count, MIB, **usual | changes).are_wrong


@pytest.mark.parametrize(
    ("count", "mib_s", "expected"),
    [
        (1, 100.0, "too few"),
        (3, 300.0, "too few"),
        (3, 201.0, "too few"),
        # It gets less than two thirds of what three OSTs give, so they are not its limit.
        (3, 199.0, None),
        (4, 400.0, None),
        (8, 100.0, None),
        (16, 100.0, None),
        (17, 100.0, "too many"),
    ],
)
def test_counts_beside_the_best_one(count: int, mib_s: float, expected: str | None) -> None:
    assert wrong(count, mib_s) == expected


def test_as_many_osts_as_processes_are_enough() -> None:
    assert wrong(1, 100.0, processes=1) is None


@pytest.mark.parametrize(("stripes", "expected"), [(4 * 16, None), (4 * 16 - 1, "too many")])
def test_fewer_than_four_stripes_on_each_ost_are_too_few_bytes(
    stripes: int, expected: str | None
) -> None:
    assert wrong(16, 100.0, others(), file_bytes=stripes * MIB) == expected
    assert wrong(1, 100.0, others(), file_bytes=MIB) is None


def test_the_best_count_needs_three_jobs_of_two_counts() -> None:
    two = others(*[(1, 100.0)] * 2, *[(8, 800.0)] * 3)
    assert (
        stripes_of(
            1, MIB, processes=9, file_bytes=1 << 40, bandwidth_mib_s=9.0, others=two
        ).best_count
        is None
    )
    assert wrong(1, 100.0, two) is None


def test_a_job_with_many_logs_counts_once() -> None:
    job = np.array([0] * 50 + [1, 2, 3, 4, 5])
    count = np.array([4.0] * 52 + [8.0] * 3)
    mib_s = np.array([900.0] * 50 + [100.0] * 2 + [500.0] * 3)
    assert StripedJobs(job, count, np.log(mib_s)).best_count() == 8
