from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioncast_base.errors import InputError
from ior_configs import format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("47008", 47008),
        ("4k", 4096),
        ("32m", 33554432),
        ("32M", 33554432),
        ("1g", 1 << 30),
        ("2T", 2 << 40),
        ("1p", 1 << 50),
        ("9920000m", 9920000 << 20),
    ],
)
def test_a_size_is_digits_and_one_binary_suffix(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "m", "-1", "+1", "1.5m", "16x", "16mb", "1 m", "9" * 30, "9p9"]
)
def test_other_texts_are_not_sizes(text: str) -> None:
    with pytest.raises(InputError):
        parse_size(text)


def test_a_size_beyond_63_bits_is_rejected() -> None:
    with pytest.raises(InputError, match="larger"):
        parse_size("8192p")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (33554432, "32m"),
        (47008, "47008"),
        (1536, "1536"),
        (0, "0"),
        (1 << 50, "1p"),
        (1 << 41, "2t"),
    ],
)
def test_a_size_is_written_with_the_largest_exact_suffix(size: int, text: str) -> None:
    assert format_size(size) == text


@given(st.integers(0, 2**63 - 1))
def test_written_sizes_are_read_back(size: int) -> None:
    assert parse_size(format_size(size)) == size
