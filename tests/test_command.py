from __future__ import annotations

import csv
import html
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from benchdb.store.database import open_database
from experiments.applications.darshan_writer import Record, write_log
from ioncast.cli import COMMANDS, cli
from ior_configs import IorConfig
from tests.support.command import run_ioncast
from tests.support.traced import traced_log

PROJECT = Path(__file__).resolve().parents[1]
TESTBED = PROJECT / "experiments" / "data" / "testbed"
BENCHMARKS = TESTBED / "benchmarks.csv"
APPLICATIONS = TESTBED / "applications.csv"
HACC = TESTBED / "logs" / "hacc-io-ionodes4.darshan"
MULTIPHASE = TESTBED / "logs" / "multiphase-ionodes4.darshan"
IOR_JSON = PROJECT / "tests" / "ior_configs" / "fixtures" / "wr-shared.json"
IOR_TEXT = PROJECT / "tests" / "ior_configs" / "fixtures" / "wr-shared-dxt.txt"

PHASE_COLUMNS = (
    "job,start,end,type,rank,bytes,time,api,requests,spatiality,files,n_files,mode_processes"
)
PHASE = "7,0,1,write,all,67108864,1.0,POSIX,64,contiguous,shared,1,16"
OWN_CSV = "io_nodes,bandwidth_mib_s,command\n0,50,ior -w -b 4m -t 1m\n4,75,ior -w -b 4m -t 1m\n"

Result = subprocess.CompletedProcess
Run = Callable[..., "Result[str]"]


def start(
    *args: str | Path, stdout: int = subprocess.PIPE, **environment: str
) -> subprocess.Popen[str]:
    """Start a command in a process of its own, with its own pipes and encoding."""
    variables = {name: value for name, value in os.environ.items() if name != "IONCAST_DB"}
    return subprocess.Popen(
        [sys.executable, "-m", "ioncast", *map(str, args)],
        cwd=PROJECT,
        env=variables | environment,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="surrogateescape",
    )


def process(*args: str | Path, **environment: str) -> Result[str]:
    started = start(*args, **environment)
    out, err = started.communicate(timeout=120)
    return subprocess.CompletedProcess(args, started.returncode, out, err)


def ioncast(*args: str | Path, **environment: str) -> Result[str]:
    return run_ioncast(*args, folder=PROJECT, environment={"IONCAST_DB": None, **environment})


def output(*args: str | Path, **environment: str) -> str:
    """Output of a command that succeeds and writes only warnings to standard error."""
    return checked(ioncast(*args, **environment))


def checked(result: Result[str]) -> str:
    said = [line for line in result.stderr.splitlines() if not is_warning(line)]
    assert (result.returncode, said) == (0, []), result.stderr
    return result.stdout


def is_warning(line: str) -> bool:
    return line.startswith("ioncast: warning: ")


def complaint(result: Result[str]) -> str:
    """The only line that a failing command writes to standard error."""
    lines = [line for line in result.stderr.splitlines() if not is_warning(line)]
    assert result.returncode == 2, result.stderr
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("ioncast: ")
    return lines[0]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the testbed's benchmarks and their model; tests must not change it."""
    place = tmp_path_factory.mktemp("database") / "bench.sqlite"
    output(
        *("bench", "import", BENCHMARKS, "--system", "testbed"),
        *("--tasks", "16", "--nodes", "8", "--db", place),
    )
    first = ioncast("predict", HACC, "--system", "testbed", "--db", place)
    said = [line for line in first.stderr.splitlines() if not is_warning(line)]
    assert said == ["ioncast: fitting a model to 15 configurations"]
    return place


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "new" / "bench.sqlite"


def all_commands() -> list[list[str]]:
    found = []
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        found.append([name])
        if isinstance(command, click.Group):
            found += [[name, sub] for sub in command.list_commands(context)]
    return found


@pytest.mark.parametrize("command", [[], *all_commands()], ids=" ".join)
def test_the_help_of_every_command_has_examples(command: list[str]) -> None:
    result = CliRunner().invoke(cli, [*command, "--help"])
    assert result.exit_code == 0
    examples = re.split(r"Examples?:\n", result.output)[1:]
    assert len(examples) == 1
    assert " ".join(["ioncast", *command]) in examples[0]


def test_the_list_of_commands_has_the_first_sentences_of_their_helps() -> None:
    context = click.Context(cli)
    for name, (_, sentence) in COMMANDS.items():
        command = cli.get_command(context, name)
        assert command is not None
        assert command.get_short_help_str(300) == sentence


def test_help_imports_no_command() -> None:
    code = "import sys; from ioncast.cli import cli; cli(['--help'], standalone_mode=False);"
    code += "print(*sys.modules)"
    listed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    modules = listed.stdout.splitlines()[-1].split()
    assert "click" in modules
    assert not {"numpy", "sqlalchemy", "pydantic", "summario", "predictor"} & set(modules)


def test_the_documented_commands_exist() -> None:
    assert {" ".join(words) for words in all_commands()} >= {
        "phases",
        "match",
        "predict",
        "bench import",
        "bench list",
        "bench show",
        "bench export",
    }


@pytest.mark.parametrize(
    "args",
    [
        ("nonsense",),
        ("phases",),
        ("phases", "--layer", "x", HACC),
        ("phases", "--threshold", "2", HACC),
        ("predict", HACC),
        ("predict", HACC, "--system", "x", "--io-nodes", "1,x"),
        ("predict", HACC, "--system", "x", "--io-nodes", "-1"),
        ("predict", HACC, "--system", "x", "--nodes", "0"),
        ("predict", HACC, "--system", "x", "--tolerance", "1"),
        ("predict", HACC, "--system", "x", "--tolerance", "-0.1"),
        ("predict", HACC, "--system", "x", "--min-confidence", "1"),
        ("predict", HACC, "--system", "x", "--available", "-1"),
        ("predict", HACC, "--system", "x", "--default", "x"),
        ("predict", HACC, "--system", "x", "--ran-with", "-1"),
        ("bench", "import", BENCHMARKS, "--system", "x", "--io-nodes", "-1"),
        ("bench", "show", "x"),
    ],
    ids=lambda args: " ".join(Path(word).name for word in args),
)
def test_a_wrong_use_of_a_command_is_an_error(args: tuple[str | Path, ...]) -> None:
    result = CliRunner().invoke(cli, [str(word) for word in args])
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert "Error: " in result.stderr


# phases


