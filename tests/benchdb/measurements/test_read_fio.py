from __future__ import annotations

import copy
import json
import os
import signal
import subprocess
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchdb.measurements.importers import ImportOptions, ResultFile, read_measurements
from benchdb.measurements.storing import Measurement
from ioncast_base.errors import InputError
from ior_configs import IorConfig
from tests.support.emulated import wait_until

FIXTURES = Path(__file__).parent / "fixtures"
KIB, MIB = 1 << 10, 1 << 20
COMMAND = "mpiexec -n 2 ior -a POSIX -w -F -e -b 1m -t 256k"


def job(**changes: Any) -> dict[str, Any]:
    idle = {"io_bytes": 0, "io_kbytes": 0, "runtime": 0}
    write = {"io_bytes": MIB, "io_kbytes": KIB, "runtime": 500}
    usual = {"jobname": "a", "groupid": 0, "error": 0, "read": idle, "write": write, "trim": idle}
    return usual | changes


def document(*jobs: Any, **changes: Any) -> dict[str, Any]:
    usual = {"fio version": "fio-3.33", "timestamp": 1_700_000_000, "jobs": list(jobs)}
    return usual | changes


def output(*jobs: Any, **changes: Any) -> str:
    return json.dumps(document(*jobs, **changes), indent=2)


def read(text: str, **told: Any) -> Measurement:
    told = {"io_nodes": 2, "command": COMMAND} | told
    file_format, [row] = read_measurements(ResultFile("out.json", text), ImportOptions(**told))
    assert file_format == "fio"
    return row


def read_all(text: str, **told: Any) -> list[tuple[int | None, int | None, float | None]]:
    told = {"io_nodes": 2, "command": "ior -w -F -b 1m -t 256k"} | told
    rows = read_measurements(ResultFile("out.json", text), ImportOptions(**told))[1]
    return [(row.config.tasks, row.bytes, row.time_s) for row in rows]


def refusal(text: str, **told: Any) -> str:
    with pytest.raises(InputError) as caught:
        read(text, **told)
    line = str(caught.value)
    assert "\n" not in line
    return line


def test_the_bandwidth_is_all_bytes_over_the_time_of_the_slowest_process() -> None:
    slow = {"io_bytes": MIB, "io_kbytes": KIB, "runtime": 2000}
    row = read(output(job(), job(write=slow)))
    assert row == Measurement(
        IorConfig(
            write=True,
            file_per_process=True,
            fsync="end",
            block_size=MIB,
            transfer_size=256 * KIB,
            tasks=2,
            nodes=1,
        ),
        2,
        1.0,
        bytes=2 * MIB,
        time_s=2.0,
        started="2023-11-14T22:13:18+00:00",
        engine="fio",
        engine_version="3.33",
        command=COMMAND,
    )


def test_the_json_selects_the_operation_of_the_command() -> None:
    idle, moved = job()["read"], job()["write"]
    row = read(
        output(job(read=moved, write=idle), job(read=moved, write=idle)),
        command="mpiexec -n 2 ior -w -r",
    )
    assert row.config.operation == "read"


def test_the_json_gives_the_number_of_processes() -> None:
    assert read(output(job(), job(), job()), command="ior -w").config.tasks == 3


def test_a_time_of_few_milliseconds_is_noted() -> None:
    short = {"io_bytes": MIB, "io_kbytes": KIB, "runtime": 4}
    assert read(output(job(write=short), job(write=short))).note == (
        "fio rounded the time up to 4 ms"
    )
    assert read(output(job(), job())).note is None


@pytest.mark.parametrize(
    "around", ["{}\nfio: file hash not empty on exit\n", "note: iodepth\nfio: slow\n{}", "{}"]
)
def test_messages_around_the_json_are_ignored(around: str) -> None:
    assert read(around.format(output(job(), job()))).bytes == 2 * MIB


