"""Advice in words and in rows, for tables and pages."""

from __future__ import annotations

from collections.abc import Iterator

from ioncast_base.wording import in_digits, in_words
from predictor.curve.prediction import Prediction
from predictor.what_if.advising import AdviceGain, Advised
from predictor.what_if.attempts import NAMES
from predictor.what_if.gains import Span, decided

LEGEND = (
    "now, then: MiB/s with the decision, and p10 to p90 of a run; predicted: as now, but the run in"
    " the log contradicts it",
    "saves: seconds of I/O in a run; p10 to p90 hold four of five expected savings",
    "rests on: the weakest match of the I/O that changes; log: the pauses in the log",
)


def name_of(advice: AdviceGain) -> str:
    """Name the pieces of advice."""
    return " + ".join(NAMES[key] for key in advice.keys)


def sentence(today: Prediction, advice: AdviceGain) -> str:
    """Say what following a piece of advice changes, as a clause."""
    saved, here = advice.saved_seconds, decided(today)
    if saved is None:
        return "its gain is not known: measure it"
    # Asynchronous I/O may also hide phases that are not predicted, so it has no share of the time.
    whole = None if advice.then is None else here
    of_today = "" if whole is None else f" of {_seconds(whole.time_s)}"
    said = (
        f"saves {_seconds(saved.expected)}{of_today} in a run"
        f" ({in_digits(saved.p10)} to {_seconds(saved.p90)})"
    )
    if saved.expected < 0:
        than_today = "" if whole is None else f" than {_seconds(whole.time_s)}"
        said = (
            f"takes {_seconds(-saved.expected)} more{than_today} in a run"
            f" ({in_digits(0 - saved.p90)} to {_seconds(-saved.p10)})"
        )
    there = None if advice.then is None else decided(advice.then)
    if here is None or there is None:
        return said
    speeds = " instead of ".join(in_digits(p.bandwidth_mib_s.mean) for p in (there, here))
    nodes = f"with {in_words(there.io_nodes)}"
    if there.io_nodes != here.io_nodes:
        nodes += f" instead of {in_words(here.io_nodes)}"
    return f"{said}: {speeds} MiB/s, {nodes}"


def today_in_words(today: Prediction) -> str:
    """Tell the bandwidth and the time of the run as it is, also those of its log."""
    point, own = decided(today), today.own_run
    beside = f"; {own.in_words}" if own else ""
    if point is None:
        return f"today: no prediction ({today.decision.why}){beside}"
    name = name_of_today(is_contradicted=is_contradicted(today))
    return (
        f"{name}: {_bandwidth(today)} MiB/s with {in_words(point.io_nodes)},"
        f" {_seconds(point.time_s)} of I/O in a run{beside}"
    )


def name_of_today(*, is_contradicted: bool) -> str:
    """Name the curve of the run as it is: a prediction that its log contradicts is not today's."""
    return "predicted" if is_contradicted else "today"


def is_contradicted(today: Prediction) -> bool:
    """Whether the run in the log contradicts a prediction."""
    return today.own_run is not None and today.own_run.is_contradiction


def rows(advised: Advised) -> Iterator[dict[str, str]]:
    """Yield a row for each piece of advice whose gain is known, in the order of `advised`."""
    for rank, advice in enumerate(advised.advice, start=1):
        if advice.saved_seconds is not None:
            yield {"": str(rank), **_row(advised.today, advice, advice.saved_seconds)}


def _row(today: Prediction, advice: AdviceGain, saved: Span) -> dict[str, str]:
    numbers = [
        str(point.io_nodes)
        for prediction in (today, advice.then)
        if prediction is not None and (point := decided(prediction)) is not None
    ]
    return {
        "advice": name_of(advice),
        "checks": " ".join(advice.codes),
        "result": advice.verdict,
        "predicted" if is_contradicted(today) else "MiB/s now": _bandwidth(today),
        "then": _bandwidth(advice.then) if advice.then else "",
        "saves s": in_digits(saved.expected),
        "p10 to p90": f"{in_digits(saved.p10)} to {in_digits(saved.p90)}",
        "I/O nodes": " → ".join(dict.fromkeys(numbers)),
        "rests on": advice.matched or "",
    }


def _bandwidth(prediction: Prediction) -> str:
    point = decided(prediction)
    if point is None:
        return ""
    band = point.bandwidth_mib_s
    return f"{in_digits(band.mean)} ({in_digits(band.p10)} to {in_digits(band.p90)})"


def conclusion(advised: Advised) -> str:
    """Say what would help most."""
    if not advised.advice:
        return "no advice changes the I/O of this run"
    best = advised.advice[0]
    if best.verdict == "faster":
        return f"most would help: {name_of(best)}, which {sentence(advised.today, best)}"
    if best.saved_seconds is None:
        return "no gain is known; measure the benchmarks below"
    return "no advice is sure to help"


def to_measure(advised: Advised) -> dict[str, tuple[str, ...]]:
    """List the benchmarks that lack as IOR lines, and the advice that each would tell about."""
    # A dictionary without values keeps the order and drops repetitions.
    names: dict[str, dict[str, None]] = {}
    for advice in advised.advice:
        for config in advice.unmeasured:
            line = config.command_line(launcher=True)
            names.setdefault(line, {})[name_of(advice)] = None
    return {line: tuple(found) for line, found in names.items()}


def _seconds(value: float) -> str:
    return f"{in_digits(value)} s"