def test_phases_as_csv_begin_with_the_known_columns() -> None:
    lines = output("phases", "--format", "csv", HACC).splitlines()
    assert (lines[0] + ",").startswith(PHASE_COLUMNS + ",")
    [row] = csv.DictReader(lines)
    known = ("type", "rank", "bytes", "api", "requests", "spatiality", "files", "n_files")
    assert {name: row[name] for name in (*known, "mode_processes")} == {
        "type": "write",
        "rank": "all",
        "bytes": "463453184",
        "api": "POSIX",
        "requests": "160",
        "spatiality": "contiguous",
        "files": "unique",
        "n_files": "16",
        "mode_processes": "1",
    }


def test_phases_are_the_same_as_json_and_as_csv() -> None:
    from_json = json.loads(output("phases", "--format", "json", MULTIPHASE))
    from_csv = list(csv.DictReader(io.StringIO(output("phases", "--format", "csv", MULTIPHASE))))
    assert len(from_json) == len(from_csv) == 3
    for record, row in zip(from_json, from_csv, strict=True):
        assert list(record)[:13] == PHASE_COLUMNS.split(",")
        assert {name: str(record[name]) for name in PHASE_COLUMNS.split(",")} == {
            name: row[name] for name in PHASE_COLUMNS.split(",")
        }
        assert sum(part["bytes"] for part in record["parts"]) == record["bytes"]


def test_phases_of_several_logs_come_in_the_order_of_the_logs() -> None:
    both = output("phases", "--format", "csv", MULTIPHASE, HACC).splitlines()
    assert both == [
        *output("phases", "--format", "csv", MULTIPHASE).splitlines(),
        *output("phases", "--format", "csv", HACC).splitlines()[1:],
    ]


def test_a_missing_log_among_good_ones_is_named_and_the_others_are_printed(tmp_path: Path) -> None:
    result = ioncast("phases", "--format", "csv", HACC, tmp_path / "gone.darshan", MULTIPHASE)
    assert "gone.darshan" in complaint(result)
    assert result.stdout == output("phases", "--format", "csv", HACC, MULTIPHASE)


@pytest.mark.parametrize("kind", ["missing", "folder", "empty", "text", "cut off", "csv"])
@pytest.mark.parametrize("command", ["phases", "match"])
def test_a_file_that_is_not_a_log_is_named_in_one_line(
    tmp_path: Path, kind: str, command: str
) -> None:
    path = tmp_path / "log.darshan"
    if kind == "folder":
        path.mkdir()
    elif kind != "missing":
        content = HACC.read_bytes()
        path.write_bytes(
            {"empty": b"", "text": b"hello\n" * 999, "cut off": content[:5000], "csv": b"a,b\n"}[
                kind
            ]
        )
    result = ioncast(command, path)
    assert str(path) in complaint(result)
    # An unreadable log is not a log without I/O.
    assert "no I/O" not in result.stdout


def test_every_unreadable_log_has_a_line_of_its_own(tmp_path: Path) -> None:
    result = process("phases", "--format", "json", tmp_path / "a", tmp_path / "b")
    assert result.returncode == 2
    assert [Path(line.split(": ")[1]).name for line in result.stderr.splitlines()] == ["a", "b"]
    assert json.loads(result.stdout) == []


_HEAVY = ("sqlalchemy", "alembic", "jinja2", "pandas", "darshan", "matplotlib", "scipy")


