"""No word of a log breaks a check: some words of a log with many findings are replaced."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.applications.darshan_writer import Dxt, Heatmap
from ioncast.insights.checks.record import to_record
from ioncast.insights.checks.registry import run_checks
from ioncast.insights.checks.values import Case
from ioncast_base.errors import IoncastError
from tests.support.checking import facts_in
from tests.support.examples import examples
from tests.support.log_bytes import (
    Component,
    dxt_bytes,
    heatmap_bytes,
    lustre_bytes_1,
    lustre_bytes_2,
)
from tests.support.records import (
    CounterRecord,
    mpiio_record,
    posix_record,
    stdio_record,
    write_log,
)

MIB = 1 << 20
FLOATS = [0.0, 1.0, -1.0, 1e9, 1e308, -1e308, math.inf, -math.inf, math.nan, 5e-324]
WORDS = [0, 1, 2, -1, 100, 2**31, 2**60, 2**62, 2**63 - 1, -(2**63)] + [
    struct.unpack("<q", struct.pack("<d", value))[0] for value in FLOATS
]
PROCESSES = [1, 2, 3, 4, 2**31 - 1]


def records() -> dict[str, list[CounterRecord]]:
    """A shared file of all processes, one of some, and one of a single process."""
    moved = {"BYTES_WRITTEN": 64 * MIB, "BYTES_READ": MIB}
    times = {"F_WRITE_TIME": 3, "F_READ_TIME": 1, "F_META_TIME": 40, "F_SLOWEST_RANK_TIME": 20}
    posix = {"WRITES": 64, "READS": 1, "SIZE_WRITE_1M_4M": 64, "MAX_BYTE_WRITTEN": 2**31}
    collective = {"COLL_WRITES": 64, "COLL_READS": 1, "SIZE_WRITE_AGG_1M_4M": 64}
    ranks = {"SLOWEST_RANK": 1, "SLOWEST_RANK_BYTES": 40 * MIB}
    return {
        "POSIX": [
            posix_record("/l/f", **moved, **times, **posix, **ranks),
            *(posix_record("/l/g", rank, **moved, **times, **posix) for rank in (0, 1)),
            posix_record("/l/h", 0, **moved, **times, **posix),
        ],
        "MPI-IO": [
            mpiio_record("/l/f", **moved, **times, **collective, **ranks),
            mpiio_record("/l/g", 0, **moved, **times, **collective),
        ],
        "STDIO": [
            stdio_record("/l/log", WRITES=9, READS=1, **moved, **times, **ranks),
            stdio_record("/l/g", 1, WRITES=9, **moved, **times),
        ],
    }


def traces() -> dict[str, tuple[int, bytes]]:
    segments = [(number * MIB, MIB, number * 3.0, number * 3.0 + 1) for number in range(5)]
    maps = [
        Heatmap(api, rank, 0.5, [MIB, 0, 3], [0, 5, 0])
        for api in ("POSIX", "MPIIO", "STDIO")
        for rank in (0, 1)
    ]
    return {
        "DXT_POSIX": (
            1,
            dxt_bytes(
                Dxt("DXT_POSIX", path, rank, f"n{rank}", segments, segments[:2])
                for path in ("/l/f", "/l/g")
                for rank in (0, 1)
            ),
        ),
        "DXT_MPIIO": (2, dxt_bytes([Dxt("DXT_MPIIO", "/l/f", 0, "n0", segments)])),
        "HEATMAP": (1, heatmap_bytes(maps)),
    }


def layouts(version: int) -> bytes:
    if version == 1:
        return lustre_bytes_1("/l/f", -1, MIB, [3]) + lustre_bytes_1("/l/g", 0, MIB, [1, 2])
    components = [Component(MIB, [1], 0, MIB), Component(MIB, [2, 3], MIB)]
    return lustre_bytes_2("/l/f", -1, components)


def mutated(data: st.DataObject, content: bytes, most: int = 6) -> bytes:
    """Replace at most so many words of a module by hostile ones."""
    words = bytearray(content)
    places = st.integers(0, len(words) // 8 - 1)
    for place in data.draw(st.lists(places, max_size=most)):
        word = data.draw(st.sampled_from(WORDS) | st.integers(-(2**63), 2**63 - 1))
        struct.pack_into("<q", words, 8 * place, word)
    return bytes(words)


def random_record(data: st.DataObject, record: CounterRecord) -> CounterRecord:
    # The first two words are the id and the rank. Most impossible counters are errors of the log.
    return CounterRecord(
        record.module, record.names, record.data[:16] + mutated(data, record.data[16:], most=2)
    )


def random_log(data: st.DataObject, folder: Path) -> Path:
    chosen = data.draw(st.sets(st.sampled_from(["POSIX", "MPI-IO", "STDIO"]), min_size=1))
    modules: dict[str, tuple[int, bytes]] = {
        name: (version, mutated(data, content))
        for name, (version, content) in traces().items()
        if data.draw(st.booleans())
    }
    version = data.draw(st.sampled_from([0, 1, 2]))
    if version:
        modules["LUSTRE"] = (version, mutated(data, layouts(version)))
    return write_log(
        folder / "a.darshan",
        [random_record(data, each) for module in sorted(chosen) for each in records()[module]],
        nprocs=data.draw(st.sampled_from(PROCESSES)),
        run_seconds=data.draw(st.sampled_from([0, 1e-9, 100, 1e9])),
        modules=modules,
        names=["heatmap:POSIX", "heatmap:MPIIO", "heatmap:STDIO"],
        partial=data.draw(st.sets(st.sampled_from(["POSIX", "DXT_POSIX", "MPI-IO"]))),
    )


@pytest.mark.slow
@settings(max_examples=examples(1500))
@given(st.data())
def test_no_number_can_break_a_check(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """A number that no run has is an error of the log in one line, or it has no finding."""
    folder = tmp_path_factory.getbasetemp()
    try:
        facts = facts_in(random_log(data, folder))
    except IoncastError:
        return
    record = to_record("a.darshan", run_checks(Case(facts)), facts)
    assert all(map(is_a_number, numbers(record["findings"])))


def test_a_log_without_hostile_numbers_has_many_findings(tmp_path: Path) -> None:
    """So the test above reaches the code of the checks."""
    path = write_log(
        tmp_path / "a.darshan",
        [each for of_module in records().values() for each in of_module],
        nprocs=4,
        modules={**traces(), "LUSTRE": (1, layouts(1))},
    )
    facts = facts_in(path)
    found = {each.check.code for each in run_checks(Case(facts)).findings}
    assert {"P17", "P18", "P19", "I02", "I03", "I04"} <= found


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [number for each in value.values() for number in numbers(each)]
    if isinstance(value, list):
        return [number for each in value for number in numbers(each)]
    return [value] if isinstance(value, float) else []


def is_a_number(value: float) -> bool:
    return math.isfinite(value)
