"""The rows of a check: what was looked at, what was found, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ioncast_base.visible_text import visible

Status = Literal["OK", "WARN", "FAIL"]


@dataclass(frozen=True)
class Row:
    """One row of a check.

    Attributes
    ----------
    status : str
        ``OK``; ``WARN`` for a problem that loses nothing yet, and for a source that only root may
        read; ``FAIL`` for a part that does not work or is not safe.
    subject : str
        The thing that was looked at, in a few words.
    remedy : str
        Advice; empty if nothing needs to be done.
    """

    status: Status
    subject: str
    found: str
    remedy: str = ""


@dataclass(frozen=True)
class MissingSource:
    """A source that tells nothing."""

    reason: str
    remedy: str = ""
    needs_root: bool = False


def ok(subject: str, found: str) -> Row:
    """A row about a thing that is as it should be."""
    return Row("OK", subject, visible(found))


def warn(subject: str, found: str, remedy: str) -> Row:
    """A row about a problem that loses nothing yet."""
    return Row("WARN", subject, visible(found), visible(remedy))


def fail(subject: str, found: str, remedy: str) -> Row:
    """A row about a part that does not work or is not safe."""
    return Row("FAIL", subject, visible(found), visible(remedy))


def unknown(
    subject: str, missing: MissingSource, remedy: str = "run this command again when it answers"
) -> Row:
    """The row of a source that tells nothing; `remedy` counts if the source has none."""
    if missing.needs_root:
        return warn(subject, f"not checked: {missing.reason}", "run this command as root")
    return fail(subject, missing.reason, missing.remedy or remedy)


def exit_code(rows: Sequence[Row]) -> int:
    """0 without a failure, otherwise 1."""
    return int(any(row.status == "FAIL" for row in rows))