@pytest.mark.parametrize(
    ("text", "told", "said"),
    [
        (output(job(), job())[:-200], {}, "cut off or damaged"),
        ('{"fio version": "fio-3.33", "jobs": ' + "[" * 100_000, {}, "cut off or damaged"),
        (output(), {}, "no job"),
        (output(job(), job(error=28)), {}, "job 1 of fio failed: No space left on device"),
        (output(job(), job(error=2**62)), {}, "job 1 of fio failed"),
        (output(job(), job(groupid=1)), {}, "2 groups"),
        (output(job(), job(read=job()["write"])), {}, "both wrote and read"),
        (output(job(write=job()["read"])), {}, "neither wrote nor read"),
        (output(job(), job(write=job()["read"])), {}, "job 1 of fio moved nothing"),
        (output(job(write={"io_bytes": 8, "runtime": 0})), {"command": "ior -w"}, "0 ms"),
        (output(job()), {}, "the JSON has 1 job, but the command has 2 tasks"),
        (output(job(), job()), {"tasks": 4}, "the JSON has 2 jobs, but the command has 4 tasks"),
        (
            output(job(), job()),
            {"command": "ior -r"},
            "write in fio's JSON, but read",
        ),
        (output(job(), job()), {"command": None}, "--command"),
        (output(job(), job()), {"io_nodes": None}, "--io-nodes"),
        (output(job(), job()), {"command": "fio --rw=write"}, "ior"),
        (output(job(), job(), **{"fio version": "fio-2.16"}), {}, "use fio 3 or later"),
        (output(job(), job(), **{"fio version": 3}), {}, "'fio version'"),
        (
            output(job(), job(), **{"fio version": "fio-3.\ud800"}),
            {},
            "out.json: engine_version contains a NUL or half a character",
        ),
        (output(job(), job()), {"command": COMMAND + " -o \udcff"}, "out.json: command contains"),
        (output(job(), job(), timestamp=2**62), {}, "'timestamp'"),
        (output(job(), job(), timestamp="now"), {}, "'timestamp'"),
        (output(job(), "job"), {}, "'error'"),
        (output(job(), job(error=True)), {}, "'error'"),
        (output(job(write={"io_bytes": 2.5})), {}, "'io_bytes'"),
        (output(job(write={"io_bytes": -1})), {}, "'io_bytes'"),
        (output(job(write={"io_bytes": 8, "runtime": None})), {"command": "ior -w"}, "'runtime'"),
    ],
)
def test_an_output_that_cannot_be_used_is_one_line(
    text: str, told: dict[str, Any], said: str
) -> None:
    assert said in refusal(text, **told)


def moved(size: int, runtime: int, **changes: Any) -> dict[str, Any]:
    return job(write={"io_bytes": size, "runtime": runtime}, **changes)


def options(**values: str) -> dict[str, Any]:
    return {"job options": values}


def test_a_group_in_one_entry_has_the_processes_of_its_job() -> None:
    group = moved(4 * MIB, 500, **options(numjobs="4", bs="256k", size="1m"))
    assert read_all(output(group)) == [(4, 4 * MIB, 0.5)]
    in_all = output(moved(4 * MIB, 500), **{"global options": {"numjobs": "4"}})
    assert read_all(in_all) == [(4, 4 * MIB, 0.5)]
    each = moved(MIB, 500, **options(numjobs="4"))
    assert read_all(output(each, each, each, each)) == [(4, 4 * MIB, 0.5)]


@pytest.mark.parametrize("command", ["ior -w -F -b 4m -t 256k", "mpiexec -n 1 ior -w -F -b 4m"])
@pytest.mark.parametrize("numjobs", ["4", "2"])
def test_a_group_that_does_not_agree_with_the_command_is_an_error(
    command: str, numjobs: str
) -> None:
    """The entry of a group with other jobs has the options of one job only."""
    said = refusal(output(moved(4 * MIB, 500, **options(numjobs=numjobs))), command=command)
    assert "group_reporting" in said


