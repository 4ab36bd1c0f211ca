"""The worth of a pool of I/O nodes as a page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ioncast.worth.in_words import arm_rows, sentences, unknown_rows, unknown_sentence
from ioncast.worth.valuing import ARMS, PoolArm, QueueWorth, ReplayedValue
from ioncast_base.pages import figures
from ioncast_base.pages.page import bullets, drawn, heading, paragraph, table, write_page


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
    """Draw a value of all arms by the size of the pool, with intervals."""
    pools = sorted({arm.pool for arm in found.arms})
    series: list[figures.Series] = []
    for place, arm in enumerate(dict.fromkeys(each.arm for each in found.arms)):
        values = [value_of(each) for each in found.arms if each.arm == arm]
        at, colour = [float(number) for number in range(len(pools))], figures.kind_colour(place)
        series.append(
            figures.Band(
                "", colour, at, [each.low for each in values], [each.high for each in values]
            )
        )
        series.append(figures.Line(arm, colour, at, [each.value for each in values]))
    across = figures.categories([str(pool) for pool in pools], "I/O nodes of the pool")
    return figures.Figure([figures.Panel(across, figures.from_zero(series, unit), series)])
