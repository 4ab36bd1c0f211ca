from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from benchdb.campaigns.platform_file import read_platform
from experiments.platform import remains
from experiments.platform.commands import down_command, exec_command, status_command
from experiments.platform.description import read_description
from experiments.platform.emulated import Emulated
from ioncast_base.errors import IoncastError
from tests.support.emulated import emulated, leftovers, small, wait_until

pytestmark = pytest.mark.platform

TOML = """
name = "{name}"
io_nodes = [0, 1]
[compute_nodes]
count = 1
processes = 2
[storage]
servers = 1
memory = "100m"
[links]
compute_nodes = "1gbit"
io_nodes = "1gbit"
storage = "1gbit"
"""


def platform_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ioncast", "platform", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_up_status_exec_down(name: str, tmp_path: Path) -> None:
    file = tmp_path / "platform.toml"
    file.write_text(TOML.format(name=name))
    up = platform_command("up", str(file))
    assert (up.returncode, up.stderr) == (0, "")
    assert f"/run/ioncast-platform/{name}/platform.toml" in up.stdout
    status = platform_command("status", name)
    assert status.returncode == 0
    # The compute node has two daemons and mounts: for 0 and for 1 I/O nodes.
    assert re.search(r"^cn0 +1gbit +2 of 2 +2 of 2$", status.stdout, re.MULTILINE)
    done = platform_command(
        "exec", "--name", name, "--io-nodes", "1", "--", "sh", "-c", "echo $IONCAST_RANK -n"
    )
    assert sorted(done.stdout.splitlines()) == ["0 -n", "1 -n"]
    down = platform_command("down", name)
    assert (down.returncode, down.stdout) == (0, f"{name} is down\n")
    assert leftovers(name) == []
    again = platform_command("down", name)
    assert (again.returncode, again.stdout) == (0, f"{name} is not up\n")


def test_status_shows_the_nodes_that_do_not_work(name: str) -> None:
    with emulated(small(name)):
        (forwarder,) = [pid for pid, what in remains.marks(name).items() if what == "forwarder0"]
        os.kill(forwarder, signal.SIGKILL)
        wait_until(lambda: forwarder not in remains.marks(name))
        status = platform_command("status", name, "--format", "json")
        assert status.returncode == 1
        nodes = {node["node"]: node for node in json.loads(status.stdout)["nodes"]}
        assert (nodes["io0"]["daemons_alive"], nodes["io0"]["daemons"]) == (0, 1)
        # I/O node 0 is dead: the mounts for 0 I/O nodes still answer, and that of cn1 for two.
        assert [nodes[node]["mounts_answering"] for node in ("cn0", "cn1")] == [1, 2]
        assert nodes["pf0"]["daemons_alive"] == 1


def test_status_of_a_platform_that_is_not_up_is_a_failure() -> None:
    status = platform_command("status", "nowhere", "--format", "json")
    assert status.returncode == 1
    found = json.loads(status.stdout)
    assert found["nodes"] == []
    assert found["found"] == {"folder": None, "namespaces": 0, "processes": 0, "mounts": 0}


def test_campaigns_accept_the_platform_file(platform: Emulated) -> None:
    found = read_platform(platform.campaign_platform)
    assert found.system == platform.name
    assert found.io_nodes == (0, 1, 2)
    assert (found.nodes, found.processes_per_node) == (2, 2)
    assert found.test_directory == str(platform.scratch)
    assert "{io_nodes}" in found.launch


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["up", "missing.toml"], "missing.toml: cannot be read"),
        (["up", "--name", "a/b"], "cannot be the name of a platform"),
        (["down", "../etc"], "cannot be the name of a platform"),
        (["exec", "--name", "nowhere", "--io-nodes", "1", "true"], "no platform called nowhere"),
        (["exec", "--name", "nowhere", "--on", "cn0", "--through", "io0", "true"], "no platform"),
        (["exec", "true"], "give either --on and --through"),
        (["exec", "--on", "cn0", "--io-nodes", "1", "true"], "give either --on and --through"),
        (["exec", "--on", "cn0", "true"], "give either --on and --through"),
    ],
)
def test_a_wrong_command_is_an_error_of_one_line(arguments: list[str], said: str) -> None:
    done = platform_command(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        (status_command, []),
        (status_command, ["nowhere"]),
        (exec_command, ["--io-nodes=1", "--", "true"]),
        (down_command, ["nowhere"]),
    ],
)
def test_only_root_can_use_the_commands(
    command: click.Command, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(IoncastError, match=r"only root can .*; run the command with sudo"):
        command.main(arguments, standalone_mode=False)


def test_down_has_the_same_default_as_up() -> None:
    [name] = [one for one in down_command.params if one.name == "name"]
    assert name.get_default(click.Context(down_command)) == read_description().name
