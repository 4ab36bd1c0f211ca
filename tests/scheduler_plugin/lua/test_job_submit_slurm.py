"""job_submit.lua in a real slurmctld."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from benchdb.store.database import opened_database, transaction
from benchdb.store.systems import system_id_of
from ioncast.service.store.paused_systems import pause_decisions
from ioncast.service.store.tokens import add_token
from tests.scheduler_plugin.standin import BEHAVIOURS, DECISION_ID, WHY, StandIn, stand_in
from tests.support.serving import Served, command_of, running, wait_for
from tests.support.slurm import Cluster, cluster, open_to_all

pytestmark = pytest.mark.slurm

LUA = Path(__file__).resolve().parents[3] / "scheduler_plugin" / "lua"
FILES = ("job_submit.lua", "ioncast.lua", "ioncast_settings.lua")
# Longer than a test needs the job.
SLEEPS = "#!/bin/sh\nsleep 600\n"


def as_lua(value: Any) -> str:
    """A value in Lua's syntax."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"[{as_lua(k)}] = {as_lua(v)}" for k, v in value.items()) + "}"
    if isinstance(value, str):
        return f'"{value}"'
    return repr(value).lower()


@dataclass
class Site:
    """A cluster with the plugin, and a service controlled by a test."""

    cluster: Cluster
    service: StandIn
    _settings: dict[str, Any] = field(default_factory=dict)

    @property
    def heartbeat(self) -> Path:
        return self.cluster.folder / "heartbeat"

    def beat(self, hold_s: int = 300) -> None:
        """Write a heartbeat as the arbiter does."""
        self.heartbeat.write_text(f"{time.time():.0f} {hold_s}\n")

    def set(self, **changed: Any) -> None:
        """Change the plugin's settings, as an admin would."""
        given = {
            "address": self.service.address,
            "system": "testbed",
            "mode": "on",
            "pool": 8,
            # A longer deadline than the default, because machines that run tests are slow.
            "deadline_ms": 10_000,
            **changed,
        }
        if given != self._settings:
            self.write("ioncast_settings.lua", f"return {as_lua(given)}")
            self._settings = given

    def write(self, name: str, text: str) -> None:
        """Change one of the files and let slurmctld load the script again."""
        (self.cluster.folder / name).write_text(text)
        self._settings = {}
        # slurmctld loads a script again if it is newer, in whole seconds, than the last load.
        changed = int(time.time()) + 1
        os.utime(self.cluster.folder / "job_submit.lua", (changed, changed))
        time.sleep(max(0, changed + 0.01 - time.time()))

    def restore(self) -> None:
        self._settings = {}
        for name in FILES:
            shutil.copy(LUA / name, self.cluster.folder / name)

    def wait_until_idle(self) -> None:
        """Wait until no job runs or waits."""
        self.cluster.wait(
            lambda: not self.cluster.run("squeue", "--noheader").stdout, "empty queue"
        )

    def lines(self, name: str) -> list[str]:
        """The plugin's lines about jobs of a name."""
        log = self.cluster.controller_log()
        return re.findall(rf'ioncast: (.* job="{re.escape(name)}" .*)', log)


@pytest.fixture(scope="module")
def the_site() -> Iterator[Site]:
    files = {name: (LUA / name).read_text() for name in FILES}
    lines = ["JobSubmitPlugins=lua"]
    with (
        # Other users cannot read pytest's folders.
        TemporaryDirectory(prefix="job-submit-") as folder,
        stand_in(Path(folder) / "service.sock") as service,
        cluster(Path(folder) / "slurm", files=files, lines=lines) as found,
    ):
        yield Site(found, service)


@pytest.fixture
def site(the_site: Site) -> Site:
    the_site.service.behaviour = "up"
    the_site.service.io_nodes = 4
    the_site.service.requests.clear()
    return the_site


def only_question(site: Site) -> str:
    [request] = site.service.requests
    return request.split(b"\r\n")[0].decode()


