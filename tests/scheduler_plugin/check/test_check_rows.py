"""Each row of `ioncast slurm check`, from what was gathered."""

from __future__ import annotations

import base64
import json
import math
import socket
import threading
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ioncast_base.errors import InputError
from scheduler_plugin.check import (
    asking_sources,
    hooks,
    judging,
    service,
    watch_and_arbiter,
    written_files,
)
from scheduler_plugin.check.asking_sources import attempted, gathered, said_by
from scheduler_plugin.check.controller import (
    Controller,
    gather_loaded_line,
    last_loaded,
    read_configuration,
    read_totals,
    setting_in_file,
)
from scheduler_plugin.check.plugin import SHIPPED, Plugin, gather_plugin
from scheduler_plugin.check.row_values import MissingSource, Row, exit_code, fail, ok, unknown, warn
from scheduler_plugin.settings import DarshanSettings
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


def with_settings(**changed: str) -> Plugin:
    return replace(PLUGIN, settings={**PLUGIN.settings, **changed})


# Rows and gatherers -----------------------------------------------------------------------------


def test_only_a_failure_makes_the_command_fail() -> None:
    good, doubtful = ok("a", "b"), warn("a", "b", "c")
    assert exit_code([good, doubtful]) == 0
    assert exit_code([good, doubtful, fail("a", "b", "c")]) == 1


def test_a_source_that_only_root_may_read_is_a_warning() -> None:
    row = unknown("limits", MissingSource("Permission denied", needs_root=True))
    assert (row.status, row.found) == ("WARN", "not checked: Permission denied")
    assert row.remedy == "run this command as root"


def test_hostile_texts_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in fail("a", "b\x1b[2J", "c").found


def test_a_source_that_hangs_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking_sources, "PATIENCE_S", 0.2)
    ever = threading.Event()
    found = gathered({"hangs": ever.wait, "answers": lambda: 4})
    ever.set()
    assert found["hangs"] == MissingSource("no answer within 0.2 s", "look why it hangs")


def test_any_error_of_a_source_is_a_gap() -> None:
    def broken() -> None:
        raise ZeroDivisionError("no way")

    def refused() -> None:
        raise InputError("cannot be read", where="/f", remedy="do this")

    assert gathered({"a": broken})["a"] == MissingSource("ZeroDivisionError: no way")
    assert attempted(refused) == MissingSource("/f: cannot be read", "do this")


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
    assert gather_loaded_line(log) == "mode=on"
    log.write_bytes(noise)
    assert gather_loaded_line(log) == ""
    log.write_bytes(b"")
    assert gather_loaded_line(log) == ""


def test_a_jobs_name_is_not_taken_for_the_loaded_line() -> None:
    line = b'lua: ioncast: mode=on job="ioncast: loaded: mode=off" io_nodes=none\n'
    assert last_loaded(line) == ""


def test_the_plugin_itself_judges_its_settings(tmp_path: Path) -> None:
    (tmp_path / "ioncast.lua").write_text((SHIPPED / "ioncast.lua").read_text())
    (tmp_path / "ioncast_settings.lua").write_text(
        """return { mode = "maybe", pool = 8, address = "[::1]:8420", system = "a\\tb\\n\\\\x41",
        partitions = { debug = { mode = "on", pool = 4.0 }, wrong = 7 } }"""
    )
    found = gather_plugin(tmp_path, "root")
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
        gather_plugin(tmp_path, "root")