def modules_after(*args: str | Path) -> set[str]:
    script = (
        "import sys\nsys.argv[0] = 'ioncast'\nimport ioncast.cli\n"
        "try:\n    ioncast.cli.main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, *map(str, args)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.partition(".")[0] for name in result.stderr.splitlines()[-1].split()}


def test_phases_starts_without_the_other_rooms_libraries() -> None:
    assert modules_after("phases", HACC) & {*_HEAVY, "benchdb", "predictor"} == set()


def test_phases_starts_only_one_thread() -> None:
    # A thread for each core takes as long to start as everything else, and must not be forked.
    script = (
        "import sys, ioncast.cli\n"
        "try:\n    ioncast.cli.main()\nfinally:\n"
        "    print(open('/proc/self/status').read(), file=sys.stderr)"
    )
    args = (sys.executable, "-c", script, "phases", HACC)
    environment = {k: v for k, v in os.environ.items() if not k.endswith("NUM_THREADS")}
    done = subprocess.run(
        args, cwd=PROJECT, capture_output=True, text=True, check=True, env=environment
    )
    assert "Threads:\t1\n" in done.stderr


@pytest.mark.slow
def test_a_prediction_starts_without_the_libraries_of_plots_and_models(filled: Path) -> None:
    loaded = modules_after("predict", HACC, "--system", "testbed", "--db", filled)
    # With a stored model, libraries that fit models are not needed either.
    assert loaded & {*_HEAVY, "sklearn"} == {"sqlalchemy"}


@pytest.mark.slow
def test_commands_of_campaigns_start_without_the_predictor() -> None:
    loaded = modules_after("campaign", "status", "--help")
    assert loaded & {*_HEAVY, "numpy", "predictor"} == {"sqlalchemy"}


# match


def test_match_prints_a_line_of_ior_for_every_size() -> None:
    rows = json.loads(output("match", HACC, "--nodes", "8", "--format", "json"))
    assert {row["ior"] for row in rows} == {
        "mpiexec -n 16 ior -a POSIX -w -F -b 24m -t 24m",
        "mpiexec -n 16 ior -a POSIX -w -F -b 2800000 -t 400000",
        "mpiexec -n 16 ior -a POSIX -w -F -b 800000 -t 800000",
        "mpiexec -n 16 ior -a POSIX -w -F -b 200000 -t 200000",
    }
    table = output("match", HACC, "--nodes", "8")
    for row in rows:
        assert row["ior"] in table
        assert IorConfig.from_command_line(row["ior"]).problems() == []


def test_match_prints_the_benchmarks_that_the_application_consists_of() -> None:
    rows = json.loads(output("match", MULTIPHASE, "--format", "json"))
    assert [(row["type"], row["ior"]) for row in rows] == [
        ("read", "mpiexec -n 16 ior -a POSIX -r -b 4m -t 1m"),
        ("write", "mpiexec -n 16 ior -a POSIX -w -F -b 4m -t 1m"),
        ("write", "mpiexec -n 16 ior -a POSIX -w -b 64k -t 64k -s 32"),
    ]


def test_match_prints_one_run_of_ior_for_periodic_phases() -> None:
    folder = PROJECT / "tests/summario/fixtures/ior"
    log = folder / "fsync-posix-pauses-e.darshan"
    # The command of the run in manifest.csv, with a new file in each repetition.
    line = "mpiexec -n 4 ior -a POSIX -w -e -m -i 3 -d 2 -b 1m -t 128k"
    rows = json.loads(output("match", log, "--format", "json"))
    assert [row["periodic_ior"] for row in rows] == [line] * 3
    assert [row["period"]["times"] for row in rows] == [3] * 3
    said = output("match", log).splitlines()[-1]
    assert said.startswith("phases 0 to 2: the same I/O every 2.")
    assert said.endswith(f" s, 3 times; in one run: {line}")


def test_periodic_runs_of_ior_are_matched_with_their_own_commands(shared_data: Path) -> None:
    manifest = (shared_data / "runs/manifest.csv").read_text().splitlines()
    rows = [row for row in csv.DictReader(manifest) if row["name"].startswith("periodic")]
    assert len(rows) == 3
    for row in rows:
        ran = IorConfig.from_command_line("ior " + row["command"].split(" ior ", 1)[1])
        matched = json.loads(output("match", shared_data / "runs" / row["log"], "--format", "json"))
        assert IorConfig.from_command_line(matched[0]["periodic_ior"]) == replace(
            ran, tasks=24, test_file=None, summary_format=None, other_options=()
        )


@pytest.mark.parametrize("name", ["periodic-a", "periodic-b"])
def test_a_periodic_run_of_ior_is_imported_as_runs_of_one_configuration(
    shared_data: Path, tmp_path: Path, name: str
) -> None:
    database = tmp_path / "bench.sqlite"
    results = shared_data / "runs/ior_json" / f"{name}.json"
    done = run_ioncast(
        *("bench", "import", results, "--system", "here"),
        *("--io-nodes", "0", "--nodes", "1", "--db", database),
    )
    assert done.returncode == 0
    assert "8 measurements of 1 configuration" in done.stdout


def test_match_has_no_periodic_run_for_other_phases() -> None:
    rows = json.loads(output("match", MULTIPHASE, "--format", "json"))
    assert [(row["period"], row["periodic_ior"]) for row in rows] == [(None, None)] * 3


def test_match_prints_the_same_for_a_log_and_for_its_phases(tmp_path: Path) -> None:
    table = tmp_path / "phases.csv"
    table.write_text(output("phases", "--format", "csv", MULTIPHASE))
    for output_format in ("table", "json"):
        assert output("match", table, "--format", output_format) == output(
            "match", MULTIPHASE, "--format", output_format
        )


# Options of the extraction

STDIO_AND_POSIX = PROJECT / "tests" / "summario" / "fixtures" / "nonmpi.darshan"
FIVE_TIMES = PROJECT / "tests" / "summario" / "fixtures" / "reopen-same-5x.darshan"
OPTIONS_OF_LOGS = ("--threshold", "--time-distance", "--layer", "--all-files", "--min-share")


@pytest.mark.parametrize("name", ["phases", "match", "predict", "validate", "campaign plan"])
def test_all_commands_that_read_a_log_have_the_same_options(name: str) -> None:
    def helps(name: str) -> dict[str, object]:
        command = command_of(name)
        return {
            option.opts[0]: option.get_help_record(click.Context(command))
            for option in command.params
            if option.opts[0] in OPTIONS_OF_LOGS
        }

    assert set(helps(name)) == set(OPTIONS_OF_LOGS)
    assert helps(name) == helps("phases")


def command_of(name: str) -> click.Command:
    command: click.Command = cli
    for word in name.split():
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
    return command


@pytest.mark.parametrize(
    ("log", "options"),
    [
        (FIVE_TIMES, ("--time-distance", "60")),
        (MULTIPHASE, ("--threshold", "1")),
        (MULTIPHASE, ("--layer", "stdio", "--all-files")),
        (MULTIPHASE, ("--min-share", "0.3")),
    ],
    ids=lambda value: "" if isinstance(value, Path) else value[0],
)
def test_match_and_predict_use_the_phases_that_phases_prints(
    log: Path, options: tuple[str, ...], filled: Path
) -> None:
    phases = json.loads(output("phases", log, *options, "--format", "json"))
    assert phases != json.loads(output("phases", log, "--format", "json"))
    rows = json.loads(output("match", log, *options, "--format", "json"))
    assert [(row["type"], row["spatiality"]) for row in rows] == [
        (phase["type"], phase["spatiality"]) for phase in phases for _ in phase["parts"]
    ]
    record = predicted(log, filled, *options)
    assert [phase["phase"]["bytes"] for phase in record["phases"]] == [
        phase["bytes"] for phase in phases
    ]


def test_a_prediction_names_the_settings_that_are_not_the_default(filled: Path) -> None:
    record = predicted(MULTIPHASE, filled, "--time-distance", "5", "--threshold", "0.2")
    assert record["extraction"] == {"time_distance": 5.0}
    assert "extraction" not in predicted(MULTIPHASE, filled)


def test_small_phases_are_left_out_with_a_warning(filled: Path) -> None:
    warning = "phases with less than 0.3 of the bytes each are left out: 1 phase with 32 MiB"
    for command in (
        ("phases", MULTIPHASE),
        ("match", MULTIPHASE),
        ("predict", MULTIPHASE, "--system", "testbed", "--db", filled),
    ):
        assert warning in ioncast(*command, "--min-share", "0.3").stderr
    record = predicted(MULTIPHASE, filled, "--min-share", "0.3")
    assert any(said.startswith(warning) for said in record["warnings"])


@pytest.fixture(scope="module")
def many_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A process writes 900 files of 4 KiB: 0.345 s of metadata calls, 0.02 s of writes."""
    seconds = {
        "POSIX_F_META_TIME": 0.345 / 900,
        "POSIX_F_WRITE_TIME": 0.02 / 900,
        "POSIX_F_WRITE_END_TIMESTAMP": 0.4,
    }
    counters = {"POSIX_OPENS": 1, "POSIX_WRITES": 1, "POSIX_BYTES_WRITTEN": 4096}
    records = [Record("POSIX", f"/data/{i}", 0, counters, seconds) for i in range(900)]
    path = tmp_path_factory.mktemp("many") / "many.darshan"
    return write_log(path, nprocs=1, records=records)


def test_metadata_that_takes_longer_than_io_is_said_by_every_command(
    many_files: Path, filled: Path
) -> None:
    said = "phase 0: metadata calls (open, close, stat and others) on its 900 files take 0.345 s"
    assert said in ioncast("match", many_files).stderr
    prediction = ioncast("predict", many_files, "--system", "testbed", "--db", filled)
    assert said in prediction.stderr
    assert any(warning.startswith(said) for warning in predicted(many_files, filled)["warnings"])
    [phase] = json.loads(output("phases", many_files, "--format", "json"))
    assert phase["metadata_time"] == pytest.approx(0.345)
    assert output("phases", many_files).splitlines()[0].endswith("metadata s")


def test_a_log_without_phases_is_explained_by_every_command(filled: Path, tmp_path: Path) -> None:
    mapped = Record("POSIX", "/data/in", 0, {"POSIX_OPENS": 3, "POSIX_MMAPS": 2})
    log = write_log(tmp_path / "mapped.darshan", nprocs=1, records=[mapped])
    said = "no I/O phases: Darshan counted 3 opens and 2 mmaps of 1 file in POSIX"
    phases = ioncast("phases", log)
    assert (phases.returncode, phases.stdout) == (0, "no I/O phases\n")
    assert f"warning: {log}: {said}" in phases.stderr
    match = ioncast("match", log)
    assert (match.returncode, match.stdout) == (0, "no I/O phases\n")
    assert said in match.stderr
    prediction = ioncast("predict", log, "--system", "testbed", "--db", filled)
    assert prediction.stdout == "no prediction (the run has no I/O phases)\n"
    assert said in prediction.stderr
    record = predicted(log, filled)
    assert record["warnings"][0].startswith(said)
    assert "copy_file_range or sendfile" in record["warnings"][1]


def test_a_csv_of_phases_accepts_only_the_option_that_needs_no_log(tmp_path: Path) -> None:
    table = tmp_path / "phases.csv"
    table.write_text(output("phases", "--format", "csv", MULTIPHASE))
    kept = json.loads(output("match", table, "--min-share", "0.3", "--format", "json"))
    assert len(kept) == 2
    result = ioncast("match", table, "--layer", "posix", "--threshold", "0.5")
    assert result.returncode == 2
    assert f"{table}: --layer, --threshold" in result.stderr


@pytest.mark.slow
def test_a_table_is_printed_on_a_terminal_with_only_ascii() -> None:
    assert "mpiexec" in checked(process("match", HACC, LC_ALL="C"))


# bench


def imported(*args: str | Path, db: Path) -> Result[str]:
    return ioncast("bench", "import", *args, "--db", db)


def exported(db: Path, *args: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(output("bench", "export", "--db", db, *args))))


def test_a_bandwidth_of_0_and_a_read_from_the_page_cache_are_said(database: Path) -> None:
    output_of_ior = IOR_JSON.parent / "zero-bandwidth-write.txt"
    done = imported(output_of_ior, "--system", "x", "--io-nodes", "0", db=database)
    assert done.returncode == 0
    assert "1 measurement" in done.stdout
    cached, left_out = done.stderr.splitlines()
    assert is_warning(cached)
    assert is_warning(left_out)
    assert str(output_of_ior) in left_out
    assert "left out write of repetition 0: its bandwidth is 0" in left_out
    assert "page cache" in cached


def test_a_file_that_is_imported_twice_counts_once_with_a_note(database: Path) -> None:
    first = imported(BENCHMARKS, "--system", "testbed", db=database)
    assert (first.returncode, first.stderr) == (0, "")
    assert "440" in first.stdout
    before = exported(database)
    second = imported(BENCHMARKS, "--system", "testbed", db=database)
    assert (second.returncode, second.stderr) == (0, "")
    assert "nothing changed" in second.stdout
    assert exported(database) == before
    assert len(before) == 440


def test_the_export_has_the_promised_columns(filled: Path) -> None:
    rows = exported(filled)
    promised = {"system", "api", "operation", "io_nodes", "repetition", "bandwidth_mib_s"}
    assert promised <= set(rows[0])
    assert {row["system"] for row in rows} == {"testbed"}
    with BENCHMARKS.open(newline="") as file:
        measured = sorted(float(row["bandwidth_mib_s"]) for row in csv.DictReader(file))
    assert sorted(float(row["bandwidth_mib_s"]) for row in rows) == measured


def test_an_export_can_be_imported_and_exported_again_the_same(
    filled: Path, database: Path, tmp_path: Path
) -> None:
    table = tmp_path / "export.csv"
    table.write_text(output("bench", "export", "--db", filled))
    assert imported(table, "--system", "testbed", db=database).returncode == 0
    assert output("bench", "export", "--db", database) == table.read_text()


def test_rows_set_apart_survive_export_and_import(database: Path, tmp_path: Path) -> None:
    header = (
        "forwarders;clients;processes;layout;spatiality;odirect;stonewall;request;total;"
        "operation;time;transfered;bandwidth;population\n"
    )
    row = "0;8;96;1;0;1;60;512;9216;write;61.5;4096.5;66.609756;"
    forge = tmp_path / "forge.csv"
    forge.write_text(f"{header}{row}A\n{row}B\n")
    result = imported(forge, "--system", "there", db=database)
    assert result.returncode == 0
    assert "1 of them" in result.stdout
    table = tmp_path / "export.csv"
    table.write_text(output("bench", "export", "--db", database))
    again = tmp_path / "again.sqlite"
    assert imported(table, "--system", "there", db=again).returncode == 0
    rows = exported(again)
    assert rows == exported(database)
    assert [row["used"] for row in rows] == ["1", "0"]
    [curve] = json.loads(output("bench", "list", "--format", "json", "--db", again))
    assert curve["repetitions"] == {"0": 1}


def test_good_files_are_imported_although_others_are_bad(database: Path, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    good.write_text(OWN_CSV)
    bad.write_text(OWN_CSV + "8,fast,ior -w\n")
    result = imported(bad, good, tmp_path / "gone.csv", tmp_path, "--system", "x", db=database)
    assert result.returncode == 2
    lines = result.stderr.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("ioncast: ") for line in lines)
    assert f"{bad}:4:" in lines[0]
    assert "gone.csv" in lines[1]
    assert len(exported(database)) == 2


def test_ior_outputs_are_imported_with_options_for_what_they_lack(database: Path) -> None:
    for path, io_nodes in ((IOR_JSON, "1"), (IOR_TEXT, "4")):
        result = imported(
            *(path, "--system", "x", "--io-nodes", io_nodes, "--nodes", "8"), db=database
        )
        assert result.returncode == 0, result.stderr
    rows = exported(database)
    found = {(r["operation"], r["io_nodes"], r["tasks"], r["nodes"]) for r in rows}
    assert found == {
        (operation, io_nodes, "16", "8")
        for operation in ("read", "write")
        for io_nodes in ("1", "4")
    }


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (IOR_JSON.read_bytes(), ()),
        (b"", ()),
        (b"\x00\xff\xfe" * 1000, ()),
        (OWN_CSV.encode("utf-16"), ()),
        (OWN_CSV.replace("\n", "\r").encode(), ()),
        (OWN_CSV.replace("50", "1e999").encode(), ()),
        (OWN_CSV.replace("\n0,", "\n99999999999999999999,").encode(), ()),
        (OWN_CSV.encode() + b"8,90,ior -w -b 4m -t 1m -o '/" + b"x" * 200_000 + b"'\n", ()),
        (IOR_JSON.read_bytes()[:3000], ("--io-nodes", "4")),
    ],
    ids=[
        "ior without io nodes",
        "empty",
        "junk",
        "utf-16",
        "old line ends",
        "infinite",
        "too many io nodes",
        "a huge cell",
        "cut off",
    ],
)
def test_a_file_that_cannot_be_imported_gives_one_line(
    database: Path, tmp_path: Path, content: bytes, told: tuple[str, ...]
) -> None:
    path = tmp_path / "results"
    path.write_bytes(content)
    result = imported(path, "--system", "x", *told, db=database)
    assert str(path) in complaint(result)
    assert result.stdout == ""
    # The database is as before, without the new system's name.
    listed = ioncast("bench", "list", "--system", "x", "--db", database)
    assert re.search("no system|the database does not exist", complaint(listed))


def test_a_byte_order_mark_does_not_matter(database: Path, tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_bytes(OWN_CSV.replace("\n", "\r\n").encode("utf-8-sig"))
    result = imported(path, "--system", "x", db=database)
    assert (result.returncode, result.stderr) == (0, "")
    assert [row["bandwidth_mib_s"] for row in exported(database)] == ["50.0", "75.0"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "darwin", reason="file names are always UTF-8 there")
def test_a_file_name_that_is_not_text_does_not_matter(database: Path, tmp_path: Path) -> None:
    path = os.fsencode(tmp_path / "results") + b"\xff.csv"
    Path(os.fsdecode(path)).write_text(OWN_CSV)
    result = imported(os.fsdecode(path), "--system", "x", db=database)
    assert (result.returncode, result.stderr) == (0, "")
    log = os.fsencode(tmp_path / "log") + b"\xff.darshan"
    shutil.copy(HACC, os.fsdecode(log))
    for output_format in ("table", "csv", "json"):
        assert process("phases", "--format", output_format, os.fsdecode(log)).returncode == 0


@pytest.fixture(scope="module")
def of_eight_systems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with measurements of eight systems; tests must not change it."""
    folder = tmp_path_factory.mktemp("systems")
    for number in range(8):
        # Files with the same content are one import.
        (folder / "own.csv").write_text(OWN_CSV.replace("75", f"7{number}"))
        output(
            *("bench", "import", folder / "own.csv", "--system", f"machine-{number}x"),
            *("--db", folder / "bench.sqlite"),
        )
    return folder / "bench.sqlite"


@pytest.mark.parametrize(
    "command",
    [
        ("predict", HACC),
        ("validate", APPLICATIONS, "--log", f"hacc-io={HACC}", "--only", "hacc-io"),
        ("model", "fit"),
        ("model", "show"),
        ("bench", "list"),
        ("bench", "show", "1"),
        ("bench", "coverage"),
        ("bench", "export"),
        ("experiment", "scheduling"),
    ],
    ids=lambda command: " ".join(map(str, command[:2])),
)
def test_an_unknown_system_names_the_likeliest_ones(
    of_eight_systems: Path, command: tuple[str, ...]
) -> None:
    said = complaint(ioncast(*command, "--system", "Machine6x", "--db", of_eight_systems))
    assert "'Machine6x'" in said
    assert re.search(r"systems\D* machine-6x, (machine-\dx, ){3}machine-\dx and 3 others$", said)


def test_list_and_show_agree_with_the_benchmarks(filled: Path) -> None:
    listed = json.loads(output("bench", "list", "--format", "json", "--db", filled))
    assert len(listed) == 15
    assert sum(sum(entry["repetitions"].values()) for entry in listed) == 440
    table = output("bench", "list", "--system", "testbed", "--db", filled)
    for entry in listed:
        assert entry["configuration"] in table
    [strided] = [
        e
        for e in listed
        if e["configuration"].endswith("-b 8k -t 8k -s 64") and "-w" in e["configuration"]
    ]
    shown = json.loads(
        output("bench", "show", str(strided["id"]), "--format", "json", "--db", filled)
    )
    [curve] = shown
    assert list(curve["bandwidths_mib_s"]) == ["0", "1", "2", "4", "8"]
    with BENCHMARKS.open(newline="") as file:
        measured = [
            float(row["bandwidth_mib_s"])
            for row in csv.DictReader(file)
            if (row["name"], row["io_nodes"]) == ("w-shared-strided-8k", "1")
        ]
    assert curve["bandwidths_mib_s"]["1"] == measured
    assert "testbed" in output("bench", "show", str(strided["id"]), "--db", filled)


def test_an_empty_database_can_be_listed_and_exported(database: Path) -> None:
    open_database(database).dispose()
    assert output("bench", "list", "--db", database).strip() == "no measurements"
    assert json.loads(output("bench", "list", "--format", "json", "--db", database)) == []
    assert exported(database) == []


def test_a_missing_configuration_gives_one_line(filled: Path) -> None:
    assert "999" in complaint(ioncast("bench", "show", "999", "--db", filled))


@pytest.mark.parametrize(
    "args",
    [("bench", "list"), ("bench", "show", "1"), ("bench", "export"), ("predict", HACC)],
    ids=["list", "show", "export", "predict"],
)
def test_an_unknown_system_lists_the_known_ones(filled: Path, args: tuple[str | Path, ...]) -> None:
    result = ioncast(*args, "--system", "nowhere", "--db", filled)
    line = complaint(result)
    assert "nowhere" in line
    assert "testbed" in line
    assert result.stdout == ""


# The location of the database


def test_the_environment_gives_the_location_of_the_database(tmp_path: Path) -> None:
    path, results = tmp_path / "by-variable.sqlite", tmp_path / "results.csv"
    results.write_text(OWN_CSV)
    output("bench", "import", results, "--system", "x", IONCAST_DB=str(path))
    assert path.is_file()
    assert len(exported(path)) == 2


def test_the_option_overrides_the_environment(tmp_path: Path) -> None:
    by_option, by_variable = tmp_path / "option.sqlite", tmp_path / "variable.sqlite"
    results = tmp_path / "results.csv"
    results.write_text(OWN_CSV)
    command = ("bench", "import", results, "--system", "x", "--db", by_option)
    output(*command, IONCAST_DB=str(by_variable))
    assert (by_option.exists(), by_variable.exists()) == (True, False)


def test_reading_creates_no_database(tmp_path: Path) -> None:
    mistyped = tmp_path / "folder" / "typo.sqlite"
    result = ioncast("predict", HACC, "--system", "x", "--db", mistyped)
    assert "the database does not exist yet" in complaint(result)
    assert str(mistyped) in result.stderr
    assert not mistyped.parent.exists()


@pytest.mark.parametrize(
    "command",
    [
        *(("bench", "list"), ("bench", "show", "1"), ("bench", "coverage"), ("bench", "export")),
        *(("model", "show"), ("token", "list"), ("experiment", "scheduling", "--system", "x")),
    ],
    ids=" ".join,
)
def test_a_named_database_that_does_not_exist_is_an_error(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    mistyped = tmp_path / "folder" / "typo.sqlite"
    for result in (
        ioncast(*command, "--db", mistyped),
        ioncast(*command, IONCAST_DB=str(mistyped)),
    ):
        assert f"ioncast: {mistyped}: the database does not exist; " in complaint(result)
        assert result.stdout == ""
    assert not mistyped.parent.exists()


def test_without_a_name_a_new_user_has_an_empty_database(tmp_path: Path) -> None:
    result = ioncast("bench", "list", XDG_DATA_HOME=str(tmp_path))
    assert (result.returncode, result.stdout) == (0, "no measurements\n")
    assert f"warning: {tmp_path}/ioncast/ioncast.sqlite: the database does not exist yet" in (
        result.stderr
    )
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_import_is_named_and_can_be_corrected(tmp_path: Path) -> None:
    db, results = tmp_path / "bench.sqlite", PROJECT / "tests/ior_configs/fixtures/wr-shared.json"
    command = ("bench", "import", results, "--system", "x", "--db", db, "--io-nodes")
    output(*command, "4")
    wrong = ioncast(*command, "8")
    complaint(wrong)
    assert "--replace" in wrong.stderr
    assert {row["io_nodes"] for row in exported(db)} == {"4"}
    output(*command, "8", "--replace")
    assert [row["io_nodes"] for row in exported(db)] == ["8", "8"]


def test_the_database_can_be_a_url(tmp_path: Path, filled: Path) -> None:
    url = f"sqlite:///{filled}"
    assert output("bench", "export", "--db", url) == output("bench", "export", "--db", filled)


@pytest.mark.parametrize("place", ["file", "below", "folder", "url", "port"])
def test_a_database_that_cannot_be_used_gives_one_line(tmp_path: Path, place: str) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("these are notes\n" * 100)
    places = {
        "file": str(text),
        "below": str(text / "bench.sqlite"),
        "folder": str(tmp_path),
        "url": "nonsense://x",
        "port": "postgresql://host:port/name",
    }
    results = tmp_path / "results.csv"
    results.write_text(OWN_CSV)
    result = ioncast("bench", "import", results, "--system", "x", "--db", places[place])
    complaint(result)
    assert result.stdout == ""


# The hosts of 16 processes on 8 compute nodes, as the testbed's benchmarks ran.
HOSTS = [f"n{rank // 2}" for rank in range(16)]


def test_match_takes_the_compute_nodes_from_the_log(tmp_path: Path) -> None:
    log = traced_log(tmp_path / "a.darshan", HOSTS)
    [row] = json.loads(output("match", log, "--format", "json"))
    assert (row["nodes"], row["nodes_source"]) == (8, "log")
    assert output("match", log).endswith("\ncompute nodes: 8, from the host names in the log\n")
    [row] = json.loads(output("match", log, "--nodes", "8", "--format", "json"))
    assert (row["nodes"], row["nodes_source"]) == (8, "given")
    assert "host names" not in output("match", log, "--nodes", "8")


def test_match_warns_of_a_number_that_the_log_contradicts(tmp_path: Path) -> None:
    log = traced_log(tmp_path / "a.darshan", HOSTS)
    result = ioncast("match", log, "--nodes", "4", "--format", "json")
    assert json.loads(result.stdout)[0]["nodes"] == 4
    assert "4 compute nodes are given, but the log names 8" in result.stderr


def test_match_does_not_take_a_lower_bound_for_the_number(tmp_path: Path) -> None:
    log = traced_log(tmp_path / "a.darshan", HOSTS, nprocs=32)
    result = ioncast("match", log, "--format", "json")
    [row] = json.loads(result.stdout)
    assert (row["nodes"], row["nodes_source"]) == (None, None)
    assert "the job had at least 8; give the number" in result.stderr


@pytest.mark.parametrize("name", ["programs/hdf5-dxt", "reopen-same-5x-dxt", "single-a"])
def test_compute_nodes_of_genuine_logs(name: str) -> None:
    """All ran on one machine; single-a has no trace."""
    rows = json.loads(
        output("match", PROJECT / f"tests/summario/fixtures/{name}.darshan", "--format", "json")
    )
    expected = (None, None) if name == "single-a" else (1, "log")
    assert {(row["nodes"], row["nodes_source"]) for row in rows} == {expected}


# predict


def predicted(source: Path, db: Path, *args: str) -> dict[str, Any]:
    text = output(
        *("predict", source, "--system", "testbed", "--db", db, "--format", "json"), *args
    )
    record: dict[str, Any] = json.loads(text)
    return record


def test_the_compute_nodes_in_the_log_find_the_benchmark_of_the_same_sizes(
    filled: Path, tmp_path: Path
) -> None:
    log = traced_log(tmp_path / "a.darshan", HOSTS)
    found, given = predicted(log, filled), predicted(log, filled, "--nodes", "8")
    assert (found["nodes"], found["nodes_source"]) == (8, "log")
    assert (given["nodes"], given["nodes_source"]) == (8, "given")
    # HACC-IO writes without fsync, the benchmarks with one at the end.
    match = found["phases"][0]["match"]
    assert (match["kind"], match["distance"]) == ("interpolated", 0)
    assert match["differences"] == [{"name": "fsync", "wanted": "none", "measured": "end"}]
    assert found["curve"] == given["curve"]
    assert found["warnings"] == given["warnings"]
    table = output("predict", log, "--system", "testbed", "--db", filled)
    assert "\ncompute nodes: 8, from the host names in the log\nbest: " in table


def test_a_prediction_is_the_same_as_json_and_as_a_table(filled: Path) -> None:
    record = predicted(HACC, filled, "--nodes", "8")
    assert list(record) == [
        *("system", "job", "nodes", "nodes_source", "curve", "best", "decision"),
        *("own_run", "earlier_run", "phases", "warnings"),
    ]
    assert record["system"] == "testbed"
    assert [point["io_nodes"] for point in record["curve"]] == [0, 1, 2, 4, 8]
    table = output("predict", HACC, "--system", "testbed", "--nodes", "8", "--db", filled)
    for point in record["curve"]:
        mean = f"{point['bandwidth_mib_s']['mean']:.1f}"
        assert re.search(
            rf"^{point['io_nodes']}\s+{mean}\s.*\b{point['basis']}$", table, re.MULTILINE
        )
    assert table.splitlines()[0] == record["own_run"]["in_words"]
    assert f"best: {record['best']['io_nodes']} I/O nodes" in table
    decision = record["decision"]
    assert f"decision: {decision['io_nodes']} I/O nodes ({decision['why']})" in table
    assert record["earlier_run"] is None


def test_a_prediction_from_phases_is_the_same_as_from_the_log(filled: Path, tmp_path: Path) -> None:
    table = tmp_path / "phases.csv"
    table.write_text(output("phases", "--format", "csv", MULTIPHASE))
    assert predicted(table, filled, "--nodes", "8") == predicted(MULTIPHASE, filled, "--nodes", "8")


def test_the_thirteen_columns_are_enough_for_a_prediction(filled: Path, tmp_path: Path) -> None:
    table = tmp_path / "phases.csv"
    table.write_text(f"{PHASE_COLUMNS}\n{PHASE}\n")
    record = predicted(table, filled, "--nodes", "8")
    assert record["job"] == 7
    match = record["phases"][0]["match"]
    assert (match["kind"], match["distance"]) == ("interpolated", 0)
    assert match["differences"] == [{"name": "fsync", "wanted": None, "measured": "end"}]
    assert record["best"]["io_nodes"] == 8


def test_only_the_given_numbers_of_io_nodes_are_predicted(filled: Path) -> None:
    record = predicted(HACC, filled, "--nodes", "8", "--io-nodes", "4, 0,3")
    # No benchmark ran with 3 I/O nodes, so this point rests on the model.
    assert [point["io_nodes"] for point in record["curve"]] == [0, 3, 4]
    assert record["curve"][1]["basis"] == "model"
    assert any("with 3 I/O nodes; the model" in warning for warning in record["warnings"])


def test_a_decision_follows_the_options_of_the_site(filled: Path) -> None:
    record = predicted(HACC, filled, "--nodes", "8", "--tolerance", "0")
    assert record["decision"]["io_nodes"] == record["best"]["io_nodes"] == 8
    assert record["decision"]["tolerance"] == 0
    none = ioncast("predict", HACC, "--system", "testbed", "--db", filled, "--tolerance", "nan")
    assert "'nan' is not a valid number" in complaint(none)
    few = predicted(HACC, filled, "--nodes", "8", "--available", "2")
    assert few["best"]["io_nodes"] == 8
    assert few["decision"]["io_nodes"] <= 2
    generous = predicted(HACC, filled, "--nodes", "8", "--tolerance", "0.9")
    assert generous["decision"]["io_nodes"] == 0
    assert (
        predicted(HACC, filled, "--nodes", "8", "--default", "4")["decision"]["source"] == "model"
    )
    # 4 I/O nodes give 85% of the bandwidth with 8, so they are chosen but not sure to be enough.
    told = ("--tolerance", "0.15", "--default", "8", "--min-confidence", "0.999")
    sure = predicted(HACC, filled, "--nodes", "8", *told)
    assert (sure["decision"]["io_nodes"], sure["decision"]["source"]) == (8, "default")


def test_without_benchmarks_the_decision_is_the_sites_default(filled: Path, tmp_path: Path) -> None:
    table = tmp_path / "phases.csv"
    table.write_text(phase(type="read", spatiality="random"))
    for told, source, io_nodes in (((), "none", None), (("--default", "4"), "default", 4)):
        decision = predicted(table, filled, *told)["decision"]
        assert (decision["source"], decision["io_nodes"]) == (source, io_nodes)
        assert decision["bandwidth_mib_s"] is None


def test_an_earlier_run_corrects_the_curve_and_is_named(filled: Path) -> None:
    without = predicted(HACC, filled, "--nodes", "8")
    record = predicted(HACC, filled, "--nodes", "8", "--ran-with", "4")
    earlier = record["earlier_run"]
    assert earlier["io_nodes"] == 4

    def at_4(found: dict[str, Any]) -> float:
        [mean] = [p["bandwidth_mib_s"]["mean"] for p in found["curve"] if p["io_nodes"] == 4]
        return float(mean)

    low, high = sorted([at_4(without), earlier["bandwidth_mib_s"]])
    assert low <= at_4(record) <= high
    assert at_4(record) != at_4(without)


def test_an_explanation_is_a_list_of_sentences(filled: Path) -> None:
    record = predicted(HACC, filled, "--nodes", "8", "--explain")
    assert record["explanation"]
    table = output(
        "predict", HACC, "--system", "testbed", "--nodes", "8", "--db", filled, "--explain"
    )
    assert all(sentence in table for sentence in record["explanation"])
    assert "explanation" not in predicted(HACC, filled, "--nodes", "8")


def test_an_earlier_run_that_took_no_time_gives_one_line(filled: Path, tmp_path: Path) -> None:
    table = tmp_path / "phases.csv"
    table.write_text(phase(time="0"))
    result = ioncast(
        *("predict", table, "--system", "testbed", "--db", filled, "--nodes", "8"),
        *("--ran-with", "4"),
    )
    assert f"{table}: the run cannot correct its own prediction" in complaint(result)
    assert result.stdout == ""


@pytest.mark.parametrize("number", ["10001", "1000000", "9" * 30])
@pytest.mark.parametrize("option", ["--io-nodes", "--ran-with"])
def test_more_io_nodes_than_any_machine_has_give_one_line(
    filled: Path, option: str, number: str
) -> None:
    result = ioncast("predict", HACC, "--system", "testbed", "--db", filled, option, number)
    assert option in complaint(result)
    assert result.stdout == ""


@pytest.mark.parametrize("value", ["", "0,-1", "0,,4", "four", "٣", "9" * 5000])
def test_a_wrong_list_of_numbers_of_io_nodes_gives_one_line(filled: Path, value: str) -> None:
    result = ioncast("predict", HACC, "--system", "testbed", "--db", filled, "--io-nodes", value)
    assert "--io-nodes" in complaint(result)


def test_one_io_node_is_singular(filled: Path) -> None:
    table = output("predict", HACC, "--system", "testbed", "--db", filled, "--io-nodes", "1")
    assert "best: 1 I/O node (" in table
    assert "decision: 1 I/O node (" in table


def test_without_a_predicted_number_that_is_available_there_is_no_decision(filled: Path) -> None:
    table = output(
        *("predict", HACC, "--system", "testbed", "--db", filled, "--nodes", "8"),
        *("--io-nodes", "4,8", "--available", "0"),
    )
    assert "best: 8 I/O nodes (" in table
    assert "no decision (no bandwidth is known with" in table


def test_an_unmeasured_number_of_io_nodes_of_the_earlier_run_is_named(
    filled: Path,
) -> None:
    for ran_with, said in (("4", False), ("3", True)):
        found = predicted(HACC, filled, "--nodes", "8", "--ran-with", ran_with)
        assert any("that the earlier run had" in line for line in found["warnings"]) is said


@pytest.mark.slow
def test_a_plot_has_all_warnings_and_names_gaps_in_the_prediction(
    filled: Path, tmp_path: Path
) -> None:
    table, page, place = (tmp_path / name for name in ("phases.csv", "curve.html", "b.sqlite"))
    table.write_text(phase(type="read", spatiality="random"))
    shutil.copy(filled, place)
    by_fio = tmp_path / "fio.csv"
    by_fio.write_text("engine,io_nodes,bandwidth_mib_s,command\nfio,0,50,ior -w -b 4m -t 1m\n")
    output("bench", "import", by_fio, "--system", "testbed", "--db", place)
    result = ioncast("predict", table, "--system", "testbed", "--db", place, "--plot", page)
    warnings = filter(is_warning, result.stderr.splitlines())
    said = [line.removeprefix("ioncast: warning: ") for line in warnings]
    text = html.unescape(page.read_text(encoding="utf-8"))
    assert "No prediction: nothing in the database resembles any phase." in text
    assert any("fio measured on this system too" in line for line in said)
    for line in said:
        assert f"<li>{line}</li>" in text


def test_a_plot_is_one_file_that_needs_no_other(filled: Path, tmp_path: Path) -> None:
    page = tmp_path / "curve.html"
    output("predict", HACC, "--system", "testbed", "--db", filled, "--plot", page)
    text = page.read_text(encoding="utf-8")
    assert "testbed" in text
    assert not re.search(r"<script[^>]*\bsrc\s*=", text)


def test_a_plot_in_a_missing_folder_gives_one_line(filled: Path, tmp_path: Path) -> None:
    page = tmp_path / "gone" / "curve.html"
    result = ioncast("predict", HACC, "--system", "testbed", "--db", filled, "--plot", page)
    assert str(page) in complaint(result)


def test_phases_of_several_jobs_give_one_line(filled: Path, tmp_path: Path) -> None:
    table = tmp_path / "phases.csv"
    table.write_text(output("phases", "--format", "csv", HACC, MULTIPHASE))
    said = complaint(ioncast("predict", table, "--system", "testbed", "--db", filled))
    assert str(table) in said


def phase(**cells: str) -> str:
    names = PHASE_COLUMNS.split(",")
    row = dict(zip(names, PHASE.split(","), strict=True)) | cells
    return ",".join(row) + "\n" + ",".join(row.values()) + "\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\x00\x01",
        PHASE_COLUMNS.replace(",api", "") + "\n",
        PHASE_COLUMNS + "\n7,0,1\n",
        PHASE_COLUMNS + "\n" + PHASE + ",more\n",
        phase(bytes="-1"),
        phase(bytes="many"),
        phase(requests="-1"),
        phase(start="nan"),
        phase(time="inf"),
        phase(type="append"),
        phase(n_files="-1"),
        phase(parts="1048576x0"),
        phase(parts="1048576x-64"),
        phase(parts="nanx64"),
        phase(parts="infx64"),
        phase(parts="1048576"),
        phase(bytes=str(2**70)),
        phase(processes="x"),
    ],
    ids=lambda text: repr(text[-60:]),
)
def test_impossible_phases_give_one_line(filled: Path, tmp_path: Path, text: str) -> None:
    table = tmp_path / "phases.csv"
    table.write_text(text, newline="")
    result = ioncast("predict", table, "--system", "testbed", "--db", filled, "--format", "json")
    assert str(table) in complaint(result)
    assert result.stdout == ""