def test_a_batch_job_gets_what_the_service_decides(site: Site) -> None:
    site.set()
    shown = site.cluster.folder / "shown"
    job = site.cluster.submit(
        *("--job-name=first", "--ntasks=2", f"--output={shown}"),
        script='#!/bin/sh\necho "$ION_COUNT $SLURM_JOB_LICENSES"\n',
    )
    found = site.cluster.wait_for(job, "COMPLETED")
    assert found["Licenses"] == "ionode:4"
    assert found["AdminComment"] == f"ioncast:{DECISION_ID}"
    assert shown.read_text().split()[0] == "4"
    assert only_question(site) == (
        "GET /v1/decisions?system=testbed&user=root&name=first&tasks=2&available=8&explore=true"
        " HTTP/1.0"
    )
    [line] = site.lines("first")
    assert re.fullmatch(
        r'mode=on partition="batch" user="root" job="first" io_nodes=4 source=history'
        rf' ms=\d+\.\d decision={DECISION_ID} why="{WHY}"',
        line,
    )


def test_srun_gets_it_and_says_what_it_runs(site: Site) -> None:
    site.set(interactive="on", tell_user=True)
    done = site.cluster.run("srun", "--nodes=2", "sh", "-c", 'echo "$SLURM_JOB_ID"')
    assert f"ioncast: 4 I/O nodes: {WHY}\n" in done.stderr
    job = int(done.stdout.split()[0])
    assert site.cluster.job(job)["Licenses"] == "ionode:4"
    assert "&executable=sh&nodes=2&" in only_question(site)


def test_salloc_gets_it(site: Site) -> None:
    site.set(interactive="on")
    done = site.cluster.run("salloc", "sh", "-c", 'echo "$SLURM_JOB_ID"')
    assert site.cluster.job(int(done.stdout))["Licenses"] == "ionode:4"
    assert "name=" not in only_question(site)


def test_each_task_of_an_array_gets_it_and_one_question_is_asked(site: Site) -> None:
    site.set()
    folder = site.cluster.folder
    job = site.cluster.submit(
        *("--array=1-3", f"--output={folder}/array-%a"), script='#!/bin/sh\necho "$ION_COUNT"\n'
    )
    shown = [folder / f"array-{number}" for number in (1, 2, 3)]
    site.cluster.wait(
        lambda: [file.exists() and file.read_text() for file in shown] == ["4\n"] * 3, "array"
    )
    tasks = site.cluster.run("scontrol", "show", "job", "-o", str(job)).stdout.splitlines()
    assert len(tasks) == 3
    assert all(" Licenses=ionode:4 " in task for task in tasks)
    assert len(site.service.requests) == 1


def _has_licences(site: Site, job: int) -> list[bool]:
    """Whether each component of a het job has the four I/O nodes of the decision."""
    parts = site.cluster.run("scontrol", "show", "job", "-o", str(job)).stdout.splitlines()
    return ["Licenses=ionode:4" in part for part in parts]


@pytest.mark.promise("slurm-heterogeneous-job")
@pytest.mark.parametrize("mode", ["on", "arbitrate"])
def test_the_first_component_of_a_batch_het_job_gets_its_io_nodes(site: Site, mode: str) -> None:
    site.set(mode=mode, heartbeat=str(site.heartbeat))
    job = site.cluster.submit("--job-name=het", "--ntasks=1", ":", "--ntasks=2")
    assert _has_licences(site, job) == [True, False]
    assert "tasks=1&" in only_question(site)
    assert " source=leader " in site.lines("het")[-1]
    site.cluster.wait_for(job, "COMPLETED")


@pytest.mark.promise("slurm-heterogeneous-job")
@pytest.mark.parametrize("command", ["srun", "salloc"])
def test_the_first_component_of_an_interactive_het_job_gets_its_io_nodes(
    site: Site, command: str
) -> None:
    site.set(interactive="on")
    tell = ("sh", "-c", 'echo "$SLURM_JOB_ID"')
    done = site.cluster.run(command, "--ntasks=1", ":", "--ntasks=2", *tell)
    assert _has_licences(site, int(done.stdout.split()[0])) == [True, False]
    assert "tasks=1&" in only_question(site)


def test_jobs_of_other_users_are_asked_for_by_name(site: Site) -> None:
    site.set()
    job = site.cluster.submit(user="nobody")
    assert site.cluster.job(job)["Licenses"] == "ionode:4"
    assert "&user=nobody&" in only_question(site)


