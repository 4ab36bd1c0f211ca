"""The order of benchmarks to measure next; expected values are computed by hand."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from benchdb.measurements.curves import Curve
from ioncast.cli import cli
from ior_configs import IorConfig
from ior_configs.campaign_files import Campaign, parse_campaign, read_campaign, to_toml
from predictor.model.fitting import fit_model
from predictor.model.system_model import SystemModel
from predictor.planning.needs import ApplicationUse, Need, needs_of, wanted_of, within
from summario.phases.extract import extract
from summario.phases.values import Extraction, Part, Phase
from summario.reading.log import read_log
from tests.support.traced import traced_log

PROJECT = Path(__file__).resolve().parents[3]
LOGS = PROJECT / "experiments" / "data" / "testbed" / "logs"
BENCHMARKS = PROJECT / "experiments" / "data" / "testbed" / "benchmarks.csv"
MIB = 1 << 20
SHARED = IorConfig(write=True, block_size=16 * MIB, transfer_size=MIB, tasks=16, nodes=8)
UNIQUE = replace(SHARED, file_per_process=True)
READING = replace(SHARED, write=False, read=True)


def needs(
    wanted: dict[IorConfig, ApplicationUse | None], curves: Sequence[Curve], repetitions: int = 2
) -> list[Need]:
    return needs_of(
        wanted,
        SystemModel(tuple(curves), fit_model(curves) if curves else None),
        io_nodes=(0, 4),
        repetitions=repetitions,
        start_s=5,
    )


def test_of_two_unknown_configurations_the_one_with_more_bytes_comes_first() -> None:
    ordered = needs({SHARED: ApplicationUse(10, 1), UNIQUE: ApplicationUse(1000, 1)}, [])
    assert [need.config for need in ordered] == [UNIQUE, SHARED]
    assert [need.known for need in ordered] == ["unknown", "unknown"]


def test_of_two_equally_wanted_the_less_known_comes_first() -> None:
    curve = Curve(1, SHARED, "ior", {0: (100.0, 101.0), 4: (200.0, 201.0)})
    ordered = needs({SHARED: ApplicationUse(10, 1), READING: ApplicationUse(10, 1)}, [curve])
    assert [(need.config, need.known) for need in ordered] == [
        (READING, "unknown"),
        (SHARED, "measured"),
    ]


def test_a_neighbour_is_worth_less_than_the_configuration_itself() -> None:
    twice, more = (replace(SHARED, block_size=count * MIB) for count in (32, 64))
    runs = {0: (100.0, 101.0), 4: (200.0, 201.0)}
    [beyond] = needs({twice: ApplicationUse(10, 1)}, [Curve(1, SHARED, "ior", runs)])
    assert (beyond.known, beyond.missing) == ("model", 2)
    assert 0.1 < beyond.error < 1
    curves = [Curve(1, SHARED, "ior", runs), Curve(2, more, "ior", runs)]
    itself, between = needs({twice: ApplicationUse(10, 1), SHARED: ApplicationUse(10, 1)}, curves)[
        ::-1
    ]
    assert (itself.known, between.known, between.missing) == ("measured", "interpolated", 2)
    assert itself.error < between.error < 1


def test_cells_with_too_few_repetitions_are_missing() -> None:
    curve = Curve(1, SHARED, "ior", {0: (100.0, 101.0), 4: (200.0,)})
    [need] = needs({SHARED: ApplicationUse(10, 1)}, [curve])
    assert (need.known, need.missing) == ("partly measured", 1)


def test_the_time_is_that_of_the_bytes_at_the_measured_bandwidth() -> None:
    curve = Curve(1, SHARED, "ior", {0: (64.0, 64.0), 4: (128.0, 128.0)})
    [need] = needs({SHARED: ApplicationUse(10, 1)}, [curve])
    # 256 MiB take 4 s with direct access and 2 s with 4 I/O nodes, twice each; a start takes 5 s.
    assert need.seconds == pytest.approx(2 * (4 + 2) + 4 * 5)


def test_files_that_are_read_are_written_first() -> None:
    written, read = needs({SHARED: ApplicationUse(10, 1), READING: ApplicationUse(10, 1)}, [])
    assert {written.config, read.config} == {SHARED, READING}
    seconds = {need.config: need.seconds for need in (written, read)}
    assert seconds[READING] - 4 * 5 == pytest.approx(2 * (seconds[SHARED] - 4 * 5))


@pytest.mark.parametrize(
    ("values", "is_open"),
    [
        ((100.0, 101.0, 99.0, 100.0, 100.0), False),
        ((10.0, 1000.0, 10.0, 1000.0, 10.0), True),
    ],
)
def test_a_configuration_that_varies_much_is_measured_again_though_complete(
    values: tuple[float, ...], is_open: bool
) -> None:
    curve = Curve(1, SHARED, "ior", {0: values, 4: values})
    [need] = needs({SHARED: ApplicationUse(10, 1)}, [curve], repetitions=len(values))
    assert need.missing == 0
    assert need.is_open == is_open


def test_equal_values_of_a_clock_that_counts_in_steps_are_no_certainty() -> None:
    curve = Curve(1, SHARED, "ior", {0: (100.0, 100.0), 4: (100.0, 100.0)})
    [need] = needs({SHARED: ApplicationUse(10, 1)}, [curve])
    assert need.missing == 0
    assert need.error > 0.03


def test_a_budget_is_filled_in_order_and_never_exceeded() -> None:
    slow = replace(UNIQUE, block_size=1 << 40)
    ordered = needs(
        {
            slow: ApplicationUse(1 << 60, 1),
            SHARED: ApplicationUse(10, 1),
            READING: ApplicationUse(9, 1),
        },
        [],
    )
    taken = within(ordered, 60)
    assert [need.config for need in taken] == [SHARED, READING]
    assert sum(need.seconds for need in taken) <= 60


def test_bytes_of_jobs_are_added_up_by_configuration() -> None:
    job = extract(read_log(str(LOGS / "hacc-io-ionodes0.darshan")))
    totals = wanted_of([job, job], lambda _named, _tasks: 8)
    header = IorConfig(
        write=True,
        file_per_process=True,
        block_size=24 * MIB,
        transfer_size=24 * MIB,
        tasks=16,
        nodes=8,
    )
    # HACC-IO writes a header of 24 MiB from each of 16 processes, in two jobs.
    assert totals[header] == ApplicationUse(2 * 16 * 24 * MIB, 2)


PLATFORM = """
system = "testbed"
io_nodes = [0, 1, 2, 4, 8]
nodes = 8
processes_per_node = 2
test_directory = "/scratch"
launch = "mpiexec -n {tasks}"

