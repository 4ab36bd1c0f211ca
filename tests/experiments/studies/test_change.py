"""The study of a changed platform: its patterns, and its tables from planted measurements."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pytest

from experiments.checking import check_data_set
from experiments.datasets import BenchmarkRun, csv_of
from experiments.platform.description import read_description
from experiments.provenance import Machine, Provenance
from experiments.published import publish
from experiments.shipped import DATA
from experiments.studies import change_tables as tables_module
from experiments.studies.benchmarking import pattern_name
from experiments.studies.change import ChangeOptions, changed, conduct, patterns
from experiments.studies.change_tables import AFTER, BEFORE, NAME, change_tables
from ioncast_base.errors import InputError
from ior_configs import IorConfig

NUMBERS = (0, 1, 2, 4, 8)
PROVENANCE = Provenance(
    study=NAME,
    command="ioncast experiment change",
    date="2026-11-29",
    seeds=(1,),
    scale=None,
    system="testbed",
    tasks=16,
    nodes=8,
    engine="ior",
    platform={},
    machine=Machine(cores=2, memory_bytes=None, kernel=None),
    versions={},
    logs=(),
)


def bandwidth(config: IorConfig, io_nodes: int) -> float:
    """Own files gain from each I/O node; a shared file is fastest with two."""
    level = 20.0 * (2 if config.read else 1) * (1.5 if config.transfer_size >= 1 << 20 else 1)
    shape = (1.0, 0.5, 1.0, 2.0, 3.0) if config.file_per_process else (1.0, 1.5, 2.0, 1.2, 0.8)
    return level * shape[NUMBERS.index(io_nodes)]


def runs(factors: dict[int, float], seed: int) -> list[BenchmarkRun]:
    chance = random.Random(seed)
    return [
        BenchmarkRun(
            name=pattern_name(config),
            io_nodes=n,
            repetition=repetition,
            bytes=16 << 20,
            time_s=1.0,
            bandwidth_mib_s=bandwidth(config, n) * factors[n] * chance.lognormvariate(0, 0.03),
            started="2026-11-29T04:00:00Z",
            command=config.command_line(),
            operation=config.operation,
            tasks=16,
            nodes=8,
            engine="ior",
        )
        for config in patterns(read_description())
        for n in NUMBERS
        for repetition in range(3)
    ]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Measurements of a system whose bandwidths halve; direct access loses a fifth."""
    folder = tmp_path_factory.mktemp("change")
    (folder / "provenance.json").write_text(PROVENANCE.model_dump_json())
    (folder / BEFORE).write_text(csv_of(BenchmarkRun, runs(dict.fromkeys(NUMBERS, 1.0), 1)))
    after = {n: 0.5 if n else 0.8 for n in NUMBERS}
    (folder / AFTER).write_text(csv_of(BenchmarkRun, runs(after, 2)))
    return folder


def test_the_patterns_are_reads_and_writes_of_shared_and_own_files() -> None:
    found = patterns(read_description())
    assert len({pattern_name(config) for config in found}) == len(found) == 8
    kinds = {(one.operation, one.file_access, one.transfer_size) for one in found}
    assert len(kinds) == 8
    assert {one.tasks for one in found} == {16}


def test_the_changed_platform_has_slower_links_and_nothing_else_changed() -> None:
    before = read_description()
    after = changed(before)
    assert (after.links.io_nodes, after.links.storage) == ("240mbit", "300mbit")
    links = {"io_nodes": before.links.io_nodes, "storage": before.links.storage}
    assert after.model_copy(update={"links": after.links.model_copy(update=links)}) == before


@pytest.mark.slow
def test_the_tables_tell_the_planted_change_and_its_predictions(
    planted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables_module, "NEW_RUNS", (25,))
    monkeypatch.setattr(tables_module, "SEEDS", 1)
    bandwidths, predictions = change_tables(planted)
    assert len(bandwidths.rows) == 40
    for row in bandwidths.rows:
        expected = 0.5 if row["io_nodes"] != "0" else 0.8
        assert float(row["ratio"]) == pytest.approx(expected, rel=0.1)
    rows = {(row["new_runs"], row["way"]): row for row in predictions.rows}
    errors = {key: float(row["error"]) for key, row in rows.items()}
    # Old curves as they are promise twice as much with I/O nodes, and a quarter more without.
    assert errors["25", "old as they are"] == pytest.approx((4 * 1 + 0.25) / 5, abs=0.15)
    assert errors["25", "with earlier"] < 0.2
    assert rows["25", "with earlier"]["answered"] == "1.00"
    assert errors["", "noise floor"] == pytest.approx(0.03, abs=0.02)
    publish(planted, (bandwidths, predictions))
    assert check_data_set(planted, write=False).comparison.differences == ()


def test_an_existing_folder_is_rejected_before_a_platform_is_up(planted: Path) -> None:
    with pytest.raises(InputError, match="exists"):
        conduct(planted, ChangeOptions(2, 1, None), "ioncast experiment change")


def test_the_document_has_the_figures_of_the_shipped_table() -> None:
    text = (DATA / "README.md").read_text(encoding="utf-8")
    with (DATA / "change" / "tables" / "predictions.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["way"] != "noise floor"]
    ways = {"with earlier": "with earlier curves", "from nothing": "from the new runs alone"}
    for row in rows:
        if row["way"] in ways:
            error, regret = (
                f"{100 * float(row[name]):.1f} % ± {100 * float(row[f'{name}_half_interval']):.1f}"
                for name in ("error", "regret_default_0")
            )
            assert f"| {row['new_runs']} | {ways[row['way']]} | {error} | {regret} | " in text
