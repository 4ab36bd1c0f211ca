"""Each row of `ioncast slurm check`, from files and answers of each kind."""

from __future__ import annotations

import base64
import json
import math
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ioncast_base.errors import InputError
from scheduler_plugin.check import asking_sources, hooks, plugin, service, watch_and_arbiter
from scheduler_plugin.check.asking_sources import (
    AGAIN,
    MissingSource,
    Row,
    SiteCheck,
    exit_code,
    fail,
    gathered,
    ok,
    rows_of,
    said_by,
    started,
    unknown,
    warn,
)
from scheduler_plugin.check.controller import (
    Controller,
    last_loaded,
    read_configuration,
    read_loaded_line,
    read_totals,
    setting_in_file,
)
from scheduler_plugin.check.plugin import SHIPPED, Plugin, ask_plugin
from scheduler_plugin.hook_settings import HookSettings, read_hook_settings
from scheduler_plugin.service_client import (
    ServiceRefusedError,
    ServiceUnreachableError,
    SlowIoNodes,
)
from scheduler_plugin.settings import (
    DarshanSettings,
    ServiceSettings,
    SiteSettings,
    SlurmrestdSettings,
)
from scheduler_plugin.slurm import SlurmAnswerError
from scheduler_plugin.slurm.errors import SlurmClusterError
from scheduler_plugin.slurm.jwt_claims import claims_of
from scheduler_plugin.slurm.licence_limits import Limits
from tests.support.command import run_ioncast

NOW_S = 1_700_000_000.0
CONFIGURATION = """\
Configuration data as of 2026-11-23T20:22:27
AccountingStorageType   = accounting_storage/slurmdbd
BurstBufferType         = (null)
JobSubmitPlugins        = defaults,lua
Licenses                = ionode:8
PrologSlurmctld[0]      = /etc/ioncast/hooks/prolog_slurmctld.sh
PrologSlurmctld[1]      = /etc/slurm/other.sh
PrivateData             = jobs,usage
SlurmUser               = slurm(64030)
SlurmctldLogFile        = /var/log/slurm/slurmctld.log
SLURM_CONF              = /etc/slurm/slurm.conf
SLURM_VERSION           = 22.05.8

Slurmctld(primary) at vm is UP
"""
LOADED = 'mode=on partitions="" address=unix:/run/d.sock system="mn4" pool=8 token=no'
CONTROLLER = Controller(read_configuration(CONFIGURATION), {"ionode": 8})
PLUGIN = Plugin(
    {"address": "unix:/run/d.sock", "system": "mn4", "mode": "on", "limits": "/run/l"},
    frozenset(["on"]),
    (8,),
    (),
    f"{LOADED} lua_socket=yes",
)
GAP = MissingSource("no answer within 30 s", "look why it hangs")


def statuses(rows: Any) -> dict[str, str]:
    return {row.subject: row.status for row in rows}


def rows_about(function: Any, *inputs: Any) -> list[Row]:
    """The rows of a check."""
    return list(rows_of(SiteCheck("subject", function, *inputs)))


def status_of(function: Any, *inputs: Any) -> str:
    """The status of a check with one row."""
    [row] = rows_about(function, *inputs)
    return row.status


def in_folder(folder: Path, **changed: str) -> Controller:
    """The controller with its files in a folder."""
    own = {"slurm_conf": f"{folder}/slurm.conf", "slurmctldlogfile": f"{folder}/log", **changed}
    return replace(CONTROLLER, configuration={**CONTROLLER.configuration, **own})