@pytest.mark.parametrize(
    ("controller", "plugin", "loaded", "bad"),
    [
        (CONTROLLER, PLUGIN, f"{LOADED} lua_socket=yes", {}),
        (Controller({}, {}), PLUGIN, f"{LOADED} lua_socket=yes", {"slurmctld": "FAIL"}),
        (CONTROLLER, GAP, f"{LOADED} lua_socket=yes", {"settings": "FAIL"}),
        (
            CONTROLLER,
            replace(PLUGIN, complaints=("wrong",)),
            f"{LOADED} lua_socket=yes",
            {"settings": "FAIL"},
        ),
        (
            CONTROLLER,
            replace(PLUGIN, complaints=("cannot read a token",), is_as_slurmctld=False),
            "mode=on token=yes lua_socket=yes",
            {"settings": "WARN", "loaded settings": "WARN"},
        ),
        (CONTROLLER, PLUGIN, f"{LOADED} lua_socket=no", {"lua-socket": "FAIL"}),
        (CONTROLLER, PLUGIN, "mode=off lua_socket=yes", {"loaded settings": "FAIL"}),
        (CONTROLLER, PLUGIN, "", {"loaded settings": "WARN"}),
        (CONTROLLER, PLUGIN, GAP, {"loaded settings": "FAIL"}),
    ],
)
def test_the_plugin_in_slurmctld(
    controller: Controller,
    plugin: Plugin | MissingSource,
    loaded: str | MissingSource,
    bad: dict[str, str],
) -> None:
    found = statuses(judging.plugin_rows(controller, plugin, loaded))
    assert {subject: status for subject, status in found.items() if status != "OK"} == bad


@pytest.mark.parametrize(
    ("name", "text", "status"),
    [
        ("ioncast.lua", "shipped", "OK"),
        ("ioncast.lua", "older", "WARN"),
        ("ioncast.lua", GAP, "FAIL"),
        ("job_submit.lua", 'dofile("/etc/slurm/ioncast.lua")', "OK"),
        ("job_submit.lua", "return slurm.SUCCESS", "FAIL"),
    ],
)
def test_the_files_of_the_plugin(name: str, text: str | MissingSource, status: str) -> None:
    shipped = {"job_submit.lua": "shipped", "ioncast.lua": "shipped"}
    found = statuses(judging.file_rows({**shipped, name: text}, shipped))
    assert found.pop(name) == status
    assert set(found.values()) == {"OK"}


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
    total: int,
    pools: tuple[int, ...],
    modes: list[str],
    in_file: str,
    others: dict[str, str],
    expected: list[str],
) -> None:
    controller = replace(CONTROLLER, totals={"ionode": total} if total else {})
    plugin = replace(PLUGIN, pools=pools, modes=frozenset(modes))
    rows = list(judging.licence_rows(controller, plugin, others, in_file))
    assert [row.status for row in rows] == expected


def test_licences_in_the_file_are_those_of_its_last_line(tmp_path: Path) -> None:
    path = tmp_path / "slurm.conf"
    assert setting_in_file(path, "Licenses") == ""
    path.write_text("#Licenses=ionode:1\nlicenses=ionode:4 # few\n")
    assert setting_in_file(path, "Licenses") == "ionode:4"
    assert setting_in_file(path, "AuthAltParameters") == ""


@pytest.mark.parametrize(
    ("limits", "plugin", "status"),
    [
        (Limits("ionode", 8), PLUGIN, "OK"),
        (Limits("ionode", 8, qos={"large": 8}), with_settings(limits=""), "OK"),
        (Limits("ionode", 8, qos={"small": 2}), PLUGIN, "OK"),
        (Limits("ionode", 8, qos={"small": 2}), with_settings(limits=""), "FAIL"),
        (Limits("ionode", 8, users={("a", "b"): 2}), with_settings(limits=""), "FAIL"),
    ],
)
def test_limits_of_slurm(limits: Limits, plugin: Plugin, status: str) -> None:
    assert judging.limits_row(limits, plugin).status == status


# Hooks ------------------------------------------------------------------------------------------

HOOK = hooks.Hook(True, True)
HOOK_SETTINGS = hooks.HookSettings("ionode", "/jobs", "/site/switch")


