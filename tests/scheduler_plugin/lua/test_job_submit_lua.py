"""ioncast.lua in two versions of Lua."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.scheduler_plugin.standin import DECISION_ID, WHY, response, stand_in
from tests.support.licences import COUNTED, LEFT_ALONE

FOLDER = Path(__file__).resolve().parents[3] / "scheduler_plugin" / "lua"
NO_VAL, NO_VAL16 = 4294967294.0, 65534.0
WITH_TOKEN = {"token": "ion_abc"}
OF_SETTINGS = "ioncast: ioncast_settings.lua: "
NO_ANSWER = "no answer from unix:/run/ioncast/ioncast.sock: "
SETTINGS: dict[str, Any] = {
    "address": "unix:/run/ioncast/ioncast.sock",
    "system": "testbed",
    "mode": "on",
    "pool": 8,
}
# The fields of `sbatch -J restart --wrap`, printed by a script in Slurm 22.05: numbers are floats.
JOB: dict[str, Any] = {
    "name": "restart",
    "user_name": "alice",
    "user_id": 1000.0,
    "script": "#!/bin/sh\nsrun ./app\n",
    "min_nodes": NO_VAL,
    "num_tasks": NO_VAL,
    "ntasks_per_node": NO_VAL16,
    "priority": NO_VAL,
}
# Hypothesis warns about a fixture that is used again for each example; here that is intended.
NAMES = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=60
)
same_lua = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


AS_SLURM_GIVES_A_JOB = """
return function(fields, reads)
    return setmetatable({}, {
        __index = function(_, name) reads(name) return fields[name] end,
        __newindex = fields,
    })
end
"""


class Controller:
    """slurmctld, lua-socket and the service as the script sees them, controlled by a test.

    Attributes
    ----------
    lines, errors : list of str
        Lines of slurmctld's log about jobs, and errors.
    loads : list of str
        Lines about the settings, one for each start.
    now : float
        The clock, in seconds; it advances by the times in `takes` and `reading_takes`.
    answer : bytes
        The service's response, before it closes the connection.
    takes : dict
        Seconds that connecting, sending and receiving take.
    refuses : str
        Reason why connecting fails; empty if it succeeds.
    down, hung : set of str
        Hosts or paths at which connecting fails, and at which no answer comes.
    requests : list of bytes
        Requests to the service.
    asked_at : list of str
        The host or path of each connection.
    reading_takes : dict
        Seconds that Slurm takes to read a field of a job.
    timeouts : list of float
        Timeouts that the script set, one before each call.
    """

    def __init__(self, version: str, plugin: Path = FOLDER / "ioncast.lua") -> None:
        runtime = import_module(f"lupa.{version}").LuaRuntime
        # Latin-1 maps every byte to a character and back.
        self.lua = runtime(encoding="latin-1", unpack_returned_tuples=True)
        self.module = self.lua.execute(plugin.read_text())
        self.lines: list[str] = []
        self.loads: list[str] = []
        self.errors: list[str] = []
        self.told: list[str] = []
        self.now = 1000.0
        self.answer = response("4")
        self.takes = {"connect": 0.0, "send": 0.0, "receive": 0.0}
        self.refuses = ""
        self.down: set[str] = set()
        self.hung: set[str] = set()
        self.requests: list[bytes] = []
        self.asked_at: list[str] = []
        self.reading_takes: dict[str, float] = {}
        self.timeouts: list[float] = []
        self.open_connections = 0

    def start(self, *, has_sockets: bool = True, **changed: Any) -> Any:
        """Load the script with these settings and return its `submit`."""
        given = self.table({**SETTINGS, **changed})
        library = self.library() if has_sockets else None
        return self.module["new"](given, self.slurm(), library).submit

    def submit(self, job: Mapping[str, Any] | None = None, **changed: Any) -> dict[str, Any]:
        """Submit a job to the script with these settings and return the job's fields afterwards."""
        return self.submit_to(self.start(**changed), job)

    def submit_to(self, submit: Any, job: Mapping[str, Any] | None = None) -> dict[str, Any]:
        fields = self.table({**JOB, "environment": {}, **(job or {})})
        description = self.lua.execute(AS_SLURM_GIVES_A_JOB)(fields, self._reads)
        partitions = self.table(
            {"debug": {"flag_default": 0.0}, "batch": {"flag_default": 1.0}},
        )
        assert submit(description, partitions) is None
        found = dict(fields)
        found["environment"] = dict(found["environment"])
        return found

    def _reads(self, name: str) -> None:
        self.now += self.reading_takes.get(name, 0.0)

    def table(self, values: Mapping[Any, Any]) -> Any:
        return self.lua.table_from(
            {
                key: self.table(value) if isinstance(value, Mapping) else value
                for key, value in values.items()
                if value is not None
            }
        )

    def slurm(self) -> Any:
        return self.table(
            {
                "NO_VAL": NO_VAL,
                "NO_VAL16": NO_VAL16,
                "log_info": lambda form, text: self._logs(form.replace("%s", text)),
                "log_error": lambda form, text: self.errors.append(form.replace("%s", text)),
                "log_user": lambda form, text: self.told.append(form.replace("%s", text)),
            }
        )

    def _logs(self, line: str) -> None:
        (self.loads if line.startswith("ioncast: loaded: ") else self.lines).append(line)

    def library(self) -> Any:
        return self.table({"gettime": lambda: self.now, "tcp": self._open, "unix": self._open})

    def _open(self) -> Any:
        self.open_connections += 1
        return self.table(
            {
                "settimeout": self._settimeout,
                "connect": self._connect,
                "send": self._send,
                "receive": self._receive,
                "close": self._close,
            }
        )

    def _settimeout(self, _connection: Any, seconds: float, mode: str) -> None:
        assert mode == "t"
        assert seconds > 0
        self.timeouts.append(seconds)

    def _call(self, name: str, done: tuple[Any, ...]) -> tuple[Any, ...]:
        """The result of a call; a timeout if it takes longer than the last timeout."""
        left = self.timeouts[-1]
        is_hung = name == "receive" and self.asked_at[-1] in self.hung
        takes = left if is_hung else self.takes[name]
        self.now += min(takes, left)
        if takes >= left:
            return None, "timeout", ""
        return done

    def _connect(self, _connection: Any, place: str, *_: Any) -> tuple[Any, ...]:
        self.asked_at.append(place)
        refuses = "connection refused" if place in self.down else self.refuses
        return self._call("connect", (None, refuses) if refuses else (1, None))

    def _send(self, _connection: Any, request: str) -> tuple[Any, ...]:
        self.requests.append(request.encode("latin-1"))
        return self._call("send", (len(request), None))

    def _receive(self, _connection: Any, longest: int) -> tuple[Any, ...]:
        text = self.answer.decode("latin-1")
        if len(text) >= longest:
            return self._call("receive", (text[:longest], None))
        return self._call("receive", (None, "closed", text))

    def _close(self, _connection: Any) -> None:
        self.open_connections -= 1


# Debian's Slurm links the first, EL 9's the second.
RUNTIMES = ("lua51", "lua54")


@pytest.fixture(params=RUNTIMES)
def controller(request: pytest.FixtureRequest) -> Controller:
    return Controller(request.param)