[io_nodes_switch]
before = "ionodes {io_nodes}"

[programs]
ior = "/opt/ior/bin/ior"
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IONCAST_DB", str(tmp_path / "bench.sqlite"))
    (tmp_path / "testbed.toml").write_text(PLATFORM)
    return tmp_path


def plan(site: Path, *arguments: str) -> Result:
    platform = ("--platform", str(site / "testbed.toml"))
    return CliRunner().invoke(
        cli, ["campaign", "plan", *platform, *arguments], standalone_mode=False
    )


def configurations(result: Result) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(result.stdout)["configurations"]
    return found


def test_options_that_leave_no_phase_are_named(site: Path) -> None:
    result = plan(site, "--from-logs", str(LOGS), "--layer", "stdio")
    assert f"warning: {LOGS}: no phase is left with --layer, which the plan was given" in (
        result.stderr
    )


@pytest.mark.parametrize(
    ("hosts", "nprocs", "nodes"),
    [
        # The platform has 8 compute nodes with 2 processes each.
        (["n1", "n2", "n3", "n4"], 4, 4),
        (["n1", "n2", "n3", "n4"], 5, 2),
        (["n1", "n1", "n1", "n1"], 4, 2),
        ([f"n{rank}" for rank in range(16)], 16, 8),
    ],
)
def test_a_job_is_planned_on_the_compute_nodes_that_its_log_names(
    site: Path, hosts: list[str], nprocs: int, nodes: int
) -> None:
    (site / "logs").mkdir()
    traced_log(site / "logs" / "a.darshan", hosts, nprocs=nprocs)
    [row] = configurations(plan(site, "--from-logs", str(site / "logs"), "--format", "json"))
    assert row["nodes"] == nodes


def test_the_logs_of_a_runs_processes_are_planned_as_one_job(site: Path) -> None:
    (site / "logs").mkdir()
    for log in (PROJECT / "tests" / "summario" / "fixtures" / "programs").glob("*-workers-*"):
        shutil.copy(log, site / "logs")
    arguments = ("--from-logs", str(site / "logs"), "--min-share", "0.1", "--format", "json")
    rows = configurations(plan(site, *arguments))
    # In both jobs three workers wrote 100,000 bytes ten times, and their parent 1,000 bytes.
    assert {row["configuration"].partition(" ior ")[0] for row in rows} == {"mpiexec -n 4"}


@pytest.mark.slow
def test_a_configuration_that_is_measured_well_enough_is_not_planned_again(site: Path) -> None:
    unmeasured = configurations(plan(site, "--from-logs", str(LOGS), "--format", "json"))
    assert {row["known"] for row in unmeasured} == {"unknown"}
    arguments = ("--system", "testbed", "--tasks", "16", "--nodes", "8")
    CliRunner().invoke(cli, ["bench", "import", str(BENCHMARKS), *arguments])
    left = configurations(plan(site, "--from-logs", str(LOGS), "--format", "json"))
    measured = {row["configuration"] for row in unmeasured} - {row["configuration"] for row in left}
    assert "mpiexec -n 16 ior -a POSIX -r -b 4m -t 1m" in measured
    # The benchmarks wrote with an fsync at the end, and HACC-IO writes without one.
    assert "mpiexec -n 16 ior -a POSIX -w -F -b 24m -t 24m" not in measured
    assert all(row["missing_cells"] == 5 or row["expected_error"] > 0.1 for row in left)


