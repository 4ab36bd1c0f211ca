"""D01, D02: rank 0, or some other processes, do more than the others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ioncast.insights.checks.values import MOST_RANKS, Case, Find, Finding, Result, Unknown
from ioncast.insights.facts.rank_totals import RankFacts
from ioncast.insights.facts.values import Floats

# Of two processes, the busier one is always at the mean plus one standard deviation.
_FEWEST_PROCESSES = 3
_NOT_TOLD = (
    "the log does not tell what each process moved: it has no whole trace (DXT), no heat map"
    " (HEATMAP) of these files, and too few records of single processes"
)


def heavy_rank_0(case: Case) -> Result:
    """D01: rank 0 reads, writes or both much more than each other process."""
    ranks = _ranks(case, fewest=2)
    if not isinstance(ranks, RankFacts):
        return ranks
    moved = _of_rank_0(ranks, ranks.bytes)
    limits = case.thresholds
    variant = _heavier(ranks, limits.rank_0_factor)
    if variant is None or moved <= limits.rank_0_bytes:
        return None
    others = float(ranks.bytes.sum() - moved) / (ranks.processes - 1)
    numbers: dict[str, float | str] = {
        "bytes": moved,
        "share": moved / float(ranks.bytes.sum()),
        "source": ranks.source,
    }
    if others:
        numbers["factor"] = moved / others
    return Finding(
        "HIGH",
        numbers=numbers,
        thresholds={"rank_0_factor": limits.rank_0_factor, "rank_0_bytes": limits.rank_0_bytes},
        ranks=(0,),
        at_stake=case.times.above_run_mean(np.zeros(1, np.int64)),
        variant=variant if others else f"{variant}_alone".strip("_"),
    )


def unbalanced_ranks(case: Case) -> Result:
    """D02: some processes exceed the others in everything that differs between processes."""
    ranks = _ranks(case, fewest=_FEWEST_PROCESSES)
    if not isinstance(ranks, RankFacts):
        return ranks
    limits = case.thresholds
    metrics = [ranks.bytes, *_reads_and_writes(ranks)]
    if ranks.seconds is not None:
        metrics.append(ranks.seconds)
    differing = [values for values in metrics if _differs(ranks, values, limits.mean_share)]
    if not differing or differing[0] is not metrics[0]:
        return None
    above = [
        values > _mean(ranks, values) + limits.deviations * _deviation(ranks, values)
        for values in differing
    ]
    [named] = np.logical_and.reduce(above).nonzero()
    # Processes with the same bytes are equal, whatever their times.
    named = np.flatnonzero(
        np.isin(ranks.bytes, ranks.bytes[named]) & (ranks.bytes > limits.rank_0_bytes)
    )
    if not len(named):
        return None
    named = named[np.argsort(-ranks.bytes[named], kind="stable")]
    return Finding(
        "HIGH",
        numbers={
            "count": len(named),
            "processes": ranks.processes,
            "share": float(ranks.bytes[named].sum() / ranks.bytes.sum()),
            "source": ranks.source,
        },
        thresholds={"mean_share": limits.mean_share, "deviations": limits.deviations},
        ranks=tuple(ranks.rank[named[:MOST_RANKS]].tolist()),
        at_stake=case.times.above_run_mean(ranks.rank[named]),
    )


def _ranks(case: Case, fewest: int) -> RankFacts | Unknown | None:
    """Find what each process did; None where there is nothing to compare."""
    facts = case.facts
    if facts.run.processes < fewest or not facts.files.bytes.sum(dtype=np.float64):
        return None
    return case.ranks or Unknown(_NOT_TOLD)


def _reads_and_writes(ranks: RankFacts) -> tuple[Floats, Floats]:
    """Take the requests of each process; where only bytes are known, these."""
    if ranks.reads is None or ranks.writes is None:
        return ranks.bytes_read, ranks.bytes_written
    return ranks.reads, ranks.writes


def _differs(ranks: RankFacts, values: Floats, mean_share: float) -> bool:
    """Tell whether a metric differs between processes, by more than one request or byte."""
    mean, most = _mean(ranks, values), float(values.max())
    return most > (1 + mean_share) * mean and (values is ranks.seconds or most - mean > 1)


def _heavier(ranks: RankFacts, factor: float) -> str | None:
    """Name the operations in which rank 0 exceeds each other process; None without any.

    The bytes of rank 0 must exceed theirs. If its requests are only larger, bytes decide.
    """
    if not _exceeds(ranks, ranks.bytes, factor):
        return None
    reads, writes = (_exceeds(ranks, values, factor) for values in _reads_and_writes(ranks))
    if not reads and not writes:
        columns = (ranks.bytes_read, ranks.bytes_written)
        reads, writes = (_exceeds(ranks, values, factor) for values in columns)
    if reads and writes:
        return ""
    return "reads" if reads else "writes" if writes else None


def _exceeds(ranks: RankFacts, values: Floats, factor: float) -> bool:
    own, others = _of_rank_0(ranks, values), float(values[ranks.rank != 0].max(initial=0.0))
    return own / others > factor if others else own > 0


def _of_rank_0(ranks: RankFacts, values: Floats) -> float:
    return float(values[ranks.rank == 0].sum())


def _mean(ranks: RankFacts, values: Floats) -> float:
    return float(values.sum()) / ranks.processes


def _deviation(ranks: RankFacts, values: Floats) -> float:
    """Compute the standard deviation over all processes; those without an entry have zeros."""
    mean = _mean(ranks, values)
    squares = float(((values - mean) ** 2).sum()) + (ranks.processes - len(values)) * mean**2
    return float(np.sqrt(squares / ranks.processes))


FINDERS: Mapping[str, Find] = {"D01": heavy_rank_0, "D02": unbalanced_ranks}
