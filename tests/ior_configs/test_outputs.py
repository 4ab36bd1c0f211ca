from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioncast_base.errors import InputError
from ior_configs import IorConfig, IorResult, read_outputs, sniff

FIXTURES = Path(__file__).parent / "fixtures"
MIB = 1 << 20
CSV_2020 = "ior -w -r -b 2m -t 2k"
COMMAND = "mpiexec -n 16 ior -w -r -b 16m -t 1m"
RESULT_CSV = (
    "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),numTasks,iter\n"
    "write,662.5639,662.7435,0.0054,16384.0000,1024.0000,0.0047,0.3863,0.3714,0.3864,16,0\n"
    "read,9784.4161,9817.8760,0.0014,16384.0000,1024.0000,0.0209,0.0261,0.0235,0.0262,16,0\n"
)
RANK_CSV = (
    "access,rank,runtime-with-openclose,runtime,throughput-withopenclose,throughput\n"
    "write,0,1.0000000000e+00,1.0000000000e+00,1.6777216000e+07,1.6777216000e+07\n"
    "write,1,2.0000000000e+00,1.0000000000e+00,8.3886080000e+06,1.6777216000e+07\n"
)


def read(name: str, command: str | None = None) -> list[IorResult]:
    return read_outputs((FIXTURES / name).read_text(), where=name, command=command)


def brief(results: list[IorResult]) -> list[tuple[str, int, float, int | None]]:
    return [(r.operation, r.repetition, r.bandwidth_mib_s, r.bytes) for r in results]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ((FIXTURES / "wr-shared.json").read_text(), "ior-json"),
        ((FIXTURES / "wr-shared-dxt.txt").read_text(), "ior-text"),
        ((FIXTURES / "wr-shared.txt").read_text(), "ior-text"),
        ("WARNING: x\n" + (FIXTURES / "wr-shared-dxt.txt").read_text(), "ior-text"),
        (RESULT_CSV, "ior-csv"),
        (RANK_CSV, "ior-rank-csv"),
        ("", None),
        ("{}", None),
        ("\x00\xff\n", None),
        ("access,size\n", None),
    ],
)
def test_the_format_is_recognised_from_the_text(text: str, name: str | None) -> None:
    assert sniff(text) == name


@pytest.mark.parametrize("name", ["wr-shared.json", "wr-shared-dxt.txt"])
def test_the_configuration_is_that_of_the_run(name: str) -> None:
    config = read(name)[0].config
    assert config.for_operation("write").pattern() == IorConfig(
        write=True, block_size=16 * MIB, transfer_size=MIB, tasks=16, nodes=1
    )
    assert config.operation == "write+read"


def test_json_gives_each_operation() -> None:
    results = read("wr-shared.json")
    assert brief(results) == [
        ("write", 0, 662.5639, 256 * MIB),
        ("read", 0, 9784.4161, 256 * MIB),
    ]
    assert [r.time_s for r in results] == [0.3864, 0.0262]
    assert {(r.ior_version, r.started, r.stonewalled) for r in results} == {
        ("4.0.0", "2026-11-21T03:01:33", False)
    }


def test_text_gives_each_operation() -> None:
    results = read("wr-shared-dxt.txt")
    assert brief(results) == [
        ("write", 0, 1860.03, 256 * MIB),
        ("read", 0, 7122.0, 256 * MIB),
    ]
    assert [r.time_s for r in results] == [0.137632, 0.035944]
    assert results[0].ior_version == "4.0.0"
    assert results[0].started == "2026-11-21T03:01:35"
    assert results[0].command == "ior -v -a POSIX -w -r -b 16m -t 1m -o data/wr-shared/f"


def test_json_numbers_the_repetitions() -> None:
    results = read("periodic-a.json")
    assert [r.repetition for r in results] == list(range(8))
    assert {r.bytes for r in results} == {24 * 4 * 512 * 1024}
    assert results[0].config.layout == "1d-strided"


def test_text_numbers_the_repetitions_and_dates_each() -> None:
    results = read("periodic-b-dxt.txt")
    assert [r.repetition for r in results] == list(range(8))
    assert {r.bytes for r in results} == {24 * 160 * 1024}
    assert len({r.started for r in results}) == 8


def test_tasks_that_a_table_lacks_come_from_the_command() -> None:
    assert read("wr-shared.txt")[0].config.tasks is None
    results = read("wr-shared.txt", command=COMMAND)
    assert results[0].config.tasks == 16
    assert brief(results) == brief(read("wr-shared.json"))


