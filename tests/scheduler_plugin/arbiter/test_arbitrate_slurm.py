"""The arbiter on a real Slurm, with decisions of a real service.

It has the rights that docs/slurm.md gives it: a user of its own, an operator's token of Slurm, and
a token of the service with the role reader.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from pwd import getpwnam

import pytest

from benchdb.store.database import opened_database, transaction
from ioncast.service.running.demo_data import fill
from ioncast.service.store.tokens import add_token
from scheduler_plugin.arbiter.arbiter_loop import Arbiter
from scheduler_plugin.arbiter.heartbeat import HOLD_S
from scheduler_plugin.marks import mark_of
from scheduler_plugin.service_client import Ioncast
from scheduler_plugin.settings import SiteSettings, read_settings
from scheduler_plugin.slurm.client import Slurm
from scheduler_plugin.token_files import read_token
from tests.support.command import killed_at_the_end
from tests.support.serving import PATIENCE_S, Served, running, wait_for
from tests.support.slurm import (
    ARBITER_USER,
    WATCH_USER,
    Cluster,
    as_user,
    cluster,
    give_file_of_root,
    give_secret,
    open_to_all,
    version,
)

pytestmark = [pytest.mark.slurm, pytest.mark.serving]

# A job from the demonstration's history.
HACC = "system=testbed&user=demo&executable=hacc_io_write_posix_fpp&name=hacc-io&nodes=8&tasks=16"
STOPPED = "0000000000 300\n"
SLEEPS = "#!/bin/sh\nsleep 600\n"
POOL = 8


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("arbiter") / "slurm"
    with cluster(folder, rest=True, accounting=True) as found:
        found.add_operator(ARBITER_USER)
        yield found


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("service")
    database = str(folder / "demo.sqlite")
    fill(database)
    with opened_database(database) as opened, transaction(opened, write=True) as connection:
        give_secret(folder / "token", add_token(connection, "arbiter", "reader"), ARBITER_USER)
    open_to_all(folder)
    # One worker: of two, one could still have old answers when the other has new ones.
    with running(folder, "--db", database, "--workers", "1") as service:
        wait_for(lambda: service.ask(f"/v1/decisions?{HACC}").json["source"] == "history", "answer")
        yield service


@pytest.fixture
def config(slurm: Cluster, served: Served, tmp_path: Path) -> Path:
    give_secret(tmp_path / "jwt", slurm.token(ARBITER_USER), ARBITER_USER)
    open_to_all(tmp_path)
    (tmp_path / "run").mkdir()
    shutil.chown(tmp_path / "run", ARBITER_USER)
    give_file_of_root(tmp_path / "heartbeat" / "heartbeat", ARBITER_USER)
    path = tmp_path / "slurm.toml"
    path.write_text(
        f"""
        system = "testbed"
        [slurmrestd]
        address = "unix:{slurm.rest}"
        user = "{ARBITER_USER}"
        token_file = "{tmp_path}/jwt"
        [service]
        address = "unix:{served.socket}"
        token_file = "{served.log.parent}/token"
        [arbitrate]
        period_s = 0.5
        heartbeat = "{tmp_path}/heartbeat/heartbeat"
        lock = "{tmp_path}/run/lock"
        """
    )
    return path


@pytest.fixture
def settings(config: Path) -> SiteSettings:
    return read_settings(config)


@pytest.fixture
def arbiter(settings: SiteSettings) -> Iterator[Arbiter]:
    token_files = settings.slurmrestd.token_file, settings.service.token_file
    with (
        Slurm(
            settings.slurmrestd.address,
            settings.slurmrestd.user,
            lambda: read_token(token_files[0]),
            PATIENCE_S,
        ) as client,
        Ioncast(
            settings.service.address, lambda: read_token(token_files[1]), PATIENCE_S
        ) as service,
    ):
        yield Arbiter(settings, client, service)


@pytest.fixture
def jobs(slurm: Cluster, served: Served) -> Iterator[list[int]]:
    """Two jobs that job_submit.lua would hold; 8 I/O nodes are best for their application."""
    made = []
    for _ in range(2):
        decided = served.ask(f"/v1/decisions?{HACC}").json
        assert decided["io_nodes"] == POOL
        made.append(submit_held(slurm, decided["decision_id"]))
    path = f"/v1/decisions/{decided['decision_id']}"
    wait_for(lambda: served.ask(path).status == 200, "a decision in the database")
    yield made
    slurm.run("scancel", *map(str, made))
    slurm.wait(lambda: not slurm.run("squeue", "--noheader").stdout, "empty queue")


def submit_held(
    slurm: Cluster, decision_id: str, *options: str, seconds: int = HOLD_S, script: str = SLEEPS
) -> int:
    """Submit a job that is held as job_submit.lua does it."""
    job_id = slurm.submit(
        f"--begin=now+{seconds}", f"-Lionode:{POOL}", "-N1", *options, script=script
    )
    marked = f"{job_id}+0" if ":" in options else job_id
    mark(slurm, marked, f"{decision_id}:held until:{eligible_s(slurm, job_id)}")
    return job_id


def mark(slurm: Cluster, job_id: int | str, text: str) -> None:
    slurm.run("scontrol", "update", f"JobId={job_id}", f"AdminComment=ioncast:{text}")


def eligible_s(slurm: Cluster, job_id: int) -> int:
    """The Unix time before which Slurm does not start a job."""
    text = slurm.job(job_id)["EligibleTime"]
    return int(time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S")))


def decision_of(slurm: Cluster, job_id: int) -> str:
    found = mark_of(slurm.job(job_id)["AdminComment"])
    assert found is not None
    return found.decision_id


@pytest.mark.promise("slurm-too-few-io-nodes")
def test_held_jobs_share_the_pool_and_run(
    slurm: Cluster, arbiter: Arbiter, jobs: list[int]
) -> None:
    assert {change.job.id for change in arbiter.round(time.time())} == set(jobs)
    for job_id in jobs:
        # 4 I/O nodes for each give 70 + 70 MiB/s; 8 and direct access give only 78 + 45.
        assert slurm.wait_for(job_id, "RUNNING")["Licenses"] == "ionode:4"
    assert arbiter.round(time.time()) == []


def test_a_slow_service_delays_only_jobs_whose_decisions_are_not_read_yet(
    slurm: Cluster, arbiter: Arbiter, jobs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if each decision took longer than all of them may take.
    monkeypatch.setattr("scheduler_plugin.arbiter.arbiter_loop._READING_S", -1.0)
    assert [change.job.id for change in arbiter.round(time.time())] == [jobs[1]]
    # If the released job still waits, it shares the pool with the other one now.
    assert jobs[0] in {change.job.id for change in arbiter.round(time.time())}


def test_a_users_own_begin_time_or_hold_wins(
    slurm: Cluster, arbiter: Arbiter, jobs: list[int]
) -> None:
    slurm.run("scontrol", "update", f"JobId={jobs[0]}", "StartTime=now+1hour")
    slurm.run("scontrol", "hold", str(jobs[1]))
    begins_s = [eligible_s(slurm, job_id) for job_id in jobs]
    assert arbiter.round(time.time()) == []
    arbiter.release_all()
    assert [eligible_s(slurm, job_id) for job_id in jobs] == begins_s
    assert {slurm.job(job_id)["Licenses"] for job_id in jobs} == {f"ionode:{POOL}"}
    assert slurm.job(jobs[1])["Priority"] == "0"
    # Without its user's hold the job is the arbiter's again; alone it gets all I/O nodes.
    slurm.run("scontrol", "release", str(jobs[1]))
    assert [change.job.id for change in arbiter.round(time.time())] == [jobs[1]]
    assert slurm.wait_for(jobs[1], "RUNNING")["Licenses"] == f"ionode:{POOL}"


def test_a_job_that_is_put_back_is_not_held_by_the_arbiter(
    slurm: Cluster, arbiter: Arbiter, jobs: list[int]
) -> None:
    arbiter.round(time.time())
    for job_id in jobs:
        slurm.wait_for(job_id, "RUNNING")
    slurm.run("scontrol", "requeue", str(jobs[0]))
    before = slurm.wait_for(jobs[0], "PENDING")
    arbiter.round(time.time())
    # Slurm itself lets such a job wait for two minutes.
    assert slurm.job(jobs[0])["EligibleTime"] == before["EligibleTime"]


@pytest.mark.promise("slurm-heterogeneous-job")
def test_only_the_first_component_of_a_het_job_is_held_and_gets_a_share(
    slurm: Cluster, arbiter: Arbiter, jobs: list[int]
) -> None:
    first = submit_held(slurm, decision_of(slurm, jobs[0]), ":", "-N1")
    slurm.run("scancel", *map(str, jobs))
    jobs[:] = [first]
    # sbatch gives all components the begin time, and the plugin only the first one.
    slurm.run("scontrol", "update", f"JobId={first + 1}", "StartTime=now")
    # The hold of the first component keeps all of them from starting.
    assert slurm.job(first)["JobState"] == "PENDING"
    shares = {change.job.id: change.licenses for change in arbiter.round(time.time())}
    assert shares == {first: f"ionode:{POOL}"}
    slurm.wait_for(first, "RUNNING")
    assert f"Used={POOL}" in slurm.run("scontrol", "show", "licenses").stdout
    parts = slurm.run("scontrol", "show", "job", "-o", str(first)).stdout.splitlines()
    assert [f" Licenses=ionode:{POOL} " in part for part in parts] == [True, False]


def test_a_job_that_an_admin_puts_back_and_holds_stays_held(
    slurm: Cluster, arbiter: Arbiter, jobs: list[int]
) -> None:
    arbiter.round(time.time())
    # Wait until both run: a waiting job would get the I/O nodes that the other one gives back.
    for job_id in jobs:
        slurm.wait_for(job_id, "RUNNING")
    arbiter.round(time.time())
    slurm.run("scontrol", "requeuehold", str(jobs[0]))
    slurm.wait_for(jobs[0], "PENDING")
    slurm.wait(lambda: slurm.job(jobs[0])["Priority"] == "0", "hold")
    assert arbiter.round(time.time()) == []
    slurm.run("scontrol", "hold", str(jobs[0]))
    assert arbiter.round(time.time()) == []


def test_a_job_whose_licences_slurm_does_not_take_is_released_as_decided(
    slurm: Cluster,
    arbiter: Arbiter,
    jobs: list[int],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As if slurm.conf had just been changed.
    monkeypatch.setattr(Arbiter, "pool", lambda _: POOL)
    other = arbiter.settings.licence.model_copy(update={"name": "nosuch"})
    arbiter.settings = arbiter.settings.model_copy(update={"licence": other})
    arbiter.round(time.time())
    assert slurm.wait_for(jobs[0], "RUNNING")["Licenses"] == f"ionode:{POOL}"
    for _ in range(2):
        arbiter.round(time.time())
    complaint = f"job {jobs[1]} is not changed: "
    assert caplog.text.count(complaint) == 1


def test_an_array_gets_its_licences_once(
    slurm: Cluster, arbiter: Arbiter, jobs: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    slurm.run("scancel", str(jobs[1]))
    jobs.append(submit_held(slurm, decision_of(slurm, jobs[0]), "--array=1-9"))
    slurm.run("scancel", str(jobs[0]))
    assert [change.job.id for change in arbiter.round(time.time())] == [jobs[-1]]
    slurm.wait_for(jobs[-1], "PENDING", "RUNNING")
    slurm.wait(lambda: "RUNNING" in slurm.run("squeue", "-ho%T").stdout, "task")
    assert arbiter.round(time.time()) == []
    assert "is not changed" not in caplog.text


def may(user: str, *command: str) -> bool:
    """Whether a command succeeds for a user, without the rights of other groups."""
    group = getpwnam(user).pw_gid
    done = subprocess.run(
        command, user=user, group=group, extra_groups=[], check=False, capture_output=True
    )
    return done.returncode == 0


def test_only_its_user_reads_its_tokens_and_nobody_writes_them(settings: SiteSettings) -> None:
    for file in (settings.slurmrestd.token_file, settings.service.token_file):
        assert may(ARBITER_USER, "cat", file)
        assert not may(WATCH_USER, "cat", file)
        assert not may("nobody", "cat", file)
        assert not may(ARBITER_USER, "touch", file)


def test_its_token_makes_nobody_else_of_it(config: Path, settings: SiteSettings) -> None:
    assert settings.slurmrestd.user == ARBITER_USER
    config.write_text(config.read_text().replace(f'user = "{ARBITER_USER}"', 'user = "root"'))
    done = run("--config", str(config), "--once")
    assert done.returncode == 2
    assert "the token is not accepted" in done.stderr


@pytest.mark.parametrize(
    "options",
    [("--job-name=\xff",), ("--comment=a\xfeb",), ('--job-name=\x01"\\',), ("--chdir=/tmp",)],
)
def test_texts_of_a_user_in_a_job_keep_no_job_held(
    slurm: Cluster, arbiter: Arbiter, jobs: list[int], options: tuple[str]
) -> None:
    # Encode the options as Latin-1, so that \xff is one byte, which is not UTF-8.
    hostile = [option.encode("latin-1") for option in options]
    jobs.append(slurm.submit("--hold", *hostile, user="nobody"))
    arbiter.round(time.time())
    for job_id in jobs[:2]:
        assert slurm.wait_for(job_id, "RUNNING")["Licenses"] == "ionode:4"


def test_a_running_job_with_more_licences_than_any_pool_is_left_alone(
    slurm: Cluster, arbiter: Arbiter, jobs: list[int]
) -> None:
    running = slurm.submit("--licenses=ionode:4294967297", "-N1", script=SLEEPS, user="nobody")
    slurm.wait_for(running, "RUNNING")
    assert "Used=1" in slurm.run("scontrol", "show", "licenses").stdout
    arbiter.round(time.time())
    shares = sorted(slurm.job(job_id)["Licenses"] for job_id in jobs)
    jobs.append(running)
    # From 25.05 on slurmrestd also tells that the job holds one, so seven are left.
    assert shares == (["ionode:2"] if version() >= (25, 5) else ["ionode:4"]) + ["ionode:4"]


def test_a_heartbeat_that_cannot_be_written_is_one_line(
    config: Path, settings: SiteSettings, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    config.write_text(
        config.read_text().replace(settings.arbitrate.heartbeat, f"{tmp_path}/file/beat")
    )
    done = run("--config", str(config))
    assert done.returncode == 2
    assert "arbitrate.heartbeat cannot be written" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_licence_that_slurm_does_not_have_is_named(config: Path) -> None:
    config.write_text(config.read_text() + '[licence]\nname = "ionodes"\n')
    done = run("--config", str(config), "--once")
    assert done.returncode == 2
    assert "Slurm has no licence 'ionodes'" in done.stderr


def test_a_dry_run_changes_nothing(slurm: Cluster, config: Path, jobs: list[int]) -> None:
    said = command("--config", str(config), "--dry-run")
    assert "2 jobs would be changed" in said
    assert said.count("would be released with ionode:4 (it had ionode:8)") == 2
    assert all(slurm.job(job_id)["JobState"] == "PENDING" for job_id in jobs)


def test_the_command_goes_on_through_a_restart_of_slurm_and_releases_what_is_held_at_its_end(
    slurm: Cluster, config: Path, settings: SiteSettings, jobs: list[int], tmp_path: Path
) -> None:
    slurm.stop("slurmctld")
    heartbeat = Path(settings.arbitrate.heartbeat)
    said = tmp_path / "said"
    with (
        said.open("w") as errors,
        killed_at_the_end(arguments("--config", str(config)), stderr=errors) as process,
    ):
        wait_for(lambda: "slurmctld" in said.read_text(), "complaint")
        assert heartbeat.read_text() == STOPPED
        slurm.start("slurmctld")
        for job_id in jobs:
            slurm.wait_for(job_id, "RUNNING")
        wait_for(lambda: beats(heartbeat), "heartbeat")
        beat_s, hold_s = map(int, heartbeat.read_text().split())
        assert abs(time.time() - beat_s) < 30
        assert hold_s == HOLD_S
        another = run("--config", str(config))
        assert another.returncode == 2
        assert "another arbiter runs" in another.stderr
        for job_id in jobs:
            slurm.run("scancel", str(job_id))
        # The service does not know this decision, so the job is held until the arbiter stops.
        later = submit_held(slurm, "elsewhere", script="#!/bin/sh\ntrue\n")
        time.sleep(2)
        assert slurm.job(later)["JobState"] == "PENDING"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    slurm.wait_for(later, "COMPLETED")
    assert heartbeat.read_text() == STOPPED
    assert f"job {later} of root released with ionode:8: as decided" in said.read_text()
    assert "arbitration works again" in said.read_text()


@pytest.mark.promise("slurm-arbiter-killed-hangs")
def test_a_slurmrestd_that_hangs_makes_the_heartbeat_old(
    slurm: Cluster, config: Path, settings: SiteSettings, tmp_path: Path
) -> None:
    config.write_text(config.read_text().replace("[service]", "timeout_s = 5\n[service]"))
    heartbeat = Path(settings.arbitrate.heartbeat)
    said = tmp_path / "said"
    with (
        said.open("w") as errors,
        subprocess.Popen(arguments("--config", str(config)), stderr=errors) as process,
    ):
        try:
            wait_for(lambda: beats(heartbeat), "heartbeat")
            with slurm.stopped("slurmrestd"):
                wait_for(lambda: "no answer within 5 s" in said.read_text(), "complaint")
                last = heartbeat.read_text()
                # Some failed rounds later it is still the same.
                wait_for(lambda: time.time() > int(last.split()[0]) + 12, "old heartbeat")
                assert heartbeat.read_text() == last
            wait_for(lambda: heartbeat.read_text() != last, "new heartbeat")
        finally:
            process.terminate()


@pytest.mark.promise("slurm-arbiter-killed-hangs")
def test_a_job_starts_by_itself_after_the_arbiter_was_killed(
    slurm: Cluster, config: Path, settings: SiteSettings, tmp_path: Path
) -> None:
    heartbeat = Path(settings.arbitrate.heartbeat)
    # The arbiter would wait a minute for this decision.
    job_id = submit_held(slurm, "elsewhere", seconds=15, script="#!/bin/sh\ntrue\n")
    with subprocess.Popen(arguments("--config", str(config))) as process:
        wait_for(lambda: beats(heartbeat), "heartbeat")
        process.kill()
    until_s = eligible_s(slurm, job_id)
    done = slurm.wait_for(job_id, "COMPLETED")
    assert done["Licenses"] == f"ionode:{POOL}"
    assert eligible_s(slurm, job_id) == until_s


@pytest.mark.promise("slurm-token-user-attacks")
def test_the_arbiters_user_can_neither_replace_the_heartbeat_nor_lease_it(
    settings: SiteSettings,
) -> None:
    heartbeat = settings.arbitrate.heartbeat
    lease = f"import fcntl; fcntl.fcntl(open({heartbeat!r}, 'r+'), fcntl.F_SETLEASE, fcntl.F_WRLCK)"
    assert may(ARBITER_USER, "tee", heartbeat)
    assert may(ARBITER_USER, "dd", "if=/dev/zero", f"of={heartbeat}", "count=1")
    for attack in (
        ("rm", "-f", heartbeat),
        ("mv", heartbeat, f"{heartbeat}.old"),
        ("mkfifo", f"{heartbeat}.pipe"),
        ("chmod", "666", heartbeat),
        ("/usr/bin/python3", "-c", lease),
    ):
        assert not may(ARBITER_USER, *attack), attack


def beats(heartbeat: Path) -> bool:
    """Whether the arbiter has worked since its start."""
    return heartbeat.read_text() not in ("", STOPPED)


def command(*options: str) -> str:
    done = run(*options)
    assert done.returncode == 0, done.stderr
    return done.stderr


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(arguments(*options), capture_output=True, text=True, check=False)


def arguments(*options: str) -> list[str]:
    ioncast = [sys.executable, "-m", "ioncast", "slurm", "arbitrate", *options]
    return [*as_user(ARBITER_USER), *ioncast]
