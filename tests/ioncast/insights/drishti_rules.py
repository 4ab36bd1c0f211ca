"""Drishti's rules on the columns of facts, each with the changes that ioncast makes to it.

A change has its name in docs/checks.md, "Differences to Drishti". Without changes, the rules give
the codes that Drishti itself reports; with all of them, they give ioncast's.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

import numpy as np

from ioncast.insights.facts.values import Bools, Facts, Floats, Ints, Layer, total
from ioncast_base.kinds import APIS, OPERATIONS, Api, Operation

Changes = Set[str]
_MIB = 1 << 20


def codes(facts: Facts, changes: Changes) -> set[str]:
    """Apply all rules but those of aggregators, for which Drishti asks Slurm's accounting."""
    found = {*_of_interfaces(facts, changes), *_of_metadata(facts, changes)}
    if "POSIX" in facts.layers:
        found |= {
            *_of_kinds(facts.layers["POSIX"]),
            *_of_requests(facts, changes),
            *_of_alignment(facts.layers["POSIX"]),
            *_of_order(facts.layers["POSIX"], changes),
        }
        found |= {*_of_balance(facts, changes)}
    if "MPIIO" in facts.layers:
        found |= {*_of_mpiio(facts.layers["MPIIO"], changes)}
    if "incomplete" in changes and facts.is_incomplete:
        found -= {"P12", "P14", "M04", "M05"}
    return found


def _of_interfaces(facts: Facts, changes: Changes) -> Iterator[str]:
    posix, stdio, mpiio = (_moved(facts, api) for api in ("POSIX", "STDIO", "MPIIO"))
    all_bytes = stdio + max(posix, mpiio) + (posix if posix < mpiio else 0)
    if "highest api" in changes:
        stdio = total(facts.files.bytes[facts.files.api == APIS.index("STDIO")])
        all_bytes = total(facts.files.bytes)
    if 10 * stdio > all_bytes:
        yield "S01"
    is_wrong = ("several processes" in changes and facts.run.processes == 1) or (
        "moved bytes" in changes and posix + stdio == 0
    )
    if not facts.run.has("MPI-IO") and not is_wrong:
        yield "M01"


def _moved(facts: Facts, api: str) -> int:
    layer = facts.layers.get(api)
    return total(layer.reads.bytes) + total(layer.writes.bytes) if layer else 0


def _of_kinds(layer: Layer) -> Iterator[str]:
    """More of one operation than of the other."""
    for codes_of_kind, reads, writes in (
        (("P01", "P02"), layer.reads.requests, layer.writes.requests),
        (("P03", "P04"), layer.reads.bytes, layer.writes.bytes),
    ):
        n_reads, n_writes = total(reads), total(writes)
        if 10 * abs(n_reads - n_writes) > n_reads + n_writes:
            yield codes_of_kind[n_reads > n_writes]


def _of_requests(facts: Facts, changes: Changes) -> Iterator[str]:
    """Small requests, of all files and of shared ones, and bytes that were moved twice."""
    layer = facts.layers["POSIX"]
    shared = _is_shared(facts, layer, changes)
    for operation, all_code, shared_code, twice_code, counter in (
        ("read", "P05", "P15", "P09", "MAX_BYTE_READ"),
        ("write", "P06", "P16", "P10", "MAX_BYTE_WRITTEN"),
    ):
        requests = layer.of(operation)
        small = requests.histogram[:, :5].sum(axis=1)
        if "exactly 1 MiB" in changes:
            small = small - _of_one_mib(layer, operation)
        for code, rows in ((all_code, np.ones(len(layer), bool)), (shared_code, shared)):
            n_small, n_all = total(small[rows]), total(requests.requests[rows])
            if 10 * n_small > n_all and n_small > 1000:
                yield code
        extent = layer.count(counter)
        if "redundant traffic" in changes:
            twice = layer.of_files(requests.bytes) > 1.1 * (layer.of_files(extent, np.maximum) + 1)
            is_twice = bool(twice.any())
            if "repeated in a trace" in changes:
                is_twice = is_twice or _is_repeated(facts, operation)
        else:
            is_twice = extent.max() > total(requests.bytes)
        if is_twice:
            yield twice_code