def changed(job: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The fields that differ from the submitted ones."""
    old = {**JOB, "environment": {}, **(before or {})}
    return {key: value for key, value in job.items() if old.get(key) != value}


def fields(line: str) -> dict[str, str]:
    """The fields of a line of the log."""
    first, *parts = line.split(" ")
    assert first == "ioncast:"
    text, found = " ".join(parts), {}
    while text:
        name, _, text = text.partition("=")
        if text.startswith('"'):
            value, _, text = text[1:].partition('"')
            text = text.removeprefix(" ")
        else:
            value, _, text = text.partition(" ")
        found[name] = value
    return found


def query(controller: Controller) -> dict[str, str]:
    """The fields of the only question, without those that are always the same."""
    [request] = controller.requests
    first_line = request.split(b"\r\n")[0].decode("ascii")
    method, target, version = first_line.split(" ")
    assert (method, version) == ("GET", "HTTP/1.0")
    parts = urlsplit(target)
    assert parts.path == "/v1/decisions"
    found = {key: value for key, [value] in parse_qs(parts.query, strict_parsing=True).items()}
    assert (found.pop("system"), found.pop("available")) == ("testbed", "8")
    # A job of srun is only shadowed.
    assert found.pop("explore", "true") == "true"
    return found


# Results for a job


def test_a_job_gets_what_the_service_decides(controller: Controller) -> None:
    job = controller.submit()
    assert changed(job) == {
        "licenses": "ionode:4",
        "admin_comment": f"ioncast:{DECISION_ID}",
        "environment": {"ION_COUNT": "4"},
    }
    [line] = controller.lines
    assert line == (
        'ioncast: mode=on partition="batch" user="alice" job="restart" io_nodes=4 source=history'
        f' ms=0.0 decision={DECISION_ID} why="{WHY}"'
    )
    assert controller.errors == []
    assert controller.open_connections == 0


def test_licences_that_the_job_has_already_are_kept(controller: Controller) -> None:
    before = {"licenses": "matlab:2", "admin_comment": "of an admin"}
    job = controller.submit(before)
    assert job["licenses"] == "matlab:2,ionode:4"
    assert job["admin_comment"] == f"of an admin ioncast:{DECISION_ID}"


@pytest.mark.parametrize("number", ["9", "4294967297", "9" * 400])
def test_more_than_the_pool_has_is_not_believed(controller: Controller, number: str) -> None:
    controller.answer = response(number)
    assert controller.submit(default=2)["licenses"] == "ionode:2"
    line = fields(controller.lines[0])
    assert (line["source"], line["decision"]) == ("fallback", "none")
    assert line["why"] == f"{NO_ANSWER}the answer is more I/O nodes than there are"


@pytest.mark.parametrize("source", ["user", "fallback", "history2", "", "history\x01"])
def test_a_source_that_the_service_does_not_have_is_not_believed(
    controller: Controller, source: str
) -> None:
    controller.answer = response("4").replace(b"history", source.encode())
    job = controller.submit()
    assert (job["licenses"], job["admin_comment"]) == ("ionode:4", f"ioncast:{DECISION_ID}")
    assert fields(controller.lines[0])["source"] == "service"


@pytest.mark.parametrize("mode", ["on", "arbitrate"])
def test_only_the_first_component_of_a_het_job_gets_io_nodes(
    controller: Controller, mode: str
) -> None:
    submit = controller.start(mode=mode, default=1)
    components = [
        controller.submit_to(submit, {"het_job_offset": offset, "script": script})
        for offset, script in [(0.0, "#!/bin/sh\n"), (1.0, None), (2.0, None)]
    ]
    assert components[0]["licenses"] == "ionode:4"
    for component in components[1:]:
        assert (
            changed(component, {"het_job_offset": component["het_job_offset"], "script": None})
            == {}
        )
    assert len(controller.requests) == 1
    assert [fields(line)["source"] for line in controller.lines] == ["history", "leader", "leader"]
    assert fields(controller.lines[2])["io_nodes"] == "none"
    assert fields(controller.lines[2])["why"].startswith("component 2 of a heterogeneous job")


def test_a_users_own_number_for_a_component_of_a_het_job_stays(controller: Controller) -> None:
    # Up to Slurm 22.05 each component may have its own.
    job = {"het_job_offset": 1.0, "licenses": "ionode:3"}
    assert changed(controller.submit(job), job) == {"environment": {"ION_COUNT": "3"}}
    assert fields(controller.lines[0])["source"] == "user"


@pytest.mark.promise("slurm-tasks-ask")
@pytest.mark.parametrize(
    "tasks",
    [
        "license/ionode:1",
        "license:ionode=2",
        "gres/gpu:1,license/ionode@server=1",
        "license/ionode",
    ],
)
def test_io_nodes_that_the_user_asks_for_with_each_task_are_the_users_own(
    controller: Controller, tasks: str
) -> None:
    job = {"tres_per_task": tasks}
    assert changed(controller.submit(job), job) == {}
    assert fields(controller.lines[0])["source"] == "user"


@pytest.mark.parametrize("tasks", ["license/matlab:1", "gres/ionode:1", "cpu=1"])
def test_other_resources_of_tasks_leave_the_decision_to_the_service(
    controller: Controller, tasks: str
) -> None:
    assert controller.submit({"tres_per_task": tasks})["licenses"] == "ionode:4"


def test_direct_access_needs_no_licence(controller: Controller) -> None:
    controller.answer = response("0")
    job = controller.submit({"licenses": "matlab"})
    assert changed(job, {"licenses": "matlab"}) == {
        "admin_comment": f"ioncast:{DECISION_ID}",
        "environment": {"ION_COUNT": "0"},
    }


def test_only_batch_jobs_have_an_environment_to_write_to(controller: Controller) -> None:
    job = controller.submit({"script": None}, interactive="on")
    assert (job["licenses"], job["environment"]) == ("ionode:4", {})


# Jobs without a script


@pytest.mark.parametrize("mode", ["on", "arbitrate", "shadow"])
def test_jobs_without_a_script_are_only_logged(controller: Controller, mode: str) -> None:
    before = {"script": None}
    assert changed(controller.submit(before, mode=mode, default=1), before) == {}
    line = fields(controller.lines[0])
    assert (line["mode"], line["io_nodes"], line["source"]) == ("shadow", "4", "history")
    assert "held" not in line


def test_interactive_is_a_setting_of_partitions_too(controller: Controller) -> None:
    submit = controller.start(partitions={"large": {"interactive": "on"}, "debug": {"mode": "off"}})
    found = [
        controller.submit_to(submit, {"script": script, "partition": partition}).get("licenses")
        for partition in ("batch", "large", "debug")
        for script in (None, "#!/bin/sh\n")
    ]
    assert found == [None, "ionode:4", "ionode:4", "ionode:4", None, None]
    assert len(controller.lines) == 4


def test_the_name_of_the_licence_is_a_setting(controller: Controller) -> None:
    job = controller.submit({"licenses": "ionode:1"}, licence="gkfs")
    assert job["licenses"] == "ionode:1,gkfs:4"


def test_without_an_answer_a_job_stays_as_it_is(controller: Controller) -> None:
    controller.refuses = "connection refused"
    assert changed(controller.submit()) == {}
    assert fields(controller.lines[0]) == {
        "mode": "on",
        "partition": "batch",
        "user": "alice",
        "job": "restart",
        "io_nodes": "none",
        "source": "fallback",
        "ms": "0.0",
        "decision": "none",
        "why": "no answer from unix:/run/ioncast/ioncast.sock: connection refused",
    }


def test_without_an_answer_a_job_gets_the_default(controller: Controller) -> None:
    controller.refuses = "connection refused"
    job = controller.submit(default=2)
    assert changed(job) == {"licenses": "ionode:2", "environment": {"ION_COUNT": "2"}}


def test_a_service_that_knows_nothing_leaves_it_to_the_default(controller: Controller) -> None:
    controller.answer = response("", "204 NO CONTENT")
    assert changed(controller.submit()) == {}
    assert changed(controller.submit(default=0)) == {"environment": {"ION_COUNT": "0"}}
    job = controller.submit(default=1)
    assert changed(job) == {"licenses": "ionode:1", "environment": {"ION_COUNT": "1"}}
    assert fields(controller.lines[-1])["decision"] == DECISION_ID


def test_the_default_is_not_more_than_the_pool(controller: Controller) -> None:
    controller.refuses = "connection refused"
    assert controller.submit(default=100)["licenses"] == "ionode:8"


# Requests of the user


@pytest.mark.parametrize(
    ("licences", "is_own", "count"),
    [
        (None, False, None),
        ("", False, None),
        ("matlab", False, None),
        ("ionodes:2", False, None),
        ("ionode", True, 1),
        ("ionode:3", True, 3),
        ("ionode:0", True, 0),
        ("matlab:2,ionode:3", True, 3),
        ("matlab;ionode:3;a", True, 3),
        ("ionode:2,ionode:1", True, 3),
        ("ionode;ionode:2", True, 3),
        ("ionode@slurmdb:5", True, 5),
        ("ionode=2", True, 2),
        *((text, True, count) for text, count in COUNTED),
        *((text, True, None) for text in LEFT_ALONE),
        ("ionode:2|matlab:1", True, None),
        ("matlab|ionode", True, None),
        ("matlab|fluent", False, None),
        (":,;|::@", False, None),
    ],
)
def test_every_way_to_ask_for_licences_is_understood(
    controller: Controller, licences: str | None, is_own: bool, count: int | None
) -> None:
    found = controller.module["own_licences"](licences, "ionode")
    assert found == (is_own, count if is_own else None)


def test_a_number_that_the_user_asks_for_wins(controller: Controller) -> None:
    before = {"licenses": "matlab,ionode:3"}
    job = controller.submit(before)
    assert changed(job, before) == {"environment": {"ION_COUNT": "3"}}
    assert controller.requests == []
    line = fields(controller.lines[0])
    assert (line["io_nodes"], line["source"]) == ("3", "user")
    assert line["why"] == "asked for by the user"


def test_licences_too_long_to_read_are_left_alone(controller: Controller) -> None:
    before = {"licenses": "a," * 2049}
    assert changed(controller.submit(before, default=1), before) == {}
    assert fields(controller.lines[0])["why"] == "its licences are too long to read"
    assert controller.requests == []


def test_licences_with_alternatives_are_left_alone(controller: Controller) -> None:
    before = {"licenses": "matlab:1|fluent:1"}
    assert changed(controller.submit(before, default=1), before) == {}
    assert "alternatives" in controller.lines[0]


@pytest.mark.parametrize("immediate", [True, 1.0])
def test_a_job_that_starts_now_or_never_is_left_as_it_is(
    controller: Controller, immediate: object
) -> None:
    job = {"immediate": immediate}
    assert changed(controller.submit(job, default=1), job) == {}
    assert 'why="it starts at once or not at all' in controller.lines[0]
    assert controller.requests == []


@pytest.mark.parametrize("immediate", [False, 0.0])
def test_other_jobs_can_wait(controller: Controller, immediate: object) -> None:
    assert controller.submit({"immediate": immediate})["licenses"] == "ionode:4"


# Modes and partitions


def test_shadow_only_logs(controller: Controller) -> None:
    assert changed(controller.submit(mode="shadow", default=1)) == {}
    assert [fields(line)["mode"] for line in controller.lines] == ["shadow"]
    assert fields(controller.lines[0])["io_nodes"] == "4"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"tell_user": True}, "ioncast: 4 I/O nodes: "),
        ({"tell_user": True, "mode": "shadow"}, None),
        ({}, None),
        ({"tell_user": "yes"}, None),
    ],
)
def test_users_are_told_about_jobs_that_are_changed(
    controller: Controller, changed: dict[str, Any], said: str | None
) -> None:
    controller.submit(**changed)
    why = fields(controller.lines[0])["why"]
    assert controller.told == ([] if said is None else [said + why])


def test_off_does_nothing_at_all(controller: Controller) -> None:
    assert changed(controller.submit(mode="off")) == {}
    assert controller.lines == controller.errors == controller.requests == []


def test_partitions_have_settings_of_their_own(controller: Controller) -> None:
    submit = controller.start(
        partitions={
            "debug": {"mode": "off"},
            "large": {"pool": 2, "default": 1, "deadline_ms": 100},
            "look": {"mode": "shadow"},
        }
    )
    assert (
        changed(controller.submit_to(submit, {"partition": "debug"}), {"partition": "debug"}) == {}
    )
    controller.answer = response("2")
    assert controller.submit_to(submit, {"partition": "large"})["licenses"] == "ionode:2"
    assert b"&available=2&" in controller.requests[0]
    controller.answer = response("4")
    assert controller.submit_to(submit, {"partition": "large"})["licenses"] == "ionode:1"
    assert controller.timeouts[0] == pytest.approx(0.1)
    assert "licenses" not in controller.submit_to(submit, {"partition": "look,batch"})
    assert controller.submit_to(submit, {"partition": "batch,look"})["licenses"] == "ionode:4"


def test_without_a_partition_the_default_one_counts(controller: Controller) -> None:
    assert changed(controller.submit(partitions={"batch": {"mode": "off"}})) == {}
    assert controller.lines == []


def beat(heartbeat: Path, late_s: float = 0, hold_s: int = 300) -> None:
    """Write a heartbeat as the arbiter does."""
    heartbeat.write_text(f"{time.time() - late_s:.0f} {hold_s}\n")


def held(controller: Controller, job: dict[str, Any] | None = None, **changed: Any) -> bool:
    given = {**JOB, **(job or {})}
    found = controller.submit(job, mode="arbitrate", **changed)
    is_held = "held=yes" in controller.lines[-1]
    assert found["priority"] == given["priority"]
    if not is_held:
        assert found.get("begin_time") == given.get("begin_time")
        assert ":held" not in found.get("admin_comment", "")
        return False
    assert found["admin_comment"].endswith(f":held until:{found['begin_time']:.0f}")
    return True


def why_not_held(controller: Controller) -> str:
    """The reason in the last line of the log."""
    line = fields(controller.lines[-1])
    assert line["held"] == "no"
    why, _, reason = line["why"].partition("; not held: ")
    assert why == WHY
    return reason


def test_a_job_is_held_while_the_arbiter_is_there(controller: Controller, tmp_path: Path) -> None:
    heartbeat = tmp_path / "heartbeat"
    beat(heartbeat)
    assert held(controller, heartbeat=str(heartbeat))


@pytest.mark.promise("slurm-arbiter-killed-hangs")
@pytest.mark.parametrize(
    ("of_arbiter_s", "most_s"), [(300, 300), (7, 7), (301, 300), (10**20, 300), (0, 0)]
)
def test_a_hold_ends_by_itself_after_five_minutes_at_most(
    controller: Controller, tmp_path: Path, of_arbiter_s: int, most_s: int
) -> None:
    heartbeat = tmp_path / "heartbeat"
    beat(heartbeat, hold_s=of_arbiter_s)
    # Lua's clock, time(2), shows a new second up to a tick of the kernel later than Python's.
    before = int(time.time() - 0.1)
    found = controller.submit(mode="arbitrate", heartbeat=str(heartbeat))
    assert before + most_s <= found["begin_time"] <= int(time.time()) + most_s
    assert found["licenses"] == "ionode:4"


def test_a_heartbeat_without_the_length_of_a_hold_is_not_relied_on(
    controller: Controller, tmp_path: Path
) -> None:
    heartbeat = tmp_path / "heartbeat"
    heartbeat.write_text(f"{time.time():.0f}\n")
    assert not held(controller, heartbeat=str(heartbeat))
    assert why_not_held(controller) == f"no heartbeat in {heartbeat}"


def test_a_job_that_is_held_is_told_its_number_when_it_starts(
    controller: Controller, tmp_path: Path
) -> None:
    heartbeat = tmp_path / "heartbeat"
    beat(heartbeat)
    arbitrated = {"mode": "arbitrate", "heartbeat": str(heartbeat)}
    assert "ION_COUNT" not in controller.submit(**arbitrated)["environment"]
    assert controller.submit()["environment"]["ION_COUNT"] == "4"


@pytest.mark.parametrize(
    "content", [None, "", "now", "0 300\n", "9e99 300\n", "-5 300\n", "nan 300\n", "0x9 9\n", "9 9"]
)
def test_without_an_arbiter_no_job_is_held(
    controller: Controller, tmp_path: Path, content: str | None
) -> None:
    heartbeat = tmp_path / "heartbeat"
    if content is not None:
        heartbeat.write_text(content)
    assert not held(controller, heartbeat=str(heartbeat))
    assert "heartbeat" in why_not_held(controller)
    assert not held(controller)
    assert why_not_held(controller) == "the setting heartbeat is missing"


def test_a_heartbeat_that_is_not_there_is_named(controller: Controller, tmp_path: Path) -> None:
    heartbeat = tmp_path / "heartbeat"
    assert not held(controller, heartbeat=str(heartbeat))
    assert why_not_held(controller) == f"no heartbeat in {heartbeat}"


@pytest.mark.promise("slurm-arbiter-killed-hangs")
@pytest.mark.parametrize(
    ("late_s", "reason"),
    [
        (31, "the heartbeat is older than 30 s"),
        (-4000, "the heartbeat is at least 30 s ahead of this machine's clock"),
    ],
)
def test_an_arbiter_that_is_late_is_not_there(
    controller: Controller, tmp_path: Path, late_s: float, reason: str
) -> None:
    heartbeat = tmp_path / "heartbeat"
    beat(heartbeat, late_s)
    assert not held(controller, heartbeat=str(heartbeat))
    assert why_not_held(controller) == reason


def test_a_long_reason_of_the_service_does_not_hide_why_a_job_is_not_held(
    controller: Controller,
) -> None:
    controller.answer = response("4").replace(WHY.encode(), b"w" * 900)
    assert not held(controller)
    assert "; not held: the setting heartbeat is missing" in controller.lines[-1]


@pytest.mark.parametrize(
    "arbitrated", [{"mode": "arbitrate"}, {"partitions": {"large": {"mode": "arbitrate"}}}]
)
def test_arbitration_without_a_heartbeat_is_complained_about_once(
    controller: Controller, arbitrated: dict[str, Any]
) -> None:
    submit = controller.start(**arbitrated)
    controller.submit_to(submit)
    assert controller.errors == [
        f'{OF_SETTINGS}the mode "arbitrate" needs the setting heartbeat: jobs are not held'
    ]


def test_only_arbitration_needs_a_heartbeat(controller: Controller) -> None:
    controller.start(mode="arbitrate", heartbeat="/run/heartbeat")
    controller.start(mode="on", partitions={"large": {"mode": "shadow"}})
    assert controller.errors == []
    controller.start(mode="arbitrate", heartbeat=1)
    assert controller.errors == [
        f"{OF_SETTINGS}heartbeat must be the name of a file, not 1: the setting is ignored"
    ]


def test_only_jobs_that_the_service_knows_are_held(controller: Controller, tmp_path: Path) -> None:
    heartbeat = tmp_path / "heartbeat"
    beat(heartbeat)
    controller.answer = response("", "204 NO CONTENT")
    assert not held(controller, heartbeat=str(heartbeat), default=1)
    assert "held" not in controller.lines[-1]
    controller.refuses = "connection refused"
    assert not held(controller, heartbeat=str(heartbeat), default=1)


def test_a_job_that_its_user_holds_is_not_the_arbiters(
    controller: Controller, tmp_path: Path
) -> None:
    heartbeat = tmp_path / "heartbeat"
    beat(heartbeat)
    assert not held(controller, {"priority": 0.0}, heartbeat=str(heartbeat))
    assert why_not_held(controller) == "it is held already"


def test_a_hold_keeps_the_priority_that_somebody_sets(
    controller: Controller, tmp_path: Path
) -> None:
    heartbeat = tmp_path / "heartbeat"
    beat(heartbeat)
    assert held(controller, {"priority": 777.0}, heartbeat=str(heartbeat))


def test_only_jobs_that_can_run_now_are_held(controller: Controller, tmp_path: Path) -> None:
    heartbeat = tmp_path / "heartbeat"
    beat(heartbeat)
    beats = {"heartbeat": str(heartbeat)}
    assert not held(controller, {"dependency": "afterok:17"}, **beats)
    assert why_not_held(controller) == "it waits for another job"
    assert not held(controller, {"begin_time": float(int(time.time()) + 3600)}, **beats)
    assert why_not_held(controller) == "it must not start before a later time"
    assert held(controller, {"dependency": "", "begin_time": 0.0}, **beats)
    assert held(controller, {"begin_time": float(int(time.time()) - 1)}, **beats)


# The question


@pytest.mark.parametrize(
    ("job", "asked"),
    [
        ({}, {}),
        ({"min_nodes": 2.0}, {"nodes": "2"}),
        ({"num_tasks": 16.0}, {"tasks": "16"}),
        ({"min_nodes": 2.0, "num_tasks": 16.0}, {"nodes": "2", "tasks": "16"}),
        ({"min_nodes": 2.0, "ntasks_per_node": 8.0}, {"nodes": "2", "tasks": "16"}),
        ({"ntasks_per_node": 8.0}, {}),
        ({"min_nodes": 0.0, "num_tasks": -1.0}, {}),
        # Slurm's INFINITE.
        ({"num_tasks": 4294967295.0}, {}),
        ({"num_tasks": 65534.0}, {"tasks": "65534"}),
        # The arguments of a batch job belong to its script.
        ({"argv": {0: "/home/alice/job.sh"}}, {}),
        ({"argv": {0: "./app", 1: "in"}, "script": None}, {"executable": "./app"}),
        ({"argv": {}, "script": None}, {}),
    ],
)
def test_the_question_has_what_slurm_knows(
    controller: Controller, job: dict[str, Any], asked: dict[str, str]
) -> None:
    controller.submit(job)
    assert query(controller) == {"user": "alice", "name": "restart", **asked}


def test_values_that_slurm_does_not_know_are_left_out(controller: Controller) -> None:
    controller.submit({"user_name": None, "name": ""})
    assert query(controller) == {}


@pytest.mark.parametrize("name", ["wrap", "sbatch", "interactive"])
def test_names_that_slurm_gives_are_no_names(controller: Controller, name: str) -> None:
    controller.submit({"name": name})
    assert query(controller) == {"user": "alice"}


def test_the_service_is_told_that_it_shall_hang_up(controller: Controller) -> None:
    controller.submit()
    [request] = controller.requests
    assert request.split(b"\r\n")[1:] == [
        b"Host: localhost",
        b"Accept: text/plain",
        b"Connection: close",
        b"",
        b"",
    ]


def test_a_job_that_keeps_its_number_tries_none(controller: Controller) -> None:
    controller.submit(mode="shadow")
    assert b"explore" not in controller.requests[0]


@given(text=NAMES)
@same_lua
def test_every_name_arrives(controller: Controller, text: str) -> None:
    written = text.encode().decode("latin-1")
    encoded = controller.module["percent_encoded"](written)
    assert encoded.isascii()
    assert not set(encoded) & set(" &=+#\r\n")
    assert unquote(encoded, errors="strict") == text


@given(text=st.text(max_size=60))
@same_lua
def test_every_script_arrives(controller: Controller, text: str) -> None:
    written = text.encode().decode("latin-1")
    name = controller.module["json_string"](written)
    assert json.loads(name.encode("latin-1")) == text
    script = json.loads(controller.module["json_ascii_string"](written))
    assert script == re.sub(r"[^\0-\x7f]", lambda found: "?" * len(found[0].encode()), text)


@given(noise=st.binary(max_size=60))
@example(noise="valid: äöü €".encode())
@example(noise=b"half of a character, with another in it \xe1\xc2\x80\x80\x80")
@example(noise=b"a half of a pair \xed\xa0\x80, too long \xc0\x80, too far \xf4\x90\x80\x80")
@same_lua
def test_texts_that_are_not_utf8_do_no_harm(controller: Controller, noise: bytes) -> None:
    text = noise.decode("latin-1")
    try:
        expected = noise.decode()
    except UnicodeDecodeError:
        expected = noise.decode("ascii", errors="replace").replace("\ufffd", "?")
    encoded = controller.module["percent_encoded"](text)
    assert unquote(encoded, errors="strict") == expected
    assert controller.module["valid_utf8"](text).encode("latin-1").decode() == expected
    assert json.loads(controller.module["json_ascii_string"](text)).isascii()


def test_with_a_token_the_script_is_sent(controller: Controller) -> None:
    script = '#!/bin/sh\nexport A="ä\\n\t"\nsrun ./app\n'
    job = {"script": script.encode().decode("latin-1"), "num_tasks": 4.0}
    controller.submit(job, **WITH_TOKEN)
    head, _, body = controller.requests[0].partition(b"\r\n\r\n")
    assert head.split(b"\r\n") == [
        b"POST /v1/decisions HTTP/1.0",
        b"Host: localhost",
        b"Accept: text/plain",
        b"Connection: close",
        b"Authorization: Bearer ion_abc",
        b"Content-Type: application/json",
        b"Content-Length: %d" % len(body),
    ]
    assert json.loads(body) == {
        "system": "testbed",
        "user": "alice",
        "name": "restart",
        "tasks": 4,
        "available": 8,
        "explore": True,
        "script": script.replace("ä", "??"),
    }


def test_of_a_long_script_the_beginning_is_sent(controller: Controller) -> None:
    controller.submit({"script": "a" * 70_000}, **WITH_TOKEN)
    body = json.loads(controller.requests[0].partition(b"\r\n\r\n")[2])
    assert body["script"] == "a" * 65536


@pytest.mark.parametrize(("before", "kept"), [(199, 199), (198, 200), (197, 197 + 2)])
def test_a_long_name_ends_with_a_whole_character(
    controller: Controller, before: int, kept: int
) -> None:
    name = "a" * before + "ä" * 10
    controller.submit({"name": name.encode().decode("latin-1")})
    [found] = re.findall(rb"name=([^&]*)&", controller.requests[0])
    assert unquote(found.decode(), errors="strict") == name.encode()[:kept].decode()


def test_without_a_script_there_is_nothing_to_send(controller: Controller) -> None:
    controller.submit({"script": None}, **WITH_TOKEN)
    assert controller.requests[0].startswith(b"GET /v1/decisions?")
    assert b"\r\nAuthorization: Bearer ion_abc\r\n" in controller.requests[0]


def test_the_token_may_be_in_a_file(controller: Controller, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("ion_abc\n")
    controller.submit(token_file=str(file))
    assert b"\r\nAuthorization: Bearer ion_abc\r\n" in controller.requests[0]


# The answer


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "the answer is not HTTP"),
        (b"\0\xff\r\n\r\n4", "the answer is not HTTP"),
        (b"HTTP/1.0 200 OK\r\n", "the answer is not HTTP"),
        (b"HTTP/1.0 2x0 OK\r\n\r\n4", "the answer is not HTTP"),
        (b"HTTP/1.0 200 OK\r\n\r\n", "the answer is not a number of I/O nodes"),
        (b"HTTP/1.0 200 OK\r\n\r\n-1", "the answer is not a number of I/O nodes"),
        (b"HTTP/1.0 200 OK\r\n\r\n1.5", "the answer is not a number of I/O nodes"),
        (b"HTTP/1.0 200 OK\r\n\r\n0x4", "the answer is not a number of I/O nodes"),
        (b"HTTP/1.0 200 OK\r\n\r\nfour", "the answer is not a number of I/O nodes"),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n1", "the answer is cut off"),
        (response("4", "404 NOT FOUND"), "HTTP status 404"),
        (response("4", "401 UNAUTHORIZED"), "HTTP status 401: check the token"),
        (response("4", "403 FORBIDDEN"), "HTTP status 403: check the token"),
        (response("4", "503 SERVICE UNAVAILABLE"), "HTTP status 503"),
        (response("4", "301 MOVED"), "HTTP status 301"),
        (b"HTTP/1.0 200 OK\r\n" + b"a: b\r\n" * 4000, "the answer is too long"),
    ],
)
def test_an_unusable_answer_counts_as_a_missing_one(
    controller: Controller, answer: bytes, why: str
) -> None:
    controller.answer = answer
    assert controller.submit(default=1)["licenses"] == "ionode:1"
    assert fields(controller.lines[0])["why"] == NO_ANSWER + why


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length:  3\r\n\r\n 4\n",
        b"HTTP/1.0 200\r\n\r\n4",
        b"HTTP/1.0 200 OK\nx-decision-id: a\n\n4",
    ],
)
def test_http_has_more_than_one_form(controller: Controller, answer: bytes) -> None:
    controller.answer = answer
    assert controller.submit()["licenses"] == "ionode:4"


def test_an_answer_cannot_forge_the_log_or_the_comment(controller: Controller) -> None:
    controller.answer = (
        b"HTTP/1.0 200 OK\r\nX-Decision-Id: a b\r\nX-Decision-Source: %s\r\n"
        b'X-Decision-Why: " mode=off\x1b[2J\xff\r\n\r\n4'
    )
    job = controller.submit({"name": 'x" mode=off\n%d', "user_name": "a"})
    assert "admin_comment" not in job
    line = fields(controller.lines[0])
    assert line["job"] == r"x' mode=off\x0a%d"
    assert line["why"] == r"' mode=off\x1b[2J\xff"
    assert (line["source"], line["decision"]) == ("service", "none")


@pytest.mark.parametrize("field", ["partition", "user_name", "name"])
def test_no_text_of_a_user_forges_another_field_of_the_log(
    controller: Controller, field: str
) -> None:
    # From `sbatch -p 'batch user=root io_nodes=99'`. Slurm rejects it, but after the plugin's log.
    text = 'batch user=root" io_nodes=99\nioncast: mode=on'
    controller.submit({field: text})
    [line] = controller.lines
    assert "\n" not in line
    found = fields(line)
    in_log = {"partition": "partition", "user_name": "user", "name": "job"}[field]
    assert found[in_log] == r"batch user=root' io_nodes=99\x0aioncast: mode=on"
    others = {"partition": "batch", "user": "alice", "job": "restart", "io_nodes": "4"}
    others.pop(in_log)
    assert {name: found[name] for name in others} == others


def test_different_names_stay_different_in_the_log(controller: Controller) -> None:
    names = "jürgen", "jörgen", r"j\xc3\xb6rgen"
    for name in names:
        controller.submit({"user_name": name.encode().decode("latin-1")})
    assert [fields(line)["user"] for line in controller.lines] == [
        r"j\xc3\xbcrgen",
        r"j\xc3\xb6rgen",
        r"j\x5cxc3\x5cxb6rgen",
    ]


def test_the_log_says_which_settings_were_loaded(controller: Controller) -> None:
    controller.start()
    controller.start(
        partitions={"large": {"mode": "off"}, 'de"bug\n': {"pool": 2}},
        token="ion_secret",  # noqa: S106
        heartbeat="/run/heartbeat",
        limits="/run/limits",
        system="Mare Nostrum",
        interactive="on",
        second_address="[::1]:8420",
    )
    controller.start(mode="off", address=None, system=None, pool=None, has_sockets=False)
    assert controller.loads == [
        'ioncast: loaded: mode=on interactive=shadow partitions=""'
        " address=unix:/run/ioncast/ioncast.sock second_address=none"
        ' system="testbed" pool=8 token=no heartbeat=no limits=no lua_socket=yes',
        'ioncast: loaded: mode=on interactive=on partitions="de\'bug\\x0a=on large=off"'
        " address=unix:/run/ioncast/ioncast.sock second_address=[::1]:8420"
        ' system="Mare Nostrum" pool=8 token=yes'
        " heartbeat=yes limits=yes lua_socket=yes",
        'ioncast: loaded: mode=off interactive=shadow partitions="" address=none'
        ' second_address=none system="" pool=none token=no'
        " heartbeat=no limits=no lua_socket=no",
    ]
    assert controller.lines == []


def test_an_id_that_the_service_cannot_give_is_not_kept(controller: Controller) -> None:
    controller.answer = response("4").replace(DECISION_ID.encode(), b"a" * 33)
    assert "admin_comment" not in controller.submit()


@given(answer=st.one_of(st.binary(), st.binary().map(b"HTTP/1.0 200 OK\r\n".__add__)))
@same_lua
def test_garbage_never_raises(controller: Controller, answer: bytes) -> None:
    controller.answer = answer
    controller.errors.clear()
    job = controller.submit()
    assert job.get("licenses") in {None, *(f"ionode:{n}" for n in range(1, 9))}
    assert controller.errors == []


_anything = st.one_of(
    st.none(), st.booleans(), st.floats(), st.integers(-(2**31), 2**63 - 1), st.text(max_size=9)
)


@given(job=st.dictionaries(st.sampled_from([*JOB, "licenses", "argv", "partition"]), _anything))
@same_lua
def test_a_strange_job_is_accepted(controller: Controller, job: dict[str, Any]) -> None:
    latin = {
        key: value.encode().decode("latin-1") if isinstance(value, str) else value
        for key, value in job.items()
    }
    controller.submit(latin)


def test_a_job_is_left_as_it_is_where_the_script_is_wrong(controller: Controller) -> None:
    before = {"licenses": 4.0}
    assert changed(controller.submit(before), before) == {}
    [error] = controller.errors
    assert error.startswith("ioncast: a job stays as it is: ")


# Deadlines and pauses


@pytest.mark.parametrize("call", ["connect", "send", "receive"])
def test_the_deadline_is_one_for_all_calls(controller: Controller, call: str) -> None:
    controller.takes = dict.fromkeys(controller.takes, 0.02) | {call: 10.0}
    controller.submit(deadline_ms=70)
    assert controller.now - 1000 == pytest.approx(0.07)
    assert controller.open_connections == 0
    line = fields(controller.lines[0])
    assert (line["why"], line["ms"]) == (f"{NO_ANSWER}timeout", "70.0")


def test_each_call_gets_what_the_ones_before_left(controller: Controller) -> None:
    controller.takes = {"connect": 0.01, "send": 0.02, "receive": 0.015}
    assert controller.submit()["licenses"] == "ionode:4"
    assert controller.timeouts == pytest.approx([0.05, 0.04, 0.02])


def test_a_clock_that_is_set_back_makes_nobody_wait(controller: Controller) -> None:
    controller.takes["connect"] = -3600.0
    controller.submit()
    assert controller.timeouts == pytest.approx([0.05])
    assert fields(controller.lines[0])["why"] == f"{NO_ANSWER}timeout"


def test_the_deadline_begins_with_the_job(controller: Controller) -> None:
    controller.reading_takes = {"licenses": 0.005, "name": 0.01}
    assert controller.submit()["licenses"] == "ionode:4"
    assert controller.timeouts[0] < 0.035
    controller.reading_takes = {"script": 0.06}
    controller.timeouts.clear()
    assert controller.submit(default=2, **WITH_TOKEN)["licenses"] == "ionode:2"
    assert controller.timeouts == []
    line = fields(controller.lines[-1])
    assert line["why"] == f"{NO_ANSWER}timeout"
    assert float(line["ms"]) == pytest.approx(60)


@pytest.mark.parametrize(("takes_s", "method"), [(0.024, b"POST"), (0.026, b"GET")])
def test_no_script_is_sent_when_time_is_short(
    controller: Controller, takes_s: float, method: bytes
) -> None:
    controller.reading_takes = {"script": takes_s}
    assert controller.submit(**WITH_TOKEN)["licenses"] == "ionode:4"
    [request] = controller.requests
    assert request.startswith(method + b" /v1/decisions")


@pytest.mark.parametrize("takes_s", [0.026, 0.06])
@pytest.mark.parametrize("token", [{}, WITH_TOKEN])
def test_time_that_the_job_took_does_not_count_against_the_service(
    controller: Controller, takes_s: float, token: dict[str, str]
) -> None:
    submit = controller.start(**token)
    controller.takes["receive"] = 0.049
    for _ in range(5):
        controller.reading_takes = {"script": takes_s}
        controller.submit_to(submit)
        assert fields(controller.lines[-1])["why"] == f"{NO_ANSWER}timeout"
    controller.reading_takes.clear()
    assert asked(controller, submit)
    assert fields(controller.lines[-1])["io_nodes"] == "4"


def test_a_script_is_read_once(controller: Controller) -> None:
    controller.reading_takes = {"script": 0.001}
    controller.now = 1000.0
    controller.submit(**WITH_TOKEN)
    assert controller.now == pytest.approx(1000.001)


def asked(controller: Controller, submit: Any) -> bool:
    """Whether the service is asked about another job."""
    before = len(controller.timeouts)
    controller.submit_to(submit)
    return len(controller.timeouts) > before


def sent(controller: Controller, submit: Any, user: str) -> str:
    """Whether a question about a user's job has its "script", only "names", or is not sent."""
    before = len(controller.requests)
    controller.submit_to(submit, {"user_name": user})
    if len(controller.requests) == before:
        return "nothing"
    return "script" if controller.requests[-1].startswith(b"POST") else "names"


def hangs_on_scripts_of(controller: Controller, *users: str) -> Any:
    """Let the service not answer questions with scripts of these users."""
    answer = controller.library()

    def receive(_connection: Any, longest: int) -> tuple[Any, ...]:
        request = controller.requests[-1]
        is_slow = request.startswith(b"POST") and any(
            f'"user":"{user}"'.encode() in request for user in users
        )
        controller.takes["receive"] = 60.0 if is_slow else 0.0
        return controller._receive(_connection, longest)

    def opened() -> Any:
        connection = controller._open()
        connection.receive = receive
        return connection

    answer.tcp = answer.unix = opened
    given = controller.table({**SETTINGS, **WITH_TOKEN, "pause_s": 5})
    return controller.module["new"](given, controller.slurm(), answer).submit


def test_the_slow_script_of_one_user_does_not_count_against_the_service(
    controller: Controller,
) -> None:
    submit = hangs_on_scripts_of(controller, "eve")
    assert sent(controller, submit, "eve") == "script"
    assert fields(controller.lines[-1])["why"] == f"{NO_ANSWER}timeout"
    # The next question, without a script, shows that the service works.
    assert sent(controller, submit, "eve") == "names"
    assert [sent(controller, submit, "bob") for _ in range(3)] == ["script"] * 3
    assert [sent(controller, submit, "eve") for _ in range(3)] == ["names"] * 3
    controller.now += 5.1
    assert [sent(controller, submit, "eve") for _ in range(2)] == ["script", "names"]
    assert sent(controller, submit, "bob") == "script"


def test_after_scripts_of_two_users_were_slow_none_is_sent_for_a_while(
    controller: Controller,
) -> None:
    submit = hangs_on_scripts_of(controller, "eve", "mallory", "bob")
    assert [sent(controller, submit, user) for user in ("eve", "bob")] == ["script", "names"]
    assert [sent(controller, submit, user) for user in ("mallory", "bob")] == ["script", "names"]
    assert [sent(controller, submit, "bob") for _ in range(9)] == ["names"] * 9
    controller.now += 5.1
    assert sent(controller, submit, "bob") == "script"


def test_a_service_that_hangs_is_left_alone_after_one_script_and_two_names(
    controller: Controller,
) -> None:
    controller.takes["receive"] = 60.0
    submit = controller.start(**WITH_TOKEN)
    found = [sent(controller, submit, user) for user in ("a", "b", "c", "d", "e")]
    assert found == ["script", "names", "names", "nothing", "nothing"]


def test_after_two_failures_nobody_asks_for_a_while(controller: Controller) -> None:
    controller.refuses = "connection refused"
    submit = controller.start(pause_s=5)
    assert [asked(controller, submit) for _ in range(4)] == [True, True, False, False]
    assert fields(controller.lines[-1])["why"] == (
        f"{NO_ANSWER}not asked, because the last questions failed"
    )
    assert [fields(line).get("paused") for line in controller.lines] == [None, None, "yes", "yes"]
    controller.now += 4.9
    assert not asked(controller, submit)
    controller.now += 0.2
    # One question is sent as a test, and fails.
    assert [asked(controller, submit) for _ in range(2)] == [True, False]
    controller.now += 5.1
    controller.refuses = ""
    assert [asked(controller, submit) for _ in range(3)] == [True, True, True]


def test_only_failures_in_a_row_count(controller: Controller) -> None:
    submit = controller.start()
    for _ in range(5):
        controller.refuses = "connection refused"
        assert asked(controller, submit)
        controller.refuses = ""
        assert asked(controller, submit)


@pytest.mark.parametrize(
    "status", ["404 NOT FOUND", "422 UNPROCESSABLE", "500 ERROR", "503 UNAVAILABLE"]
)
def test_a_service_that_answers_is_there_whatever_it_says(
    controller: Controller, status: str
) -> None:
    controller.answer = response("no", status)
    submit = controller.start()
    assert [asked(controller, submit) for _ in range(4)] == [True] * 4


def test_a_clock_that_is_set_back_ends_the_pause(controller: Controller) -> None:
    controller.refuses = "connection refused"
    submit = controller.start()
    assert [asked(controller, submit) for _ in range(3)] == [True, True, False]
    controller.now -= 3600
    assert asked(controller, submit)


# Settings


@pytest.mark.parametrize(
    ("address", "is_literal"),
    [
        ("unix:/run/ioncast.sock", True),
        ("127.0.0.1:8420", True),
        ("[::1]:8420", True),
        ("[2001:db8::7]:80", True),
        ("[1:2:3:4:5:6:7:8]:80", True),
        ("[::]:80", True),
        ("[1::]:80", True),
        ("localhost:8420", False),
        ("ioncast.example.org:8420", False),
        ("http://127.0.0.1:8420", False),
        ("127.0.0.1", False),
        ("127.0.0.256:80", False),
        # The C library reads these numbers as octal.
        ("010.0.0.1:80", False),
        ("127.0.0.01:80", False),
        ("127.0.0.00:80", False),
        ("1.2.3:80", False),
        ("127.0.0.1:70000", False),
        ("::1:8420", False),
        ("[::1]", False),
        ("[1::2::3]:80", False),
        ("[1:2:3]:80", False),
        ("[:::]:80", False),
        ("[:1::2]:80", False),
        ("[12345::]:80", False),
        ("[face]:80", False),
        ("unix:relative.sock", False),
        ("", False),
    ],
)
def test_only_addresses_that_need_no_lookup_are_taken(
    controller: Controller, address: str, is_literal: bool
) -> None:
    found = controller.module["address_of"](address)
    assert (found is not None) == is_literal
    if found is not None and found["port"] is not None:
        family = socket.AF_INET6 if address.startswith("[") else socket.AF_INET
        socket.inet_pton(family, found["place"])


@pytest.mark.parametrize("missing", ["address", "system", "pool"])
def test_without_what_is_needed_nothing_is_done(controller: Controller, missing: str) -> None:
    assert changed(controller.submit(**{missing: None}, default=1)) == {}
    assert controller.errors == [
        f"{OF_SETTINGS}the setting {missing} is missing: jobs stay as they are"
    ]
    assert controller.lines == []


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (
            {"address": "localhost:8420"},
            'address must be "unix:/path", "127.0.0.1:8420" or "[::1]:8420" without a host name,'
            ' not "localhost:8420": jobs stay as they are',
        ),
        ({"address": 8420}, "host name, not 8420: jobs stay as they are"),
        (
            {"mode": "onn"},
            'mode must be "off", "shadow", "on" or "arbitrate", not "onn": "off" is used',
        ),
        ({"interactive": "off"}, 'interactive must be "on" or "shadow", not "off": "shadow" is'),
        (
            {"partitions": {"debug": {"interactive": True}}},
            'partitions.debug.interactive must be "on" or "shadow", not true: "shadow" is used',
        ),
        (
            {"second_address": "localhost:8420"},
            'second_address must be a second address, in the form of "address", not'
            ' "localhost:8420": the setting is ignored',
        ),
        ({"system": 3}, "system must be a text, not 3: jobs stay as they are"),
        ({"pool": "8"}, 'pool must be a number of I/O nodes, not "8": jobs stay as they are'),
        ({"pool": 1.5}, "pool must be a number of I/O nodes, not 1.5: jobs stay"),
        ({"default": -1}, "default must be a number of I/O nodes, not -1: the setting is ignored"),
        (
            {"default": {}},
            "default must be a number of I/O nodes, not a table: the setting is ignored",
        ),
        ({"licence": "a,b"}, 'without separators, not "a,b": "ionode" is used'),
        (
            {"deadline_ms": 0},
            "deadline_ms must be milliseconds, 1 to 10000, not 0: 50 is used",
        ),
        (
            {"failures": 0},
            "failures must be a whole number of at least 1, not 0: 2 is used",
        ),
        ({"failures": False}, "not false: 2 is used"),
        ({"pause_s": '5"\n'}, 'pause_s must be seconds, 0 to 86400, not "5\'\\x0a": 5 is used'),
        ({"system": "", "mode": "off"}, 'system must be a text, not "": jobs stay'),
        ({"mode": "o" * 60}, f'not "{"o" * 50}": "off" is used'),
        (
            {"token": "secret\r\n"},
            "token must be the token that `ioncast token add` printed: the setting is ignored",
        ),
        (
            {"token_file": "/nowhere/token"},
            "cannot read a token from /nowhere/token: no token is sent",
        ),
        ({"heartbeat": 1}, "heartbeat must be the name of a file, not 1: the setting is ignored"),
        (
            {"partitions": "debug"},
            'partitions must be a table of tables, not "debug": the setting is',
        ),
        (
            {"partitions": {"debug": 1}},
            "partitions.debug must be a table, not 1: the general settings are used",
        ),
        (
            {"partitions": {"debug": {"mode": 1}}},
            'partitions.debug.mode must be "off", "shadow", "on" or "arbitrate", not 1: "on" is',
        ),
        ({"partitions": {"debug": {"pool": -1}}}, "not -1: 8 is used"),
        ({"partitions": {"debug": {"token": "a"}}}, "unknown setting partitions.debug.token"),
        ({"adress": "x"}, "unknown setting adress"),
        ({1: "x"}, "unknown setting 1"),
    ],
)
def test_a_wrong_setting_is_named(
    controller: Controller, wrong: dict[Any, Any], complaint: str
) -> None:
    submit = controller.module["new"](
        controller.table({**SETTINGS, **wrong}), controller.slurm(), controller.library()
    ).submit
    assert controller.errors[0].startswith(OF_SETTINGS)
    assert complaint in controller.errors[0]
    assert "secret" not in controller.errors[0]
    controller.submit_to(submit)
    controller.submit_to(submit)
    assert len(controller.errors) == 1


