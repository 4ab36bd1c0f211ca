"""The worth of a pool of I/O nodes as a page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ioncast.worth.in_words import arm_rows, sentences, unknown_rows, unknown_sentence
from ioncast.worth.valuing import ARMS, PoolArm, QueueWorth, ReplayedValue
from ioncast_base.pages import figures
from ioncast_base.pages.page import bullets, drawn, heading, paragraph, table, write_page
from ioncast_base.wording import in_digits


def write_worth(path: str | Path, found: QueueWorth) -> None:
    """Write the page: the answer, hours by the size of the pool, and what is not known."""
    parts = [paragraph(said) for said in sentences(found)]
    shown: list[tuple[str, str, Callable[[PoolArm], ReplayedValue]]] = [
        ("Hours of I/O", "I/O hours", lambda arm: arm.io_hours),
        (f"{found.unit.capitalize()} of all jobs", found.unit, lambda arm: arm.hours),
        ("Waiting time", "waiting hours of all jobs", lambda arm: arm.waiting_hours),
    ]
    for title, unit, value_of in shown:
        parts += [heading(title), drawn(_by_pool(found, unit, value_of), title)]
    parts += [heading("All numbers"), table(arm_rows(found), texts=2)]
    parts.append(bullets("Arms", [f"{arm}: {meaning}" for arm, meaning in ARMS.items()]))
    if found.unknown:
        parts += [
            heading("Without knowledge"),
            paragraph(unknown_sentence(found)),
            table(unknown_rows(found)),
        ]
    write_page(path, title=f"I/O nodes for {found.system}", parts=parts)


def _by_pool(
    found: QueueWorth, unit: str, value_of: Callable[[PoolArm], ReplayedValue]
) -> figures.Figure:
    """Draw a value of all arms by the size of the pool: its interval as a bar, and a point."""
    pools = sorted({arm.pool for arm in found.arms})
    arms = list(dict.fromkeys(arm.arm for arm in found.arms))
    bars, points = list[figures.Series](), list[figures.Series]()
    for place, name in enumerate(arms):
        values = [value_of(arm) for arm in found.arms if arm.arm == name]
        shift, width = figures.side_by_side(len(arms), place)
        at = [number + shift for number in range(len(pools))]
        lows, highs = ([getattr(each, end) for each in values] for end in ("low", "high"))
        bars.append(figures.Bars(name, figures.kind_colour(place), at, highs, lows, width))
        said = [f"{name}: {in_digits(each.value)} {unit}" for each in values]
        middles = [each.value for each in values]
        points.append(figures.Points("", "var(--text)", at, middles, size=6, hints=said))
    across = figures.categories([str(pool) for pool in pools], "I/O nodes of the pool")
    axis = figures.from_zero([*bars, *points], unit)
    return figures.Figure([figures.Panel(across, axis, [*bars, *points])])
