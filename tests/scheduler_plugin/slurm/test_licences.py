"""Texts of licences; the counts are those of `sbatch -L` in Slurm 22.05 with 8 `ionode`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioncast_base.errors import InputError
from scheduler_plugin.slurm import licence_count, with_licence
from tests.support.licences import COUNTED, LEFT_ALONE

_names = st.text("abcdefghijklmnopqrstuvwxyz_-0123456789", min_size=1, max_size=8)
_entries = st.tuples(_names, st.none() | st.integers(0, 10_000)).map(
    lambda entry: entry[0] if entry[1] is None else f"{entry[0]}:{entry[1]}"
)
_texts = st.lists(_entries, max_size=5).flatmap(
    lambda entries: st.sampled_from([",", ";"]).map(lambda mark: mark.join(entries))
)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("ionode:4", 4),
        ("ionode", 1),
        ("matlab:2,ionode:4", 4),
        ("ionode:1;matlab", 1),
        ("ionode:2,,matlab", 2),
        ("ionode:0", 0),
        ("ionode: 2", 2),
        ("ionode: \n2", 2),
        *COUNTED,
        *((text, None) for text in LEFT_ALONE),
        ("ionode:2,ionode:3", 5),
        ("ionode=2", 2),
        ("matlab:1|ionode:2", 2),
        ("", None),
        ("matlab", None),
        ("ionodes:4", None),
        ("ionode@server:4", 4),
    ],
)
def test_a_count_is_read_as_slurm_reads_it(text: str, count: int | None) -> None:
    assert licence_count(text, "ionode") == count


@given(_texts, _names, st.integers(1, 10_000))
def test_the_licence_that_was_set_is_read_again(text: str, name: str, count: int) -> None:
    assert licence_count(with_licence(text, name, count), name) == count


@given(_texts, _names)
def test_none_of_a_licence_is_not_to_name_it(text: str, name: str) -> None:
    assert licence_count(with_licence(text, name, 0), name) is None


@given(_texts, _names, _names, st.integers(0, 10_000))
def test_other_licences_stay(text: str, name: str, other: str, count: int) -> None:
    if other != name:
        changed = with_licence(text, name, count)
        assert licence_count(changed, other) == licence_count(text, other)


@given(_texts, _names, st.integers(0, 10_000))
def test_setting_twice_is_setting_once(text: str, name: str, count: int) -> None:
    once = with_licence(text, name, count)
    assert with_licence(once, name, count) == once


@given(st.text(max_size=30), _names)
def test_no_text_breaks_reading(text: str, name: str) -> None:
    count = licence_count(text, name)
    assert count is None or count >= 0


def test_a_text_with_alternatives_is_not_added_to() -> None:
    # Slurm 25.05 and newer reject "a|b,c".
    with pytest.raises(InputError, match="alternatives"):
        with_licence("matlab:1|comsol:1", "ionode", 4)