@pytest.fixture
def at_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the checks run at `NOW_S`."""
    for module in (service, watch_and_arbiter):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: NOW_S))


def with_settings(**changed: str) -> Plugin:
    return replace(PLUGIN, settings={**PLUGIN.settings, **changed})


# Rows and gatherers -----------------------------------------------------------------------------


def test_only_a_failure_makes_the_command_fail() -> None:
    good, doubtful = ok("a", "b"), warn("a", "b", "c")
    assert exit_code([good, doubtful]) == 0
    assert exit_code([good, doubtful, fail("a", "b", "c")]) == 1


def test_a_source_that_only_root_may_read_is_a_warning() -> None:
    row = unknown("limits", MissingSource("Permission denied", needs_root=True), AGAIN)
    assert (row.status, row.found) == ("WARN", "not checked: Permission denied")
    assert row.remedy == "run this command as root"


def test_hostile_texts_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in fail("a", "b\x1b[2J", "c").found


def test_a_source_that_hangs_has_a_row_after_the_rows_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asking_sources, "PATIENCE_S", 0.2)
    ever = threading.Event()

    def hangs() -> Iterator[Row]:
        yield ok("a", "b")
        ever.wait()

    rows = list(
        rows_of(
            SiteCheck("hangs", hangs), SiteCheck("", hangs), SiteCheck("good", iter, [ok("c", "")])
        )
    )
    ever.set()
    silent = fail("hangs", "no answer within 0.2 s", "look why it hangs")
    assert rows == [ok("a", "b"), silent, ok("a", "b"), ok("c", "")]


def test_any_error_of_a_source_is_a_missing_source() -> None:
    def broken() -> None:
        raise ZeroDivisionError("no way")

    def refused() -> None:
        raise InputError("cannot be read", where="/f", remedy="do this")

    first, second, third = gathered(broken, refused, lambda: 4)
    assert (first.what, first.remedy) == ("ZeroDivisionError: no way", "")
    assert (second.what, second.remedy) == ("/f: cannot be read", "do this")
    assert third == 4


def test_a_missing_file_is_named_in_plain_words(tmp_path: Path) -> None:
    [lost] = gathered((tmp_path / "metrics.prom").read_text)
    assert lost.what == f"{tmp_path}/metrics.prom: No such file or directory"


def test_an_input_that_is_missing_is_the_row_of_the_check() -> None:
    lost = MissingSource("lost")
    assert rows_about(iter, lost) == [fail("subject", "lost", AGAIN)]
    assert list(rows_of(SiteCheck("a", iter, lost, remedy="find it"))) == [
        fail("a", "lost", "find it")
    ]
    assert list(rows_of(SiteCheck("a", iter, GAP, remedy="find it"))) == [
        fail("a", "no answer within 30 s", "look why it hangs")
    ]


def test_a_command_that_hangs_fails_or_is_missing_is_one_clause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asking_sources, "ANSWER_S", 0.2)
    for command, clause in (
        (["sleep", "600"], "`sleep 600` does not answer within 0.2 s"),
        (["ioncast-none"], "ioncast-none is not installed here"),
    ):
        with pytest.raises(InputError, match=clause):
            said_by(*command)
    monkeypatch.setattr(asking_sources, "ANSWER_S", 60)
    with pytest.raises(InputError, match="`sh -c echo no >&2; exit 3` fails: no"):
        said_by("sh", "-c", "echo no >&2; exit 3")


# slurmctld and the plugin -----------------------------------------------------------------------


def test_the_controllers_configuration_is_read() -> None:
    assert CONTROLLER.folder == Path("/etc/slurm")
    assert CONTROLLER.user == "slurm"
    assert CONTROLLER.private == {"jobs", "usage"}
    assert CONTROLLER.has_slurmdbd
    assert CONTROLLER.of("BurstBufferType") == ""
    # As of Slurm 24.11; older versions show one script without a number.
    assert CONTROLLER.of("PrologSlurmctld") == "/etc/ioncast/hooks/prolog_slurmctld.sh"
    line = "LicenseName=ionode@db Total=8 Used=0 Free=8 Reserved=0 Remote=yes\n"
    assert Controller({}, read_totals(line)).total("ionode") == 8
    assert Controller({}, {}).total("ionode") == 0


def test_the_last_loaded_line_is_found_in_a_log_of_any_size(tmp_path: Path) -> None:
    log = tmp_path / "slurmctld.log"
    noise = b"[2026-11-23T20:22:27.763] sched: \xff nothing\n"
    lines = [b"[2026] lua: ioncast: loaded: mode=off\n", b"[2026] lua: ioncast: loaded: mode=on\n"]
    log.write_bytes(lines[0] + lines[1] + noise * 60_000)
    assert log.stat().st_size > 2 << 20
    assert read_loaded_line(log) == "mode=on"
    log.write_bytes(noise)
    assert read_loaded_line(log) == ""
    log.write_bytes(b"")
    assert read_loaded_line(log) == ""


def test_a_jobs_name_is_not_taken_for_the_loaded_line() -> None:
    line = b'lua: ioncast: mode=on job="ioncast: loaded: mode=off" io_nodes=none\n'
    assert last_loaded(line) == ""


def test_the_plugin_itself_judges_its_settings(tmp_path: Path) -> None:
    (tmp_path / "ioncast.lua").write_text((SHIPPED / "ioncast.lua").read_text())
    (tmp_path / "ioncast_settings.lua").write_text(
        """return { mode = "maybe", pool = 8, address = "[::1]:8420", system = "a\\tb\\n\\\\x41",
        partitions = { debug = { mode = "on", pool = 4.0 }, wrong = 7 } }"""
    )
    found = ask_plugin(tmp_path, "root")
    assert found.of("system") == "a\tb\n\\x41"
    assert found.modes == {"maybe", "on"}
    assert sorted(found.pools) == [4, 8]
    assert [line.split(" must")[0] for line in sorted(found.complaints)] == [
        "ioncast_settings.lua: mode",
        "ioncast_settings.lua: partitions.wrong",
    ]
    assert "pool=8" in found.loaded


def test_settings_without_an_end_do_not_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_sources, "ANSWER_S", 0.5)
    (tmp_path / "ioncast_settings.lua").write_text("while true do end")
    with pytest.raises(InputError, match="does not answer within"):
        ask_plugin(tmp_path, "root")


@pytest.mark.parametrize(
    ("plugins", "settings", "loaded", "bad"),
    [
        ("defaults,lua", PLUGIN, f"{LOADED} lua_socket=yes", {}),
        ("", PLUGIN, f"{LOADED} lua_socket=yes", {"slurmctld": "FAIL"}),
        ("lua", GAP, f"{LOADED} lua_socket=yes", {"settings": "FAIL"}),
        (
            "lua",
            replace(PLUGIN, complaints=("wrong",)),
            f"{LOADED} lua_socket=yes",
            {"settings": "FAIL"},
        ),
        (
            "lua",
            replace(PLUGIN, complaints=("cannot read a token",), is_as_slurmctld=False),
            "mode=on token=yes lua_socket=yes",
            {"settings": "WARN", "loaded settings": "WARN"},
        ),
        ("lua", PLUGIN, f"{LOADED} lua_socket=no", {"lua-socket": "FAIL"}),
        ("lua", PLUGIN, "mode=off lua_socket=yes", {"loaded settings": "FAIL"}),
        ("lua", PLUGIN, "", {"loaded settings": "WARN"}),
        ("lua", PLUGIN, None, {"loaded settings": "FAIL"}),
    ],
)
def test_the_plugin_in_slurmctld(
    tmp_path: Path,
    plugins: str,
    settings: Plugin | MissingSource,
    loaded: str | None,
    bad: dict[str, str],
) -> None:
    if loaded is not None:
        (tmp_path / "log").write_text(f"lua: ioncast: loaded: {loaded}\n")
    controller = in_folder(tmp_path, jobsubmitplugins=plugins)
    known = settings if isinstance(settings, Plugin) else None
    rows = rows_of(
        SiteCheck("slurmctld", plugin.use_rows, controller),
        SiteCheck("settings", plugin.settings_rows, controller, settings),
        SiteCheck("loaded settings", plugin.loaded_rows, controller, known),
    )
    assert {row.subject: row.status for row in rows if row.status != "OK"} == bad


@pytest.mark.parametrize(
    ("name", "text", "status"),
    [
        ("ioncast.lua", (SHIPPED / "ioncast.lua").read_text(), "OK"),
        ("ioncast.lua", "older", "WARN"),
        ("ioncast.lua", None, "FAIL"),
        ("job_submit.lua", (SHIPPED / "job_submit.lua").read_text(), "OK"),
        ("job_submit.lua", 'dofile("/etc/slurm/ioncast.lua")', "OK"),
        ("job_submit.lua", "return slurm.SUCCESS", "FAIL"),
    ],
)
def test_the_files_of_the_plugin(tmp_path: Path, name: str, text: str | None, status: str) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    assert status_of(plugin.file_rows, tmp_path, name) == status


@pytest.mark.parametrize(
    ("total", "pools", "modes", "in_file", "others", "expected"),
    [
        (8, (8,), ["on"], "ionode:8,matlab:2", {}, ["OK"]),
        (8, (4, 2), ["on"], "", {"watch": "ionode"}, ["OK"]),
        (8, (4, 9), ["on"], "ionode:8", {}, ["FAIL"]),
        (0, (8,), ["on"], "", {}, ["FAIL"]),
        (0, (8,), ["shadow"], "", {}, ["OK"]),
        (4, (4,), ["on"], "ionode:8", {}, ["OK", "WARN"]),
        (8, (8,), ["on"], "ionode:8", {"arbiter": "forwarder"}, ["FAIL", "OK"]),
    ],
)
def test_licences(
    tmp_path: Path,
    total: int,
    pools: tuple[int, ...],
    modes: list[str],
    in_file: str,
    others: dict[str, str],
    expected: list[str],
) -> None:
    (tmp_path / "slurm.conf").write_text(f"Licenses={in_file}\n")
    controller = replace(in_folder(tmp_path), totals={"ionode": total} if total else {})
    settings = replace(PLUGIN, pools=pools, modes=frozenset(modes))
    rows = rows_about(plugin.licence_rows, controller, settings, others)
    assert [row.status for row in rows] == expected


def test_licences_in_the_file_are_those_of_its_last_line(tmp_path: Path) -> None:
    path = tmp_path / "slurm.conf"
    assert setting_in_file(path, "Licenses") == ""
    path.write_text("#Licenses=ionode:1\nlicenses=ionode:4 # few\n")
    assert setting_in_file(path, "Licenses") == "ionode:4"
    assert setting_in_file(path, "AuthAltParameters") == ""


@pytest.mark.parametrize(
    ("limits", "settings", "status"),
    [
        (Limits("ionode", 8), PLUGIN, "OK"),
        (Limits("ionode", 8, qos={"large": 8}), with_settings(limits=""), "OK"),
        (Limits("ionode", 8, qos={"small": 2}), PLUGIN, "OK"),
        (Limits("ionode", 8, qos={"small": 2}), with_settings(limits=""), "FAIL"),
        (Limits("ionode", 8, users={("a", "b"): 2}), with_settings(limits=""), "FAIL"),
    ],
)
def test_limits_of_slurm(limits: Limits, settings: Plugin, status: str) -> None:
    answer: Future[watch_and_arbiter.Answer] = started(lambda: ([], limits))
    assert status_of(watch_and_arbiter.slurm_limits_rows, settings, answer) == status


# Hooks ------------------------------------------------------------------------------------------

PROLOG = "PrologSlurmctld"


@pytest.mark.parametrize(
    ("value", "change", "status"),
    [
        ("{}/prolog_slurmctld.sh", None, "OK"),
        ("/site/p.sh,{}/prolog_slurmctld.sh", None, "OK"),
        ("/site/p.sh", None, "WARN"),
        ("", None, "FAIL"),
        ("{}/prolog_slurmctld.sh", lambda path: path.unlink(), "FAIL"),
        ("{}/prolog_slurmctld.sh", lambda path: path.write_text("changed"), "WARN"),
        ("{}/prolog_slurmctld.sh", lambda path: path.with_name("io_nodes.sh").unlink(), "FAIL"),
    ],
)
def test_a_hook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, change: Any, status: str
) -> None:
    # Other users cannot read pytest's folders.
    monkeypatch.setattr(hooks, "can", lambda *_: True)
    folder = shutil.copytree(hooks.SHIPPED, tmp_path / "hooks")
    if change is not None:
        change(folder / "prolog_slurmctld.sh")
    controller = in_folder(tmp_path, prologslurmctld=value.format(folder))
    assert status_of(hooks.hook_rows, controller, PLUGIN, PROLOG) == status


def test_a_hook_that_slurms_user_cannot_run_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "can", lambda *_: False)
    controller = in_folder(Path("/"), prologslurmctld=f"{hooks.SHIPPED}/prolog_slurmctld.sh")
    assert status_of(hooks.hook_rows, controller, PLUGIN, PROLOG) == "FAIL"


@pytest.mark.parametrize(
    ("setting", "modes", "statuses"),
    [
        ("TaskProlog", ["on"], ["WARN"]),
        ("TaskProlog", ["arbitrate"], ["FAIL"]),
        ("EpilogSlurmctld", ["on"], ["FAIL"]),
        ("EpilogSlurmctld", ["shadow"], []),
    ],
)
def test_a_hook_that_is_not_set(setting: str, modes: list[str], statuses: list[str]) -> None:
    settings = replace(PLUGIN, modes=frozenset(modes))
    rows = rows_about(hooks.hook_rows, CONTROLLER, settings, setting)
    assert [row.status for row in rows] == statuses


@pytest.mark.parametrize(
    ("changed", "refused", "mode", "is_arbitrated", "status"),
    [
        ({}, "", 0o755, True, "OK"),
        ({"licence": "forwarder"}, "", 0o755, False, "FAIL"),
        ({}, "x", 0o755, False, "FAIL"),
        ({"folder": ""}, "", 0o755, False, "WARN"),
        ({"folder": ""}, "", 0o755, True, "FAIL"),
        ({"folder": "/jobs/none"}, "", 0o755, False, "FAIL"),
        ({}, "w", 0o755, False, "FAIL"),
        ({}, "", 0o700, False, "FAIL"),
    ],
)
def test_the_folder_of_the_hooks(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changed: dict[str, str],
    refused: str,
    mode: int,
    is_arbitrated: bool,
    status: str,
) -> None:
    monkeypatch.setattr(hooks, "can", lambda _user, right, _path: right != refused)
    tmp_path.chmod(mode)
    values = HookSettings("ionode", str(tmp_path), "/site/switch")._replace(**changed)
    settings = replace(PLUGIN, modes=frozenset(["arbitrate" if is_arbitrated else "on"]))
    assert status_of(hooks.settings_rows, values, "slurm", settings) == status
    assert status_of(hooks.settings_rows, GAP, "slurm", settings) == "FAIL"


@pytest.mark.parametrize(
    ("names", "jobs", "folder", "statuses"),
    [
        ("", 1, "/jobs", []),
        ("io1 io2 io3 io4", 1, "/jobs", ["OK"]),
        ("io1 io2", 2, "/jobs", ["OK"]),
        ("io1 io2 io3 io4", 1, "", ["FAIL"]),
        ("io1 io2 io3 io3", 1, "/jobs", ["WARN"]),
        ("io1 io2 io3", 2, "/jobs", ["WARN"]),
    ],
)
def test_names_of_io_nodes_are_as_many_as_licences(
    names: str, jobs: int, folder: str, statuses: list[str]
) -> None:
    controller = replace(CONTROLLER, totals={"ionode": 4})
    values = HookSettings("ionode", folder, "", tuple(names.split()), jobs)
    rows = rows_about(hooks.names_rows, values, controller)
    assert [row.status for row in rows] == statuses


@pytest.mark.parametrize(
    ("names", "folder", "jobs_folder", "statuses"),
    [
        ("", "/jobs", None, []),
        ("io1", "", None, []),
        ("io1 io2", "/jobs", "/jobs", ["OK"]),
        ("io1 io2", "/jobs", None, ["WARN"]),
        ("io1 io2", "/jobs", "/others", ["WARN"]),
        ("io1 io,2", "/jobs", "/jobs", ["WARN"]),
    ],
)
def test_the_watch_reads_the_names_where_the_hooks_write_them(
    names: str, folder: str, jobs_folder: str | None, statuses: list[str]
) -> None:
    values = HookSettings("ionode", folder, "", tuple(names.split()))
    table = {"address": "unix:/run/s", "user": "ada", "token_file": "/t"}
    service_table = {"address": "unix:/run/s", "token_file": "/t"}
    watch = SiteSettings.model_validate(
        {
            "system": "mn4",
            "slurmrestd": table,
            "service": service_table,
            "watch": {"jobs_folder": jobs_folder},
        }
    )
    rows = rows_about(hooks.history_rows, values, watch)
    assert [row.status for row in rows] == statuses


def test_hooks_conf_is_read_by_a_shell(tmp_path: Path) -> None:
    path = tmp_path / "hooks.conf"
    path.write_text(f"# LICENCE=no\nJOBS_FOLDER={tmp_path}/jobs\nSITE_SCRIPT=\n")
    assert read_hook_settings(path, "root") == ("ionode", f"{tmp_path}/jobs", "", (), 1, "")
    path.write_text('IO_NODES="io1\n  io2"\nPLACEMENT=/run/list\n')
    assert read_hook_settings(path, "root") == (
        *("ionode", "", "", ("io1", "io2"), 1, "/run/list"),
    )
    for number in ("0", "x", "9" * 5000, "1.5"):
        path.write_text(f"JOBS_PER_IO_NODE={number}\n")
        with pytest.raises(InputError, match="is not a number from 1 to 64"):
            read_hook_settings(path, "root")
    path.write_text("JOBS_FOLDER='")
    with pytest.raises(InputError, match="fails"):
        read_hook_settings(path, "root")


# Watch and arbiter ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({}, "OK"),
        ({"sun": "root"}, "FAIL"),
        ({"sun": "slurm"}, "FAIL"),
        ({"sun": "alice"}, "FAIL"),
        ({"sun": ""}, "FAIL"),
        ({"exp": NOW_S - 1}, "FAIL"),
        ({"exp": NOW_S + 60}, "WARN"),
    ],
)
@pytest.mark.usefixtures("at_now")
def test_a_token_of_slurm(tmp_path: Path, changed: dict[str, Any], status: str) -> None:
    (tmp_path / "jwt").write_text(jwt({"sun": "ioncast-watch", "exp": NOW_S + 7200, **changed}))
    asked = {"address": "unix:/run/r", "user": "ioncast-watch", "token_file": f"{tmp_path}/jwt"}
    rest = SlurmrestdSettings.model_validate(asked)
    assert status_of(watch_and_arbiter.slurm_token_rows, "watch", rest, CONTROLLER) == status


def jwt(claims: Any) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"header.{body}.signature"


def test_the_claims_of_a_token_are_read() -> None:
    assert claims_of(jwt({"exp": 5, "sun": "a"})) == ("a", 5.0)


@pytest.mark.parametrize(
    "token",
    ["", "a", "a.b.c", "a.!.c", jwt([]), jwt({}), jwt({"exp": []}), jwt({"exp": "soon"}), "a.A.c"],
)
def test_a_text_that_is_not_a_token_has_no_claims(token: str) -> None:
    assert claims_of(token) == ("", math.inf)


@pytest.mark.parametrize(
    ("part", "level", "private", "status"),
    [
        ("watch", "None", [], "OK"),
        ("watch", None, [], "OK"),
        ("watch", "None", ["jobs"], "FAIL"),
        ("watch", "Operator", ["jobs"], "OK"),
        ("watch", "None", ["accounts"], "WARN"),
        ("watch", "Administrator", [], "WARN"),
        ("watch", GAP, [], "FAIL"),
        ("arbiter", "Operator", [], "OK"),
        ("arbiter", "None", [], "FAIL"),
        ("arbiter", None, [], "FAIL"),
    ],
)
def test_rights_in_slurm(
    monkeypatch: pytest.MonkeyPatch,
    part: watch_and_arbiter.Part,
    level: str | MissingSource | None,
    private: list[str],
    status: str,
) -> None:
    def said_by(*_command: str) -> str:
        if isinstance(level, MissingSource):
            raise level
        # sacctmgr shows nothing for a user that slurmdbd does not know.
        return "" if level == "None" else f"{level}\n"

    monkeypatch.setattr(watch_and_arbiter, "said_by", said_by)
    storage = "accounting_storage/" + ("none" if level is None else "slurmdbd")
    controller = in_folder(
        Path("/"), accountingstoragetype=storage, privatedata=",".join(private) or "none"
    )
    assert status_of(watch_and_arbiter.rights_rows, part, "u", controller) == status


class FakeSlurm:
    """slurmrestd, with an error of slurmdbd, or of slurmctld."""

    version = "0.0.38"
    ping_error: Exception | None = None
    limits_error: Exception | None = None

    def __init__(self, *_inputs: Any, **_options: Any) -> None:
        pass

    def __enter__(self) -> FakeSlurm:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def ping(self) -> None:
        if self.ping_error:
            raise self.ping_error

    def licence_total(self, _licence: str) -> int:
        return 8

    def limits(self, licence: str, total: int) -> Limits:
        if self.limits_error:
            raise self.limits_error
        return Limits(licence, total)


def slurmrestd_rows(*, has_slurmdbd: bool = True) -> list[Row]:
    settings = SiteSettings.model_validate(
        {
            "system": "mn4",
            "slurmrestd": {"address": "unix:/run/r", "user": "u", "token_file": "/t"},
            "service": {"token_file": "/t"},
        }
    )
    answer = started(
        lambda: watch_and_arbiter.ask_slurmrestd("watch", settings, has_slurmdbd=has_slurmdbd)
    )
    return rows_about(watch_and_arbiter.slurmrestd_rows, answer)


def test_slurmrestd_and_its_plugin_for_slurmdbd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_and_arbiter, "Slurm", FakeSlurm)
    assert [row.status for row in slurmrestd_rows()] == ["OK", "OK"]
    assert [row.status for row in slurmrestd_rows(has_slurmdbd=False)] == ["OK"]
    monkeypatch.setattr(FakeSlurm, "limits_error", SlurmAnswerError("no answer"))
    [_, row] = slurmrestd_rows()
    assert (row.status, "openapi/dbv0.0.38" in row.remedy) == ("FAIL", True)
    cluster = SlurmClusterError("several clusters", remedy="set `slurmrestd.cluster`")
    monkeypatch.setattr(FakeSlurm, "limits_error", cluster)
    [_, row] = slurmrestd_rows()
    assert (row.status, row.remedy) == ("FAIL", "set `slurmrestd.cluster`")
    monkeypatch.setattr(FakeSlurm, "ping_error", GAP)
    assert [row.status for row in slurmrestd_rows()] == ["FAIL"]


@pytest.mark.parametrize(
    ("metrics", "status"),
    [
        ('# HELP a\nioncast_watch_build_info{version="0.1.0"} 1.0\n', "OK"),
        ('ioncast_watch_build_info{version="0.0.9"} 1.0\n', "WARN"),
        ("", "WARN"),
        (None, "FAIL"),
    ],
)
def test_the_version_of_a_running_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metrics: str | None, status: str
) -> None:
    monkeypatch.setattr(watch_and_arbiter, "version", lambda _: "0.1.0")
    path = tmp_path / "metrics.prom"
    if metrics is not None:
        path.write_text(metrics)
    assert status_of(watch_and_arbiter.version_rows, "watch", str(path)) == status


@pytest.mark.parametrize(
    ("part", "role", "left_s", "status"),
    [
        ("watch", "scheduler", None, "OK"),
        ("watch", "reader", None, "FAIL"),
        ("watch", "admin", None, "WARN"),
        ("watch", None, None, "FAIL"),
        ("arbiter", "reader", 90 * 86_400, "OK"),
        ("arbiter", "scheduler", None, "WARN"),
        ("plugin", "scheduler", 3600, "WARN"),
    ],
)
@pytest.mark.usefixtures("at_now")
def test_roles_of_tokens(
    monkeypatch: pytest.MonkeyPatch, part: str, role: str | None, left_s: float | None, status: str
) -> None:
    rights = {"role": role, "expires_s": None if left_s is None else NOW_S + left_s}
    answer_with(monkeypatch, token_rights=rights)
    assert status_of(service.role_rows, part, "unix:/s", "", "ion_a") == status
    assert status_of(service.role_rows, part, "unix:/s", "/none", "") == "FAIL"
    answer_with(monkeypatch, token_rights=ServiceUnreachableError("no answer"))
    assert status_of(service.role_rows, part, "unix:/s", "", "ion_a") == "FAIL"


def test_a_token_that_the_service_rejects_is_to_be_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rejected = ServiceRefusedError(401, "the token is unknown or was revoked", where="s")
    answer_with(monkeypatch, token_rights=rejected)
    [row] = rows_about(service.role_rows, "arbiter", "unix:/s", "", "ion_a")
    assert row.status == "FAIL"
    assert "ioncast token add NAME --role reader" in row.remedy
    [row] = service_rows(monkeypatch, {"arbiter": "mn4"}, [], systems=rejected)
    assert (row.subject, row.status) == ("service", "FAIL")
    assert f"rejects the token in {os.devnull}" in row.found
    # Its own log tells nothing about the token of a client.
    assert "Replacing tokens" in row.remedy


def test_a_token_without_an_address_of_the_service_is_only_read(tmp_path: Path) -> None:
    assert rows_about(service.role_rows, "plugin", "", "", "ion_a") == []
    assert status_of(service.role_rows, "plugin", "", f"{tmp_path}/none", "") == "FAIL"


# The service ------------------------------------------------------------------------------------

ANSWERS: dict[str, Any] = {
    "readiness": {"keeper": "ok", "database": "ok"},
    "release": "0.1.0",
    "measured_systems": ServiceRefusedError(401, "no token", where="s"),
    "systems": [{"name": "mn4", "imports": 1, "untried": 0}],
    "slow_io_nodes": SlowIoNodes(),
}


def answer_with(monkeypatch: pytest.MonkeyPatch, **answers: Any) -> None:
    """Let the service answer so, by the method of its client; raise those that are errors."""

    def method(answer: Any) -> Any:
        def answered(_client: Any, *_asked: str) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

        return answered

    client = type("Client", (), {name: method(answer) for name, answer in answers.items()})
    own = {"__enter__": lambda self: self, "__exit__": lambda *_: None, "__init__": lambda *_: None}
    for name, function in own.items():
        setattr(client, name, function)
    monkeypatch.setattr(service, "Ioncast", client)


def service_rows(
    monkeypatch: pytest.MonkeyPatch, names: dict[str, str], private: list[str], **answers: Any
) -> list[Row]:
    answer_with(monkeypatch, **{**ANSWERS, **answers})
    monkeypatch.setattr(service, "version", lambda _: "0.1.0")
    settings = ServiceSettings(address="unix:/run/s", token_file=os.devnull)
    return rows_about(service.service_rows, settings, names, frozenset(private))


@pytest.mark.parametrize(
    ("answers", "systems", "private", "bad"),
    [
        ({}, {"watch": "mn4", "plugin": "mn4"}, [], {}),
        (
            {"readiness": {"keeper": "late", "database": "ok"}},
            {"watch": "mn4"},
            [],
            {"service": "WARN"},
        ),
        (
            {"readiness": {"keeper": "ok", "database": "unavailable"}},
            {"watch": "mn4"},
            [],
            {"service": "WARN"},
        ),
        ({}, {"watch": "other"}, [], {"system": "FAIL"}),
        ({}, {"watch": "mn4", "plugin": "mn5"}, [], {"system": "FAIL"}),
        ({"release": "0.0.9"}, {"watch": "mn4"}, [], {"versions": "WARN"}),
        ({"measured_systems": ["mn4"]}, {"watch": "mn4"}, ["usage"], {}),
        ({"measured_systems": ["mn4"]}, {"watch": "mn4"}, ["jobs"], {"reading": "FAIL"}),
        ({}, {"watch": "mn4"}, ["jobs"], {}),
        ({"systems": ServiceUnreachableError("no")}, {"watch": "mn4"}, [], {"subject": "FAIL"}),
    ],
)
def test_the_service(
    monkeypatch: pytest.MonkeyPatch,
    answers: dict[str, Any],
    systems: dict[str, str],
    private: list[str],
    bad: dict[str, str],
) -> None:
    rows = statuses(service_rows(monkeypatch, systems, private, **answers))
    assert {subject: status for subject, status in rows.items() if status != "OK"} == bad


def test_slow_io_nodes_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = SlowIoNodes(1.0, {"io3": 4.04, "io\x1b[31m5": 1.6})
    rows = service_rows(monkeypatch, {"watch": "mn4", "plugin": "mn4"}, [], slow_io_nodes=found)
    [row] = [row for row in rows if row.subject == "slow I/O nodes"]
    assert row.status == "WARN"
    assert row.found == r"jobs are slower on io3 (4.0 times), 'io\x1b[31m5' (1.6 times)"


def test_applications_that_may_do_better_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    best = {"program": "ior", "user": "ada", "io_nodes": 1, "chosen": 0, "loss": 0.012}
    told = {"untried": 5, "largest_untried": [best, best | {"io_nodes": 4}, best, best]}
    systems = [{"name": name, "imports": 1, **told} for name in ("mn4", "mn5")]
    rows = service_rows(monkeypatch, {"watch": "mn4"}, [], systems=systems)
    [row] = [row for row in rows if row.subject == "untried"]
    assert row.status == "OK"
    assert row.found == (
        "5 applications never ran with a number of I/O nodes that may be better:"
        " ior of ada with 1 I/O node instead of 0, 1% less expected;"
        " ior of ada with 4 I/O nodes instead of 0, 1% less expected;"
        " ior of ada with 1 I/O node instead of 0, 1% less expected; ...;"
        " `explore` in service.toml tries such numbers"
    )


@pytest.mark.parametrize(
    ("answered", "status"), [(422, "OK"), (400, "OK"), (401, "FAIL"), (500, "FAIL"), (None, "FAIL")]
)
def test_the_answer_at_the_plugins_address(
    monkeypatch: pytest.MonkeyPatch, answered: int | None, status: str
) -> None:
    settings = with_settings(address="127.0.0.1:8420")
    error = ServiceRefusedError(answered, "no", where="s") if answered else GAP
    answer_with(monkeypatch, try_question=error)
    assert status_of(service.answer_rows, "address", settings, "slurm") == status
    answer_with(monkeypatch, try_question={})
    [row] = rows_about(service.answer_rows, "address", settings, "slurm")
    assert row == fail(
        "subject", "http://127.0.0.1:8420: another program answers there", "correct `address`"
    )


@pytest.mark.root
def test_a_socket_that_slurms_user_may_not_use_names_the_setting_of_its_group(
    tmp_path: Path,
) -> None:
    path = tmp_path / "decisions.sock"
    with socket.socket(socket.AF_UNIX) as decisions:
        decisions.bind(str(path))
        decisions.listen()
        path.chmod(0o660)
        settings = with_settings(address=f"unix:{path}")
        [row] = rows_about(service.answer_rows, "address", settings, "nobody")
    assert row.status == "FAIL"
    assert row.found == f"{path}: the user nobody, who runs slurmctld, cannot use this socket"
    assert "`decisions_group` in service.toml" in row.remedy


def test_a_socket_that_the_own_user_may_not_use_names_the_setting_of_its_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service, "can", lambda *_: True)
    monkeypatch.setattr(os, "access", lambda _path, mode: mode == os.F_OK)
    [row] = rows_about(service.answer_rows, "address", PLUGIN, "slurm")
    assert (row.status, row.found) == ("FAIL", "/run/d.sock: your user cannot use this socket")
    assert "`decisions_group` in service.toml" in row.remedy


def test_a_service_that_never_answers_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_sources, "ANSWER_S", 0.3)
    path = tmp_path / "service.sock"
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(path))
        silent.listen()
        settings = ServiceSettings(address=f"unix:{path}", token_file=os.devnull)
        [row] = rows_about(service.service_rows, settings, {}, frozenset())
    assert row.status == "FAIL"
    assert "does not answer within 0.3 s" in row.found


# Files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "expected", "status"),
    [
        (f"{NOW_S - 1:.0f} 300\n", "{}/heartbeat", "OK"),
        (f"{NOW_S - 31:.0f} 300\n", "{}/heartbeat", "FAIL"),
        (f"{NOW_S + 31:.0f} 300\n", "{}/heartbeat", "FAIL"),
        ("0 300\n", "{}/heartbeat", "FAIL"),
        (f"{NOW_S:.0f} 300\n", "/other", "FAIL"),
        (None, "{}/heartbeat", "FAIL"),
    ],
)
@pytest.mark.usefixtures("at_now")
def test_the_heartbeat(tmp_path: Path, written: str | None, expected: str, status: str) -> None:
    path = tmp_path / "heartbeat"
    if written is not None:
        path.write_text(written)
    paths = (expected.format(tmp_path), str(path))
    assert status_of(watch_and_arbiter.heartbeat_rows, *paths) == status


@pytest.mark.parametrize(
    ("written_s", "licence", "expected", "status"),
    [
        (NOW_S, "ionode", "{}/limits", "OK"),
        (NOW_S, "ionode", "", "FAIL"),
        (NOW_S, "other", "{}/limits", "FAIL"),
        (NOW_S - 700, "ionode", "{}/limits", "WARN"),
        (NOW_S - 86_400, "ionode", "{}/limits", "FAIL"),
    ],
)
@pytest.mark.usefixtures("at_now")
def test_the_file_of_limits(
    tmp_path: Path, written_s: float, licence: str, expected: str, status: str
) -> None:
    path = tmp_path / "limits"
    time_s = int(written_s)
    path.write_text(f"ioncast-limits\t1\t{time_s}\t{licence}\ntotal\t8\nend\t{time_s}\n")
    settings = with_settings(limits=expected.format(tmp_path))
    assert status_of(watch_and_arbiter.limits_rows, settings, str(path)) == status


@pytest.mark.parametrize("content", [b"", b"\0" * 70_000, b"ioncast-limits\t1\t5\tionode\n"])
def test_a_damaged_file_of_limits_fails(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "limits"
    path.write_bytes(content)
    [row] = rows_about(watch_and_arbiter.limits_rows, with_settings(limits=str(path)), str(path))
    assert (row.status, "empty or damaged" in row.found) == ("FAIL", True)
    [row] = rows_about(watch_and_arbiter.heartbeat_rows, str(path), str(path))
    assert (row.status, "there is no time" in row.found) == ("FAIL", True)


@pytest.mark.parametrize(
    ("mode", "status"), [(0o1777, "OK"), (0o777, "WARN"), (0o755, "WARN"), (None, "WARN")]
)
def test_darshans_folder_of_today(tmp_path: Path, mode: int | None, status: str) -> None:
    today = tmp_path / "2026" / "1" / "31"
    if mode is not None:
        today.mkdir(parents=True)
        today.chmod(mode)
    settings = DarshanSettings(folder=str(tmp_path))
    assert status_of(watch_and_arbiter.darshan_rows, settings, date(2026, 1, 31)) == status


def test_a_missing_folder_of_darshan_fails(tmp_path: Path) -> None:
    settings = DarshanSettings(folder=str(tmp_path / "none"))
    assert status_of(watch_and_arbiter.darshan_rows, settings, date(2026, 1, 31)) == "FAIL"
    [row] = rows_about(watch_and_arbiter.darshan_rows, settings, date(2026, 1, 31))
    assert row.found.startswith(f"{tmp_path}/none is missing")
    assert "docs/slurm.md, Darshan's folders" in row.remedy


def test_a_missing_file_is_told_without_the_name_of_an_exception(tmp_path: Path) -> None:
    path = str(tmp_path / "metrics.prom")
    [row] = rows_about(watch_and_arbiter.version_rows, "watch", path)
    assert (row.status, row.found) == ("FAIL", f"{path}: No such file or directory")


# The command ------------------------------------------------------------------------------------


def test_where_nothing_is_installed_each_source_is_a_row(tmp_path: Path) -> None:
    bad = tmp_path / "watch.toml"
    bad.write_text("system = 7\n")
    where = {"SLURM_CONF": str(tmp_path / "none"), "PATH": str(tmp_path)}
    done = run_ioncast("slurm", "check", f"--watch={bad}", environment=where)
    assert (done.returncode, done.stderr) == (1, "")
    assert "FAIL  slurmctld: " in done.stdout
    assert "FAIL  watch: settings: " in done.stdout
    shown = run_ioncast("slurm", "check", f"--watch={bad}", "--format=json", environment=where)
    rows = [Row(**row) for row in json.loads(shown.stdout)]
    assert {row.subject for row in rows if row.status != "FAIL"} == {"rights"}
    assert all(row.remedy for row in rows if row.status == "FAIL")


def test_a_wrong_option_is_wrong_usage(tmp_path: Path) -> None:
    assert run_ioncast("slurm", "check", f"--watch={tmp_path}/none").returncode == 2
