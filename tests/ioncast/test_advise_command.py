"""`ioncast advise` on the testbed: its table, its JSON, its page and its errors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ioncast.advice_of_run import ADVICE_MODULES, hints_of
from ioncast.insights.checks.registry import run_checks
from ioncast.insights.checks.values import Case, Thresholds
from ioncast.insights.facts.gathering import facts_of
from predictor.what_if.attempts import FilesOfKind, Hints
from summario.reading.log import read_log
from summario.runs.logs_of_run import run_of
from tests.support.command import run_ioncast
from tests.support.records import mpiio_record, posix_record, write_log

TESTBED = Path(__file__).parents[2] / "experiments/data/testbed"
PERIODIC = TESTBED / "logs/periodic-ionodes0.darshan"
MIB = 1 << 20


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("testbed") / "testbed.db"
    words = ("--system", "testbed", "--tasks", "16", "--nodes", "8", "--db", path)
    assert run_ioncast("bench", "import", TESTBED / "benchmarks.csv", *words).returncode == 0
    run_ioncast("model", "fit", "--system", "testbed", "--db", path)
    return path


def advised(database: Path, log: Path, *words: str | Path) -> str:
    place = ("--system", "testbed", "--nodes", "8", "--db", database)
    answer = run_ioncast("advise", log, *place, *words)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def record_of(database: Path, log: Path, *words: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(advised(database, log, *words, "--format", "json"))
    return record


@pytest.fixture(scope="module")
def periodic(database: Path) -> dict[str, Any]:
    return record_of(database, PERIODIC)


def by_keys(record: dict[str, Any]) -> dict[tuple[str, ...], dict[str, Any]]:
    return {tuple(advice["keys"]): advice for advice in record["advice"]}


@pytest.mark.slow
def test_collective_calls_on_the_testbed_are_slower_as_they_were_measured(
    periodic: dict[str, Any],
) -> None:
    """The testbed measured 24.3 MiB/s directly and 5.8 with 8 I/O nodes; without, 28.0 and 27.2."""
    advice = by_keys(periodic)[("collective",)]
    assert (advice["verdict"], advice["matched"]) == ("slower", "exact")
    assert advice["codes"] == ["P16"]
    today = {p["io_nodes"]: p["bandwidth_mib_s"]["mean"] for p in periodic["today"]["curve"]}
    then = {p["io_nodes"]: p["bandwidth_mib_s"]["mean"] for p in advice["then"]["curve"]}
    assert then[0] / today[0] == pytest.approx(24.3 / 28.0, abs=0.1)
    assert then[8] / today[8] == pytest.approx(5.8 / 27.2, abs=0.1)


def test_the_json_has_the_shape_that_programs_rely_on(periodic: dict[str, Any]) -> None:
    assert list(periodic) == [
        *("system", "job", "nodes", "nodes_source", "today", "own_run", "advice", "warnings")
    ]
    assert list(periodic["today"]) == ["curve", "decision"]
    for advice in periodic["advice"]:
        assert list(advice) == [
            *("keys", "name", "codes", "verdict", "sentence", "matched", "saved_seconds"),
            *("saved_by_io_nodes", "then", "measure"),
        ]
        assert advice["then"] is None or list(advice["then"]) == ["curve", "decision"]
        for missing in advice["measure"]:
            assert list(missing) == ["configuration", "tasks", "nodes"]
    assert by_keys(periodic)[("larger",)]["measure"] == [
        {
            "configuration": "mpiexec -n 16 ior -a POSIX -w -e -b 1m -t 1m -s 2",
            "tasks": 16,
            "nodes": 8,
        }
    ]


def test_gains_are_ranked_and_unknown_ones_come_last(periodic: dict[str, Any]) -> None:
    gains = [advice["saved_seconds"] for advice in periodic["advice"]]
    known = [gain["expected"] for gain in gains if gain is not None]
    assert known == sorted(known, reverse=True)
    assert gains[len(known) :] == [None] * (len(gains) - len(known))
    assert all(span["p10"] <= span["expected"] <= span["p90"] for span in gains if span)


def test_the_seconds_are_those_of_both_decisions(periodic: dict[str, Any]) -> None:
    advice = periodic["advice"][0]
    times = []
    for each in (periodic["today"], advice["then"]):
        [time_s] = [
            point["time_s"]
            for point in each["curve"]
            if point["io_nodes"] == each["decision"]["io_nodes"]
        ]
        times.append(time_s)
    assert advice["saved_seconds"]["expected"] == pytest.approx(times[0] - times[1])


def test_today_is_the_prediction_of_predict(database: Path, periodic: dict[str, Any]) -> None:
    words = ("--system", "testbed", "--nodes", "8", "--db", database, "--format", "json")
    predicted = json.loads(run_ioncast("predict", PERIODIC, *words).stdout)
    assert periodic["today"] == {name: predicted[name] for name in ("curve", "decision")}
    assert periodic["warnings"] == predicted["warnings"]


def test_the_table_ranks_what_is_known_and_names_what_to_measure(database: Path) -> None:
    text = advised(database, PERIODIC)
    assert text.startswith("today: ")
    rows = re.findall(r"^(\d+) +(\S.*?)  ", text, re.MULTILINE)
    assert rows == [("1", "a file for each process"), ("2", "collective MPI-IO calls")]
    assert "most would help: a file for each process, which saves" in text
    assert "not known, measure this:\n  mpiexec -n 16 ior -a POSIX -w -e -b 1m -t 1m -s 2\n" in text


def test_a_buffer_is_the_size_of_larger_requests(database: Path) -> None:
    record = record_of(database, PERIODIC, "--buffer", "2m")
    [missing] = by_keys(record)[("collective", "larger")]["measure"]
    assert missing["configuration"].endswith("-b 2m -t 2m")


def test_the_run_corrects_today_and_then(database: Path, periodic: dict[str, Any]) -> None:
    corrected = record_of(database, PERIODIC, "--ran-with", "0")
    assert corrected["today"] != periodic["today"]
    assert by_keys(corrected).keys() == by_keys(periodic).keys()


def test_the_thresholds_of_a_site_tell_what_is_tried(database: Path, tmp_path: Path) -> None:
    settings = tmp_path / "checks.toml"
    settings.write_text("least_count = 1000000\n", encoding="utf-8")
    record = record_of(database, PERIODIC, "--settings", str(settings))
    assert by_keys(record).keys() == {("own_files",)}


def test_the_page_needs_no_network_and_has_a_figure_for_each_gain(
    database: Path, tmp_path: Path
) -> None:
    advised(database, PERIODIC, "--html", tmp_path / "advice.html")
    page = (tmp_path / "advice.html").read_text(encoding="utf-8")
    tags = re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", page)
    assert not [tag for tag in tags if re.search(r"\b(?:src|href)\s*=", tag)]
    assert page.count("<figure>") == 2
    for words in ("Most would help", "Collective MPI-IO calls P16", "today, p10 to p90"):
        assert words in page


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--buffer", "4k"), "smaller than 1m"),
        (("--buffer", "many"), "is not a size"),
        (("--system", "nowhere"), "nothing was measured on 'nowhere'"),
    ],
)
def test_an_error_is_one_line(database: Path, words: tuple[str, ...], said: str) -> None:
    answer = run_ioncast("advise", PERIODIC, "--system", "testbed", "--db", database, *words)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert said in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_a_csv_of_phases_has_no_counters_to_check(database: Path, tmp_path: Path) -> None:
    table = tmp_path / "phases.csv"
    table.write_text(run_ioncast("phases", PERIODIC, "--format", "csv").stdout, encoding="utf-8")
    answer = run_ioncast("advise", table, "--system", "testbed", "--db", database)
    assert answer.returncode == 2
    assert "does not have the counters that the checks look at; give the log" in answer.stderr


def test_a_log_without_io_has_no_advice(database: Path, tmp_path: Path) -> None:
    log = write_log(tmp_path / "empty.darshan", [posix_record("/f", OPENS=1)], nprocs=4)
    assert "no advice changes the I/O of this run" in advised(database, log)


def hints(log: Path) -> Hints:
    facts = facts_of(run_of([read_log(log, modules=ADVICE_MODULES)]))
    return hints_of(facts, run_checks(Case(facts)), Thresholds())


@pytest.mark.parametrize(("size_bin", "is_asked"), [("1K_10K", True), ("4M_10M", False)])
def test_a_fact_asks_for_no_change(size_bin: str, is_asked: bool, tmp_path: Path) -> None:
    """Independent calls of 4 MiB and more are a fact (M03)."""
    sizes = {f"SIZE_WRITE_AGG_{size_bin}": 1001}
    log = write_log(
        tmp_path / "app.darshan", [mpiio_record("/f", INDEP_WRITES=1001, **sizes)], nprocs=4
    )
    assert ("M03" in hints(log).codes) == is_asked


def test_bytes_beyond_the_extent_of_a_file_are_repeated(tmp_path: Path) -> None:
    """Of 5 MiB, the first file moves its 1 MiB four times; 2 of 5 MiB are left."""
    records = [
        posix_record(
            f"/scratch/{name}",
            WRITES=moved,
            BYTES_WRITTEN=moved * MIB,
            MAX_BYTE_WRITTEN=MIB - 1,
        )
        for name, moved in (("again", 4), ("once", 1))
    ]
    found = hints(write_log(tmp_path / "app.darshan", records, nprocs=4))
    assert "P10" in found.codes
    assert found.kept == {FilesOfKind("write", "POSIX", "shared"): 2 / 5}


def test_data_sieving_below_mpiio_repeats_no_bytes_of_the_program(tmp_path: Path) -> None:
    records = [
        posix_record("/f", WRITES=4, BYTES_WRITTEN=4 * MIB, MAX_BYTE_WRITTEN=MIB - 1),
        mpiio_record("/f", INDEP_WRITES=4, BYTES_WRITTEN=MIB),
    ]
    found = hints(write_log(tmp_path / "app.darshan", records, nprocs=4))
    assert found.kept == {FilesOfKind("write", "MPIIO", "shared"): 1}
