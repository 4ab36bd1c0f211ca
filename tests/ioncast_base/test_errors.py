"""Errors carry values; the words are made where somebody reads them."""

from __future__ import annotations

import pickle

import pytest

from ioncast_base import errors
from ioncast_base.errors import InputError, IoncastError, Remedy, as_field

NEEDED = InputError(
    "the file lacks --this", where="a.csv", line=3, remedy=Remedy("give {}", ("io_nodes",))
)


def test_a_parameter_is_an_option_on_the_command_line() -> None:
    assert str(NEEDED) == "a.csv:3: the file lacks --this; give --io-nodes"


def test_a_parameter_is_a_field_in_a_request_and_other_words_stay() -> None:
    assert NEEDED.in_words(as_field) == "a.csv:3: the file lacks --this; give io_nodes"


def test_an_error_is_one_line() -> None:
    assert str(InputError("a\n  b", where="c", remedy="e\n")) == "c: a b; e"


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2Jb", "a\udcffb"])
def test_a_name_that_no_terminal_should_get_is_quoted(name: str) -> None:
    assert str(InputError("empty", where=name, line=2)) == f"{name!r}:2: empty"


def test_an_error_arrives_from_another_process_as_it_was() -> None:
    arrived = pickle.loads(pickle.dumps(NEEDED))  # noqa: S301 - our own
    assert vars(arrived) == vars(NEEDED)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("IoncastError", "bad-request"),
        ("InputError", "unusable-input"),
        ("DamagedLogError", "damaged-darshan-log"),
        ("ConflictError", "conflict"),
        ("UnknownNameError", "not-found"),
        ("DatabaseError", "database-unavailable"),
        ("BusyError", "busy"),
    ],
)
def test_programs_may_rely_on_the_kind_of_an_error(name: str, kind: str) -> None:
    error: type[IoncastError] = getattr(errors, name)
    assert error.kind == kind