def test_the_plan_is_a_campaign_that_runs_what_it_shows(site: Path) -> None:
    file = site / "needed.toml"
    shown = plan(site, "--from-logs", str(LOGS), "--format", "json", "--output", str(file))
    campaign = read_campaign(file, nodes=8, processes_per_node=2)
    assert [config.command_line(launcher=True) for config in campaign.configurations] == [
        row["configuration"] for row in configurations(shown)
    ]
    assert campaign.repetitions == 5


def test_many_files_are_planned_as_one_run_that_a_campaign_repeats() -> None:
    parts = (Part(900, 900 * 4096),)
    files = Phase(
        *(1, 0.0, 9.0, "write", None, 2, 2, 900 * 4096, 1.0, "POSIX", 900, "contiguous", "unique"),
        n_files=900,
        mode_processes=1,
        parts=parts,
        fsync="none",
    )
    [config] = wanted_of([Extraction((files,))], lambda *_: 1)
    planned = Campaign("needed", "What they need.", 2, 1, None, (config,))
    campaign = parse_campaign(to_toml(planned), where="c.toml", nodes=1, processes_per_node=2)
    [measured] = campaign.configurations
    assert measured.command_line(launcher=True) == "mpiexec -n 2 ior -a POSIX -w -F -b 4k -t 4k"


def test_a_budget_leaves_out_what_is_worth_least(site: Path) -> None:
    everything = configurations(plan(site, "--from-logs", str(LOGS), "--format", "json"))
    seconds = everything[0]["seconds"]
    within_budget = plan(
        site, "--from-logs", str(LOGS), "--format", "json", "--budget", f"{int(seconds) + 1}s"
    )
    assert configurations(within_budget) == everything[:1]
    assert json.loads(within_budget.stdout)["over_budget"] == len(everything) - 1


def test_phases_of_little_io_are_not_planned_if_they_are_left_out(site: Path) -> None:
    arguments = ("--from-logs", str(LOGS), "--format", "json")
    everything = {row["configuration"] for row in configurations(plan(site, *arguments))}
    without = configurations(plan(site, *arguments, "--min-share", "0.3"))
    assert {row["configuration"] for row in without} < everything


def test_a_campaign_is_shown_as_it_would_run(site: Path) -> None:
    shown = plan(site, "laptop")
    assert shown.exception is None
    # 6 configurations with 5 numbers of I/O nodes, 3 times each.
    assert "runs: 90," in shown.stdout


@pytest.mark.slow
def test_a_configuration_that_cannot_run_is_listed_with_the_reason(site: Path) -> None:
    shown = plan(site, "rr9366")
    assert shown.stdout.strip() == "testbed can run none of the configurations with ior"
    assert shown.stderr.count("ioncast: warning: left out: ") == 6
    assert "it needs 8 processes per node, testbed has processes_per_node = 2" in shown.stderr
    listed = json.loads(plan(site, "rr9366", "--format", "json").stdout)["left_out"]
    assert len(listed) == 6


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name a campaign or give --from-logs"),
        (("laptop", "--from-logs", str(LOGS)), "name a campaign or give --from-logs"),
        (("--from-logs", str(PROJECT / "docs")), "no Darshan logs"),
        (("--from-logs", str(LOGS), "--budget", "2 weeks"), "2 weeks"),
        (("nosuch",), "bundled campaigns are forge, forwarding, laptop, rr9366"),
        (("laptop", "--repetitions", "3"), "a campaign has its own repetitions"),
        (("laptop", "--layer", "posix"), "--layer: a campaign has no logs"),
        (("rr9366", "--output", "x.toml"), "none of the configurations with ior: no campaign"),
        (("--from-logs", "nowhere"), "nowhere: this folder does not exist"),
        (("--from-logs", __file__), f"{__file__}: this is not a folder"),
    ],
)
def test_a_plan_that_cannot_be_made_is_one_line(
    site: Path, arguments: tuple[str, ...], said: str
) -> None:
    result = plan(site, *arguments)
    assert said in str(result.exception)
    assert not (site / "bench.sqlite").exists()


def test_direct_access_says_nothing_of_i_o_nodes() -> None:
    curve = Curve(1, SHARED, "ior", {0: (100.0, 100.0, 101.0, 101.0)})
    [need] = needs({SHARED: ApplicationUse(10, 1)}, [curve])
    assert need.error >= 0.5