@given(value=_anything, name=st.sampled_from([*SETTINGS, "default", "failures", "partitions", "x"]))
@same_lua
def test_no_setting_stops_the_controller(controller: Controller, name: str, value: Any) -> None:
    if isinstance(value, str):
        value = value.encode().decode("latin-1")
    controller.submit(**{name: value})


def test_settings_that_are_no_table_switch_it_off(controller: Controller) -> None:
    for settings_ in (None, 1, True):
        new = controller.module["new"]
        submit = new(settings_, controller.slurm(), controller.library()).submit
        assert changed(controller.submit_to(submit)) == {}
    assert controller.errors == [
        f"{OF_SETTINGS}it must return a table, not {value}: jobs stay as they are"
        for value in ("nil", "1", "true")
    ]


def test_the_sample_is_right_and_changes_no_job(controller: Controller) -> None:
    sample = controller.lua.execute((FOLDER / "ioncast_settings.lua").read_text())
    submit = controller.module["new"](sample, controller.slurm(), controller.library()).submit
    # The steps of docs/slurm.md make this file.
    missing = f"cannot read a token from {sample.token_file}: no token is sent"
    assert controller.errors == [OF_SETTINGS + missing]
    assert changed(controller.submit_to(submit)) == {}
    assert len(controller.lines) == 1


