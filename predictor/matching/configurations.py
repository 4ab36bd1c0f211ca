"""The IOR configuration that does the same I/O as a phase, and its match with a benchmark.

Source: Inria RR-9366, §6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from benchdb.measurements.curves import Curve
from ioncast_base.wording import counted, in_digits
from ior_configs import IorConfig
from ior_configs.hints import buffering_hints
from predictor.matching.file_times import FileTime
from predictor.matching.uneven import Limits, placed_nodes
from summario.naming import phases_named
from summario.phases.periods import Period
from summario.phases.values import Part, Phase

# IOR rejects sizes that are not a multiple of its offset type, 8 bytes.
_ACCESS_BYTES = 8

# POSIX moves a few bytes more or less than MPI-IO, such as the header of a file.
_SAME_BYTES = 0.05

# A phase with a smaller share of the run's time has no warning of its own about its metadata.
_LITTLE_TIME = 0.01


@dataclass(frozen=True)
class Difference:
    """A property in which a benchmark differs from the wanted I/O, or may differ.

    The names are "fsync" (of writes), "order" (of requests), "conditions" (options of IOR that
    change what a run does to the storage), "block" (the number of requests of a process that follow
    one another: "all" or a number) and "collective buffering". A value that is not known is None.
    """

    name: Literal["fsync", "order", "conditions", "block", "collective buffering"]
    wanted: str | None
    measured: str | None


MatchKey = tuple[IorConfig, str, tuple[Difference, ...], Limits, FileTime | None]


@dataclass(frozen=True)
class Match:
    """How a part of a phase was matched to a benchmark.

    Attributes
    ----------
    kind : str
        "exact", "interpolated" (between measured sizes of its kind; without a model the nearest
        benchmark stands in), "model" (beyond the measured sizes) or "unknown". A phase that is
        mostly metadata is never "exact" (see `for_phase`).
    wanted : IorConfig
        The configuration that does the same I/O as the part.
    distance : float or None
        Euclidean distance in the natural logarithms of the sizes; 0 is the same.
    ratios, beyond : dict of str to float
        Measured / wanted: of the sizes that differ, and of those beyond all measured ones of the
        kind.
    differences : tuple of Difference
        The properties in which the benchmark differs, or may differ. An "unknown" match has one if
        I/O of its kind was measured, but none that can stand in.
    fidelity : float or None
        How far the run of the wanted configuration agreed with a phase, from 0 to 1; None if it was
        not verified.
    limits_mib_s : tuple of (int, float)
        By number of I/O nodes, the most bandwidth of an uneven phase (see uneven.py).
    file_time : FileTime or None
        The rates that stand for the metadata calls of a phase of many files (see file_times.py).
    """

    kind: str
    wanted: IorConfig
    curve: Curve | None = None
    distance: float | None = None
    ratios: dict[str, float] = field(default_factory=dict)
    beyond: dict[str, float] = field(default_factory=dict)
    is_mostly_metadata: bool = False
    differences: tuple[Difference, ...] = ()
    fidelity: float | None = None
    limits_mib_s: Limits = ()
    file_time: FileTime | None = None

    @property
    def key(self) -> MatchKey:
        """Matches with the same key are equal, so that they share an estimate."""
        return self.wanted, self.kind, self.differences, self.limits_mib_s, self.file_time

    def for_phase(self, phase: Phase) -> Match:
        """Match a phase: not exactly, if the benchmark of its sizes may not do the same I/O.

        IOR measures how long bytes take, and makes no metadata calls but an open and a close of
        each file. So if a phase spends more time in metadata calls than in I/O, the run of its
        sizes is not the same I/O. If the order of its requests is not known, the run may have
        another order. It has another one, if a process skips in its own file, which IOR cannot.

        Each process makes the POSIX calls for its own collective calls, if the hints of MPI-IO are
        the default ones and the processes' ranges in a call do not overlap, as those of IOR never
        do (ROMIO, `romio_cb_write=automatic`). If a phase has fewer aggregators than processes, or
        other bytes in POSIX, its collective calls were buffered. Whether a benchmark's were is
        known only if its hints tell the number of aggregators.
        """
        match = self
        is_other = self.wanted.requests_per_process > 1 and phase.order != self.wanted.order
        if (phase.order is None or is_other) and match.curve is not None:
            unsure = Difference("order", phase.order, match.curve.config.order)
            known = [difference for difference in match.differences if difference.name != "order"]
            kind = "interpolated" if match.kind == "exact" else match.kind
            match = replace(match, kind=kind, differences=(*known, unsure))
        if (buffering := _collective_buffering(phase)) and match.curve is not None:
            match = match._said_of_buffering(buffering)
        if match.kind == "exact" and phase.is_mostly_metadata:
            match = replace(match, kind="interpolated", is_mostly_metadata=True)
        return match

    def _said_of_buffering(self, buffering: str) -> Match:
        """Tell how a phase buffered its collective calls, unless its benchmark did so too."""
        name: Literal["collective buffering"] = "collective buffering"
        known = [difference for difference in self.differences if difference.name != name]
        aggregators = self.curve.config.aggregators if self.curve else None
        if len(known) == len(self.differences) and aggregators is not None:
            return self
        measured = None if aggregators is None else counted(aggregators, "aggregator")
        kind = "interpolated" if self.kind == "exact" else self.kind
        unsure = Difference(name, buffering, measured)
        return replace(self, kind=kind, differences=(*known, unsure))

    @property
    def is_of_earlier(self) -> bool:
        """Whether its benchmark is from before a change of the system, and else exact."""
        is_earlier = self.curve is not None and self.curve.before_change
        return is_earlier and not (self.distance or self.differences)

    @property
    def repetitions(self) -> dict[int, tuple[float, ...]]:
        """Measured MiB/s by number of I/O nodes of the wanted configuration itself."""
        return self.curve.bandwidths_mib_s if self.curve and self.kind == "exact" else {}


@dataclass(frozen=True)
class MatchedPhase:
    """A phase, its number in the job (the first is 0), and the matches of its parts.

    `parts_time_s` are expected seconds of each part by itself, by number of I/O nodes; empty if
    nothing is known about the part.
    """

    index: int
    phase: Phase
    parts: tuple[tuple[Part, Match], ...]
    parts_time_s: tuple[dict[int, float], ...]

    @property
    def main(self) -> Match:
        """The match of the part with most bytes."""
        return max(self.parts, key=lambda pair: pair[0].bytes)[1]

    @property
    def time_s(self) -> dict[int, float]:
        """Expected seconds of the phase by itself, by number of I/O nodes."""
        points = dict.fromkeys(n for times in self.parts_time_s for n in times)
        return {n: sum(times.get(n, 0.0) for times in self.parts_time_s) for n in points}


def configuration(phase: Phase, part: Part, nodes: int | None = None) -> IorConfig:
    """Turn one part of a phase into the IOR run that does the same I/O.

    Sizes are rounded to values that IOR accepts: multiples of 8 bytes, blocks of whole transfers,
    and at least two transfers if they are shuffled. Several files are repetitions with a new file
    each (-m). POSIX stands in for STDIO, because IOR has no stdio engine, and contiguous requests
    stand in for an unknown order of MPI-IO. Compute nodes that a trace names count more than
    `nodes`.
    """
    processes = tasks(phase)
    nodes = placed_nodes(phase, nodes) or nodes
    transfer = max(round(part.request_bytes / _ACCESS_BYTES), 1) * _ACCESS_BYTES
    per_process = part.bytes / processes / transfer
    transfers = max(round(per_process / _files_one_by_one(phase, processes)), 1)
    files = max(round(per_process / transfers), 1)
    random = "random" in {phase.order, phase.spatiality}
    if random:
        transfers = max(transfers, 2)
    in_block = transfers if random else _requests_in_block(phase, transfers)
    return IorConfig(
        api="MPIIO" if phase.api == "MPIIO" else "POSIX",
        write=phase.operation == "write",
        read=phase.operation == "read",
        file_per_process=phase.file_access == "unique",
        collective=phase.spatiality == "collective",
        random_offsets=int(random),
        transfer_size=transfer,
        block_size=transfer * in_block,
        segments=max(round(transfers / in_block), 1),
        fsync=_fsync(phase),
        repetitions=files,
        multi_file=files > 1,
        tasks=processes,
        nodes=min(nodes, processes) if nodes else None,
        conditions=_hints(phase),
    )


def _hints(phase: Phase) -> tuple[str, ...]:
    """Write the hints with which a run has the aggregators of a phase that buffered its calls."""
    if phase.aggregators is None or not 0 < phase.aggregators < phase.processes:
        return ()
    return buffering_hints(phase.operation, phase.aggregators)


def _collective_buffering(phase: Phase) -> str | None:
    """Say how a phase buffered its collective calls; None if it did not, or if it is not known."""
    signs = []
    if phase.aggregators is not None and phase.aggregators < phase.processes:
        signs.append(counted(phase.aggregators, "aggregator"))
    if phase.amplification is not None and abs(phase.amplification - 1) > _SAME_BYTES:
        signs.append(f"{in_digits(phase.amplification)} × the bytes in POSIX")
    return ", ".join(signs) or None


def _requests_in_block(phase: Phase, transfers: int) -> int:
    """How many of a process's requests in a file follow one another; one or all if not known."""
    if phase.order is None:
        return transfers
    if phase.block_requests is None or phase.file_access == "unique":
        return 1 if phase.order == "sequential" else transfers
    return min(max(round(phase.block_requests), 1), transfers)