def _is_repeated(facts: Facts, operation: Operation) -> bool:
    """Whether a whole trace of POSIX shows bytes of a file that are moved again."""
    trace, layer = facts.trace, facts.layers["POSIX"]
    if trace is None or facts.run.is_partial("DXT_POSIX"):
        return False
    rows = (trace.api == APIS.index("POSIX")) & (trace.operation == OPERATIONS.index(operation))
    if rows.sum() < total(layer.of(operation).requests):
        return False
    for file in np.unique(trace.file_id[rows]):
        own = rows & (trace.file_id == file)
        distinct = end = 0
        for offset, length in sorted(
            zip(trace.offset[own].tolist(), trace.length[own].tolist(), strict=True)
        ):
            distinct += max(offset + length - max(offset, end), 0)
            end = max(end, offset + length)
        if trace.length[own].sum() > 1.1 * distinct:
            return True
    return False


def _is_shared(facts: Facts, layer: Layer, changes: Changes) -> Bools:
    """Whether the file of each record is shared."""
    if "shared by some ranks" not in changes:
        return layer.is_reduced
    several = np.zeros(len(facts.files), bool)
    n_records = layer.of_files(np.ones(len(layer), np.int64))
    several[layer.used_files] = (n_records > 1) | layer.of_files(layer.is_reduced, np.logical_or)
    return several[layer.file] & (facts.run.processes > 1)


def _of_one_mib(layer: Layer, operation: Operation) -> Ints:
    """Requests of exactly 1 MiB; the histograms tell which part of them reads or writes."""
    bins = {name: layer.of(name).histogram[:, 4] for name in OPERATIONS}
    both = sum(
        np.where(layer.count(f"ACCESS{slot}_ACCESS") == _MIB, layer.count(f"ACCESS{slot}_COUNT"), 0)
        for slot in (1, 2, 3, 4)
    )
    part = bins[operation] / np.maximum(bins["read"] + bins["write"], 1)
    return np.minimum(np.rint(both * part).astype(np.int64), bins[operation])


def _of_alignment(layer: Layer) -> Iterator[str]:
    n = total(layer.reads.requests) + total(layer.writes.requests)
    for code, counter in (("P07", "MEM_NOT_ALIGNED"), ("P08", "FILE_NOT_ALIGNED")):
        if 10 * total(layer.count(counter)) > n:
            yield code


def _of_order(layer: Layer, changes: Changes) -> Iterator[str]:
    for operation, bad, good in (("read", "P11", "P12"), ("write", "P13", "P14")):
        requests = layer.of(operation)
        n = total(requests.requests)
        if n == 0:
            continue
        n_random = n - total(layer.count(f"SEQ_{operation.upper()}S"))
        n_ordered = n
        if "first accesses" in changes:
            n_random = total(requests.random)
            n_ordered = total(requests.requests - requests.first)
        is_bad = n_random > 1000 and 5 * n_random > n_ordered
        if is_bad:
            yield bad
        is_good = 5 * n_random <= n_ordered and n_ordered > 0
        if is_good if "80 % in order" in changes else not is_bad:
            yield good


def _of_metadata(facts: Facts, changes: Changes) -> Iterator[str]:
    is_ours = "metadata of a process" in changes
    apis: tuple[Api, ...] = ("POSIX", "STDIO") if is_ours else ("POSIX",)
    layers = [facts.layers[api] for api in apis if api in facts.layers]
    seconds = np.concatenate([layer.metadata_seconds for layer in layers] or [np.zeros(1)])
    longest = seconds.max()
    if is_ours:
        of_ranks = np.zeros(facts.run.processes)
        for layer in layers:
            own = ~layer.is_reduced
            np.add.at(of_ranks, layer.rank[own], layer.metadata_seconds[own])
        longest = max(seconds.sum() / facts.run.processes, of_ranks.max())
    if longest > 30:
        yield "P17"


