"""The worth of a pool of I/O nodes as a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path

from ioncast.insights.figures.drawn import Column, Drawn
from ioncast.worth.in_words import arm_rows, sentences, unknown_rows, unknown_sentence
from ioncast.worth.valuing import ARMS, PoolArm, QueueWorth, ReplayedValue
from ioncast_base.pages import figures
from ioncast_base.pages.page import bullets, drawn, heading, paragraph, table, write_page
from ioncast_base.wording import in_digits


@dataclass(frozen=True)
class WorthShown:
    """The worth of a pool for a template: sentences, the answer first, figures and tables."""

    sentences: tuple[str, ...]
    figures: tuple[Drawn, ...]
    arms: Mapping[str, str]
    unknown: str


def worth_shown(found: QueueWorth) -> WorthShown:
    """Arrange an answer for a template."""
    figures = [_with_numbers(found, *each) for each in _values(found)]
    figures.append(_table("numbers", "All numbers", arm_rows(found), texts=2))
    if found.unknown:
        figures.append(_table("unknown", "Without knowledge", unknown_rows(found), texts=2))
    unknown = unknown_sentence(found) if found.unknown else ""
    return WorthShown(tuple(sentences(found)), tuple(figures), ARMS, unknown)


def write_worth(path: str | Path, found: QueueWorth) -> None:
    """Write the page: the answer, hours by the size of the pool, and what is not known."""
    parts = [paragraph(said) for said in sentences(found)]
    for title, unit, value_of in _values(found):
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


def _values(found: QueueWorth) -> list[tuple[str, str, Callable[[PoolArm], ReplayedValue]]]:
    """List the values with figures: title, unit, and the value of an arm."""
    return [
        ("Hours of I/O", "I/O hours", lambda arm: arm.io_hours),
        (f"{found.unit.capitalize()} of all jobs", found.unit, lambda arm: arm.hours),
        ("Waiting time", "waiting hours of all jobs", lambda arm: arm.waiting_hours),
    ]


def _with_numbers(
    found: QueueWorth, title: str, unit: str, value_of: Callable[[PoolArm], ReplayedValue]
) -> Drawn:
    rows = []
    for arm in found.arms:
        value, low, high = map(in_digits, astuple(value_of(arm)))
        rows.append(
            {"pool": str(arm.pool), "arm": arm.arm, unit: value, "interval": f"{low} to {high}"}
        )
    shown = _table(title.lower().replace(" ", "-").replace("/", ""), title, rows, texts=2)
    return replace(shown, figure=_by_pool(found, unit, value_of), is_wide=False)


def _table(key: str, title: str, rows: Sequence[Mapping[str, str | None]], texts: int) -> Drawn:
    """Make a table, the first `texts` columns of which are no numbers."""
    return Drawn(
        key=key,
        title=title,
        said="",
        figure=None,
        caption=title,
        columns=tuple(Column(name, place < texts) for place, name in enumerate(rows[0])),
        rows=tuple(tuple(cell or "unknown" for cell in row.values()) for row in rows),
        is_wide=True,
    )


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
