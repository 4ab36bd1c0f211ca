"""Values, names of runs and sentences about differences, for people."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from pathlib import Path

from ioncast.insights.comparison.comparing import ComparedTable, ComparedValue, present
from ioncast.insights.tables.characterising import Characterisation
from ioncast.insights.tables.values import Characteristic
from ioncast_base.visible_text import visible
from ioncast_base.wording import in_digits, size
from summario.phases.streams import MODULE_OF_API

# A sign that does not need colour.
DIFFERS = "≠"
_LONGEST_COMMAND, _LONGEST_NAME, _MOST_DIFFERENCES = 120, 20, 5
# Differences of smaller values say nothing: one request, one byte, a hundredth of a second.
_LEAST = {"": 1.0, "bytes": 1.0, "seconds": 0.01, "times": 0.01}
# The table whose rows tell the most, for the sentences about differences.
_TELLING = "layers"


def value_text(row: Characteristic) -> str:
    """Write a value with its unit; in the place of an unknown value, the note."""
    value = row.value
    if value is None:
        return row.note or "not known"
    if isinstance(value, str) or row.unit == "rank":
        return visible(value)
    if row.unit == "bytes":
        return size(value)
    if row.unit == "seconds":
        return f"{in_digits(value)} s"
    if row.unit == "times":
        return f"{in_digits(value)} ×"
    return f"{value:,}" if isinstance(value, int) else in_digits(value)


def share_text(row: Characteristic) -> str:
    """Write a share in percent with two decimals; empty without a share."""
    return "" if row.share is None else f"{row.share:.2%}"


def layer_text(layer: str) -> str:
    """Write the name of a layer as Darshan's modules have it; "run" for all layers together."""
    return MODULE_OF_API.get(layer, layer) or "run"


def command_text(run: Characterisation) -> str:
    """Write the log of a run and its command."""
    return f"{visible(run.log)}: {shortened(visible(run.job['command']), _LONGEST_COMMAND)}"


def short_names(runs: Sequence[Characterisation]) -> list[str]:
    """Name runs in the heads of columns: by their files if these are short, else by number."""
    names = [
        visible(Path(run.log).name).removesuffix(".gz").removesuffix(".darshan") for run in runs
    ]
    are_short = len(set(names)) == len(names) and max(map(len, names)) <= _LONGEST_NAME
    return names if are_short else [f"({number})" for number in range(1, len(runs) + 1)]


def difference_texts(tables: Sequence[ComparedTable], names: Sequence[str]) -> list[str]:
    """Say for each run after the first one how it differs most, the largest difference first."""
    texts = []
    for place, name in enumerate(names[1:], 1):
        said = "; ".join(largest_differences(tables, place))
        texts.append(f"{name} beside {names[0]}: {said or 'no difference above the tolerance'}")
    return texts


def largest_differences(tables: Sequence[ComparedTable], place: int) -> list[str]:
    """Name the largest differences of the run at this place to the first one, largest first."""
    rows = [cells for table in tables if table.name == _TELLING for cells in table.rows]
    pairs = [(cells[0], cells[place]) for cells in rows if cells[place].differs]
    pairs.sort(key=lambda pair: -_weight(*pair))
    return [_difference(*pair) for pair in pairs[:_MOST_DIFFERENCES]]


def missing_texts(runs: Sequence[Characterisation]) -> list[str]:
    """List the facts that the logs do not have, each once."""
    return list(dict.fromkeys(sentence for run in runs for sentence in run.not_recorded))


def _weight(first: ComparedValue, other: ComparedValue) -> float:
    """Compute how far apart two values are: the logarithm of their ratio."""
    low, high = sorted(map(_size, (first, other)))
    return log(high / low)


def _size(cell: ComparedValue) -> float:
    if cell.row is None or not isinstance(cell.row.value, int | float):
        return 1.0
    least = _LEAST.get(cell.row.unit, 1.0)
    return max(abs(cell.row.value), least) / least


def _difference(first: ComparedValue, other: ComparedValue) -> str:
    [row, *_] = present((first, other))
    before, after = (
        "none" if cell.row is None else value_text(cell.row) for cell in (first, other)
    )
    factor = "" if other.ratio is None else f" ({_factor(other.ratio)})"
    name = f"{layer_text(row.layer)} {row.characteristic}" if row.layer else row.characteristic
    return f"{name} {before} → {after}{factor}"


def _factor(ratio: float) -> str:
    return f"{in_digits(ratio)} ×" if ratio >= 1 else f"1/{in_digits(1 / ratio)}"


def shortened(text: str, most: int) -> str:
    """Leave out the end of a text with more characters than `most`."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