@pytest.mark.parametrize("size", [MIB // 2, 2 * MIB])
def test_bytes_that_differ_from_block_times_tasks_are_an_error(size: int) -> None:
    said = refusal(output(moved(MIB, 500), moved(size, 500)))
    assert f"fio moved {MIB + size} bytes, but the command asks for {2 * MIB}" in said


def test_a_run_with_a_limited_time_may_move_other_bytes_and_says_so() -> None:
    limited = moved(7 * MIB, 2000, **options(runtime="2"))
    row = read(output(limited, limited))
    assert (row.bytes, row.bandwidth_mib_s) == (14 * MIB, 7.0)
    assert row.note is not None
    assert "because its time was limited" in row.note


def test_the_last_report_of_a_run_counts() -> None:
    times = [(MIB // 4, 1000), (MIB // 2, 2000), (MIB, 3600)]
    texts = [
        output(moved(size, ms), moved(size, ms), timestamp_ms=1_700_000_000_100 + ms)
        for size, ms in times
    ]
    assert read_all("\n".join(texts)) == [(2, 2 * MIB, 3.6)]
    # The last interim report may have all bytes already.
    both = "".join(output(moved(MIB, ms), timestamp_ms=1_700_000_000_100 + ms) for ms in (900, 950))
    assert read_all(both) == [(1, MIB, 0.95)]
    without_ms = output(moved(MIB // 2, 1000)) + "\n" + output(moved(MIB, 1600))
    assert read_all(without_ms) == [(1, MIB, 1.6)]


@pytest.mark.parametrize("between", ["", "\n", "\nnext run\n"])
def test_documents_of_runs_one_after_the_other_are_runs(between: str) -> None:
    texts = [
        output(moved(MIB, 500), timestamp=1_700_000_000),
        output(moved(MIB, 500), timestamp=1_700_000_000),
        output(moved(MIB, 400), moved(MIB, 300), timestamp=1_700_000_000),
        output(moved(MIB, 600), timestamp=1_700_000_000, timestamp_ms=1_700_000_000_000),
        output(moved(MIB, 700), timestamp=1_700_000_001, timestamp_ms=1_700_000_000_700),
        output(moved(MIB, 9000), timestamp=1_700_000_010, timestamp_ms=1_700_000_010_000),
    ]
    times = [(1, MIB, 0.5), (1, MIB, 0.5), (2, 2 * MIB, 0.4), (1, MIB, 0.6), (1, MIB, 0.7)]
    assert read_all(between.join(texts)) == [*times, (1, MIB, 9.0)]


def test_an_error_names_the_document() -> None:
    good = output(moved(MIB, 500))
    line = good.count("\n") + 2
    assert f"out.json:{line}: the JSON is cut off" in refusal(
        f"{good}\n{good[:-200]}", command="ior -w"
    )
    failed = output(moved(MIB, 500, error=28))
    assert f"out.json:{line}: job 0 of fio failed" in refusal(f"{good}\n{failed}", command="ior -w")


def test_writes_and_reads_that_fio_added_up_are_an_error_that_names_the_option() -> None:
    mixed = job(mixed={"io_bytes": MIB, "runtime": 500})
    assert read_all(output(mixed)) == [(1, MIB, 0.5)]
    del mixed["write"], mixed["read"]
    assert "unified_rw_reporting" in refusal(output(mixed))


def test_the_jobs_of_all_clients_are_processes_and_their_hosts_are_nodes() -> None:
    hosts = [{"hostname": f"n{n}", "port": 8765, **options(numjobs="2")} for n in (1, 2)]
    jobs = [moved(MIB, 500, **host) for host in hosts for _ in range(2)]
    sums = moved(4 * MIB, 500, jobname="All clients", hostname="n1", port=8765)
    clients = document(client_stats=[*jobs, sums])
    del clients["jobs"]
    row = read(json.dumps(clients), command="ior -w -F -b 1m -t 256k")
    assert (row.config.tasks, row.config.nodes, row.bytes) == (4, 2, 4 * MIB)
    groups = [moved(2 * MIB, 500, **host) for host in hosts]
    assert read_all(json.dumps(clients | {"client_stats": [*groups, sums]}))[0][0] == 4


@pytest.mark.parametrize(
    ("name", "seconds"), [("group-numjobs-job", 1.0), ("status-interval", 1.6), ("unified-rw", 0)]
)
def test_outputs_from_the_field(name: str, seconds: float) -> None:
    text = (FIXTURES / f"{name}.json").read_text()
    command = "ior -w -F -b 16m -t 64k"
    if not seconds:
        assert "unified_rw_reporting" in refusal(text, command=command)
        return
    tasks = 4 if name.startswith("group") else 1
    assert read_all(text, command=command) == [(tasks, tasks * 16 * MIB, seconds)]


@given(data=st.data())
def test_any_value_in_the_json_is_rejected_or_measured(data: st.DataObject) -> None:
    """A wrong value anywhere gives an error of ioncast or a measurement, never a crash."""
    whole = document(job(), job())
    at: Any = copy.deepcopy(whole)
    text_of = at
    while True:
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        if isinstance(at[key], (dict, list)) and at[key] and data.draw(st.booleans()):
            at = at[key]
            continue
        at[key] = data.draw(st.sampled_from([None, 0, -1, 2**70, 1.5, "x", [], {}, True]))
        break
    try:
        row = read_measurements(
            ResultFile("f", json.dumps(text_of)), ImportOptions(io_nodes=0, command=COMMAND)
        )[1]
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert row[0].bandwidth_mib_s > 0


def run(fio: str, folder: Path, *arguments: str) -> str:
    words = ["--name=x", "--rw=write", "--bs=256k", "--size=1m", f"--directory={folder}"]
    words += [*arguments, "--output-format=json"]
    done = subprocess.run([fio, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("--numjobs=4",),
        ("--numjobs=4", "--group_reporting"),
        # Four reports, of which the last one has all bytes.
        ("--numjobs=4", "--rate=320k", "--status-interval=1"),
        ("--numjobs=4", "--group_reporting", "--rate=320k", "--status-interval=1"),
        ("--numjobs=4", "--unified_rw_reporting=both"),
    ],
)
def test_runs_of_fio_itself_have_their_processes_and_bytes(
    fio: str, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    text = run(fio, tmp_path, *arguments)
    [(tasks, size, _)] = read_all(text)
    assert (tasks, size) == (4, 4 * MIB)
    again = run(fio, tmp_path, *arguments)
    assert [found[:2] for found in read_all(text + again)] == [(4, 4 * MIB)] * 2


def test_the_bytes_of_a_run_of_fio_itself_are_checked(fio: str, tmp_path: Path) -> None:
    other = ["--name=y", "--rw=write", "--bs=256k", "--size=1m", f"--directory={tmp_path}"]
    text = run(fio, tmp_path, "--group_reporting", *other, "--numjobs=2", "--group_reporting")
    assert "group_reporting" in refusal(text, command="ior -w -F -b 1m -t 256k")
    limited = run(fio, tmp_path, "--numjobs=2", "--time_based", "--runtime=1")
    assert read_all(limited)[0][0] == 2
    mixed = run(fio, tmp_path, "--unified_rw_reporting=1")
    assert "unified_rw_reporting" in refusal(mixed, command="ior -w -F -b 1m -t 256k")


def test_an_output_of_fio_itself_is_read(fio: str, tmp_path: Path) -> None:
    before = datetime.now(timezone.utc)
    subprocess.run(
        [
            fio,
            "--name=x",
            "--numjobs=2",
            "--rw=write",
            "--bs=256k",
            "--size=1m",
            "--end_fsync=1",
            f"--directory={tmp_path}",
            "--output-format=json",
            "--output=out.json",
        ],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    row = read((tmp_path / "out.json").read_text())
    version = subprocess.run([fio, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.strip() == f"fio-{row.engine_version}"
    assert row.bytes == 2 * MIB
    assert row.started is not None
    # fio and the database count whole seconds.
    started = datetime.fromisoformat(row.started)
    assert before - timedelta(seconds=2) <= started <= datetime.now(timezone.utc)


def test_a_run_with_a_killed_process_is_rejected(fio: str, tmp_path: Path) -> None:
    """Neither the exit code of fio nor its JSON tells that a process was killed."""
    command = [fio, "--name=x", "--numjobs=2", "--rw=write", "--bs=4k", "--size=64k", "--rate=32k"]
    command += ["--time_based", "--runtime=600"]
    command += ["--create_on_open=1", "--filename_format=x.$jobnum", "--output-format=json"]
    command += ["--output=out.json"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        # fio waits forever for a process that was killed before it began.
        wait_until(lambda: len(list(tmp_path.glob("x.*"))) == 2)
        jobs = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(jobs[-1]), signal.SIGKILL)
        # The other process runs until fio is interrupted.
        process.send_signal(signal.SIGINT)
        process.wait(120)
    finally:
        process.kill()
        process.wait()
    assert "of fio moved nothing" in refusal((tmp_path / "out.json").read_text())
