from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from experiments.commands import experiment
from experiments.scheduling.curves import BENCHMARKS
from ioncast.cli import cli
from ioncast_base.errors import InputError, IoncastError

GENUINE = str(Path(__file__).parents[2] / "ioncast" / "worth" / "fixtures" / "sacct.txt")
README = Path(__file__).resolve().parents[3] / "experiments" / "scheduling" / "README.md"
SHORT = ("--jobs", "300")


def run(*args: str) -> Result:
    return CliRunner().invoke(experiment, ["scheduling", *args])


def output(*args: str) -> str:
    result = run(*args)
    assert result.exit_code == 0, result.output
    return result.stdout


def complaint(*args: str) -> str:
    """The error of a run that fails."""
    result = run(*args)
    if isinstance(result.exception, IoncastError):
        return str(result.exception)
    assert result.exit_code == 2
    return result.stderr.splitlines()[-1]


def test_policies_stand_side_by_side() -> None:
    lines = output(*SHORT).splitlines()
    assert lines[0].split()[:3] == ["policy", "global", "MiB/s"]
    names = ["static", "equal", "one", "best", "mckp", "direct"]
    assert [line.split()[0] for line in lines[2:]] == names


def test_the_same_seed_gives_the_same_result_and_another_seed_another() -> None:
    assert output(*SHORT) == output(*SHORT)
    assert output(*SHORT) != output(*SHORT, "--seed", "2")


def test_csv_and_json_hold_the_same_numbers_without_rounding() -> None:
    rows = list(csv.DictReader(io.StringIO(output(*SHORT, "--format", "csv"))))
    record = json.loads(output(*SHORT, "--format", "json"))
    assert (record["nodes"], record["pool"], record["direct"]) == (128, 16, False)
    assert len(record["curves"]) == 15
    assert len(rows) == len(record["policies"]) == 6
    for row, policy in zip(rows, record["policies"], strict=True):
        assert {name: str(value) for name, value in policy.items()} == row


def test_only_the_policies_asked_for_are_replayed() -> None:
    rows = output(*SHORT, "--policy", "mckp", "--policy", "static", "--format", "csv").splitlines()
    assert [row.split(",")[0] for row in rows] == ["policy", "mckp", "static"]


@pytest.mark.slow
def test_arbitration_beats_static_in_the_queue_by_default() -> None:
    rows = json.loads(output("--format", "json"))["policies"]
    found = {row["policy"]: row for row in rows}
    assert found["mckp"]["bandwidth_mib_s"] > found["static"]["bandwidth_mib_s"]
    assert found["mckp"]["waiting_mean_s"] < found["static"]["waiting_mean_s"]
    # However long jobs wait for their best number, no policy gives more bandwidth.
    assert found["best"]["bandwidth_mib_s"] == max(row["bandwidth_mib_s"] for row in rows)


def test_recorded_run_times_are_those_of_static_allocation() -> None:
    [static] = json.loads(
        output(*SHORT, "--policy", "static", "--pool", "999", "--format", "json")
    )["policies"]
    assert static["held_up_share"] == 0
    assert static["slowdown_mean"] >= 1


def test_direct_access_can_be_allowed() -> None:
    asked = (*SHORT, "--policy", "best", "--format", "json")
    without = json.loads(output(*asked))["policies"][0]
    allowed = json.loads(output(*asked, "--direct"))["policies"][0]
    assert allowed["pool_used"] < without["pool_used"]
    assert allowed["bandwidth_mib_s"] >= without["bandwidth_mib_s"]


def test_a_genuine_queue_is_replayed_with_a_warning_of_lines_left_out() -> None:
    result = run(GENUINE, "--nodes", "4", "--pool", "8", "--format", "json")
    assert result.exit_code == 0
    assert {row["jobs"] for row in json.loads(result.stdout)["policies"]} == {13}
    assert result.stderr.splitlines() == [
        f"ioncast: warning: {GENUINE}: left out: jobs that have not ended (2),"
        " jobs that took no time (1)"
    ]


def test_bytes_that_do_not_fit_into_a_run_give_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "queue.csv"
    file.write_text("JobID,Submit,Start,End,NNodes,Curve,Bytes\n1,0,0,1,1,w-fpp-contig-1m,1e12\n")
    result = run(str(file), "--policy", "static")
    assert result.exit_code == 0
    assert "because their Bytes do not fit into their run times: 1" in result.stderr


def test_curves_can_be_a_systems_own(location: str) -> None:
    options = ["--system", "mysite", "--tasks", "16", "--nodes", "8", "--db", location]
    done = CliRunner().invoke(cli, ["bench", "import", str(BENCHMARKS), *options])
    assert done.exit_code == 0, done.output
    text = output(*SHORT, "--system", "mysite", "--db", location, "--format", "json")
    record = json.loads(text)
    assert record["system"] == "mysite"
    assert len(record["curves"]) == 15


def test_the_report_has_everything_it_needs_inside(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    output(*SHORT, "--output", str(page))
    text = page.read_text(encoding="utf-8")
    assert "A synthetic queue (load 0.8) with 300 jobs; curves of the shipped testbed;" in text
    for heading in ("Global bandwidth", "Waiting", "I/O nodes in use"):
        assert f"<h2>{heading}</h2>" in text
    assert "<script src=" not in text
    assert text.count("<figure>") == 3


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("none.txt",), "none.txt: No such file or directory"),
        ((GENUINE, "--jobs", "5"), "--jobs: only for synthetic queues; leave it out, or QUEUE.txt"),
        ((GENUINE, "--load", "0.5"), "--load: only for synthetic queues"),
        (
            (GENUINE, "--nodes", "3"),
            "--nodes: a job of the queue has 4 nodes, but the machine has 3",
        ),
        (("--db", "x.sqlite"), "--db: a database is used only with a system; add --system NAME"),
        (("--system", "x", "--db", "no.sqlite"), "no.sqlite: the database does not exist"),
        (("--io-share", "0.5", "0.2"), "--io-share: LEAST is more than MOST"),
        (("--io-share", "0", "0.2"), "--io-share"),
        (("--load", "0"), "--load"),
        (("--pool", "0"), "--pool"),
        (("--jobs", "0"), "--jobs"),
        (("--seed", "-1"), "--seed"),
        (("--policy", "fair"), "'fair' is not one of"),
        ((*SHORT, "--output", "/proc/none/report.html"), "/proc/none/report.html"),
    ],
)
def test_impossible_options_are_an_error_of_one_line(args: tuple[str, ...], said: str) -> None:
    assert said in complaint(*args)


def test_a_pool_too_small_for_the_curves_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "two.csv"
    file.write_text("io_nodes,bandwidth_mib_s,command\n2,50,ior -w -b 4m -t 1m\n")
    place = str(tmp_path / "bench.sqlite")
    CliRunner().invoke(cli, ["bench", "import", str(file), "--system", "mysite", "--db", place])
    said = complaint("--pool", "1", "--system", "mysite", "--db", place)
    assert said.startswith("--pool: a pool of 1 is too small")


def test_the_help_states_the_assumptions() -> None:
    text = " ".join(output("--help").split())
    for words in ("as licences in Slurm", "EASY backfill", "static allocation", "It is assumed"):
        assert words in text


def test_a_missing_file_is_an_input_error() -> None:
    assert isinstance(run("none.txt").exception, InputError)


@pytest.mark.slow
def test_the_readme_shows_what_the_command_prints() -> None:
    shown = README.read_text(encoding="utf-8").split("```text\n", 1)[1].split("```", 1)[0]
    assert output() == shown