@pytest.mark.parametrize(
    ("value", "hook", "status"),
    [
        ("/h/prolog_slurmctld.sh", HOOK, "OK"),
        ("/site/p.sh,/h/prolog_slurmctld.sh", HOOK, "OK"),
        ("/site/p.sh", None, "WARN"),
        ("/h/prolog_slurmctld.sh", GAP, "FAIL"),
        ("/h/prolog_slurmctld.sh", replace(HOOK, is_shipped=False), "WARN"),
        ("/h/prolog_slurmctld.sh", replace(HOOK, is_runnable=False), "FAIL"),
    ],
)
def test_a_hook(value: str, hook: hooks.Hook | MissingSource | None, status: str) -> None:
    assert hooks.hook_row("PrologSlurmctld", value, hook).status == status


@pytest.mark.parametrize(
    ("changed", "is_arbitrated", "status"),
    [
        ({}, True, "OK"),
        ({"licence": "forwarder"}, False, "FAIL"),
        ({"is_runnable": False}, False, "FAIL"),
        ({"folder": ""}, False, "WARN"),
        ({"folder": ""}, True, "FAIL"),
        ({"is_folder": False}, False, "FAIL"),
        ({"is_writable": False}, False, "FAIL"),
        ({"is_readable": False}, False, "FAIL"),
    ],
)
def test_the_folder_of_the_hooks(changed: dict[str, Any], is_arbitrated: bool, status: str) -> None:
    found = replace(HOOK_SETTINGS, **changed)
    row = hooks.settings_row(found, "slurm", "ionode", is_arbitrated=is_arbitrated)
    assert row.status == status
    assert hooks.settings_row(GAP, "slurm", "ionode", is_arbitrated=False).status == "FAIL"


def test_hooks_conf_is_read_by_a_shell(tmp_path: Path) -> None:
    path = tmp_path / "hooks.conf"
    path.write_text(f"# LICENCE=no\nJOBS_FOLDER={tmp_path}/jobs\nSITE_SCRIPT=\n")
    (tmp_path / "jobs").mkdir(mode=0o700)
    found = hooks.gather_hook_settings(path, "root")
    assert found == hooks.HookSettings("ionode", f"{tmp_path}/jobs", "", is_readable=False)
    (tmp_path / "jobs").rmdir()
    assert not hooks.gather_hook_settings(path, "root").is_folder
    path.write_text("JOBS_FOLDER='")
    with pytest.raises(InputError, match="fails"):
        hooks.gather_hook_settings(path, "root")


# Watch and arbiter ------------------------------------------------------------------------------

TOKEN = watch_and_arbiter.SlurmToken("ioncast-watch", NOW_S + 7200)


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({}, "OK"),
        ({"user": "root"}, "FAIL"),
        ({"user": "slurm"}, "FAIL"),
        ({"user": "alice"}, "FAIL"),
        ({"expires_s": NOW_S - 1}, "FAIL"),
        ({"expires_s": NOW_S + 60}, "WARN"),
    ],
)
def test_a_token_of_slurm(changed: dict[str, Any], status: str) -> None:
    found = replace(TOKEN, **changed)
    row = watch_and_arbiter.slurm_token_row("watch", "ioncast-watch", found, "slurm", NOW_S)
    assert row.status == status


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
    part: watch_and_arbiter.Part, level: str | MissingSource | None, private: list[str], status: str
) -> None:
    assert watch_and_arbiter.rights_row(part, "u", level, frozenset(private)).status == status


def test_slurmrestd_and_its_plugin_for_slurmdbd() -> None:
    rest = watch_and_arbiter.Rest("0.0.38", Limits("ionode", 8))
    assert set(statuses(watch_and_arbiter.rest_rows("watch", rest)).values()) == {"OK"}
    without = watch_and_arbiter.rest_rows("watch", replace(rest, limits=None))
    assert [row.status for row in without] == ["OK"]
    [_, row] = watch_and_arbiter.rest_rows(
        "watch", replace(rest, limits=MissingSource("no answer"))
    )
    assert (row.status, "openapi/dbv0.0.38" in row.remedy) == ("FAIL", True)
    cluster = MissingSource("several clusters", "set `slurmrestd.cluster`")
    [_, row] = watch_and_arbiter.rest_rows("watch", replace(rest, limits=cluster))
    assert (row.status, row.remedy) == ("FAIL", "set `slurmrestd.cluster`")
    assert [row.status for row in watch_and_arbiter.rest_rows("watch", GAP)] == ["FAIL"]