def _files_one_by_one(phase: Phase, processes: int) -> int:
    """How many files each process of the IOR run uses, one after the other."""
    files = phase.n_files if phase.file_access == "shared" else phase.n_files / processes
    return max(round(files), 1)


def periodic_run(config: IorConfig, period: Period) -> IorConfig:
    """Repeat the run of a periodic phase as often and with the pause of the application."""
    # Without a pause, the repetitions would be one phase.
    pause = max(1, round(period.pause_seconds))
    return replace(config, repetitions=len(period.phases), inter_test_delay=pause, multi_file=True)


def _fsync(phase: Phase) -> str | None:
    """When the phase calls fsync; IOR never does for reads."""
    return phase.fsync if phase.operation == "write" else "none"


def match_warnings(phases: Sequence[Phase]) -> list[str]:
    """Warn of the phases of a run that no benchmark matches exactly, whatever was measured."""
    numbered = dict(enumerate(phases))
    return [*_unknown_warnings(numbered), *metadata_warnings(numbered)]


def metadata_warnings(phases: Mapping[int, Phase]) -> list[str]:
    """Warn of phases that spend more time in metadata calls than in reads and writes.

    Phases that take little of the run's time share a sentence, because most programs open a few
    files of a few bytes.
    """
    total_s = sum(
        phase.io_time_seconds + (phase.metadata_seconds or 0) for phase in phases.values()
    )
    warnings, small_s = [], []
    for index, phase in phases.items():
        if phase.metadata_seconds is None or not phase.is_mostly_metadata:
            continue
        if phase.metadata_seconds >= _LITTLE_TIME * total_s:
            warnings.append(_metadata_warning(index, phase, phase.metadata_seconds))
        else:
            small_s.append(phase.metadata_seconds)
    if small_s:
        warnings.append(
            f"{counted(len(small_s), 'phase')} of little time: metadata calls take"
            f" {in_digits(sum(small_s))} s, longer than reads and writes, so no benchmark matches"
            " exactly"
        )
    return warnings