def test_jobs_wait_for_io_nodes_and_start_when_they_are_free(site: Site) -> None:
    site.set()
    site.service.io_nodes = 6
    first = site.cluster.submit(script=SLEEPS)
    site.cluster.wait_for(first, "RUNNING")
    second = site.cluster.submit()
    site.cluster.wait(lambda: site.cluster.job(second)["Reason"] == "Licenses", "waiting job")
    site.service.io_nodes = 2
    third = site.cluster.submit()
    site.cluster.wait_for(third, "COMPLETED")
    assert site.cluster.job(second)["JobState"] == "PENDING"
    site.cluster.run("scancel", str(first))
    site.cluster.wait_for(second, "COMPLETED")


def test_more_than_there_are_is_never_asked_for(site: Site) -> None:
    site.set(default=2)
    site.service.io_nodes = 64
    assert site.cluster.job(site.cluster.submit())["Licenses"] == "ionode:2"
    site.set(default=64)
    assert site.cluster.job(site.cluster.submit())["Licenses"] == "ionode:8"


@pytest.mark.parametrize(
    ("licences", "io_nodes"), [("ionode:3", "3"), ("ionode", "1"), ("ionode:2;ionode:3", "5")]
)
def test_a_number_that_the_user_asks_for_wins(site: Site, licences: str, io_nodes: str) -> None:
    site.set()
    shown = site.cluster.folder / "own"
    job = site.cluster.submit(
        *(f"--licenses={licences}", "--job-name=own", f"--output={shown}"),
        script='#!/bin/sh\necho "$ION_COUNT"\n',
    )
    found = site.cluster.wait_for(job, "COMPLETED")
    assert (found["Licenses"], found.get("AdminComment")) == (licences, None)
    assert shown.read_text() == f"{io_nodes}\n"
    assert site.service.requests == []
    assert f"io_nodes={io_nodes} source=user " in site.lines("own")[-1]


def _settled(job: dict[str, str]) -> dict[str, str]:
    """The fields that are equal for two submissions of the same job."""
    differing = (
        r"JobId|JobName|.*Time|.*Eval|.*NodeList|NodeList|BatchHost|Priority|Scheduler"
        r"|SubmitLine|SLUID"
    )
    return {name: value for name, value in job.items() if not re.fullmatch(differing, name)}


@pytest.mark.parametrize("mode", ["on", "arbitrate"])
@pytest.mark.parametrize("command", ["srun", "salloc"])
def test_a_job_that_starts_now_or_never_starts_without_io_nodes(
    site: Site, mode: str, command: str
) -> None:
    site.wait_until_idle()
    site.service.io_nodes = 8
    site.set(mode="on")
    busy = site.cluster.submit(script=SLEEPS)
    site.cluster.wait_for(busy, "RUNNING")
    site.set(mode=mode, interactive="on", heartbeat=str(site.heartbeat))
    site.beat()
    site.cluster.run(command, "--immediate", "--nodes=1", "true")
    site.cluster.run("scancel", str(busy))
    site.cluster.wait_for(busy, "CANCELLED")


def test_srun_that_waits_some_seconds_fails_only_if_interactive_jobs_get_io_nodes(
    site: Site,
) -> None:
    site.wait_until_idle()
    site.service.io_nodes = 8
    site.set()
    busy = site.cluster.submit(script=SLEEPS)
    site.cluster.wait_for(busy, "RUNNING")
    # A busy machine may start a job late, so let srun wait for as long as any test does.
    site.cluster.run("srun", "--immediate=180", "--job-name=unchanged", "--nodes=1", "true")
    assert site.lines("unchanged")[-1].startswith("mode=shadow ")
    site.set(interactive="on")
    # One second is the same as no number, and known to the plugin.
    failed = site.cluster.run("srun", "--immediate=2", "--nodes=1", "true", check=False)
    assert failed.returncode != 0
    assert "Unable to allocate resources" in failed.stderr
    site.cluster.run("scancel", str(busy))
    site.cluster.wait_for(busy, "CANCELLED")


