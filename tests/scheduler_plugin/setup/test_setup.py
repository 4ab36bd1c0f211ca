"""`ioncast slurm setup`: the plan, and its files."""

from __future__ import annotations

import grp
import os
import pwd
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from ioncast_base.errors import InputError
from scheduler_plugin.check import plugin, rights
from scheduler_plugin.check.controller import Controller, read_configuration
from scheduler_plugin.file_rights import Entry, Rule, rights_problems
from scheduler_plugin.settings import read_settings
from scheduler_plugin.setup.applying import differences, make_file, state_of
from scheduler_plugin.setup.plan import Answers, SetupPlan, WantedFile, setup_plan

# `scontrol show config` of Debian's Slurm without changes.
CONFIGURATION = """\
AccountingStorageType   = accounting_storage/none
AuthAltTypes            = (null)
AuthAltParameters       = (null)
JobSubmitPlugins        = (null)
Licenses                = (null)
SlurmUser               = slurm(64030)
SLURM_CONF              = /etc/slurm/slurm.conf
SLURM_VERSION           = 22.05.8
"""
ANSWERS = Answers("mn4", 12, "/scratch/darshan")
WITH_SLURMDBD = {"accountingstoragetype": "accounting_storage/slurmdbd"}


def planned(answers: Answers = ANSWERS, *, group: str = "slurm", **changed: str) -> SetupPlan:
    slurm = Controller({**read_configuration(CONFIGURATION), **changed}, {})
    return setup_plan(answers, slurm, group, has_packaged_units=False)


def file_in(plan: SetupPlan, path: str) -> WantedFile:
    [found] = [file for file in plan.files if file.path == path]
    return found


def test_the_settings_of_the_watch_have_the_answers(tmp_path: Path) -> None:
    file = tmp_path / "watch.toml"
    file.write_bytes(file_in(planned(), "/etc/ioncast/watch.toml").content)
    settings = read_settings(file)
    assert settings.system == "mn4"
    assert settings.darshan is not None
    assert settings.darshan.folder == "/scratch/darshan"
    tokens = (settings.service.token_file, settings.slurmrestd.token_file)
    cron = file_in(planned(), "/etc/cron.d/ioncast-watch").content.decode()
    assert file_in(planned(), tokens[0]).role == "scheduler"
    assert cron.split()[-2:] == [settings.slurmrestd.user, tokens[1]]


@pytest.mark.skipif(not shutil.which("lua5.1"), reason="needs Lua")
def test_the_plugin_accepts_its_settings_and_asks_in_shadow_mode(tmp_path: Path) -> None:
    for name in plugin.FILES:
        (tmp_path / name).write_bytes(file_in(planned(), f"/etc/slurm/{name}").content)
    tmp_path.chmod(0o755)
    found = plugin.ask_plugin(tmp_path, pwd.getpwuid(os.getuid()).pw_name)
    assert (found.modes, found.pool, found.of("system")) == ({"shadow"}, 12, "mn4")
    # The token does not exist on this machine.
    assert [text for text in found.complaints if "token" not in text] == []


def test_the_plugin_reads_its_token_beside_slurm_conf() -> None:
    plan = planned(slurm_conf="/opt/slurm/etc/slurm.conf")
    settings = file_in(plan, "/opt/slurm/etc/ioncast_settings.lua").content.decode()
    [path] = re.findall(r'^    token_file = "(.+)",$', settings, re.MULTILINE)
    assert file_in(plan, path).owner == "slurm"


@pytest.mark.parametrize(
    ("changed", "interfaces"),
    [
        ({}, "-s openapi/v0.0.38 "),
        (WITH_SLURMDBD, "-s openapi/v0.0.38,openapi/dbv0.0.38 "),
        ({**WITH_SLURMDBD, "slurm_version": "24.11.3"}, ""),
        ({"slurm_version": "23.02.1"}, ""),
        # Its slurmrestd ends at once when it loads the interface of a slurmdbd that is not there.
        ({"slurm_version": "24.11.5"}, "-s slurmctld "),
    ],
)
def test_slurmrestd_loads_the_interfaces_of_its_version(
    changed: dict[str, str], interfaces: str
) -> None:
    file = file_in(planned(**changed), "/etc/systemd/system/slurmrestd.service.d/ioncast.conf")
    socket = "unix:/run/slurmrestd/slurmrestd.sock"
    command = f"ExecStart=/usr/sbin/slurmrestd -a rest_auth/jwt {interfaces}{socket}"
    assert file.content.decode().splitlines()[-1] == command


def test_a_slurmrestd_that_accepts_tokens_stays_as_it_is() -> None:
    plan = planned(Answers("mn4", 12, "/scratch/darshan", "http://10.0.0.1:6820"))
    assert not [file for file in plan.files if "slurmrestd" in file.path or "jwt" in file.path]
    assert "slurmrestd" not in f"{plan.sysusers} {plan.by_hand}"
    assert b'"http://10.0.0.1:6820"' in file_in(plan, "/etc/ioncast/watch.toml").content


