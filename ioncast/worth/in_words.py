"""The worth of a pool in words and tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ioncast.worth.valuing import ARMS, QueueWorth, ReplayedValue
from ioncast_base.text_tables import text_table
from ioncast_base.visible_text import visible
from ioncast_base.wording import counted, in_digits, in_words

_MOST_UNKNOWN = 10


def to_text(found: QueueWorth) -> str:
    """Write everything as text."""
    rows = arm_rows(found)
    numbers = [name for name in rows[0] if name != "arm"]
    parts = [*sentences(found), "", text_table(rows, right=numbers, missing="unknown"), ""]
    parts += [f"{arm}: {meaning}" for arm, meaning in ARMS.items()]
    if found.unknown:
        rows = unknown_rows(found)
        parts += ["", unknown_sentence(found), "", text_table(rows, right=["jobs", found.unit])]
    return "\n".join(parts)


def sentences(found: QueueWorth) -> Iterator[str]:
    """Say what the pool is worth, after the assumption that it rests on."""
    if found.curves_of != found.system:
        yield (
            f"Assumption: I/O nodes on {found.system} would do what they do on {found.curves_of}."
        )
    yield _answer(found)
    recorded = "each recorded with its own number of I/O nodes"
    if found.ran_with is not None:
        recorded = f"recorded with {in_words(found.ran_with)}"
    yield (
        f"{counted(found.jobs, 'job')} of {counted(found.days, 'day')} on"
        f" {counted(found.nodes, 'compute node')}, {recorded}."
        " Nine of ten replays are inside the intervals, which are in brackets."
    )


def _answer(found: QueueWorth) -> str:
    by_pool = {arm.pool: arm for arm in found.arms if arm.arm == "ioncast"}
    largest = max(by_pool)
    if found.pool is None:
        return "Direct access was not measured, so the gain of I/O nodes is unknown."
    shown = by_pool[found.pool or largest]
    gain = shown.saved_hours
    assert gain is not None  # noqa: S101
    saved = f"{_hours(gain, 1)} {found.unit} beside direct access"
    if not found.pool:
        return f"No I/O nodes are worth their place: {in_words(largest)} save {saved}."
    share = gain.value / found.hours
    smallest = "" if len(by_pool) == 1 else ", the smallest pool that gains about the most"
    return f"{in_words(found.pool)} save {saved}, {share:.1%} of all{smallest}."


def unknown_sentence(found: QueueWorth) -> str:
    """Say which share of the queue rests on nothing."""
    return (
        f"{found.unknown_share:.0%} of the {found.unit} are of jobs of which nothing is known; they"
        " keep their recorded times. Measure first:"
    )


def arm_rows(found: QueueWorth) -> list[dict[str, Any]]:
    """Make a row of each pool and arm, for people."""
    return [
        {
            "pool": str(arm.pool),
            "arm": arm.arm,
            "I/O hours": _hours(arm.io_hours),
            found.unit: _hours(arm.hours),
            "waiting hours a job": _hours(arm.waiting_hours, found.jobs),
            f"saved {found.unit}": _hours(arm.saved_hours) if arm.saved_hours else None,
        }
        for arm in found.arms
    ]


def unknown_rows(found: QueueWorth) -> list[dict[str, Any]]:
    """Make a row of each of the largest applications of which nothing is known, for people."""
    return [
        {
            "application": visible(each.application),
            "why": each.reason,
            "jobs": f"{each.jobs:,}",
            found.unit: in_digits(each.hours),
        }
        for each in found.unknown[:_MOST_UNKNOWN]
    ]


def _hours(each: ReplayedValue, jobs: int = 1) -> str:
    """Write a value with its interval; `jobs` divides it."""
    value, low, high = (in_digits(number / jobs) for number in (each.value, each.low, each.high))
    return f"{value} ({low} to {high})"