def _unknown_warnings(phases: Mapping[int, Phase]) -> list[str]:
    """Warn of phases whose fsync or order of requests is not known."""
    unsynced = [i for i, phase in phases.items() if _fsync(phase) is None]
    unordered = [i for i, phase in phases.items() if phase.order is None]
    mixed = [i for i in unordered if phases[i].spatiality == "random"]
    unordered = [i for i in unordered if i not in mixed]
    warnings = []
    if unsynced:
        warnings.append(
            f"{phases_named(unsynced)}: it is not known whether the writes end with an fsync; the"
            " IOR run has none, so no benchmark matches exactly"
        )
    if unordered:
        warnings.append(
            f"{phases_named(unordered)}: the order of the MPI-IO requests is unknown; the IOR run"
            " has contiguous ones, so no benchmark matches exactly"
        )
    if mixed:
        warnings.append(
            f"{phases_named(mixed)}: many requests follow one another although the order is"
            " random, so there are two orders, or blocks of requests in random order; the IOR run"
            " has single requests in random order, so no benchmark matches exactly"
        )
    return warnings


def _metadata_warning(index: int, phase: Phase, metadata_seconds: float) -> str:
    return (
        f"phase {index}: metadata calls (open, close, stat and others) on its"
        f" {counted(phase.n_files, 'file')} take {in_digits(metadata_seconds)} s, longer than its"
        f" reads and writes ({in_digits(phase.io_time_seconds)} s); IOR only opens and closes each"
        " file, so no benchmark matches it exactly"
    )


def tasks(phase: Phase) -> int:
    """Count the processes of the IOR run: those that use a shared file, or one for each file."""
    if phase.file_access == "shared":
        return max(phase.mode_processes, 1)
    return max(min(phase.n_files, phase.nprocs or phase.n_files), 1)