@pytest.mark.parametrize(
    ("running", "status"), [("0.1.0", "OK"), ("0.0.9", "WARN"), ("", "WARN"), (GAP, "FAIL")]
)
def test_the_version_of_a_running_part(running: str | MissingSource, status: str) -> None:
    assert watch_and_arbiter.version_row("watch", running, "0.1.0").status == status


def test_the_running_version_is_read_from_metrics(tmp_path: Path) -> None:
    path = tmp_path / "metrics.prom"
    path.write_text('# HELP a\nioncast_watch_build_info{version="0.1.0"} 1.0\n')
    assert watch_and_arbiter.gather_running_version(path) == "0.1.0"
    path.write_text("")
    assert watch_and_arbiter.gather_running_version(path) == ""


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
def test_roles_of_tokens(part: str, role: str | None, left_s: float | None, status: str) -> None:
    rights = {"role": role, "expires_s": None if left_s is None else NOW_S + left_s}
    assert watch_and_arbiter.role_row(part, rights, NOW_S).status == status
    assert watch_and_arbiter.role_row(part, GAP, NOW_S).status == "FAIL"


# The service ------------------------------------------------------------------------------------

SERVICE = service.CheckedService("0.1.0", "ok", "ok", ("mn4",), False, {})


@pytest.mark.parametrize(
    ("changed", "systems", "private", "bad"),
    [
        ({}, {"watch": "mn4", "plugin": "mn4"}, [], {}),
        ({"keeper": "late"}, {"watch": "mn4"}, [], {"service": "WARN"}),
        ({"database": "unavailable"}, {"watch": "mn4"}, [], {"service": "WARN"}),
        ({}, {"watch": "other"}, [], {"system": "FAIL"}),
        ({}, {"watch": "mn4", "plugin": "mn5"}, [], {"system": "FAIL"}),
        ({"version": "0.0.9"}, {"watch": "mn4"}, [], {"versions": "WARN"}),
        ({"is_open": True}, {"watch": "mn4"}, ["usage"], {}),
        ({"is_open": True}, {"watch": "mn4"}, ["jobs"], {"reading": "FAIL"}),
        ({}, {"watch": "mn4"}, ["jobs"], {}),
    ],
)
def test_the_service(
    changed: dict[str, Any], systems: dict[str, str], private: list[str], bad: dict[str, str]
) -> None:
    found = replace(SERVICE, **changed)
    rows = statuses(service.service_rows(found, systems, "0.1.0", frozenset(private)))
    assert {subject: status for subject, status in rows.items() if status != "OK"} == bad


def test_applications_that_may_do_better_are_named() -> None:
    best = {"program": "ior", "user": "ada", "io_nodes": 1, "chosen": 0, "loss": 0.012}
    told = {"untried": 5, "largest_untried": [best, best | {"io_nodes": 4}, best, best]}
    found = replace(SERVICE, untried={"mn4": told, "mn5": told})
    [row] = [
        row
        for row in service.service_rows(found, {"watch": "mn4"}, "0.1.0", frozenset())
        if row.subject == "untried"
    ]
    assert row.status == "OK"
    assert row.found == (
        "5 applications never ran with a number of I/O nodes that may be better:"
        " ior of ada with 1 I/O node instead of 0, 1% less expected;"
        " ior of ada with 4 I/O nodes instead of 0, 1% less expected;"
        " ior of ada with 1 I/O node instead of 0, 1% less expected; ...;"
        " `explore` in service.toml tries such numbers"
    )


