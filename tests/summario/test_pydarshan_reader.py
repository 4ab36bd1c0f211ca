"""`ioncast phases --reader darshan`: the same phases, and a line if a log crashes PyDarshan."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from experiments.applications.darshan_writer import write_log
from summario.reading.pydarshan import import_pydarshan
from tests.summario.test_phases_command import FIXTURES, run
from tests.support.examples import examples

pytestmark = pytest.mark.slow

LOG = FIXTURES / "multiphase.darshan"
OTHER_OPINION = "read it with ioncast's reader"


@pytest.fixture
def pydarshan() -> None:
    import_pydarshan("this test")


@pytest.mark.usefixtures("pydarshan")
@pytest.mark.parametrize("kind", [(), ("--trace",)])
def test_both_readers_say_the_same(kind: tuple[str, ...]) -> None:
    log = FIXTURES / "reopen-same-5x-dxt.darshan"
    own = run("phases", log, *kind)
    assert own.returncode == 0
    assert own.stdout.count("\n") >= 5
    second = run("phases", log, *kind, "--reader", "darshan")
    assert (second.returncode, second.stdout, second.stderr) == (0, own.stdout, own.stderr)


@pytest.mark.usefixtures("pydarshan")
def test_the_log_may_come_from_standard_input_or_from_gzip(tmp_path: Path) -> None:
    packed = tmp_path / "multiphase.darshan.gz"
    packed.write_bytes(gzip.compress(LOG.read_bytes()))
    for args, given, name in (
        ([packed], None, str(packed)),
        (["-"], LOG.read_bytes(), "standard input"),
    ):
        second = run("phases", *args, "--reader", "darshan", "--format", "json", given=given)
        assert (second.returncode, second.stderr) == (0, "")
        own = json.loads(run("phases", LOG, "--format", "json").stdout)
        assert json.loads(second.stdout) == [{**record, "log": name} for record in own]


@pytest.mark.usefixtures("pydarshan")
def test_a_log_that_pydarshan_cannot_read_has_a_line_and_the_others_are_printed(
    tmp_path: Path,
) -> None:
    cut, text = tmp_path / "cut.darshan", tmp_path / "text.darshan"
    cut.write_bytes(LOG.read_bytes()[:3000])
    text.write_text("no log")
    bzip2 = FIXTURES / "bzip2" / "multiphase.darshan"
    gone = tmp_path / "gone.darshan"
    done = run("phases", cut, text, bzip2, gone, LOG, "--reader", "darshan")
    assert done.returncode == 2
    assert done.stdout == run("phases", LOG).stdout
    assert done.stderr.splitlines() == [
        f"ioncast: {cut}: the log is truncated; fetch it again, or use the log of another run",
        f"ioncast: {text}: not a Darshan log; give a .darshan file",
        f"ioncast: {bzip2}: PyDarshan cannot read it: Failed to open file; {OTHER_OPINION}",
        f"ioncast: {gone}: No such file or directory",
    ]


@pytest.mark.usefixtures("pydarshan")
def test_more_processes_than_mpi_can_count_are_one_line(tmp_path: Path) -> None:
    log = write_log(tmp_path / "many.darshan", nprocs=1 << 62)
    done = run("phases", log, "--reader", "darshan")
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line == (
        f"ioncast: {log}: PyDarshan finds {1 << 62} processes in the job record; {OTHER_OPINION}"
    )


def test_without_pydarshan_one_line_says_what_to_do() -> None:
    done = run("phases", LOG, LOG, "--reader", "darshan", before="sys.modules['darshan'] = None")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "ioncast: --reader darshan needs PyDarshan, which is not installed; use Python 3.12 or"
        " older and install ioncast's extra `darshan`\n"
    )


@pytest.mark.slow
@pytest.mark.usefixtures("pydarshan")
def test_every_damaged_log_has_phases_or_a_line(tmp_path: Path) -> None:
    random.seed(17)
    count = examples(300)
    content = LOG.read_bytes()
    for number in range(count):
        damaged = bytearray(content)
        for _ in range(random.choice((1, 4, 64))):
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        (tmp_path / f"{number:03}.darshan").write_bytes(damaged)
    done = run("phases", tmp_path, "--reader", "darshan", "--format", "json")
    assert done.returncode in {0, 2}
    lines = done.stderr.splitlines()
    assert all(line.startswith("ioncast: ") for line in lines)
    printed = {record["log"] for record in json.loads(done.stdout)}
    for path in map(str, tmp_path.iterdir()):
        assert path in printed or any(path in line for line in lines)
