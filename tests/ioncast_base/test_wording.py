from __future__ import annotations

import math
import random

import pytest

from ioncast_base.wording import alike_first, bandwidth, counted, in_digits, sentence, size


def test_no_quantity_for_people_is_in_scientific_notation() -> None:
    chance = random.Random(9366)
    for value in (chance.uniform(1, 10) * 10 ** chance.randint(-12, 18) for _ in range(2000)):
        for digits in (2, 3, 4):
            assert "e" not in in_digits(value, digits)
            rounded = float(in_digits(value, digits).replace(",", ""))
            assert rounded == pytest.approx(value, rel=0.6 * 10 ** (1 - digits), abs=1e-12)
        assert "e+" not in size(value)


@pytest.mark.parametrize(
    ("count_bytes", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1,023 bytes"),
        (1024, "1 KiB"),
        (1000 << 10, "1,000 KiB"),
        (1020 << 20, "1,020 MiB"),
        (1 << 30, "1 GiB"),
        (463453184, "442 MiB"),
        ((1 << 63) - 1, "8 EiB"),
    ],
)
def test_sizes_stay_in_their_unit_up_to_1024(count_bytes: int, text: str) -> None:
    assert size(count_bytes) == text


def test_numbers_that_are_none_are_written() -> None:
    assert [in_digits(value) for value in (0.0, math.inf, -math.inf)] == ["0", "inf", "-inf"]


def test_one_thing_is_singular() -> None:
    assert [counted(n, "job") for n in (0, 1, 2)] == ["0 jobs", "1 job", "2 jobs"]


def test_a_long_name_is_compared_in_little_time() -> None:
    names = [f"{'machine' * 30}{n}" for n in range(100)]
    assert alike_first("x" * 100_000, names).endswith("and 95 others")


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("the log is damaged", "The log is damaged."),
        ("app.darshan: the log is damaged", "app.darshan: the log is damaged."),
        ("Why?", "Why?"),
    ],
)
def test_a_clause_becomes_a_sentence_and_keeps_the_name_of_a_file(
    clause: str, expected: str
) -> None:
    assert sentence(clause) == expected


def test_an_infinite_quantity_has_the_largest_unit() -> None:
    """Bytes over a time below the clock's resolution, or numbers of a damaged log."""
    assert (bandwidth(math.inf), size(math.inf)) == ("inf EiB/s", "inf EiB")
