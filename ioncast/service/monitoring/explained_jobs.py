"""Why a job got its number of I/O nodes, in sentences: the decision, its basis, and the outcome."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ioncast.service.store.decisions import DecisionRow
from ioncast.service.store.jobs import JobEntry
from ioncast_base.wording import bandwidth, in_words, listed
from predictor.model.plausible import IMPLAUSIBLE_FACTOR, is_implausible_beside

# Slurm's own licence option; docs/slurm.md explains it under "Another number of I/O nodes".
ANOTHER_NUMBER = (
    "To ask for another number, submit the job with `sbatch -L ionode:N`; ioncast never changes a"
    " number that a user asks for. `-L ionode:0` asks for direct access. A site may have another"
    " name for the licence: `scontrol show licenses` lists it."
)
# Names of I/O nodes in a sentence.
_MOST_NAMED = 8
_SOURCES = {
    "history": "It rests on earlier runs of about this size",
    "model": "It rests on earlier runs of another size",
    "default": "It is the default of the site, because no prediction was possible",
}


@dataclass(frozen=True)
class Explained:
    """An entry of a job in words; `implausible` bandwidths are too high to be true."""

    headline: str
    sentences: tuple[str, ...]
    implausible: bool


def explain_entry(entry: JobEntry) -> Explained:
    """Say why a job got its number of I/O nodes, and what bandwidth it got."""
    decided, got = entry.decision, _got(entry)
    curve = decided.curve if decided else ()
    implausible = got is not None and is_implausible_beside(got[1], got[0], curve)
    return Explained(
        headline=_headline(decided),
        sentences=(*_reasons(decided), *_measured(entry, implausible=implausible)),
        implausible=implausible,
    )


def _headline(decided: DecisionRow | None) -> str:
    if decided is None:
        return "No decision is known"
    if decided.io_nodes is None:
        return "No answer: the scheduler uses its default"
    return _capital(in_words(decided.io_nodes))


def _reasons(decided: DecisionRow | None) -> Iterator[str]:
    if decided is None:
        yield (
            "The job's user chose the number of I/O nodes, its application was unknown, or the"
            " plugin only watched."
        )
        return
    yield f"{_capital(decided.why)}."
    if source := _SOURCES.get(decided.source):
        yield f"{source}."
    for io_nodes, mean, p10, p90 in decided.curve:
        if io_nodes == decided.io_nodes:
            yield (
                f"Predicted: {bandwidth(mean)} with {in_words(io_nodes)}; four of five runs should"
                f" get {bandwidth(p10)} to {bandwidth(p90)}."
            )


def _measured(entry: JobEntry, *, implausible: bool) -> Iterator[str]:
    got, decided = _got(entry), entry.decision
    if got is None:
        yield (
            "Measured: nothing yet. The job waits, runs or has just ended, or it wrote no Darshan"
            " log."
            if entry.run is None
            else "Measured: nothing, because its log has no I/O time."
        )
        return
    io_nodes, mib_s = got
    number = "an unknown number of I/O nodes" if io_nodes is None else in_words(io_nodes)
    yield f"Measured: {bandwidth(mib_s)} with {number}{_beside(mib_s, io_nodes, decided)}."
    if entry.outcome and entry.outcome.io_node_names:
        names = entry.outcome.io_node_names.split(",")
        more = [f"{len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
        yield f"Its I/O nodes: {listed([*names[:_MOST_NAMED], *more])}."
    if decided and None not in {io_nodes, decided.io_nodes} and io_nodes != decided.io_nodes:
        yield (
            "The job did not run with the number of the decision: its user, the arbiter or a limit"
            " of the site chose another one."
        )
    if implausible:
        yield (
            "The measured bandwidth is implausible: it is more than"
            f" {IMPLAUSIBLE_FACTOR:g} times what even one run in ten should exceed. The log may be"
            " of another machine, or the data stayed in a cache. It corrects no prediction."
        )


def _beside(mib_s: float, io_nodes: int | None, decided: DecisionRow | None) -> str:
    """Compare a measured bandwidth with the interval of the decision, as the end of a sentence."""
    for n, mean, p10, p90 in decided.curve if decided else ():
        if n == io_nodes:
            place = "above" if mib_s > p90 else "below" if mib_s < p10 else "inside"
            return f", {place} the predicted interval ({bandwidth(mean)} predicted)"
    return ""


def _got(entry: JobEntry) -> tuple[int | None, float] | None:
    """The number of I/O nodes and the bandwidth of a run; None if the bandwidth is unknown."""
    if entry.outcome is not None:
        return entry.outcome.io_nodes, entry.outcome.bandwidth_mib_s
    if entry.run is not None and entry.run.bandwidth_mib_s is not None:
        return entry.run.io_nodes, entry.run.bandwidth_mib_s
    return None


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
