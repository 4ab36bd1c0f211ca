"""Settings and token files of `ioncast slurm`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ioncast_base.errors import InputError
from scheduler_plugin.clients import clients
from scheduler_plugin.settings import (
    ArbitrateSettings,
    DarshanSettings,
    LicenceSettings,
    ServiceSettings,
    SlurmrestdSettings,
    WatchSettings,
    read_settings,
)
from scheduler_plugin.token_files import read_token

_DEPLOY = Path(__file__).resolve().parents[2] / "scheduler_plugin" / "deploy"
_LEAST = """\
system = "testbed"
[slurmrestd]
address = "http://127.0.0.1:6820"
user = "slurm"
token_file = "/etc/ioncast/slurm.jwt"
[service]
token_file = "/etc/ioncast/token"
"""


def _file(folder: Path, text: str) -> Path:
    path = folder / "slurm.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["watch.toml", "arbiter.toml"])
def test_the_samples_say_what_holds_without_them(tmp_path: Path, name: str) -> None:
    sample = (_DEPLOY / name).read_text()
    uncommented = "".join(
        line.removeprefix("# ") if " = " in line and line.startswith("# ") else line
        for line in sample.splitlines(keepends=True)
    )
    said = read_settings(_file(tmp_path, uncommented)).model_dump()
    without = read_settings(_file(tmp_path, sample)).model_dump()
    assert said["slurmrestd"].pop("cluster")
    assert without["slurmrestd"].pop("cluster") is None
    if name == "watch.toml":
        for key in ("slurmctld_log", "jobs_folder"):
            assert said["watch"].pop(key)
            assert without["watch"].pop(key) is None
    if name == "arbiter.toml":
        for key in ("machine_nodes", "hooks", "disturbances"):
            assert said["arbitrate"].pop(key)
            assert without["arbitrate"].pop(key) is None
    assert said == without


def test_the_samples_name_every_setting() -> None:
    named = "".join((_DEPLOY / name).read_text() for name in ("watch.toml", "arbiter.toml"))
    tables = (SlurmrestdSettings, ServiceSettings, LicenceSettings, DarshanSettings, WatchSettings)
    for table in (*tables, ArbitrateSettings):
        for setting in table.model_fields:
            assert f"\n{setting} = " in named or f"\n# {setting} = " in named, setting


def test_service_watch_and_arbiter_are_three_users_with_tokens_of_their_own() -> None:
    service = _DEPLOY.parents[1] / "ioncast" / "service" / "running" / "deploy" / "ioncast@.service"
    units = [service, _DEPLOY / "ioncast-watch.service", _DEPLOY / "ioncast-arbiter.service"]
    users = [re.findall(r"^User=(.+)$", unit.read_text(), re.MULTILINE) for unit in units]
    assert users == [["ioncast"], ["ioncast-watch"], ["ioncast-arbiter"]]
    samples = [read_settings(_DEPLOY / f"{name}.toml") for name in ("watch", "arbiter")]
    assert [sample.slurmrestd.user for sample in samples] == ["ioncast-watch", "ioncast-arbiter"]
    folders = [
        {Path(table.token_file).parent for table in (sample.slurmrestd, sample.service)}
        for sample in samples
    ]
    assert folders == [{Path("/etc/ioncast/watch")}, {Path("/etc/ioncast/arbiter")}]
    unit = units[1].read_text()
    assert f"StateDirectory={Path(samples[0].watch.state).parent.name}\n" in unit
    # The watch can read every file that is not hidden from it.
    assert "InaccessiblePaths=-/etc/ioncast/arbiter " in unit


@pytest.mark.parametrize("name", ["watch", "arbiter"])
def test_systemd_takes_the_units(tmp_path: Path, name: str) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / f"ioncast-{name}.service"
    text = (_DEPLOY / unit.name).read_text()
    assert f"--config /etc/ioncast/{name}.toml\n" in text
    # systemd-analyze wants programs that exist, and ioncast is not installed here.
    program = re.sub(r"(?<=ExecStart=)\S+", sys.executable, text)
    unit.write_text(re.sub(r"(?<=ExecStartPre=\+-)\S+", sys.executable, program))
    done = subprocess.run([analyze, "verify", unit], capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if unit.name in line]
    assert (done.returncode, said) == (0, [])


@pytest.mark.parametrize("name", ["watch", "arbiter"])
def test_a_unit_starts_after_the_parts_of_the_service_that_it_asks(name: str) -> None:
    unit = (_DEPLOY / f"ioncast-{name}.service").read_text()
    earlier = " ".join(re.findall(r"^After=(.+)$", unit, re.MULTILINE)).split()
    assert {"ioncast@decisions.service", "ioncast@web.service"} <= set(earlier)


def test_all_samples_name_the_same_heartbeat() -> None:
    heartbeat = ArbitrateSettings().heartbeat
    lua = _DEPLOY.parent / "lua" / "ioncast_settings.lua"
    assert f'-- heartbeat = "{heartbeat}",' in lua.read_text()
    unit = (_DEPLOY / "ioncast-arbiter.service").read_text()
    assert f"/usr/bin/chown root:ioncast-arbiter {heartbeat}\n" in unit
    lock = ArbitrateSettings().lock
    assert f"RuntimeDirectory={Path(lock).parent.relative_to('/run')}\n" in unit
    manual = Path(__file__).resolve().parents[2] / "docs" / "slurm.md"
    assert f'`heartbeat = "{heartbeat}"`' in manual.read_text()


def test_all_samples_name_the_same_file_of_limits() -> None:
    limits = read_settings(_DEPLOY / "watch.toml").watch.limits
    assert limits is not None
    lua = _DEPLOY.parent / "lua" / "ioncast_settings.lua"
    assert f'\n    limits = "{limits}",\n' in lua.read_text()
    unit = (_DEPLOY / "ioncast-watch.service").read_text()
    for command in ("touch", "chown root:ioncast-watch", "chmod 664"):
        assert f"\nExecStartPre=+-/usr/bin/{command} {limits}\n" in unit
    # The folder is root's: otherwise the watch could put a pipe there, and slurmctld would wait.
    assert f"install -d -m 755 {Path(limits).parent}\n" in unit
    assert f"\nReadWritePaths=-{Path(limits).parent}\n" in unit


@pytest.mark.parametrize(
    ("missing", "origin"), [("slurm.jwt", "renew-slurm-token"), ("token", "`ioncast token add`")]
)
def test_a_missing_token_is_an_error_that_names_its_origin(
    tmp_path: Path, missing: str, origin: str
) -> None:
    text = _LEAST.replace("/etc/ioncast/", f"{tmp_path}/")
    for name in {"slurm.jwt", "token"} - {missing}:
        (tmp_path / name).write_text("secret")
    settings = read_settings(_file(tmp_path, text))
    with pytest.raises(InputError, match=origin) as raised, clients(settings, 1):
        pass
    assert raised.value.where == str(tmp_path / missing)


def test_a_token_that_everybody_can_read_is_noticed_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("slurm.jwt", "token"):
        (tmp_path / name).write_text("secret")
    (tmp_path / "token").chmod(0o600)
    settings = read_settings(_file(tmp_path, _LEAST.replace("/etc/ioncast/", f"{tmp_path}/")))
    (tmp_path / "slurm.jwt").chmod(0o644)
    with clients(settings, 1):
        [said] = caplog.messages
    assert said.startswith(f"everybody can read {tmp_path}/slurm.jwt (")


def test_few_settings_are_enough(tmp_path: Path) -> None:
    settings = read_settings(_file(tmp_path, _LEAST))
    assert settings.service.address == "http://127.0.0.1:8420"
    assert settings.licence.name == "ionode"
    assert settings.darshan is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (_LEAST + "[watch]\nperiod = 3\n", ":9: key `watch.period` is unknown; did you mean"),
        (_LEAST.replace("http://", ""), ":3: key `slurmrestd.address`: '127.0.0.1:6820' is not"),
        (
            _LEAST.replace("127.0.0.1:6820", "[::1"),
            ":3: key `slurmrestd.address`: 'http://[::1' is",
        ),
        (_LEAST.replace("6820", "68200"), "'http://127.0.0.1:68200' is not an address"),
        (_LEAST + '[darshan]\nfolder = "/d"\nlayout = "/%Y"\n', ":10: key `darshan.layout`"),
        (_LEAST + '[darshan]\nfolder = "/d"\nlayout = "../%Y"\n', ":10: key `darshan.layout`"),
        (_LEAST + "[watch]\nperiod_s = 0\n", ":9: key `watch.period_s`: must be greater than 0"),
        (_LEAST + "[arbitrate]\nperiod_s = 60\n", ":9: key `arbitrate.period_s`: must be"),
        (
            _LEAST + '[arbitrate]\nobjective = "most"\n',
            ":9: key `arbitrate.objective`: must be one of",
        ),
        (_LEAST.replace('system = "testbed"\n', ""), "key `system` is missing; add it"),
    ],
)
def test_an_unusable_setting_is_an_error_that_names_its_line(
    tmp_path: Path, text: str, said: str
) -> None:
    path = _file(tmp_path, text)
    with pytest.raises(InputError) as raised:
        read_settings(path)
    line = str(raised.value)
    assert said in line
    assert line.startswith(f"{path}:")
    assert "\n" not in line


def test_a_token_is_read_alone_or_as_scontrol_prints_it(tmp_path: Path) -> None:
    path = tmp_path / "token"
    for text in ("abc.def\n", "SLURM_JWT=abc.def\n", "abc.def"):
        path.write_text(text)
        assert read_token(str(path)) == "abc.def"


@pytest.mark.parametrize("text", ["", "\n", "two words", "two\nlines", "schlüssel"])
def test_an_unusable_token_is_rejected_and_not_repeated(tmp_path: Path, text: str) -> None:
    path = tmp_path / "token"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        read_token(str(path))
    assert not text.strip() or text not in str(raised.value)
