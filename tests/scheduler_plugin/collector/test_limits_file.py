"""The file of Slurm's limits, which the watch writes and the plugin reads."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ioncast_base.errors import InputError
from scheduler_plugin.collector.limits_file import LONGEST_BYTES, LimitsFile, text_of
from scheduler_plugin.slurm import SlurmAnswerError, SlurmError, SlurmUnreachableError
from scheduler_plugin.slurm.licence_limits import Limits

LIMITS = Limits(
    "ionode",
    8,
    partitions={"capped": 3},
    qos={"small": 2},
    accounts={"physics": 4},
    users={("physics", "bob"): 1},
    partition_users={("debug", "physics", "eve"): 3},
)
CONTENT = """\
ioncast-limits	1	1800000000	ionode
total	{total}
partition	capped	3
qos	small	2
account	physics	4
user	physics	bob	1
partition-user	debug	physics	eve	3
end	1800000000
"""
ONLY_TOTAL = "ioncast-limits\t1\t1800000000\tionode\ntotal\t8\nend\t1800000000\n"
NOW_S = 1_800_000_000.9


class FixedSlurm:
    """A Slurm with these limits, or with a failure."""

    total = 8
    limited = LIMITS
    fails: SlurmError | None = None

    def licence_total(self, licence: str) -> int:
        assert licence == "ionode"
        return self.total

    def limits(self, licence: str, total: int) -> Limits:
        if self.fails is not None:
            raise self.fails
        return self.limited


@pytest.fixture
def slurm() -> FixedSlurm:
    return FixedSlurm()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file as root makes it: the group of the watch may write to it."""
    path = tmp_path / "limits"
    path.touch()
    path.chmod(0o664)
    return path


def test_the_file_has_a_line_for_each_limit(slurm: FixedSlurm, path: Path) -> None:
    LimitsFile(path, "ionode", slurm).renew(NOW_S)
    assert path.read_text() == CONTENT.format(total=8)


def test_owner_group_and_mode_of_the_file_stay(slurm: FixedSlurm, path: Path) -> None:
    before = path.stat()
    LimitsFile(path, "ionode", slurm).renew(NOW_S)
    after = path.stat()
    assert stat.S_IMODE(after.st_mode) == 0o664
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)


def test_a_missing_file_is_not_created_because_the_watch_would_own_it(
    slurm: FixedSlurm, path: Path
) -> None:
    path.unlink()
    with pytest.raises(InputError, match=r"watch\.limits cannot be written: No such file"):
        LimitsFile(path, "ionode", slurm).renew(NOW_S)
    assert not path.exists()


def test_the_file_itself_stays_and_an_older_longer_content_is_gone(
    slurm: FixedSlurm, path: Path
) -> None:
    path.write_text("x" * 5000)
    number = path.stat().st_ino
    LimitsFile(path, "ionode", slurm).renew(NOW_S)
    assert path.stat().st_ino == number
    assert path.read_text() == CONTENT.format(total=8)


def test_without_accounting_the_file_has_the_total(slurm: FixedSlurm, path: Path) -> None:
    slurm.fails = SlurmAnswerError("there is no slurmdbd")
    LimitsFile(path, "ionode", slurm).renew(NOW_S)
    assert path.read_text() == ONLY_TOTAL


@pytest.mark.parametrize("kind", [SlurmUnreachableError, SlurmAnswerError])
def test_while_slurmdbd_is_away_its_last_limits_stay(
    slurm: FixedSlurm, path: Path, kind: type[SlurmError]
) -> None:
    file = LimitsFile(path, "ionode", slurm)
    file.renew(NOW_S - 60)
    slurm.fails, slurm.total = kind("slurmdbd is away"), 6
    if kind is SlurmUnreachableError:
        with pytest.raises(SlurmUnreachableError):
            file.renew(NOW_S)
    else:
        file.renew(NOW_S)
    assert path.read_text() == CONTENT.format(total=6)


def test_a_watch_that_starts_while_slurmdbd_is_away_leaves_the_file(
    slurm: FixedSlurm, path: Path
) -> None:
    LimitsFile(path, "ionode", slurm).renew(NOW_S)
    slurm.fails = SlurmUnreachableError("slurmdbd is away")
    with pytest.raises(SlurmUnreachableError):
        LimitsFile(path, "ionode", slurm).renew(NOW_S + 60)
    assert path.read_text() == CONTENT.format(total=8)


def test_names_that_would_break_a_line_are_left_out() -> None:
    limits = Limits("ionode", 8, qos={"a\tb": 1, "c\nd": 2, "two words": 3})
    assert text_of(limits, NOW_S).splitlines()[1:-1] == ["total\t8", "qos\ttwo words\t3"]


def test_a_file_that_cannot_be_written_is_named(slurm: FixedSlurm, tmp_path: Path) -> None:
    path = tmp_path / "missing" / "limits"
    with pytest.raises(InputError, match=r"watch\.limits cannot be written") as raised:
        LimitsFile(path, "ionode", slurm).renew(NOW_S)
    assert raised.value.where == str(path)


def test_a_pipe_in_its_place_stops_nobody(slurm: FixedSlurm, path: Path) -> None:
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(InputError, match="cannot be written"):
        LimitsFile(path, "ionode", slurm).renew(NOW_S)


def test_more_limits_than_the_plugin_reads_are_an_error(slurm: FixedSlurm, path: Path) -> None:
    slurm.limited = Limits("ionode", 8, qos={f"q{number}": 1 for number in range(LONGEST_BYTES)})
    with pytest.raises(InputError, match="the plugin reads 65536"):
        LimitsFile(path, "ionode", slurm).renew(NOW_S)
    assert path.read_bytes() == b""