@pytest.mark.promise("slurm-lua-socket-missing")
def test_without_lua_socket_jobs_get_the_default(controller: Controller) -> None:
    controller.lua.execute("package.path, package.cpath = '', ''")
    submit = controller.start(has_sockets=False, default=2)
    assert controller.submit_to(submit)["licenses"] == "ionode:2"
    assert controller.submit_to(submit)["licenses"] == "ionode:2"
    [error] = controller.errors
    assert "lua-socket is not installed" in error


@pytest.mark.parametrize("unix", ["open", "{ stream = open }", "{ tcp = open }"])
def test_each_form_of_unix_sockets_is_known(controller: Controller, unix: str) -> None:
    controller.lua.execute(
        f"""
        local function open()
            return {{
                settimeout = function() end,
                connect = function(_, path) return nil, "opened " .. path end,
                close = function() end,
            }}
        end
        package.preload["socket"] = function() return {{ gettime = function() return 0 end }} end
        package.preload["socket.unix"] = function() return {unix} end
        """
    )
    controller.submit_to(controller.start(has_sockets=False))
    assert fields(controller.lines[0])["why"] == f"{NO_ANSWER}opened /run/ioncast/ioncast.sock"


# With real sockets

PROGRAM = """
local module = dofile(arg[1])
local slurm = {
    NO_VAL = 4294967294, NO_VAL16 = 65534,
    log_info = function(form, ...) print("info", string.format(form, ...)) end,
    log_error = function(form, ...) print("error", string.format(form, ...)) end,
}
local ioncast = module.new({
    mode = "on", system = "testbed", pool = 8, address = arg[2], deadline_ms = tonumber(arg[3]),
    token = arg[4],
}, slurm)
local job = { name = "a", script = string.rep("#", 100000), environment = {} }
local began = require("socket").gettime()
ioncast.submit(job, {})
print("seconds", require("socket").gettime() - began)
print("licenses", job.licenses)
"""