@pytest.mark.parametrize(
    ("answered", "status"), [(422, "OK"), (400, "OK"), (401, "FAIL"), (500, "FAIL"), (GAP, "FAIL")]
)
def test_the_answer_at_the_plugins_address(answered: int | MissingSource, status: str) -> None:
    assert (
        service.answer_row("address", "unix:/run/d.sock", answered, has_token=False).status
        == status
    )


def test_a_service_that_never_answers_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_sources, "ANSWER_S", 0.3)
    path = tmp_path / "service.sock"
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(path))
        silent.listen()
        found = attempted(lambda: service.gather_service(f"unix:{path}", "ion_a"))
    assert isinstance(found, MissingSource)
    assert "does not answer within 0.3 s" in found.reason


# Files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "expected", "status"),
    [
        (NOW_S - 1, "/h", "OK"),
        (NOW_S - 31, "/h", "FAIL"),
        (NOW_S + 31, "/h", "FAIL"),
        (0, "/h", "FAIL"),
        (NOW_S, "/other", "FAIL"),
        (GAP, "/h", "FAIL"),
    ],
)
def test_the_heartbeat(written: int | MissingSource, expected: str, status: str) -> None:
    assert written_files.heartbeat_row(written, NOW_S, expected, "/h").status == status


LIMITS = written_files.LimitsState(int(NOW_S), "ionode")


@pytest.mark.parametrize(
    ("changed", "expected", "status"),
    [
        ({}, "/run/l", "OK"),
        ({}, "", "FAIL"),
        ({"licence": "other"}, "/run/l", "FAIL"),
        ({"written_s": int(NOW_S) - 700}, "/run/l", "WARN"),
        ({"written_s": int(NOW_S) - 86_400}, "/run/l", "FAIL"),
    ],
)
def test_the_file_of_limits(changed: dict[str, Any], expected: str, status: str) -> None:
    found = replace(LIMITS, **changed)
    row = written_files.limits_row(found, NOW_S, "ionode", expected, "/run/l")
    assert row.status == status


@pytest.mark.parametrize("content", [b"", b"\0" * 70_000, b"ioncast-limits\t1\t5\tionode\n"])
def test_a_damaged_file_of_limits_is_a_gap(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "limits"
    path.write_bytes(content)
    with pytest.raises(InputError, match="empty or damaged"):
        written_files.gather_limits(path)
    with pytest.raises(InputError, match="there is no time"):
        written_files.gather_heartbeat(path)


def test_files_that_are_whole_are_read(tmp_path: Path) -> None:
    (tmp_path / "limits").write_text("ioncast-limits\t1\t5\tionode\ntotal\t8\nend\t5\n")
    (tmp_path / "heartbeat").write_text("17 300\n")
    found = written_files.gather_limits(tmp_path / "limits")
    assert (found.written_s, found.licence) == (5, "ionode")
    assert written_files.gather_heartbeat(tmp_path / "heartbeat") == 17


@pytest.mark.parametrize(
    ("mode", "status"), [(0o1777, "OK"), (0o777, "WARN"), (0o755, "WARN"), (None, "WARN")]
)
def test_darshans_folder_of_today(tmp_path: Path, mode: int | None, status: str) -> None:
    today = tmp_path / "2026" / "1" / "31"
    if mode is not None:
        today.mkdir(parents=True)
        today.chmod(mode)
    settings = DarshanSettings(folder=str(tmp_path))
    found = written_files.gather_darshan(settings, date(2026, 1, 31))
    assert written_files.darshan_row(found).status == status


def test_a_missing_folder_of_darshan_fails(tmp_path: Path) -> None:
    settings = DarshanSettings(folder=str(tmp_path / "none"))
    found = attempted(lambda: written_files.gather_darshan(settings, date(2026, 1, 31)))
    assert written_files.darshan_row(found).status == "FAIL"


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