def _of_balance(facts: Facts, changes: Changes) -> Iterator[str]:
    """Ranks that move more bytes, or need more time, than others in the same file."""
    posix, mpiio = facts.layers["POSIX"], facts.layers.get("MPIIO")
    if "MPI-IO above POSIX" not in changes or mpiio is None:
        yield from _of_balance_in(posix, np.ones(len(posix), bool), changes)
        return
    if "one process below MPI-IO" in changes and _is_one_below(facts, posix, mpiio):
        yield "P18"
    yield from _of_balance_in(posix, ~np.isin(posix.file, mpiio.file), changes)
    yield from _of_balance_in(mpiio, np.ones(len(mpiio), bool), changes)


def _is_one_below(facts: Facts, posix: Layer, mpiio: Layer) -> bool:
    """Whether one process of several nodes moves nearly all bytes of a shared file at POSIX."""
    nodes = facts.nodes
    if not (nodes.number > 1 if nodes is not None else facts.run.processes > 256):
        return False
    moved = posix.reads.bytes + posix.writes.bytes
    for file in np.unique(mpiio.file):
        rows = posix.file == file
        is_used_by_several = mpiio.processes[mpiio.file == file].sum() > 1
        if not rows.any() or not is_used_by_several or moved[rows].sum() <= _MIB:
            continue
        most = np.where(posix.is_reduced, posix.count("SLOWEST_RANK_BYTES"), moved)[rows].max()
        if most > 0.9 * moved[rows].sum():
            return True
    return False


def _of_balance_in(layer: Layer, rows: Bools, changes: Changes) -> Iterator[str]:
    moved = layer.reads.bytes + layer.writes.bytes
    seconds = layer.reads.seconds + layer.writes.seconds + layer.metadata_seconds
    reduced = rows & layer.is_reduced
    unequal = np.abs(layer.count("SLOWEST_RANK_BYTES") - layer.count("FASTEST_RANK_BYTES"))
    late = layer.seconds("F_SLOWEST_RANK_TIME") - layer.seconds("F_FASTEST_RANK_TIME")
    compared = [(unequal[reduced], moved[reduced], late[reduced], seconds[reduced])]
    own = rows & ~layer.is_reduced
    files, n_records = np.unique(layer.file[own], return_counts=True)
    for file in files[n_records > 1]:
        of_file = own & (layer.file == file)
        for code, requests in (("P21", layer.writes), ("P22", layer.reads)):
            least, most = requests.bytes[of_file].min(), requests.bytes[of_file].max()
            if 10 * (most - least) > 3 * most:
                yield code
        if "shared by some ranks" in changes:
            compared.append(_slowest_and_fastest(moved[of_file], seconds[of_file]))
    for unequal, all_bytes, late, all_seconds in compared:
        if (100 * unequal > 15 * all_bytes)[all_bytes > 0].any():
            yield "P18"
        is_late = (late > 0.15 * all_seconds) & (all_seconds > 0)
        if (is_late & (late > 1) if "more than 1 s" in changes else is_late).any():
            yield "P19"


def _slowest_and_fastest(moved: Ints, seconds: Floats) -> tuple[Ints, Ints, Floats, Floats]:
    """Compare the rank records of a file."""
    slowest, fastest = seconds.argmax(), seconds.argmin()
    return (
        np.abs(moved[[slowest]] - moved[[fastest]]),
        moved.sum(keepdims=True),
        seconds[[slowest]] - seconds[[fastest]],
        seconds.sum(keepdims=True),
    )


def _of_mpiio(layer: Layer, changes: Changes) -> Iterator[str]:
    for operation, independent_code, collective_code, blocking_code in (
        ("read", "M02", "M04", "M06"),
        ("write", "M03", "M05", "M07"),
    ):
        requests = layer.of(operation)
        independent, collective, nonblocking = map(
            total, (requests.independent, requests.collective, requests.nonblocking)
        )
        if "files of one process" in changes:
            independent = total(layer.of_files(requests.independent)[layer.file_is_shared()])
        if collective:
            yield collective_code
        elif independent > 1000:
            yield independent_code
        moves = total(requests.independent) + collective + nonblocking > 0
        if nonblocking == 0 and (moves or "no such calls" not in changes):
            yield blocking_code