def test_nodes_that_the_caller_gives_replace_those_of_the_output() -> None:
    text = (FIXTURES / "w-shared-strided-8k.n1.r0.json").read_text()
    assert read_outputs(text, where="x")[0].config.nodes == 1
    result = read_outputs(text, where="x", nodes=8)[0]
    assert result.config.nodes == 8
    assert result.config.fsync == "end"
    assert result.config.spatiality == "sequential"


def test_result_csv_takes_its_configuration_from_the_command() -> None:
    results = read_outputs(RESULT_CSV, where="x.csv", command=COMMAND)
    assert brief(results) == brief(read("wr-shared.json"))
    assert results[0].command == COMMAND
    assert results[0].config.tasks == 16


@pytest.mark.parametrize(
    "told", [{"command": "mpiexec -n 4 ior -w -r -b 2m -t 2k"}, {"command": CSV_2020, "tasks": 4}]
)
def test_csv_without_a_number_of_tasks_gets_it_from_the_user(told: dict[str, Any]) -> None:
    text = (FIXTURES / "csv-without-numtasks.csv").read_text()
    results = read_outputs(text, where="x", **told)
    assert brief(results) == [("write", 0, 400.0, 8 * MIB), ("read", 0, 800.0, 8 * MIB)]
    assert {r.config.tasks for r in results} == {4}


def test_csv_without_a_number_of_tasks_needs_it() -> None:
    text = (FIXTURES / "csv-without-numtasks.csv").read_text()
    with pytest.raises(InputError) as raised:
        read_outputs(text, where="x", command=CSV_2020)
    assert "--tasks" in str(raised.value)
    assert '--command "mpiexec -n TASKS ior ..."' in str(raised.value)


def test_rank_csv_is_all_bytes_over_the_slowest_rank() -> None:
    results = read_outputs(RANK_CSV, where="x.csv", command="ior -w -b 16m -t 1m")
    assert brief(results) == [("write", 0, 16.0, 32 * MIB)]
    assert results[0].time_s == 2.0
    assert results[0].config.tasks == 2
    assert not results[0].stonewalled


def test_rank_csv_repeats_the_ranks_for_each_repetition() -> None:
    header, *ranks = RANK_CSV.splitlines()
    text = "\n".join([header, *ranks, *ranks, *(line.replace("write", "read") for line in ranks)])
    results = read_outputs(text, where="x.csv", command="ior -b 32m -t 1m")
    assert [(r.operation, r.repetition) for r in results] == [
        ("write", 0),
        ("write", 1),
        ("read", 0),
    ]
    assert all(r.stonewalled for r in results)


@pytest.mark.parametrize("text", [RESULT_CSV, RANK_CSV])
def test_csv_needs_the_command(text: str) -> None:
    with pytest.raises(InputError, match="does not contain the configuration") as raised:
        read_outputs(text, where="x.csv")
    assert '--command "ior ..."' in str(raised.value)
    assert str(raised.value).startswith("x.csv: ")


@pytest.mark.parametrize("text", [RESULT_CSV, RANK_CSV])
@pytest.mark.parametrize("command", ["ior -b 16m -t 3m -s 1", "ior -b 47008 -t 47008", "hacc_io 8"])
def test_csv_rejects_the_command_of_another_run(text: str, command: str) -> None:
    with pytest.raises(InputError):
        read_outputs(text, where="x.csv", command=command)


def test_rank_csv_with_missing_ranks_is_rejected() -> None:
    header, *ranks = RANK_CSV.splitlines()
    with pytest.raises(InputError, match="missing"):
        read_outputs("\n".join([header, ranks[1]]), where="x", command="ior -b 16m -t 1m")
    with pytest.raises(InputError, match="2 ranks"):
        read_outputs(RANK_CSV, where="x", command=COMMAND)


@pytest.mark.parametrize("bandwidth", ["0.0000", "-1.0000", "nan", "-nan", '"inf"', "1e999"])
def test_a_repetition_that_measured_nothing_is_left_out_with_a_warning(bandwidth: str) -> None:
    text = (FIXTURES / "wr-shared.json").read_text().replace('": 662.5639', f'": {bandwidth}')
    (result,) = read_outputs(text, where="x")
    assert result.operation == "read"
    assert "left out write of repetition 0" in result.warnings[0]