def test_shadow_leaves_the_job_as_it_was(site: Site) -> None:
    options = ("--ntasks=2", "--comment=mine", "--hold")
    script = "#!/bin/sh\nenv | grep -v SLURM | sort\n"
    site.set(mode="off")
    plain = site.cluster.submit("--job-name=plain", *options, script=script)
    assert site.service.requests == site.lines("plain") == []
    site.set(mode="shadow", default=1)
    shadowed = site.cluster.submit("--job-name=shadowed", *options, script=script)
    assert _settled(site.cluster.job(shadowed)) == _settled(site.cluster.job(plain))
    [line] = site.lines("shadowed")
    assert line.startswith("mode=shadow ")
    assert "io_nodes=4" in line
    site.cluster.run("scancel", str(plain), str(shadowed))


def test_a_held_job_can_be_started_by_its_user(site: Site) -> None:
    heartbeat = site.heartbeat
    site.set(mode="arbitrate", heartbeat=str(heartbeat))
    site.beat()
    job = site.cluster.submit(user="nobody")
    site.cluster.wait(lambda: site.cluster.job(job)["Reason"] == "BeginTime", "held job")
    found = site.cluster.job(job)
    assert (found["JobState"], found["Licenses"]) == ("PENDING", "ionode:4")
    until_s = int(found["AdminComment"].removeprefix(f"ioncast:{DECISION_ID}:held until:"))
    assert _unix_time(found["EligibleTime"]) == until_s
    assert until_s - _unix_time(found["SubmitTime"]) <= 300
    site.cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now", user="nobody")
    assert site.cluster.wait_for(job, "COMPLETED")["Licenses"] == "ionode:4"
    by_user = site.cluster.submit("--hold")
    assert site.cluster.job(by_user)["AdminComment"] == f"ioncast:{DECISION_ID}"
    site.cluster.run("scancel", str(by_user))
    heartbeat.unlink()
    site.cluster.wait_for(site.cluster.submit("--job-name=not-held"), "COMPLETED")
    [line] = site.lines("not-held")
    assert " held=no " in line
    assert line.endswith(f'; not held: no heartbeat in {heartbeat}"')


