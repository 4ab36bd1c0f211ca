"""The study of placement: its tables, the shipped data, and its links on the platform."""

from __future__ import annotations

import csv
import json
import random
import subprocess
from collections import Counter
from math import log
from pathlib import Path
from statistics import fmean

import pytest

from experiments.checking import check_data_set
from experiments.platform.description import read_description
from experiments.platform.network import at_rate, io_node
from experiments.shipped import DATA
from experiments.studies.placement import PLATFORM, SERIES, OnNodes, conduct, run_on, slowed
from experiments.studies.placement_tables import placement_tables
from ioncast_base.errors import InputError
from tests.support.emulated import emulated, received_bytes, unique_name

SHIPPED = DATA / "placement"
JOBS = "series,number,slow,application,io_nodes,bytes,seconds,started,load1"
QUEUE = "round,order,arm,application,io_nodes,expected_mib_s,bytes,seconds,started,load1"
WHEN = "2026-11-28T10:00:00+00:00,0.5"


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A series of 40 jobs in which io3 takes four times as long, and one without; two rounds."""
    chance = random.Random(1)
    jobs = []
    for series, slow in ((1, "io3"), (2, "")):
        for number in range(1, 41):
            # Each pair of neighbours, of second neighbours and so on.
            names = [f"io{number % 8}", f"io{(number + 1 + number // 8) % 8}"]
            seconds = chance.uniform(0.95, 1.05) * (4 if slow in names else 1)
            row = f"{series},{number},{slow},app{number % 2},{' '.join(names)}"
            jobs.append(f"{row},1048576,{seconds:.3f},{WHEN}")
    queue = [
        f"{number},1,{arm},{name},io0,10.0,1048576,{seconds},{WHEN}"
        for number, times in ((1, (2, 1, 4, 1)), (2, (2, 2, 2, 2)))
        for (arm, name), seconds in zip(
            [(arm, name) for arm in ("placed", "random") for name in ("a", "b")],
            times,
            strict=True,
        )
    ]
    (tmp_path / "jobs.csv").write_text("\n".join([JOBS, *jobs, ""]))
    (tmp_path / "queue.csv").write_text("\n".join([QUEUE, *queue, ""]))
    return tmp_path


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_slow_io_node_of_a_series_is_named(planted: Path) -> None:
    with_slow, without = placement_tables(planted)[0].rows
    assert (with_slow["slow"], with_slow["named"]) == ("io3", "io3")
    on_it = sum("io3" in row["io_nodes"] for row in read(planted / "jobs.csv")[:40])
    assert with_slow["on_it"] == str(on_it)
    assert float(with_slow["ratio"]) == pytest.approx(4, rel=0.1)
    # Five jobs are needed on it, and five others.
    assert 10 <= int(with_slow["named_after"]) <= 40
    assert (without["slow"], without["named"], without["ratio"]) == ("", "", "")


def test_the_gain_is_the_geometric_mean_over_rounds(planted: Path) -> None:
    [gain] = placement_tables(planted)[1].rows
    # The longest job takes 2 instead of 4 s in one round of two, so twice and once as much.
    assert (gain["rounds"], gain["gain"], gain["placed_faster"]) == ("2", "0.4142", "1")


@pytest.mark.parametrize(("file", "column"), [("jobs.csv", "seconds"), ("queue.csv", "round")])
def test_a_damaged_row_is_an_error_of_its_line(planted: Path, file: str, column: str) -> None:
    first, row, *rest = (planted / file).read_text().splitlines()
    cells = dict(zip(first.split(","), row.split(","), strict=True)) | {column: "much"}
    (planted / file).write_text("\n".join([first, ",".join(cells.values()), *rest, ""]))
    with pytest.raises(InputError, match=rf"{file}:2: {column}: "):
        placement_tables(planted)


def test_the_shipped_tables_follow_from_the_shipped_runs() -> None:
    checked = check_data_set(SHIPPED, write=False)
    assert checked.comparison.differences == ()
    slow, gain = checked.tables
    jobs, queue = read(SHIPPED / "jobs.csv"), read(SHIPPED / "queue.csv")
    for row in slow.rows:
        own = [job for job in jobs if job["series"] == row["series"]]
        assert len(own) == int(row["jobs"]) == 40
        assert row["named"] == row["slow"]
    longest: dict[tuple[str, str], float] = {}
    for job in queue:
        key = job["round"], job["arm"]
        longest[key] = max(longest.get(key, 0.0), float(job["seconds"]))
    rounds = {number for number, _ in longest}
    ratios = [log(longest[n, "random"] / longest[n, "placed"]) for n in rounds]
    [row] = gain.rows
    assert int(row["rounds"]) == len(rounds) >= 15
    assert log(1 + float(row["gain"])) == pytest.approx(fmean(ratios), abs=1e-4)
    assert 0 < float(row["low"]) < float(row["gain"]) < float(row["high"])
    # Two jobs share each I/O node in each round and arm, and placed large ones never meet.
    for number, arm in longest:
        own = [job for job in queue if (job["round"], job["arm"]) == (number, arm)]
        assert set(Counter(job["io_nodes"] for job in own).values()) == {2}
        large = Counter(job["io_nodes"] for job in own if job["application"].startswith("large"))
        assert arm == "random" or set(large.values()) == {1}


def test_the_documents_have_the_figures_of_the_shipped_tables() -> None:
    slow, gain = placement_tables(SHIPPED)
    text = " ".join((DATA / "README.md").read_text(encoding="utf-8").split())
    for row in slow.rows:
        if row["slow"]:
            cells = [row[name] for name in ("series", "slow", "on_it", "ratio", "named_after")]
            assert f"| {' | '.join(cells)} |" in text
    [row] = gain.rows
    shares = [f"{float(row[name]):.0%}" for name in ("gain", "low", "high")]
    assert "+{} (interval of 95 %: {} to {})".format(*shares).replace("%", " %").replace(
        "  ", " "
    ) in text.replace("  ", " ")


def test_a_folder_that_exists_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").touch()
    with pytest.raises(InputError, match="exists"):
        conduct(tmp_path, 1, 1, 1, "ioncast experiment placement")


def test_a_link_gets_another_rate_at_both_ends() -> None:
    description = read_description(PLATFORM)
    shaped = [
        (batch.namespace, batch.text)
        for batch in at_rate(description, io_node(description, 5), "50mbit")
    ]
    bucket = "root tbf rate 50mbit burst 256kb limit 4mb\n"
    assert shaped == [
        ("placement-io5", f"qdisc replace dev e0 {bucket}"),
        ("placement-sw", f"qdisc replace dev p-io5 {bucket}"),
    ]


@pytest.mark.platform
@pytest.mark.slow
def test_a_job_uses_its_io_nodes_of_which_one_is_slow() -> None:
    description = read_description(PLATFORM).model_copy(update={"name": unique_name()})
    with emulated(description) as platform:
        link = ["tc", "-n", f"{platform.name}-io3", "-j", "qdisc", "show", "dev", "e0"]

        def rate() -> int:
            told = subprocess.run(link, capture_output=True, text=True, check=True).stdout
            return int(json.loads(told)[0]["options"]["rate"])

        # tc tells bytes a second.
        assert rate() == 200_000_000 / 8
        with slowed(platform, "io3"):
            assert rate() == 50_000_000 / 8
            run, _ = run_on(platform, SERIES[0], ("cn0", "cn1", "cn2", "cn3"), ("io1", "io3"))
        assert rate() == 200_000_000 / 8
        assert run.bytes == SERIES[0].bytes
        for node in ("io1", "io3"):
            assert received_bytes(platform, node) > run.bytes / 2
        assert received_bytes(platform, "io2") < run.bytes / 10
        assert isinstance(OnNodes(description).rank_command(["true"], io_nodes=1), list)