def test_a_key_of_tokens_that_slurm_has_is_not_replaced() -> None:
    plan = planned(authaltparameters="jwt_key=/var/spool/key")
    assert not [file for file in plan.files if file.path.endswith("jwt.key")]
    assert "AuthAlt" not in str(plan.by_hand)


def test_lines_that_slurm_conf_has_are_extended_and_not_written_twice() -> None:
    plan = planned(jobsubmitplugins="cray", licenses="matlab:10", **WITH_SLURMDBD)
    lines = "\n".join(plan.by_hand)
    assert "to JobSubmitPlugins=cray,lua" in lines
    assert "to Licenses=matlab:10,ionode:12" in lines
    assert "' JobSubmit" not in lines
    assert "' Licenses" not in lines
    assert "/etc/slurm/slurmdbd.conf" in lines


def test_few_commands_remain() -> None:
    # With installing, two calls of setup and importing measurements these are ten.
    assert len(planned(**WITH_SLURMDBD).by_hand) == 6
    [lines, *_] = planned().by_hand
    assert lines.startswith("printf '%s\\n' AuthAltTypes=auth/jwt AuthAlt")
    assert lines.endswith(" JobSubmitPlugins=lua Licenses=ionode:12 >> /etc/slurm/slurm.conf")


@pytest.mark.parametrize("end", ["", "\n"])
def test_new_lines_join_no_line_that_the_files_of_slurm_have(tmp_path: Path, end: str) -> None:
    files = [tmp_path / "slurm.conf", tmp_path / "slurmdbd.conf"]
    for file in files:
        file.write_text(f"# first\nLastLine=1{end}")
    plan = planned(slurm_conf=str(files[0]), **WITH_SLURMDBD)
    commands = [line for line in plan.by_hand if ">>" in line]
    subprocess.run(["sh", "-c", "\n".join(commands)], check=True)
    for file in files:
        assert file.read_text().startswith("# first\nLastLine=1\nAuthAltTypes=auth/jwt\n")


def test_another_group_of_slurmuser_reaches_the_settings_of_the_service() -> None:
    plan = planned(group="hpc")
    assert "m ioncast hpc\n" in plan.sysusers
    assert 'decisions_group = "hpc"' in str(plan.by_hand)


@pytest.mark.parametrize("text", ['a"b', "a\\b", "a\nb", ""])
def test_text_that_would_change_the_settings_is_rejected(text: str) -> None:
    with pytest.raises(InputError, match="quote, a backslash or a control character"):
        Answers(text, 8, "/var/log/darshan")
    with pytest.raises(InputError, match="quote, a backslash or a control character"):
        Answers("mn4", 8, "/var/log/darshan", text)


def test_the_check_of_rights_accepts_all_files() -> None:
    slurm = Controller(read_configuration(CONFIGURATION), {})
    settings = plugin.Plugin({"token_file": "/etc/slurm/ioncast.token"}, frozenset(), (), (), "")
    rules = [*rights.RULES_ANYWHERE, *rights.rules_of_plugin(slurm, settings)]
    rules.append(Rule("/etc/slurm/jwt.key", frozenset(["slurm"]), is_secret=True))
    rules.append(Rule("/etc/ioncast/watch/ioncast.token", is_secret=True))
    judged = 0
    for rule in rules:
        for file in planned().files:
            if file.path == rule.path:
                entry = Entry(file.path, file.owner, file.group, stat.S_IFREG | file.mode)
                assert list(rights_problems(rule, [entry])) == []
                judged += 1
    assert judged >= 9


def own_file(path: Path, content: bytes = b"new\n", **changed: object) -> WantedFile:
    user = pwd.getpwuid(os.getuid()).pw_name
    group = grp.getgrgid(os.getgid()).gr_name
    return WantedFile(str(path), content, user, group, **changed)  # type: ignore[arg-type]


def test_a_missing_file_is_made_with_its_rights(tmp_path: Path) -> None:
    file = own_file(tmp_path / "folder" / "file", mode=0o640)
    assert state_of(file) == "missing"
    make_file(file, {})
    path = Path(file.path)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new\n", 0o640)
    assert state_of(file) == "as wanted"
    assert list(path.parent.iterdir()) == [path]


def test_a_file_with_another_content_or_other_rights_is_told(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("of the site\n")
    path.chmod(0o644)
    assert state_of(own_file(path)) == "differs"
    assert differences(own_file(path)) == ["-of the site", "+new"]
    [rights_line] = differences(own_file(path, b"of the site\n", mode=0o600))
    assert "mode 644, wanted are" in rights_line


def test_a_secret_is_random_and_then_kept(tmp_path: Path) -> None:
    secrets = [own_file(tmp_path / name, b"", mode=0o600, is_secret=True) for name in "ab"]
    for file in secrets:
        make_file(file, {})
        assert state_of(file) == "kept"
    first, second = (Path(file.path).read_bytes() for file in secrets)
    assert len(first) == len(second) == 32
    assert first != second


def test_a_link_to_nowhere_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    assert state_of(own_file(tmp_path / "link")) == "differs"
    assert not (tmp_path / "target").exists()


def test_an_unknown_owner_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no-such-user"):
        make_file(WantedFile(str(tmp_path / "file"), owner="no-such-user"), {})