def ask(version: str, address: str, deadline_ms: int, *token: str) -> dict[str, str]:
    """Submit a job in a real Lua program and return its output by name."""
    program = shutil.which(version)
    command = [program or version, "-", str(FOLDER / "ioncast.lua"), address, str(deadline_ms)]
    done = subprocess.run(
        [*command, *token], input=PROGRAM, capture_output=True, text=True, check=True, timeout=120
    )
    return dict(line.split("\t", 1) for line in done.stdout.splitlines())


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.lua) for name in ("lua5.1", "lua5.4")])
def version(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture(params=["unix", "127.0.0.1", "::1"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    return {"place": tmp_path / "s"} if request.param == "unix" else {"host": request.param}


@pytest.mark.parametrize("token", [(), ("ion_abc",)], ids=["GET", "POST"])
def test_a_real_answer_arrives(version: str, place: dict[str, Any], token: tuple[str]) -> None:
    with stand_in(**place) as service:
        found = ask(version, service.address, 10_000, *token)
    assert found["licenses"] == "ionode:4", found
    assert service.requests[0].startswith(b"POST" if token else b"GET")


@pytest.mark.promise("slurm-service-down-hangs")
@pytest.mark.parametrize(
    "behaviour", ["hung", "slow", "trickling", "trickling body", "garbage", "endless headers"]
)
def test_nobody_waits_longer_than_the_deadline(
    version: str, place: dict[str, Any], behaviour: str
) -> None:
    # A slow service answers after a minute, all others never.
    with stand_in(**place) as service:
        service.behaviour = behaviour
        found = ask(version, service.address, 50)
    assert found["licenses"] == "nil"
    assert float(found["seconds"]) < 30, found


@pytest.mark.promise("slurm-service-down-hangs")
@pytest.mark.parametrize("behaviour", ["closing", "cut off", "500"])
def test_a_bad_service_counts_as_a_missing_answer(
    version: str, place: dict[str, Any], behaviour: str
) -> None:
    with stand_in(**place) as service:
        service.behaviour = behaviour
        found = ask(version, service.address, 10_000)
    assert found["licenses"] == "nil"
    assert f'why="no answer from {service.address}: ' in found["info"]


def test_nobody_waits_for_a_service_that_accepts_no_more(
    version: str, place: dict[str, Any]
) -> None:
    with full(**place) as address:
        found = ask(version, address, 50)
    assert found["licenses"] == "nil"
    assert float(found["seconds"]) < 30, found


@contextmanager
def full(place: Path | None = None, host: str = "127.0.0.1") -> Iterator[str]:
    """The address of a server whose queue of waiting clients is full."""
    family = socket.AF_UNIX if place else socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listening, ExitStack() as waiting:
        listening.bind(str(place) if place else (host, 0))
        listening.listen(0)
        where = listening.getsockname()
        for _ in range(3):
            client = waiting.enter_context(socket.socket(family))
            client.setblocking(False)
            client.connect_ex(where)
        name = f"[{host}]" if ":" in host else host
        yield f"unix:{place}" if place else f"{name}:{where[1]}"


def test_a_service_that_is_down_costs_no_time(version: str, tmp_path: Path) -> None:
    no_path = "unix:/" + "n" * 200
    for address in (f"unix:{tmp_path}/nobody", "127.0.0.1:1", "[::1]:1", no_path):
        found = ask(version, address, 10_000)
        assert found["licenses"] == "nil"
        assert "timeout" not in found["info"], found
