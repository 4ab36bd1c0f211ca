"""Advice as an HTML page that needs no network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ioncast_base.pages.page import bullets, drawn, heading, paragraph, table, write_page
from predictor.what_if.advice_drawing import gain_figure
from predictor.what_if.advice_words import (
    LEGEND,
    conclusion,
    is_contradicted,
    name_of,
    name_of_today,
    rows,
    sentence,
    to_measure,
    today_in_words,
)
from predictor.what_if.advising import Advised


def write_advice(advised: Advised, path: str | Path) -> None:
    """Write advice as one HTML page, which contains everything it needs.

    Parameters
    ----------
    path : str or Path
        The file to write.

    Raises
    ------
    InputError
        When the file cannot be written.
    """
    today = advised.today
    title = f"Advice for the I/O of job {today.job} on {today.system}"
    write_page(path, title=title, parts=_parts(advised))


def _parts(advised: Advised) -> Iterator[str]:
    yield paragraph(_begun(f"{conclusion(advised)}."))
    yield paragraph(_begun(f"{today_in_words(advised.today)}."))
    if known := list(rows(advised)):
        yield table(known)
        yield bullets("Columns", LEGEND)
    for advice in advised.advice:
        if advice.then is not None:
            yield heading(_begun(f"{name_of(advice)} {' '.join(advice.codes)}".strip()))
            yield paragraph(_begun(f"{sentence(advised.today, advice)}."))
            today = name_of_today(is_contradicted=is_contradicted(advised.today))
            figure = gain_figure(advised.today.curve, advice.then.curve, today)
            yield drawn(figure, f"Bandwidth {today} and then, by number of I/O nodes")
    yield bullets(
        "Not known: measure this",
        [f"{line} (for {', '.join(names)})" for line, names in to_measure(advised).items()],
    )
    yield bullets("Warnings", advised.today.warnings)


def _begun(clause: str) -> str:
    """Begin a clause with a capital letter."""
    return clause[0].upper() + clause[1:]
