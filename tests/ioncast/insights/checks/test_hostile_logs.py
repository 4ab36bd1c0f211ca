"""No counter, trace or layout can break a check or its words."""

from __future__ import annotations

import json
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from experiments.applications.darshan_writer import Dxt
from ioncast.insights.checks.record import to_record
from ioncast.insights.checks.registry import own_checks, run_checks
from ioncast.insights.checks.values import MOST_FILES, MOST_RANKS, Case, Thresholds
from ioncast.insights.facts.gathering import FACT_MODULES, facts_of
from ioncast.insights.findings.rows import to_rows
from ioncast.insights.findings.sarif import to_sarif
from ioncast.insights.findings.text import to_text
from ioncast.insights.findings.worst_runs import RunsSeen, summary_text, to_summary
from ioncast.show.findings_page import write_findings
from ioncast_base.errors import IoncastError
from summario.reading.layouts import layout_of, newest_version
from summario.reading.log import read_log
from summario.runs.logs_of_run import run_of
from tests.support.checking import check_log
from tests.support.examples import examples
from tests.support.log_bytes import dxt_bytes, lustre_bytes_1
from tests.support.records import CounterRecord, counter_record, posix_record, write_log

_ROUNDING = 1e-9
PATHS = ("/scratch/a", "/scratch/b.h5", "/proc/c", "<STDOUT>")
MODULES = ("POSIX", "MPI-IO", "STDIO")
COUNTERS = {
    module: [
        name.removeprefix(f"{module.replace('-', '')}_")
        for name in layout_of(module, newest_version(module)).counters  # type: ignore[union-attr]
    ]
    for module in MODULES
}

INTEGERS = (
    st.integers(0, 20_000)
    | st.sampled_from([-1, 1 << 20, 1 << 40, (1 << 60) - 1, 1 << 60, -(1 << 63), (1 << 63) - 1])
    | st.integers(-(1 << 63), (1 << 63) - 1)
)
SECONDS = st.floats(0, 200) | st.floats() | st.sampled_from([-1.0, 1e308, 1e9])


@st.composite
def records(draw: st.DrawFn, nprocs: int) -> CounterRecord:
    module = draw(st.sampled_from(MODULES))
    names = draw(st.lists(st.sampled_from(COUNTERS[module]), max_size=12, unique=True))
    counters: dict[str, Any] = {
        name: draw(SECONDS if name.startswith("F_") else INTEGERS) for name in names
    }
    rank = draw(st.integers(-1, min(nprocs, 6) - 1))
    return counter_record(module, draw(st.sampled_from(PATHS)), rank, **counters)


@st.composite
def segments(draw: st.DrawFn) -> tuple[int, int, float, float]:
    offset, length = draw(INTEGERS), draw(INTEGERS)
    start = draw(SECONDS)
    return offset, length, start, draw(st.just(start + 1) | SECONDS)


@st.composite
def traces(draw: st.DrawFn, nprocs: int) -> bytes:
    return dxt_bytes(
        Dxt(
            "DXT_POSIX",
            draw(st.sampled_from(PATHS)),
            draw(st.integers(0, min(nprocs, 6) - 1)),
            draw(st.sampled_from(["n1", "n2", ""])),
            writes=draw(st.lists(segments(), max_size=4)),
            reads=draw(st.lists(segments(), max_size=4)),
        )
        for _ in range(draw(st.integers(1, 4)))
    )


@st.composite
def layouts(draw: st.DrawFn) -> bytes:
    path = draw(st.sampled_from(PATHS))
    size = draw(st.sampled_from([-1, 0, 1 << 20, (1 << 63) - 1]))
    return lustre_bytes_1(path, -1, size, draw(st.lists(st.integers(-1, 300), max_size=4)))


@st.composite
def logs(draw: st.DrawFn, folder: Path) -> Path:
    nprocs = draw(st.sampled_from([1, 2, 7, 512, (1 << 31) - 1]))
    modules = {}
    for module, version, made in (
        ("DXT_POSIX", 1, traces(nprocs)),
        ("DXT_MPIIO", 2, traces(nprocs)),
        ("LUSTRE", 1, layouts()),
    ):
        if draw(st.booleans()):
            modules[module] = (version, draw(made))
    return write_log(
        folder / "hostile.darshan",
        draw(st.lists(records(nprocs), min_size=1, max_size=6)),
        nprocs=nprocs,
        run_seconds=draw(st.sampled_from([0, 1, 100])),
        modules=modules,
        partial=draw(st.lists(st.sampled_from(MODULES), max_size=1)),
    )


def test_a_run_of_any_number_of_processes_needs_no_more_memory(tmp_path: Path) -> None:
    """An array with an entry for each of 2**31 - 1 processes would need 16 GiB."""
    record = posix_record("/f", 0, WRITES=4, BYTES_WRITTEN=1 << 24, F_WRITE_TIME=9)
    log = write_log(tmp_path / "a.darshan", [record], nprocs=(1 << 31) - 1)
    tracemalloc.start()
    try:
        assert check_log(log).verdict.write_seconds == 9
        assert tracemalloc.get_traced_memory()[1] < 1 << 26
    finally:
        tracemalloc.stop()


@pytest.mark.filterwarnings("error")
@settings(
    max_examples=examples(500),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_no_log_breaks_a_check_or_its_words(data: st.DataObject, tmp_path: Path) -> None:
    try:
        log = data.draw(logs(tmp_path))
    except struct.error:
        return
    try:
        run = run_of([read_log(log, modules=FACT_MODULES)])
        facts = facts_of(run)
    except IoncastError:
        return
    checked = run_checks(Case(facts), own_checks())
    assert checked.warnings == ()
    for found in checked.findings:
        assert found.finding.level in found.check.levels
        assert found.finding.thresholds.keys() <= vars(Thresholds()).keys()
        assert len(found.finding.files) <= MOST_FILES
        assert len(found.finding.ranks) <= MOST_RANKS
        assert found.seconds_at_stake is None or found.seconds_at_stake >= 0
        assert found.share_of_run is None or found.share_of_run <= 1 + _ROUNDING
    verdict = checked.verdict
    assert 0 <= verdict.at_stake_seconds <= verdict.io_seconds * (1 + _ROUNDING)
    record = to_record(run.name, checked, facts)
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    json.dumps(to_sarif([record], own_checks(), Thresholds()), allow_nan=False)
    assert len(list(to_rows(record))) == len(checked.findings) + len(checked.unknown)
    assert to_text(record)
    seen = RunsSeen()
    seen.add(record)
    json.dumps(to_summary(seen), allow_nan=False)
    assert summary_text(seen)
    write_findings(tmp_path / "page.html", [record])