def test_a_run_that_measured_nothing_at_all_is_rejected() -> None:
    text = RESULT_CSV.replace("662.5639", "inf").replace("9784.4161", "-")
    with pytest.raises(InputError, match="left out write"):
        read_outputs(text, where="x", command=COMMAND)


def test_messages_in_the_middle_of_json_are_kept_as_warnings() -> None:
    text = (FIXTURES / "wr-shared.json").read_text()
    warning = "WARNING: Stat() of aggregate file size      = 3\nstonewalling pairs accessed: 4\n"
    noisy = text.replace('    "Results": [', f'{warning}    "Results": [')
    assert noisy != text
    results = read_outputs(noisy, where="x")
    assert brief(results) == brief(read("wr-shared.json"))
    assert results[0].warnings == ("Stat() of aggregate file size      = 3",)


def test_json_of_a_stonewalled_run_has_the_moved_bytes() -> None:
    document = json.loads((FIXTURES / "wr-shared.json").read_text())
    document["tests"][0]["Results"][0]["bwMiB"] = 100.5
    document["tests"][0]["Results"][0]["totalTime"] = 1.0049
    document["summary"][0]["xsizeMiB"] = 101.0
    write, read_ = read_outputs(json.dumps(document), where="x")
    assert (write.bytes, write.stonewalled) == (101 * MIB, True)
    assert not read_.stonewalled


