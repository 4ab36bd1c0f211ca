"""`ioncast validate` on the testbed: real benchmarks, real logs, real reruns."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pytest
from click.testing import CliRunner, Result
from scipy.stats import kendalltau, kruskal

from ioncast.cli import cli
from ioncast_base.errors import InputError, UnknownNameError
from tests.support.traced import traced_log

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).resolve().parents[3]
TESTBED = PROJECT / "experiments" / "data" / "testbed"
APPLICATIONS = TESTBED / "applications.csv"
NAMES = ("hacc-io", "multiphase", "periodic")
DOCUMENTATION = (PROJECT / "docs" / "validation.md").read_text(encoding="utf-8")
HEADER = "application,io_nodes,repetition,bandwidth_mib_s\n"

Validate = Callable[..., Result]


def log_of(name: str, io_nodes: int = 0) -> Path:
    return TESTBED / "logs" / f"{name}-ionodes{io_nodes}.darshan"


LOGS = [f"--log={name}={log_of(name)}" for name in NAMES]
HACC = f"--log=hacc-io={log_of('hacc-io')}"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    location = str(tmp_path_factory.mktemp("validate") / "bench.sqlite")
    benchmarks = str(TESTBED / "benchmarks.csv")
    args = ["bench", "import", benchmarks, "--system", "testbed", "--tasks", "16", "--nodes", "8"]
    result = CliRunner().invoke(cli, [*args, "--db", location])
    assert result.exit_code == 0, result.output
    return location


@pytest.fixture
def validate(database: str) -> Validate:
    def run(reruns: str | Path, *options: str) -> Result:
        args = ["validate", str(reruns), "--system", "testbed", "--nodes", "8", "--db", database]
        return CliRunner().invoke(cli, [*args, *options])

    return run


@pytest.fixture(scope="module")
def record(database: str) -> dict[str, Any]:
    args = ["validate", str(APPLICATIONS), "--system", "testbed", "--nodes", "8", *LOGS]
    options = ["--explain-error", "--format", "json", "--db", database]
    result = CliRunner().invoke(cli, [*args, *options])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def predicted(name: str, database: str) -> dict[int, dict[str, float]]:
    args = ["predict", str(log_of(name)), "--system", "testbed", "--nodes", "8"]
    result = CliRunner().invoke(cli, [*args, "--format", "json", "--db", database])
    return {p["io_nodes"]: p["bandwidth_mib_s"] for p in json.loads(result.stdout)["curve"]}


def measured(name: str) -> dict[int, list[float]]:
    reruns: dict[int, list[float]] = {}
    with APPLICATIONS.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["name"] == name:
                reruns.setdefault(int(row["io_nodes"]), []).append(float(row["bandwidth_mib_s"]))
    return dict(sorted(reruns.items()))


@pytest.mark.parametrize("name", NAMES)
def test_the_numbers_are_those_of_predict_beside_the_csv(
    name: str, record: dict[str, Any], database: str
) -> None:
    curve, reruns = predicted(name, database), measured(name)
    [found] = [one for one in record["applications"] if one["application"] == name]
    errors = [abs(curve[n]["mean"] - run) / run for n, runs in reruns.items() for run in runs]
    assert found["prediction"]["runs"] == {
        "count": len(errors),
        "minimum": pytest.approx(min(errors)),
        "mean": pytest.approx(fmean(errors)),
        "median": pytest.approx(median(errors)),
        "maximum": pytest.approx(max(errors)),
    }
    means = {n: fmean(runs) for n, runs in reruns.items()}
    cells = [abs(curve[n]["mean"] - mean) / mean for n, mean in means.items()]
    assert found["prediction"]["cells"]["mean"] == pytest.approx(fmean(cells))
    best = max(curve, key=lambda n: curve[n]["mean"])
    assert found["best"]["predicted"] == best
    assert found["best"]["measured"] == max(means, key=means.__getitem__)
    assert found["prediction"]["regret"] == pytest.approx(1 - means[best] / max(means.values()))
    tau = kendalltau([curve[n]["mean"] for n in means], list(means.values())).statistic
    assert found["prediction"]["tau"] == pytest.approx(tau)
    inside = [
        curve[n]["p10"] <= run <= curve[n]["p90"] for n, runs in reruns.items() for run in runs
    ]
    assert found["prediction"]["coverage"] == pytest.approx(fmean(inside))
    floor = [
        abs((sum(runs) - run) / (len(runs) - 1) - run) / run
        for runs in reruns.values()
        for run in runs
    ]
    assert found["noise_floor"]["runs"]["mean"] == pytest.approx(fmean(floor))


def test_all_reruns_are_pooled(record: dict[str, Any]) -> None:
    # The README of the testbed lists 29 + 29 + 30 runs.
    assert record["all"]["prediction"]["runs"]["count"] == 88
    regrets = [one["prediction"]["regret"] for one in record["applications"]]
    assert record["all"]["prediction"]["regret"] == pytest.approx(fmean(regrets))
    runs = sum(kind["reruns"] for kind in record["phase_kinds"])
    assert runs == pytest.approx(88)


def test_the_kinds_are_those_that_the_applications_were_made_of(record: dict[str, Any]) -> None:
    # The README of the testbed describes multiphase; HACC-IO writes a file per process.
    kinds = {part["kind"] for part in record["applications"][0]["parts"]}
    assert record["applications"][0]["application"] == "multiphase"
    assert kinds == {
        "read POSIX shared contiguous",
        "write POSIX unique contiguous",
        "write POSIX shared sequential",
    }


def test_the_error_sources_add_up(record: dict[str, Any]) -> None:
    names = ("noise", "missing_pattern", "poor_match", "drift", "unexplained")
    explained = [*record["applications"], record["all"]]
    for sources in (one["error_sources"] for one in explained):
        assert sum(sources[name] or 0 for name in names) == pytest.approx(sources["total"])
    assert record["all"]["error_sources"]["total"] == pytest.approx(
        record["all"]["prediction"]["runs"]["mean"]
    )


def test_dunns_test_is_between_benchmark_and_application(record: dict[str, Any]) -> None:
    for one in record["applications"]:
        for point in one["curve"]:
            assert len(point["benchmark_mib_s"]) in (5, 6)
        # Holm multiplies the smallest of five p-values by five.
        adjusted = min(point["dunn_p_value"] for point in one["curve"])
        alone = min(
            kruskal(point["benchmark_mib_s"], point["measured_mib_s"]).pvalue
            for point in one["curve"]
        )
        assert adjusted == pytest.approx(min(1, 5 * alone))


def keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, (dict, list)):
            yield from keys(inner)


def test_the_documentation_names_every_key_and_no_other(record: dict[str, Any]) -> None:
    tables = DOCUMENTATION.split("## JSON", 1)[1]
    assert set(re.findall(r"`([a-z_0-9]+)`", tables)) == set(keys(record))


def test_the_documentation_shows_how_to_validate_the_shipped_data() -> None:
    shown = DOCUMENTATION.split("```sh\n", 1)[1].split("```", 1)[0]
    places = re.findall(r"[\w/.-]+\.(?:csv|darshan)", shown)
    assert len(places) == 5
    assert all((TESTBED / place).is_file() for place in places)


def test_the_table_shows_each_error_beside_its_noise_floor(
    validate: Validate, record: dict[str, Any]
) -> None:
    result = validate(APPLICATIONS, *LOGS, "--explain-error")
    assert result.exit_code == 0
    for one in record["applications"]:
        for of in ("prediction", "noise_floor"):
            mean, largest = one[of]["runs"]["mean"], one[of]["runs"]["maximum"]
            line = rf"{one['application']} +{of.replace('_', ' ')} .*{mean:.3f} .*{largest:.3f}"
            assert re.search(line, result.stdout)
    for title in ("regret within 5%", "Kendall's tau", "Dunn's p", "unexplained"):
        assert title in result.stdout


def test_one_application_has_no_line_for_all(validate: Validate, tmp_path: Path) -> None:
    path = tmp_path / "reruns.csv"
    path.write_text(HEADER + "hacc-io,0,0,40\nhacc-io,4,0,80\n", encoding="utf-8")
    result = validate(path, HACC)
    assert result.exit_code == 0
    assert not re.search(r"^all ", result.stdout, re.M)
    assert "Where the mean error" not in result.stdout


def test_reruns_can_be_logs(validate: Validate, tmp_path: Path) -> None:
    path = tmp_path / "reruns.csv"
    lines = [f"hacc-io,{n},{log_of('hacc-io', n)}" for n in (0, 4)]
    path.write_text("application,io_nodes,log\n" + "\n".join(lines), encoding="utf-8")
    found = json.loads(validate(path, HACC, "--format", "json").stdout)
    points = {point["io_nodes"]: point for point in found["applications"][0]["curve"]}
    # According to the README of the testbed, HACC-IO reaches 44.6 MiB/s with direct access.
    assert points[0]["measured_mib_s"] == [pytest.approx(44.6, rel=0.05)]
    assert points[1]["measured_mib_s"] == []


def test_a_prediction_is_checked_with_the_phases_that_it_is_made_from(
    validate: Validate, tmp_path: Path
) -> None:
    path = tmp_path / "reruns.csv"
    path.write_text(f"application,io_nodes,log\nhacc-io,4,{log_of('hacc-io', 4)}\n")
    found = json.loads(validate(path, HACC, "--all-files", "--format", "json").stdout)
    assert found["extraction"] == {"all_files": True}
    by_default = json.loads(validate(path, HACC, "--format", "json").stdout)
    assert "extraction" not in by_default
    # The log also has a file of STDIO, the standard output.
    assert found["warnings"] != by_default["warnings"]
    [with_all], [without] = (
        [
            one["measured_mib_s"]
            for one in record["applications"][0]["curve"]
            if one["io_nodes"] == 4
        ]
        for record in (found, by_default)
    )
    assert with_all != without


def test_an_application_without_a_log_is_an_error(validate: Validate) -> None:
    result = validate(APPLICATIONS, HACC)
    assert isinstance(result.exception, InputError)
    assert str(result.exception) == (
        f"{APPLICATIONS}: there are reruns of 'multiphase', 'periodic', but no log to predict from;"
        " add --log multiphase=FILE.darshan, or leave them out with --only hacc-io"
    )
    assert result.stdout == ""


def test_only_chosen_applications_need_a_log(validate: Validate, tmp_path: Path) -> None:
    every = json.loads(validate(APPLICATIONS, *LOGS, "--format", "json").stdout)
    result = validate(APPLICATIONS, HACC, "--only", "hacc-io", "--format", "json")
    record = json.loads(result.stdout)
    assert record["applications"] == [
        one for one in every["applications"] if one["application"] == "hacc-io"
    ]
    said = f"{APPLICATIONS}: reruns of 'multiphase', 'periodic' are left out (see --only)"
    assert said in record["warnings"]
    table = validate(APPLICATIONS, *LOGS, "--only", "hacc-io", "--only", "periodic")
    assert f"warning: {APPLICATIONS}: reruns of 'multiphase' are left out" in table.stderr


def test_logs_of_reruns_that_are_left_out_are_not_read(validate: Validate, tmp_path: Path) -> None:
    path = tmp_path / "reruns.csv"
    rows = f"hacc-io,4,0,{log_of('hacc-io', 4)}\nother,4,0,gone.darshan\n"
    path.write_text(f"application,io_nodes,repetition,log\n{rows}", encoding="utf-8")
    result = validate(path, HACC, "--only", "hacc-io")
    assert result.exit_code == 0, result.output


def test_a_chosen_application_without_reruns_is_an_error(validate: Validate) -> None:
    result = validate(APPLICATIONS, *LOGS, "--only", "multifase")
    assert str(result.exception) == (
        f"--only: {APPLICATIONS} has no reruns of 'multifase';"
        " it has those of multiphase, hacc-io and periodic"
    )


def test_a_misspelled_application_is_named_beside_those_without_a_log(validate: Validate) -> None:
    others = [log for log in LOGS if log != HACC]
    result = validate(APPLICATIONS, *others, HACC.replace("hacc-io=", "hacc="))
    assert "there are reruns of 'hacc-io', but" in str(result.exception)
    assert "('hacc' has a log, but no reruns)" in str(result.exception)


def test_a_log_without_reruns_is_a_warning(validate: Validate) -> None:
    result = validate(APPLICATIONS, *LOGS, f"--log=other={log_of('periodic')}")
    assert result.exit_code == 0
    assert f"warning: other: {APPLICATIONS} has no reruns of it" in result.stderr


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--log", "a.darshan"), "'a.darshan' is not APPLICATION=LOG"),
        (("--log", "=a.darshan"), "is not APPLICATION=LOG"),
        (("--log", "a="), "is not APPLICATION=LOG"),
        (("--log", "a=1", "--log", "a=2"), "'a' has two logs"),
        ((), "Missing option '--log'"),
    ],
)
def test_an_unusable_log_option_is_named(
    validate: Validate, options: tuple[str, ...], what: str
) -> None:
    result = validate(APPLICATIONS, *options)
    assert result.exit_code == 2
    assert what in result.stderr


def test_a_system_without_measurements_is_an_error(database: str) -> None:
    args = ["validate", str(APPLICATIONS), "--system", "elsewhere", *LOGS, "--db", database]
    result = CliRunner().invoke(cli, args)
    assert isinstance(result.exception, UnknownNameError)
    assert "systems with measurements: testbed" in str(result.exception)


def test_a_log_of_several_jobs_is_named(validate: Validate, tmp_path: Path) -> None:
    columns = "job,start,end,type,rank,bytes,time,api,requests,spatiality,files,n_files"
    phase = ",0,1,write,all,1048576,1,POSIX,16,contiguous,shared,1,16\n"
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(f"{columns},mode_processes\n1{phase}2{phase}", encoding="utf-8")
    path = tmp_path / "reruns.csv"
    path.write_text(HEADER + "two,0,0,40\n", encoding="utf-8")
    result = validate(path, f"--log=two={jobs}")
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith("two: the phases are of 2 jobs")


def test_reruns_that_nothing_is_predicted_for_are_named(validate: Validate, tmp_path: Path) -> None:
    path = tmp_path / "reruns.csv"
    path.write_text(HEADER + "hacc-io,0,0,40\nhacc-io,16,0,80\n", encoding="utf-8")
    result = validate(path, HACC, "--format", "json")
    record = json.loads(result.stdout)
    assert any("hacc-io: the reruns with 16 I/O nodes" in text for text in record["warnings"])
    [one] = record["applications"]
    assert one["prediction"]["runs"]["count"] == 1
    assert one["best"]["measured"] == 16


def test_an_application_that_nothing_resembles_has_no_scores(
    validate: Validate, tmp_path: Path
) -> None:
    columns = "job,start,end,type,rank,bytes,time,api,requests,spatiality,files,n_files"
    phase = "1,0,1,read,all,1048576,1,MPIIO,16,collective,shared,1,16\n"
    (tmp_path / "odd.csv").write_text(f"{columns},mode_processes\n{phase}", encoding="utf-8")
    path = tmp_path / "reruns.csv"
    path.write_text(HEADER + "odd,0,0,40\nodd,0,1,80\n", encoding="utf-8")
    html = tmp_path / "report.html"
    log = f"--log=odd={tmp_path / 'odd.csv'}"
    options = (log, "--explain-error", "--html", str(html))
    result = validate(path, *options)
    assert result.exit_code == 0, result.output
    assert (
        "odd: nothing is predicted (nothing in the database resembles any phase)" in result.stderr
    )
    record = json.loads(validate(path, *options, "--format", "json").stdout)
    [one] = record["applications"]
    assert (one["prediction"]["runs"], one["error_sources"]) == (None, None)
    assert html.is_file()


def test_markdown_has_the_numbers_of_the_table(validate: Validate) -> None:
    table, markdown = (
        validate(APPLICATIONS, *LOGS, "--format", kind).stdout for kind in ("table", "markdown")
    )
    cells = [re.sub(r"[|*: -]+", " ", text).split() for text in (table, markdown)]
    assert cells[0] == cells[1]
    assert "\n| periodic " in markdown


def test_each_log_tells_the_compute_nodes_of_its_application(database: str, tmp_path: Path) -> None:
    log = traced_log(tmp_path / "a.darshan", [f"n{rank // 2}" for rank in range(16)])
    reruns = tmp_path / "reruns.csv"
    reruns.write_text(HEADER + "app,0,1,50.0\napp,4,1,70.0\n")
    arguments = ["validate", str(reruns), "--system", "testbed", f"--log=app={log}"]
    options = ["--db", database, "--format", "json"]
    by_log, given, others = (
        CliRunner().invoke(cli, [*arguments, *nodes, *options])
        for nodes in ([], ["--nodes", "8"], ["--nodes", "1"])
    )
    predicted = [json.loads(each.stdout)["applications"] for each in (by_log, given, others)]
    assert predicted[0] == predicted[1]
    assert predicted[0] != predicted[2]
    assert "1 compute node is given, but the log names 8" in others.stdout
