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

from benchdb.measurements.importers import Source, read_measurements
from benchdb.measurements.storing import Measurement
from ioncast_base.errors import InputError
from ior_configs import IorConfig
from tests.support.emulated import wait_until

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
    file_format, [row] = read_measurements(Source("out.json", text, **told))
    assert file_format == "fio"
    return row


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
        row = read_measurements(Source("f", json.dumps(text_of), io_nodes=0, command=COMMAND))[1]
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert row[0].bandwidth_mib_s > 0


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