def test_json_holds_several_tests() -> None:
    document = json.loads((FIXTURES / "wr-shared.json").read_text())
    second = json.loads(json.dumps(document["tests"][0]))
    second["TestID"] = 1
    second["Parameters"]["blockSize"] = 32 * MIB
    second["Parameters"]["collective"] = 1
    document["tests"].append(second)
    results = read_outputs(json.dumps(document), where="x")
    assert [r.config.block_size // MIB for r in results] == [16, 16, 32, 32]
    assert [r.config.collective for r in results] == [False, False, True, True]


def test_json_without_tests_is_one_clear_error() -> None:
    document = json.loads((FIXTURES / "wr-shared.json").read_text()) | {"tests": []}
    with pytest.raises(InputError, match="no test"):
        read_outputs(json.dumps(document), where="x")


def test_text_of_a_stonewalled_run_has_the_moved_bytes() -> None:
    text = (FIXTURES / "wr-shared-dxt.txt").read_text()
    moved = "WARNING: Using actual aggregate bytes moved = 1048576.\nwrite  "
    write, read_ = read_outputs(text.replace("\nwrite  ", f"\n{moved}", 1), where="x")
    assert (write.bytes, write.stonewalled) == (MIB, True)
    assert len(write.warnings) == 1
    assert (read_.bytes, read_.warnings) == (256 * MIB, ())


def test_options_that_ior_switched_off_are_off() -> None:
    text = (FIXTURES / "wr-shared-dxt.txt").read_text().replace(" -w -r", " -e -w -r")
    assert read_outputs(text, where="x")[0].config.fsync == "end"
    each = text.replace(" -e ", " -e -Y ")
    for reason in ("not supported in selected backend", "only available in POSIX"):
        warning = f"WARNING: fsync() {reason}.  Using value of 0.\n"
        assert read_outputs(warning + text, where="x")[0].config.fsync == "none"
        assert read_outputs(warning + each, where="x")[0].config.fsync == "each"


def test_text_of_ior_3_0_has_clients() -> None:
    text = """IOR-3.0.1: MPI Coordinated Test of Parallel I/O

Began: Thu Jan  2 03:04:05 2014
Command line used: ior -w -F -b 4m -t 1m
Machine: Linux host

Test 0 started: Thu Jan  2 03:04:06 2014
Summary:
\tapi                = POSIX
\taccess             = file-per-process
\tordering in a file = sequential offsets
\tordering inter file= no tasks offsets
\tclients            = 16 (8 per node)
\trepetitions        = 1
\txfersize           = 1 MiB
\tblocksize          = 4 MiB
\taggregate filesize = 64 MiB

access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ---------- ---------  --------   --------   --------   --------   ----
write     128.00     4096       1024.00    0.001000   0.499000   0.000100   0.500000   0
"""
    (result,) = read_outputs(text, where="x")
    assert (result.config.tasks, result.config.nodes) == (16, 2)
    assert (result.bytes, result.ior_version) == (64 * MIB, "3.0.1")


@pytest.mark.parametrize(
    ("printed", "api"),
    [
        ("MPIIO (version=3, subversion=1)", "MPIIO"),
        ("HDF5-1.8.13 (Parallel)", "HDF5"),
        ("HDF5-1.10.5 (Serial)", "HDF5"),
        ("NCMPI (version = 1.6.1 of 29 Jul 2015)", "NCMPI"),
        ("HDF5", "HDF5"),
        ("S3_plus", "S3_PLUS"),
        ("S3-libs3", "S3-LIBS3"),
    ],
)
def test_the_version_of_a_library_is_not_part_of_the_api(printed: str, api: str) -> None:
    text = (FIXTURES / "api-mpiio-301.txt").read_text()
    text = text.replace("MPIIO (version=3, subversion=1)", printed)
    text = text.replace("-a MPIIO", f"-a {api}")
    (result,) = read_outputs(text, where="x")
    command = f"mpiexec -n 4 ior -a {api} -w -b 16m -t 1m -o /scratch/t"
    assert result.config.command_line(launcher=True) == command
    assert (result.config.nodes, result.bytes) == (2, 64 * MIB)


@pytest.mark.parametrize("access", ["file-per-process", "single-shared-file"])
@pytest.mark.parametrize("kind", ["independent", "collective"])
def test_ior_3_0_prints_the_kind_of_access_behind_it(access: str, kind: str) -> None:
    text = (FIXTURES / "api-mpiio-301.txt").read_text()
    flags = "-F" * (access == "file-per-process") + " -c" * (kind == "collective")
    text = text.replace("-a MPIIO", f"-v -a MPIIO {flags}")
    text = text.replace("= single-shared-file", f"= {access}, {kind}")
    (result,) = read_outputs(text, where="x")
    assert result.config.file_per_process == (access == "file-per-process")
    assert result.config.collective == (kind == "collective")


@pytest.mark.parametrize("text", ["", " \n", "\x00\x01\x02", "hello", "{", '{"a": 1}'])
def test_other_texts_than_outputs_of_ior_are_one_clear_error(text: str) -> None:
    with pytest.raises(InputError, match=r"empty|not an output"):
        read_outputs(text, where="x")


@pytest.mark.parametrize("name", ["wr-shared.json", "wr-shared-dxt.txt"])
def test_an_output_cut_off_before_its_results_is_one_clear_error(name: str) -> None:
    text = (FIXTURES / name).read_text()
    for end in range(200, text.index("Results"), 97):
        with pytest.raises(InputError, match=r"cut off|ends before|command line|line of results"):
            read_outputs(text[:end], where="x")


SAMPLES = [*((path.read_text()) for path in sorted(FIXTURES.iterdir())), RESULT_CSV, RANK_CSV]
FRAGMENTS = [
    "",
    "0",
    "-1",
    "nan",
    "9" * 5000,
    "null",
    '"',
    "[",
    "{",
    "}",
    ",",
    "\n",
    "x",
    "é",
    "\0",
]


@given(st.data(), st.sampled_from(SAMPLES), st.sampled_from([None, COMMAND, "ior -b 16m -t 1m"]))
def test_mutated_outputs_are_results_or_one_clear_error(
    data: st.DataObject, text: str, command: str | None
) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 12)))
        text = text[:start] + data.draw(st.sampled_from(FRAGMENTS)) + text[end:]
    text = text[: data.draw(st.sampled_from([len(text), len(text) // 2, len(text) - 3]))]
    try:
        results = read_outputs(text, where="x", command=command)
    except InputError:
        return
    assert results
    assert all(0 < r.bandwidth_mib_s < float("inf") for r in results)


@given(st.data(), st.sampled_from([t for t in SAMPLES if t.lstrip().startswith("{")]))
def test_json_with_a_value_exchanged_is_results_or_one_clear_error(
    data: st.DataObject, text: str
) -> None:
    values = list(re.finditer(r'(?<=: )("[^"]*"|[0-9.]+)', text))
    chosen = data.draw(st.sampled_from(values))
    other = data.draw(st.sampled_from(["null", "[]", "{}", "-1", "true", '"x"', "7", "1e400"]))
    try:
        read_outputs(text[: chosen.start()] + other + text[chosen.end() :], where="x")
    except InputError:
        return


def _max_lines(text: str) -> dict[str, float]:
    return {
        name.lower(): float(value)
        for name, value in re.findall(r"^Max (Write|Read): +([0-9.]+) MiB/sec", text, re.MULTILINE)
    }


def _summary_table(text: str) -> list[dict[str, str]]:
    lines = text.partition("Summary of all tests:\n")[2].splitlines()
    if not lines:
        return []
    columns = lines[0].split()
    rows = (line.split() for line in lines[1:] if line.startswith(("write", "read")))
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _real_texts(shared_data: Path) -> list[Path]:
    paths = [*shared_data.glob("ior-outputs/*.txt"), *shared_data.glob("runs/ior_text/*.txt")]
    assert len(paths) > 70
    return sorted(paths)


def test_every_real_text_agrees_with_its_own_summary(shared_data: Path) -> None:
    for path in _real_texts(shared_data):
        text = path.read_text()
        results = read_outputs(text, where=path.name)
        for operation, best in _max_lines(text).items():
            measured = max(r.bandwidth_mib_s for r in results if r.operation == operation)
            assert measured == pytest.approx(best, abs=0.51), path.name
        for row in _summary_table(text):
            result = next(r for r in results if r.operation == row["Operation"])
            assert result.config.tasks == int(row["#Tasks"])
            assert result.config.block_size == int(row["blksiz"])
            assert result.config.transfer_size == int(row["xsize"])
            assert result.config.segments == int(row["segcnt"])
            assert result.config.file_per_process == (row["fPP"] == "1")
            assert result.bytes is not None
            assert result.bytes / MIB == pytest.approx(float(row["aggs(MiB)"]), abs=0.51, rel=1e-6)


def test_every_real_text_moved_bandwidth_times_time(shared_data: Path) -> None:
    for path in _real_texts(shared_data):
        for result in read_outputs(path.read_text(), where=path.name):
            assert result.time_s is not None
            if result.bytes is not None:
                product = result.bandwidth_mib_s * MIB * result.time_s
                assert product == pytest.approx(result.bytes, rel=0.01), path.name


def test_stonewalled_runs_moved_other_bytes_by_iors_own_warning(shared_data: Path) -> None:
    for path in sorted(shared_data.glob("ior-outputs/*.txt")):
        text = path.read_text()
        (result,) = read_outputs(text, where=path.name)
        moved = re.search(r"actual aggregate bytes moved = (\d+)", text)
        assert result.config.tasks is not None
        asked = result.config.tasks * result.config.bytes_per_process
        assert result.bytes == (int(moved[1]) if moved else asked), path.name
        assert result.stonewalled == (result.bytes != asked), path.name


def test_every_real_json_agrees_with_its_own_summary(shared_data: Path) -> None:
    paths = [*shared_data.glob("runs/ior_json/*"), *shared_data.glob("testbed/ior_json/*")]
    assert len(paths) > 400
    for path in paths:
        summary = json.loads(path.read_text())["summary"]
        results = read_outputs(path.read_text(), where=path.name)
        for entry in summary:
            measured = [r for r in results if r.operation == entry["operation"]]
            bandwidths = [r.bandwidth_mib_s for r in measured]
            assert max(bandwidths) == entry["bwMaxMIB"], path.name
            assert min(bandwidths) == entry["bwMinMIB"], path.name
            assert {r.bytes for r in measured} == {entry["xsizeMiB"] * MIB}, path.name
            assert {r.config.tasks for r in measured} == {entry["numTasks"]}, path.name


@pytest.mark.parametrize(
    ("pattern", "command", "ranks"),
    [
        ("csv-661-*", "ior -r -t 47008 -b 47008 -s 10000000", 420),
        ("csv-677-*", "ior -w -t 47008 -b 47008 -s 7000", 400),
        ("csv-712-*", "ior -r -F -t 2m -b 9920000m", 280),
        ("csv-744-*", "ior -w -F -t 2m -b 9920000m", 410),
    ],
)
def test_every_real_rank_csv_is_one_result(
    shared_data: Path, pattern: str, command: str, ranks: int
) -> None:
    (path,) = shared_data.glob(f"ior-outputs/{pattern}")
    (result,) = read_outputs(path.read_text(), where=path.name, command=command)
    assert result.config.tasks == ranks
    assert result.bytes is not None
    assert result.time_s is not None
    assert result.bandwidth_mib_s == pytest.approx(result.bytes / MIB / result.time_s)
    assert result.stonewalled == ("-s 7000" not in command)


def test_an_output_of_mdtest_is_named_as_one(shared_data: Path) -> None:
    text = (shared_data / "live" / "small-files.txt").read_text(encoding="utf-8")
    with pytest.raises(InputError, match="an output of mdtest"):
        read_outputs(text, where="x")
