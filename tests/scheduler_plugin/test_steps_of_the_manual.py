"""The commands of the manuals for admins name files, commands and options that exist."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import click
import pytest

from ioncast.cli import cli
from scheduler_plugin.settings import read_settings
from tests.support.slurm import Cluster, cluster

PROJECT = Path(__file__).resolve().parents[2]
DEPLOY = PROJECT / "scheduler_plugin" / "deploy"
SLURM, SERVICE = PROJECT / "docs" / "slurm.md", PROJECT / "docs" / "service.md"


def blocks(manual: Path) -> list[str]:
    """Read the commands for the shell, block by block."""
    found = re.findall(r"^( *)```sh\n(.*?)^\1```$", manual.read_text(), re.MULTILINE | re.DOTALL)
    return [text for _, text in found]


def block_with(words: str) -> str:
    """Find the block of the manual for Slurm that has these words."""
    [found] = [each for each in blocks(SLURM) if words in each]
    return found


def calls_of_ioncast(manual: Path) -> list[list[str]]:
    """Find the arguments of each `ioncast`, also after runuser."""
    lines = "\n".join(blocks(manual)).replace("\\\n", " ")
    starts = r"^(?:runuser -u \S+ -- )?(?:/opt/ioncast/bin/)?ioncast ([^()>|\n]+)"
    return [shlex.split(each, comments=True) for each in re.findall(starts, lines, re.MULTILINE)]


@pytest.mark.parametrize("manual", [SLURM, SERVICE], ids=lambda path: path.name)
def test_the_shell_can_read_all_blocks(manual: Path) -> None:
    assert blocks(manual)
    for block in blocks(manual):
        done = subprocess.run(
            ["sh", "-n"], input=block, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), block


@pytest.mark.parametrize("manual", [SLURM, SERVICE], ids=lambda path: path.name)
def test_all_files_that_the_steps_install_exist(manual: Path) -> None:
    named = re.findall(
        r"(?<![\w/.])(?:scheduler_plugin|ioncast)/[\w./*@-]+", "\n".join(blocks(manual))
    )
    assert named
    for pattern in named:
        assert list(PROJECT.glob(pattern)), pattern


@pytest.mark.parametrize("manual", [SLURM, SERVICE], ids=lambda path: path.name)
def test_all_commands_of_ioncast_in_the_steps_have_these_options(manual: Path) -> None:
    calls = calls_of_ioncast(manual)
    assert calls
    for words in calls:
        command: click.Command | None = cli
        rest = list(words)
        while isinstance(command, click.Group) and rest:
            command = command.get_command(click.Context(command), rest.pop(0))
        assert command is not None, words
        options = {name for parameter in command.params for name in parameter.opts}
        assert {word for word in rest if word.startswith("--")} <= options, words


def test_slurmrestd_listens_where_watch_and_arbiter_ask() -> None:
    unit = (DEPLOY / "slurmrestd.conf").read_text()
    command = re.findall(r"^ExecStart=(.+)$", unit, re.MULTILINE)[-1].split()
    for name in ("watch", "arbiter"):
        assert read_settings(DEPLOY / f"{name}.toml").slurmrestd.address == command[-1]
    folder = re.findall(r"^RuntimeDirectory=(.+)$", unit, re.MULTILINE)[0]
    assert command[-1].startswith(f"unix:/run/{folder}/")
    users = re.findall(r"^usermod --append --groups (\S+) (\S+)$", SLURM.read_text(), re.MULTILINE)
    assert set(users) >= {("slurmrestd", name) for name in ("ioncast-watch", "ioncast-arbiter")}


def test_the_steps_make_the_token_that_the_settings_of_the_plugin_name() -> None:
    settings = (PROJECT / "scheduler_plugin" / "lua" / "ioncast_settings.lua").read_text()
    token_file = re.findall(r'^    token_file = "(.+)",$', settings, re.MULTILINE)[0]
    steps = "\n".join(blocks(SLURM))
    assert f"install -m 600 -o slurm /dev/null {token_file} " in steps
    assert f"ioncast token add plugin --role scheduler > {token_file}\n" in steps


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("manual"), nodes=1) as found:
        yield found


@pytest.mark.slurm
def test_switching_off_changes_only_jobs_with_the_mark_of_ioncast(slurm: Cluster) -> None:
    def submitted(comment: str = "") -> int:
        job = slurm.submit("--begin=now+2hours", "--licenses=ionode:2")
        begin = datetime.fromisoformat(slurm.job(job)["EligibleTime"]).astimezone()
        text = comment.format(int(begin.timestamp()))
        slurm.run("scontrol", "update", f"JobId={job}", f"AdminComment={text}")
        return job

    def fields(name: str) -> list[str]:
        return [slurm.job(job)[name] for job in (held, moved, own)]

    held = submitted("billed to physics ioncast:0a:held until:{}")
    moved = submitted("ioncast:0b:held until:{}")
    own = submitted()
    slurm.run("scontrol", "update", f"JobId={moved}", "StartTime=now+3hours")
    slurm.run("sh", "-c", block_with("StartTime=now"))
    slurm.wait_for(held, "COMPLETED")
    assert fields("JobState")[1:] == ["PENDING", "PENDING"]
    assert fields("Licenses") == ["ionode:2", "ionode:2", "ionode:2"]
    slurm.run("sh", "-c", block_with("Licenses=\n"))
    assert fields("Licenses") in [["ionode:2", none, "ionode:2"] for none in ("", "(null)")]