def _unix_time(text: str) -> int:
    return int(time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S")))


@pytest.mark.promise("slurm-arbiter-killed-hangs")
@pytest.mark.parametrize(
    "options", [(), ("--array=1-2",), ("--ntasks=1", ":", "--ntasks=1")], ids=["", "array", "het"]
)
def test_a_held_job_that_nobody_releases_starts_by_itself(
    site: Site, options: tuple[str, ...]
) -> None:
    site.set(mode="arbitrate", heartbeat=str(site.heartbeat))
    site.beat(hold_s=3)
    job = site.cluster.submit("--job-name=alone-held", *options)
    assert ":held until:" in site.cluster.job(job)["AdminComment"]
    site.wait_until_idle()
    found = site.cluster.job(job)
    assert (found["JobState"], found["Licenses"]) == ("COMPLETED", "ionode:4")
    assert " held=yes " in site.lines("alone-held")[0]


@pytest.mark.parametrize("command", ["srun", "salloc"])
def test_a_held_allocation_starts_by_itself(site: Site, command: str) -> None:
    site.set(mode="arbitrate", interactive="on", heartbeat=str(site.heartbeat))
    site.beat(hold_s=3)
    done = site.cluster.run(command, "sh", "-c", 'echo "$SLURM_JOB_ID"')
    found = site.cluster.job(int(done.stdout.split()[0]))
    assert ":held until:" in found["AdminComment"]
    assert found["Licenses"] == "ionode:4"


def test_a_begin_time_of_the_user_stays(site: Site) -> None:
    site.set(mode="arbitrate", heartbeat=str(site.heartbeat))
    site.beat()
    job = site.cluster.submit("--job-name=later", "--begin=now+1hour")
    found = site.cluster.job(job)
    assert found["AdminComment"] == f"ioncast:{DECISION_ID}"
    begins_in_s = _unix_time(found["EligibleTime"]) - _unix_time(found["SubmitTime"])
    assert begins_in_s > 3500
    assert "; not held: it must not start before a later time" in site.lines("later")[-1]
    site.cluster.run("scancel", str(job))


@pytest.mark.promise("slurm-service-down-hangs")
def test_no_behaviour_of_the_service_keeps_a_job_out(site: Site) -> None:
    site.set(default=1, deadline_ms=50, failures=1000)
    took: dict[str, float] = {}
    for behaviour in BEHAVIOURS:
        if behaviour == "up":
            continue
        site.service.behaviour = behaviour
        name = f"of-{behaviour.replace(' ', '-')}"
        job = site.cluster.submit(f"--job-name={name}")
        assert site.cluster.job(job)["Licenses"] == "ionode:1", behaviour
        [line] = site.lines(name)
        assert f'why="no answer from {site.service.address}: ' in line
        took[behaviour] = float(line.split(" ms=")[1].split(" ")[0])
    # These services answer after a minute, or never.
    assert max(took.values()) < 30_000, took


@pytest.mark.promise("slurm-service-down-hangs")
def test_nobody_there_keeps_no_job_out(site: Site) -> None:
    for address in ("unix:/nowhere/ioncast.sock", "127.0.0.1:1"):
        site.set(default=1, address=address)
        job = site.cluster.submit("--job-name=alone")
        assert site.cluster.job(job)["Licenses"] == "ionode:1"
        assert "source=fallback" in site.lines("alone")[-1]
        assert f'why="no answer from {address}: ' in site.lines("alone")[-1]


@pytest.mark.promise("slurm-service-down-hangs")
def test_a_hung_service_is_soon_not_asked_any_more(site: Site) -> None:
    site.set(default=1, deadline_ms=50, pause_s=3600)
    site.service.behaviour = "hung"
    options = ("--hold", "--job-name=one-of-many")
    with ThreadPoolExecutor(60) as pool:
        jobs = list(pool.map(lambda _: site.cluster.submit(*options), range(60)))
    assert len(set(jobs)) == 60
    asked = ["not asked" not in line for line in site.lines("one-of-many")]
    assert sorted(asked) == [False] * 58 + [True] * 2
    site.cluster.run("scancel", *map(str, jobs))


@pytest.mark.promise("slurm-plugin-or-settings-broken")
@pytest.mark.promise("slurm-job-submit-lua-broken")
@pytest.mark.parametrize(
    ("broken", "text"),
    [
        ("job_submit.lua", "this is not Lua"),
        ("job_submit.lua", 'error("on purpose")'),
        ("ioncast.lua", "this is not Lua"),
        ("ioncast.lua", "return nil"),
        ("ioncast_settings.lua", "return { mode ="),
        ("ioncast_settings.lua", "return nil"),
    ],
)
def test_a_broken_file_rejects_no_job(site: Site, broken: str, text: str) -> None:
    site.write(broken, text)
    job = site.cluster.submit()
    site.restore()
    site.cluster.wait_for(job, "COMPLETED")


def test_a_repaired_file_counts_again(site: Site) -> None:
    site.write("ioncast.lua", "this is not Lua")
    assert site.cluster.job(site.cluster.submit())["Licenses"] == "(null)"
    site.restore()
    site.set()
    assert site.cluster.job(site.cluster.submit())["Licenses"] == "ionode:4"


@pytest.mark.promise("slurm-plugin-or-settings-broken")
@pytest.mark.parametrize("broken", ["ioncast.lua", "ioncast_settings.lua"])
def test_slurmctld_starts_with_a_broken_file(site: Site, broken: str) -> None:
    (site.cluster.folder / broken).write_text("this is not Lua")
    site.cluster.stop("slurmctld")
    site.cluster.start("slurmctld")
    job = site.cluster.submit()
    assert site.cluster.job(job)["Licenses"] == "(null)"
    assert f"ioncast: all jobs stay as they are: {site.cluster.folder}/{broken}:1:" in (
        site.cluster.controller_log()
    )
    site.restore()


@pytest.mark.promise("slurm-job-submit-lua-broken-at-start")
def test_slurmctld_does_not_start_with_a_broken_script(site: Site) -> None:
    (site.cluster.folder / "job_submit.lua").write_text("this is not Lua")
    site.cluster.stop("slurmctld")
    done = site.cluster.run("slurmctld", "-D", user="slurm", check=False)
    assert done.returncode != 0
    assert "job_submit.lua" in done.stderr
    site.restore()
    site.cluster.start("slurmctld")


@pytest.mark.promise("slurm-pool-does-not-fit")
def test_a_pool_above_slurms_licences_gets_jobs_rejected(site: Site) -> None:
    site.set(pool=64)
    site.service.io_nodes = 64
    done = site.cluster.run("sbatch", "--wrap=true", check=False)
    assert "Invalid license specification" in done.stderr


@pytest.mark.serving
def test_jobs_of_a_paused_system_stay_unchanged(site: Site, tmp_path: Path) -> None:
    location = f"{tmp_path}/ioncast.sqlite"
    with opened_database(location) as database, transaction(database, write=True) as connection:
        system_id_of(connection, "testbed")
        pause_decisions(connection, "testbed", "alice", "new disks")
    told = {"IONCAST_DB": location, "IONCAST_DEFAULT_IO_NODES": "3"}
    with running(tmp_path, environment=told) as service:
        site.set(address=f"127.0.0.1:{service.port}")
        job = site.cluster.job(site.cluster.submit("--job-name=paused"))
        assert (job["Licenses"], job.get("AdminComment")) == ("(null)", None)
        assert 'why="decisions are paused by alice since ' in site.lines("paused")[-1]
        assert site.lines("paused")[-1].endswith(' UTC: new disks"')
        site.set(address=f"127.0.0.1:{service.port}", default=1)
        job = site.cluster.job(site.cluster.submit())
        assert job["Licenses"] == "ionode:1"


def kill(service: Served) -> None:
    """Kill all processes of a service at once, and wait for their end."""
    victims = [service.process.pid, *service.processes()]
    for victim in victims:
        os.kill(victim, signal.SIGKILL)
    wait_for(lambda: not any(map(command_of, victims)), "end of the service")


@pytest.mark.promise("slurm-service-down-hangs")
@pytest.mark.serving
def test_the_second_service_decides_after_the_first_is_killed(site: Site, tmp_path: Path) -> None:
    location = f"{tmp_path}/ioncast.sqlite"
    with opened_database(location) as database, transaction(database, write=True):
        pass
    folders = tmp_path / "first", tmp_path / "second"
    for folder in folders:
        folder.mkdir()
    # Each service has another default, so that a job shows which one decided.
    told = [{"IONCAST_DB": location, "IONCAST_DEFAULT_IO_NODES": n} for n in ("3", "5")]
    with (
        running(folders[0], environment=told[0]) as first,
        running(folders[1], environment=told[1]) as second,
    ):
        site.set(address=f"127.0.0.1:{first.port}", second_address=f"127.0.0.1:{second.port}")
        assert site.cluster.job(site.cluster.submit())["Licenses"] == "ionode:3"
        kill(first)
        job = site.cluster.submit("--job-name=after-the-kill")
        assert site.cluster.job(job)["Licenses"] == "ionode:5"
        assert f"; no answer from 127.0.0.1:{first.port}: " in site.lines("after-the-kill")[-1]


@pytest.mark.serving
def test_the_real_service_answers(site: Site, tmp_path: Path) -> None:
    location = f"{tmp_path}/ioncast.sqlite"
    with opened_database(location) as database, transaction(database, write=True) as connection:
        token = add_token(connection, "slurm", "scheduler")
    told = {"IONCAST_DB": location, "IONCAST_DEFAULT_IO_NODES": "3"}
    open_to_all(tmp_path)
    # One worker: of two, one could know the token later than the other.
    sent: dict[str, Any] = {
        "method": "POST",
        "body": b'{"system": "testbed"}',
        "headers": {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    }
    with running(tmp_path, "--workers", "1", environment=told) as service:
        wait_for(lambda: service.decide("/v1/decisions", **sent).status == 200, "known token")
        for name, settings in {
            "asks": {"address": f"127.0.0.1:{service.port}"},
            "sends-its-script": {"address": f"unix:{service.decisions}", "token": token},
        }.items():
            site.set(**settings)
            job = site.cluster.job(site.cluster.submit(f"--job-name={name}"))
            assert job["Licenses"] == "ionode:3"
            assert re.fullmatch(r"ioncast:[0-9a-f]{32}", job["AdminComment"])
            [line] = site.lines(name)
            assert f"decision={job['AdminComment'].removeprefix('ioncast:')} " in line
