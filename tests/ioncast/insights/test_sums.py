"""Sums of the facts of all shared logs, as darshan-parser prints them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from ioncast.insights.facts.gathering import COUNTED_MODULES, facts_of
from ioncast.insights.facts.values import Layer, total
from summario.reading.log import RECORD_MODULES, read_log
from summario.runs.logs_of_run import run_of
from tests.support.libdarshan import misread_counters, opened, records_of
from tests.support.log_bytes import without_zeros

# darshan-parser's total of these is a maximum, the most common value or that of one rank.
NO_SUMS = re.compile(
    r"MODE|MAX_|ALIGNMENT|STRIDE\d|ACCESS\d|FASTEST|SLOWEST|TIMESTAMP|VARIANCE|MMAPS"
)


# PyDarshan needs seconds for each thousand records.
LARGE_BYTES = 400_000


@pytest.mark.slow
def test_sums_of_shared_logs_are_those_of_darshans_own_records(
    shared_data: Path, tmp_path: Path
) -> None:
    """Read by libdarshan-util, which darshan-parser uses too, in PyDarshan's wheel."""
    layers: Counter[str] = Counter()
    for path in sorted(shared_data.rglob("*.darshan")):
        if path.stat().st_size > LARGE_BYTES or "mdworkbench" in path.name:
            continue
        copy = tmp_path / "a.darshan"
        copy.write_bytes(without_zeros(path.read_bytes()))
        layers.update(compared(path, added(copy)))
    assert layers == {"POSIX": 162, "MPIIO": 69, "STDIO": 135}


@pytest.mark.slow
def test_sums_of_all_shared_logs_are_darshan_parsers(shared_data: Path, tmp_path: Path) -> None:
    parser = shutil.which("darshan-parser")
    if parser is None:
        pytest.skip("darshan-parser is not on PATH")
    layers: Counter[str] = Counter()
    for path in sorted(shared_data.rglob("*.darshan")):
        if "mdworkbench" in path.name:
            continue
        copy = tmp_path / "a.darshan"
        copy.write_bytes(without_zeros(path.read_bytes()))
        layers.update(compared(path, totals(parser, copy)))
    assert layers == {"POSIX": 165, "MPIIO": 71, "STDIO": 138}


def compared(path: Path, theirs: Mapping[str, float]) -> list[str]:
    """Compare the sums of each layer of a log, and return the apis of the layers."""
    log = read_log(path, modules=COUNTED_MODULES)
    layers = facts_of(run_of([log]), all_files=True).layers
    for layer in layers.values():
        module = layer.records.module
        version = log.header.module_versions[module]
        known = theirs.keys() - misread_counters(module, version, log.header.byte_order)
        expected = {name: theirs[name] for name in known if name in layer.records.columns}
        assert sums(layer, expected) == pytest.approx(expected, rel=1e-6, abs=1e-5), path
    return list(layers)


def added(log: Path) -> dict[str, float]:
    """Add up the records of a log as libdarshan-util reads them."""
    found: Counter[str] = Counter()
    with opened(log) as handle:
        for module in RECORD_MODULES:
            for record in records_of(handle, module):
                found.update(record["named"])
    return {name: value for name, value in found.items() if not NO_SUMS.search(name)}


def totals(parser: str, log: Path) -> dict[str, float]:
    """Read the sums that darshan-parser prints for all files of a log together."""
    run = subprocess.run(
        [parser, "--total", "--show-incomplete", log], capture_output=True, text=True, check=True
    )
    found = re.findall(r"^total_((?:POSIX|MPIIO|STDIO)_\w+): (\S+)$", run.stdout, re.MULTILINE)
    return {name: float(value) for name, value in found if not NO_SUMS.search(name)}


def sums(layer: Layer, names: dict[str, float]) -> dict[str, float]:
    shortened = {name: name.removeprefix(f"{layer.api}_") for name in names}
    return {
        name: float(layer.seconds(counter).sum())
        if counter.startswith("F_")
        else float(total(layer.count(counter)))
        for name, counter in shortened.items()
    }