def test_a_log_without_phases_has_its_job(filled: Path) -> None:
    record = predicted(HACC, filled, "--layer", "stdio")
    assert (record["phases"], record["job"]) == ([], predicted(HACC, filled)["job"])
    assert record["job"] is not None


def test_without_phases_there_is_no_prediction(filled: Path, tmp_path: Path) -> None:
    table = tmp_path / "phases.csv"
    table.write_text(PHASE_COLUMNS + "\n")
    assert predicted(table, filled)["best"]["io_nodes"] is None


# Pipes


@pytest.mark.slow
@pytest.mark.parametrize("command", ["phases", "export", "predict"])
def test_a_reader_that_closes_the_pipe_is_not_a_failure(filled: Path, command: str) -> None:
    args = {
        "phases": ("phases", "--format", "json", *[MULTIPHASE] * 40),
        "export": ("bench", "export", "--db", filled),
        "predict": ("predict", HACC, "--system", "testbed", "--format", "json", "--db", filled),
    }[command]
    reading, writing = os.pipe()
    started = start(*args, stdout=writing)
    os.close(writing)
    os.close(reading)
    _, said = started.communicate(timeout=120)
    assert [line for line in said.splitlines() if not is_warning(line)] == []


@pytest.mark.slow
def test_a_name_that_the_terminal_cannot_show_is_not_a_failure(tmp_path: Path) -> None:
    database = tmp_path / "bench.sqlite"
    (tmp_path / "own.csv").write_text(OWN_CSV)
    ioncast("bench", "import", tmp_path / "own.csv", "--system", "Ωmega", "--db", database)
    listed = process("bench", "list", "--db", database, PYTHONIOENCODING="latin-1")
    assert listed.returncode == 0, listed.stderr
    assert r"\u03a9mega" in listed.stdout
