"""The rules for the rights of files: each file of the manuals has one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scheduler_plugin.check.controller import Controller
from scheduler_plugin.check.plugin import Plugin
from scheduler_plugin.check.rights import (
    problems_of,
    rules_of_part,
    rules_of_plugin,
    rules_of_slurm,
)
from scheduler_plugin.file_rights import Rule
from scheduler_plugin.settings import SiteSettings

PROJECT = Path(__file__).resolve().parents[3]
DEPLOY = PROJECT / "scheduler_plugin" / "deploy"
SLURM = frozenset(["slurm"])
# The files in /etc that docs/slurm.md and docs/service.md make, with their modes there.
FILES = {
    "ioncast/service.toml": "644", "ioncast/environment": "600",
    "ioncast/watch.toml": "644", "ioncast/arbiter.toml": "644",
    "ioncast/renew-slurm-token": "755",
    "cron.d/ioncast-watch": "644", "cron.d/ioncast-arbiter": "644",
    "systemd/system/ioncast.service": "644", "systemd/system/ioncast@.service": "644",
    "systemd/system/ioncast-watch.service": "644",
    "systemd/system/ioncast-arbiter.service": "644",
    "systemd/system/ioncast-watch.service.d/override.conf": "644",
    "systemd/system/ioncast@web.service.d/override.conf": "644",
    "systemd/system/slurmrestd.service.d/ioncast.conf": "644",
    "ioncast/watch/ioncast.token": "640", "ioncast/watch/slurm.jwt": "640",
    "ioncast/arbiter/ioncast.token": "640", "ioncast/arbiter/slurm.jwt": "640",
}  # fmt: skip
# Makes the files in an /etc that only this program and the command see.
IN_OWN_ETC = """
mount -t tmpfs none /mnt && mkdir /mnt/new /mnt/work &&
mount -t overlay -o lowerdir=/etc,upperdir=/mnt/new,workdir=/mnt/work overlay /etc || exit 75
set -e
while read -r mode path; do install -D -m "$mode" "$DEPLOY/${path##*/}" "/etc/$path" 2>/dev/null ||
    install -D -m "$mode" /dev/null "/etc/$path"; done
exec "$@"
"""


def rights_in_etc(tmp_path: Path, modes: dict[str, str]) -> list[dict[str, str]]:
    """Run the command with files in /etc; return its rows about rights."""
    # Slurm's programs wait a minute for a file that does not exist.
    (tmp_path / "slurm.conf").touch()
    check = [sys.executable, "-m", "ioncast", "slurm", "check", "--format=json"]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", IN_OWN_ETC, "sh", *check],
        input="".join(f"{mode} {path}\n" for path, mode in modes.items()),
        env={"SLURM_CONF": str(tmp_path / "slurm.conf"), "DEPLOY": str(DEPLOY)},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 75:
        pytest.skip("this machine cannot mount an overlay")
    return [row for row in json.loads(done.stdout) if row["subject"] == "rights"]


@pytest.mark.root
def test_the_files_of_the_manuals_are_safe_with_the_modes_of_the_manuals(tmp_path: Path) -> None:
    assert [row["status"] for row in rights_in_etc(tmp_path, FILES)] == ["OK"]


def test_a_masked_unit_is_not_judged(tmp_path: Path) -> None:
    (tmp_path / "unit").symlink_to("/dev/null")
    assert problems_of(Rule(str(tmp_path / "unit"))) is None


@pytest.mark.promise("slurm-file-rights")
@pytest.mark.root
def test_each_file_of_the_manuals_is_found_if_others_can_write_to_it(tmp_path: Path) -> None:
    rows = rights_in_etc(tmp_path, dict.fromkeys(FILES, "646"))
    named = {path for row in rows for path in re.findall(r"/etc/(\S+) \(", row["found"])}
    assert named == set(FILES)


def test_each_file_that_the_manuals_install_is_tested_here() -> None:
    manuals = "".join((PROJECT / "docs" / name).read_text() for name in ("slurm.md", "service.md"))
    cron = set(re.findall(r"> /etc/(cron\.d/\S+)$", manuals, re.MULTILINE))
    installed = r"install (?:-D )?-m \d+ -t /etc/(\S+) ([^#\n]+)"
    units = {
        f"{folder}/{file.name}"
        for folder, files in re.findall(installed, manuals)
        for pattern in files.split()
        for file in PROJECT.glob(pattern)
        if not folder.startswith("slurm")
    }
    assert len(cron | units) > 5
    assert cron | units <= set(FILES)


@pytest.mark.parametrize(
    ("parameters", "of_slurmdbd", "secret", "public"),
    [
        ("", "", ["/state/jwt_hs256.key"], []),
        ("jwt_key=/k", "jwt_key=/k", ["/k"], []),
        ("jwks=/j,jwt_key=/k", "disable_token_creation,jwt_key=/d", ["/k", "/d"], ["/j"]),
    ],
)
def test_all_keys_for_tokens_of_slurm_have_a_rule(
    parameters: str, of_slurmdbd: str, secret: list[str], public: list[str]
) -> None:
    configuration = {"authaltparameters": parameters, "statesavelocation": "/state"}
    slurm = Controller({**configuration, "slurmuser": "slurm(7)"}, {})
    rules = set(rules_of_slurm(slurm, of_slurmdbd))
    assert {Rule(path, SLURM, is_secret=True) for path in secret} <= rules
    assert {Rule(path, SLURM) for path in public} <= rules


def test_settings_of_the_plugin_are_secret_if_a_token_is_in_them() -> None:
    slurm = Controller({"slurm_conf": "/etc/slurm/slurm.conf", "slurmuser": "slurm(7)"}, {})
    for values, is_secret in (({"token": "ion_a"}, True), ({"token_file": "/t"}, False)):
        plugin = Plugin(values, frozenset(["on"]), (8,), (), "")
        rules = list(rules_of_plugin(slurm, plugin))
        assert Rule("/etc/slurm/ioncast_settings.lua", SLURM, is_secret=is_secret) in rules


def test_files_that_the_arbiter_runs_or_reads_have_a_rule() -> None:
    service = {"address": "unix:/run/ioncast", "token_file": "/ioncast.token"}
    slurmrestd = {"address": "unix:/run/rest", "user": "ada", "token_file": "/slurm.jwt"}
    table = {"system": "testbed", "service": service, "slurmrestd": slurmrestd}
    tokens = [Rule("/slurm.jwt", is_secret=True), Rule("/ioncast.token", is_secret=True)]
    settings = SiteSettings.model_validate(table)
    assert list(rules_of_part("/a.toml", settings)) == [Rule("/a.toml"), *tokens]
    arbitrate = {"hooks": "/hooks.conf", "disturbances": "/pairs.json"}
    settings = SiteSettings.model_validate({**table, "arbitrate": arbitrate})
    assert {Rule("/hooks.conf"), Rule("/pairs.json")} < set(rules_of_part("/a.toml", settings))
