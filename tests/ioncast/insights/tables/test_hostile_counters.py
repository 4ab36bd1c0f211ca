"""Any counters give tables, texts, JSON and CSV, or one clear error."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioncast.insights.comparison.aligned_text import to_text
from ioncast.insights.comparison.for_programs import beside_first, stream_csv, stream_json
from ioncast.insights.facts.gathering import COUNTED_MODULES, facts_of
from ioncast.insights.tables.characterising import Characterisation, characterised, file_records
from ioncast_base.errors import IoncastError
from summario.reading.layouts import layout_of, newest_version
from summario.reading.log import read_log
from summario.runs.logs_of_run import run_of
from tests.ioncast.insights.tables.reading import characterisation
from tests.support.examples import examples
from tests.support.records import CounterRecord, counter_record, posix_record, write_log

NPROCS = 3
MODULES = ("POSIX", "MPI-IO", "STDIO", "H5D", "PNETCDF_VAR")
# Counters of the size of a run's, and all others.
WORDS = st.one_of(
    st.sampled_from([0, 1, 2, 100, 1 << 20, 1 << 40, 1 << 60, -1, (1 << 63) - 1, -1 << 63]),
    st.integers(-1 << 63, (1 << 63) - 1),
)
REALS = st.one_of(st.floats(0, 1e4), st.floats(allow_nan=True, allow_infinity=True))


@st.composite
def hostile_records(draw: st.DrawFn) -> CounterRecord:
    """Draw a record; most of its counters are 0, as in logs."""
    module = draw(st.sampled_from(MODULES))
    layout = layout_of(module, newest_version(module))
    assert layout is not None
    prefix = module.replace("-", "") + "_"
    names = draw(st.lists(st.sampled_from(layout.counters), max_size=40, unique=True))
    counters: Mapping[str, float] = {
        name.removeprefix(prefix): draw(REALS if f"{prefix}F_" in name else WORDS) for name in names
    }
    path = draw(st.sampled_from(["/d/a", "/d/b", "/d/\n\x1b[31m"]))
    rank = draw(st.integers(-1, NPROCS - 1))
    return counter_record(
        module, path, rank, file=path if module in MODULES[3:] else "", **counters
    )


def outputs(runs: list[Characterisation]) -> None:
    """Write the runs in every format."""
    to_text(runs, 0.05)
    pairs = list(beside_first(runs))
    text = "".join(stream_json(pairs, 0.05))
    for constant in ("NaN", "Infinity"):
        assert constant not in text
    assert len(json.loads(text)) == len(runs)
    assert "".join(stream_csv(pairs, 0.05))


@pytest.mark.slow
@given(st.lists(st.lists(hostile_records(), min_size=1, max_size=6), min_size=1, max_size=3))
@settings(max_examples=examples(300), deadline=None)
def test_any_counters_give_tables_or_one_clear_error(logs: list[list[CounterRecord]]) -> None:
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for number, records in enumerate(logs):
            path = write_log(Path(folder) / f"{number}.darshan", records, nprocs=NPROCS)
            try:
                runs.append(characterisation(path, by_file=True))
            except IoncastError as error:
                assert "\n" not in str(error)
    if runs:
        outputs(runs)


COUNTERS = st.fixed_dictionaries(
    {
        name: st.integers(0, 1000)
        for name in ("OPENS", "READS", "WRITES", "BYTES_READ", "BYTES_WRITTEN", "SEEKS", "STATS")
    }
)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, NPROCS - 1), COUNTERS), min_size=1))
@settings(max_examples=examples(100), deadline=None)
def test_the_counts_of_all_files_add_up_to_those_of_the_run(
    drawn: list[tuple[int, int, dict[str, int]]],
) -> None:
    of_place = {(file, rank): counters for file, rank, counters in drawn}
    records = [posix_record(f"/d/{file}", rank, **each) for (file, rank), each in of_place.items()]
    with tempfile.TemporaryDirectory() as folder:
        path = write_log(Path(folder) / "a.darshan", records, nprocs=NPROCS)
        found = characterisation(path, by_file=True)
    assert found.files is not None
    for table, of_files in zip(found.tables, found.files.tables, strict=True):
        if table.name not in ("operations", "histograms", "libraries"):
            continue
        for whole, parts in zip(table.lines, of_files.lines, strict=True):
            assert (whole.layer, whole.name) == (parts.layer, parts.name)
            assert whole.values[0] == sum(parts.values)


def test_counts_beyond_64_bits_are_exact(tmp_path: Path) -> None:
    # A run of 64,000 processes cannot have them; a hostile log can.
    most = 1 << 60
    records = [posix_record("/d/a", rank, SEEKS=most, WRITES=1) for rank in range(20)]
    path = write_log(tmp_path / "a.darshan", records, nprocs=20)
    found = characterisation(path, by_file=True)
    outputs([found])
    [operations] = (table for table in found.tables if table.name == "operations")
    [seeks] = (row.value for row in operations.rows() if row.characteristic == "seeks")
    assert seeks == 20 * most
    assert found.files is not None
    of_file = {row.characteristic: row.value for row in found.files.rows(0)["operations"]}
    assert of_file["seeks"] == 20 * most


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -5.0, 1e308])
def test_times_that_no_run_has_are_not_shown(tmp_path: Path, seconds: float) -> None:
    records = [
        posix_record("/d/a", rank, STATS=1, F_META_TIME=seconds, F_CLOSE_END_TIMESTAMP=seconds)
        for rank in range(3)
    ]
    found = characterisation(write_log(tmp_path / "a.darshan", records, nprocs=3))
    [times] = (table for table in found.tables if table.name == "time")
    assert all(not row.value or row.value == pytest.approx(0) for row in times.rows())


def test_two_files_of_the_same_path_are_both_listed(tmp_path: Path) -> None:
    records = [posix_record(f"/d/{count}", WRITES=count) for count in (1, 2)]
    path = write_log(tmp_path / "a.darshan", records, nprocs=1)
    facts = facts_of(run_of([read_log(path, modules=COUNTED_MODULES)]))
    facts = replace(facts, files=replace(facts.files, path=("/d/a", "/d/a")))
    found = file_records(characterised(facts, by_file=True))
    writes = [
        row[2]
        for file in found
        for table in file["tables"]
        for row in table["rows"]
        if (table["name"], *row[:2]) == ("layers", "POSIX", "writes")
    ]
    assert sorted(writes) == [1, 2]
