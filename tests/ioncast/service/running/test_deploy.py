"""The files that an administrator copies: the unit, the settings, the proxy's configuration."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from ioncast.service.running.binding import with_decisions_bind
from ioncast.service.running.command import PARTS
from ioncast.service.settings import Settings, SystemSettings, read_settings
from ioncast.service.web.http.problems import Problem

DOCS = Path(__file__).resolve().parents[4] / "docs"
MANUAL = Path(__file__).resolve().parents[4] / "docs" / "service.md"
DEPLOY = Path(str(files("ioncast.service.running"))) / "deploy"
# Settings whose value in the sample is not their default.
OF_THE_UNIT = {"database", "state", "bind", "decisions_bind"}
SETTING = re.compile(r"^(?:# )?(\w+) = ", re.MULTILINE)


def settings_of(text: str, folder: Path) -> Settings:
    path = folder / "service.toml"
    path.write_text(text, encoding="utf-8")
    return read_settings(path, environment={})


def test_the_sample_has_the_values_that_hold_without_it(tmp_path: Path) -> None:
    sample = settings_of((DEPLOY / "service.toml").read_text(encoding="utf-8"), tmp_path)
    without = read_settings(environment={})
    differing = {
        name for name in Settings.model_fields if getattr(sample, name) != getattr(without, name)
    }
    assert differing == OF_THE_UNIT


def test_the_sample_names_every_setting() -> None:
    named = set(SETTING.findall((DEPLOY / "service.toml").read_text(encoding="utf-8")))
    assert named == {*Settings.model_fields, *SystemSettings.model_fields} - {"systems"}


def test_a_setting_without_a_value_in_the_sample_accepts_one(tmp_path: Path) -> None:
    text = (DEPLOY / "service.toml").read_text(encoding="utf-8")
    full = settings_of(re.sub(r"^# (?=\w+ = |\[)", "", text, flags=re.MULTILINE), tmp_path)
    assert full.default_io_nodes == 0
    rules = full.rules_of("mn4")
    assert (rules.tolerance, rules.min_confidence, rules.default) == (0.02, 0.6, 4)


def test_the_unit_and_the_sample_name_the_same_folders() -> None:
    unit = (DEPLOY / "ioncast@.service").read_text(encoding="utf-8")
    sample = read_settings(DEPLOY / "service.toml", environment={})
    assert "StateDirectory=ioncast\n" in unit
    assert sample.state.startswith("/var/lib/ioncast/")
    assert str(sample.database).startswith("/var/lib/ioncast/")
    assert "RuntimeDirectory=ioncast\n" in unit
    assert any(place.startswith("unix:/run/ioncast/") for place in sample.bind)
    # An older file of settings leads to the same socket.
    older, runtime = sample.model_copy(update={"decisions_bind": ()}), "/run/ioncast"
    assert with_decisions_bind(older, {"RUNTIME_DIRECTORY": runtime}) == sample


def test_the_manual_adds_the_user_of_the_unit_to_the_group_of_the_sample() -> None:
    unit = (DEPLOY / "ioncast@.service").read_text(encoding="utf-8")
    [user] = re.findall(r"^User=(\S+)$", unit, re.MULTILINE)
    group = read_settings(DEPLOY / "service.toml", environment={}).decisions_group
    assert f"\nusermod --append --groups {group} {user} " in MANUAL.read_text(encoding="utf-8")


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    for name in ("ioncast.service", "ioncast@.service"):
        text = (DEPLOY / name).read_text(encoding="utf-8")
        # The program does not exist before ioncast is installed.
        text = re.sub(r"(?<=ExecStart=)/opt\S+", sys.executable, text)
        (tmp_path / name).write_text(text, encoding="utf-8")
    units = [
        tmp_path / "ioncast.service",
        *(tmp_path / f"ioncast@{part}.service" for part in PARTS),
    ]
    for unit in units[1:]:
        shutil.copy(tmp_path / "ioncast@.service", unit)
    done = subprocess.run([analyze, "verify", *units], capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if "ioncast" in line]
    assert (done.returncode, said) == (0, [])


def test_the_unit_of_the_service_starts_each_part() -> None:
    unit = (DEPLOY / "ioncast.service").read_text(encoding="utf-8")
    [wanted] = re.findall(r"^Wants=(.*)$", unit, re.MULTILINE)
    assert set(wanted.split()) == {f"ioncast@{part}.service" for part in PARTS}


def test_a_part_restarts_without_waiting_for_the_end_of_others() -> None:
    # After this unit, decisions would stay away until the slowest part has ended.
    unit = (DEPLOY / "ioncast@.service").read_text(encoding="utf-8")
    assert "\nPartOf=ioncast.service\n" in unit
    earlier = " ".join(re.findall(r"^After=(.*)$", unit, re.MULTILINE)).split()
    assert not [name for name in earlier if name.startswith("ioncast")]


def test_commands_of_the_manuals_and_hints_reach_the_parts() -> None:
    # `stop ioncast` alone waits for no part; its status and log have nothing of them.
    package = DEPLOY.parents[2]
    hints = (DEPLOY / "alerts.yml", package / "doctor_command.py", *DOCS.glob("*.md"))
    checks = (package.parent / "scheduler_plugin" / "check").glob("*.py")
    text = "".join(path.read_text(encoding="utf-8") for path in (*hints, *checks))
    ends = re.findall(r"(?:systemctl (?:stop|status)|journalctl -u) '?ioncast\b(?!-)(.*)", text)
    assert len(ends) > 5
    assert [end for end in ends if not end.startswith(("@", " 'ioncast@*'"))] == []


def test_the_proxy_takes_what_the_service_takes() -> None:
    text = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    sample = read_settings(DEPLOY / "service.toml", environment={})
    assert f"client_max_body_size {sample.max_upload_mib}m;" in text
    [seconds] = re.findall(r"proxy_read_timeout (\d+)s;", text)
    assert int(seconds) > sample.upload_s
    [socket] = re.findall(r"server (unix:\S+);", text)
    assert socket in sample.bind


def test_the_steps_of_installing_make_the_service_believe_the_proxy() -> None:
    steps = (DOCS / "service.md").read_text(encoding="utf-8")
    [program] = re.findall(
        r"^sed -i '(s/\S+ = 0\$/[^']+)' /etc/ioncast/service\.toml$", steps, re.M
    )
    sample = DEPLOY / "service.toml"
    edited = subprocess.run(["sed", program, sample], capture_output=True, text=True, check=True)
    assert edited.stdout.count("\nproxies = 1\n") == 1


def test_errors_of_the_proxy_are_problem_documents() -> None:
    text = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    documents = re.findall(r"return (\d+) '(\{.*\})';", text)
    assert [int(status) for status, _ in documents] == [413, 503]
    for status, document in documents:
        assert Problem.model_validate_json(document).status == int(status)
