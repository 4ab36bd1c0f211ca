"""Any bytes in the texts of a job: Slurm accepts the same jobs as without ioncast, and all goes on.

Two clusters get the same submissions. One of them has ioncast as docs/slurm.md installs it: plugin,
service, watch and arbiter, each with its own user and tokens.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from benchdb.store.database import opened_database, transaction
from benchdb.store.tokens import add_token
from ioncast.service.running.demo_data import fill
from scheduler_plugin.arbiter.arbitration import releases
from scheduler_plugin.slurm import Slurm
from scheduler_plugin.token_files import read_token
from tests.support.examples import examples
from tests.support.serving import Served, running, wait_for
from tests.support.slurm import (
    ARBITER_USER,
    WATCH_USER,
    Cluster,
    as_user,
    cluster,
    give_secret,
    open_to_all,
)

pytestmark = [pytest.mark.slurm, pytest.mark.serving]

PLUGIN = Path(__file__).resolve().parents[2] / "scheduler_plugin"
SUBMISSIONS = examples(300)
KNOWN = "/v1/decisions?system=testbed&user=nobody&executable=hacc_io_write_posix_fpp&tasks=16"
SETTINGS = """
return {{
    mode = "arbitrate",
    address = "unix:{folder}/decisions.sock",
    system = "testbed",
    pool = 8,
    heartbeat = "{folder}/arbiter/heartbeat",
    token_file = "{folder}/plugin.token",
    -- Machines that run tests are slow.
    deadline_ms = 10000,
}}
"""
DAEMONS = """
system = "testbed"
[slurmrestd]
address = "unix:{rest}"
user = "{user}"
token_file = "{folder}/{user}.jwt"
timeout_s = 60
[service]
address = "unix:{folder}/ioncast.sock"
token_file = "{folder}/{user}.token"
[darshan]
folder = "{folder}/logs"
[watch]
state = "{folder}/watch/watch.sqlite"
period_s = 0.5
[arbitrate]
period_s = 0.5
heartbeat = "{folder}/arbiter/heartbeat"
"""
TEXTS = [
    *("--job-name", "--comment", "--account", "--constraint", "--dependency", "--nodelist"),
    *("--gres", "--reservation", "--qos", "--wckey", "--mail-user", "--partition", "--licenses"),
    *("--chdir", "--output", "--export", "--begin", "--cluster-constraint", "--time"),
]
# Hand-made texts beside random bytes; Slurm accepts some of them.
PLAUSIBLE = [
    *(b"batch", b"ionode:2", b"ionode:4294967297", b"ionode", b"ionode: \n3", b"ALL", b"/tmp"),
    *(b"/dev/null", b"afterok:1", b"singleton", b"now+1hour", b"1", b"everybody", b"normal"),
    *(b"batch user=root io_nodes=99", b"%s%n%d", b"ioncast:04a9:held", b'" mode=off x="'),
    *(b"\xff", b"\xc3\xa4\xc3\xb6", b"\xed\xa0\x80", b"\x01\x1b[2J", b"a,b;c|d", b"n[1-2]"),
]
SCRIPTS = [
    b"srun ./hacc_io_write_posix_fpp in\n",
    b"srun -n 4 ./a$B\n" * 3000,
    b"\xff" * 65_000,
    b"#SBATCH --comment=\xfe\xff\n",
    b"#BB_LUA pool=ionode capacity=99\n",
    b"cat <<'\n$((`\"",
    b"\x00" * 10,
]


def texts(chance: random.Random) -> bytes:
    kind = chance.random()
    if kind < 0.5:
        return chance.choice(PLAUSIBLE)
    length = 60_000 if kind < 0.55 else chance.randint(1, 60)
    # A zero byte would end an argument of a program.
    return bytes(chance.choices(range(1, 256), k=length))


def submission(number: int) -> tuple[list[bytes], bytes]:
    """Options and script of a job, always the same for the same number."""
    chance = random.Random(number)
    options = [
        option.encode() + b"=" + texts(chance)
        for option in chance.sample(TEXTS, chance.randint(1, 3))
    ]
    lines = chance.choices(SCRIPTS, k=chance.randint(0, 3))
    noise = bytes(chance.choices(range(256), k=chance.randint(0, 300)))
    return options, b"#!/bin/sh\nexit 0\n" + b"".join(lines) + noise


def is_accepted(found: Cluster, number: int) -> bool:
    options, script = submission(number)
    done = subprocess.run(
        ["sbatch", "--parsable", "--output=/dev/null", *options],
        input=script,
        env=found.environment,
        user="nobody",
        group="nogroup",
        cwd="/",
        capture_output=True,
        check=False,
        timeout=180,
    )
    return done.returncode == 0


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    # Other users cannot read pytest's folders.
    with TemporaryDirectory(prefix="hostile-") as name:
        path = Path(name)
        open_to_all(path)
        (path / "logs").mkdir()
        for daemon, user in (("watch", WATCH_USER), ("arbiter", ARBITER_USER)):
            (path / daemon).mkdir()
            shutil.chown(path / daemon, user)
        yield path


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    database = str(folder / "demo.sqlite")
    fill(database)
    with opened_database(database) as opened, transaction(opened, write=True) as connection:
        for name, role, user in (
            (WATCH_USER, "scheduler", WATCH_USER),
            (ARBITER_USER, "reader", ARBITER_USER),
            ("plugin", "scheduler", "slurm"),
        ):
            give_secret(folder / f"{name}.token", add_token(connection, name, role), user)
    # One worker: of two, one could know a token later than the other.
    with running(folder, "--db", database, "--workers", "1") as service:
        wait_for(lambda: service.decide(KNOWN).json["source"] == "history", "prepared answer")
        yield service


@pytest.fixture(scope="module")
def plain(folder: Path) -> Iterator[Cluster]:
    with cluster(folder / "plain", nodes=1, accounting=True) as found:
        yield found


@pytest.fixture(scope="module")
def with_ioncast(folder: Path, served: Served) -> Iterator[Cluster]:
    assert served.socket == folder / "ioncast.sock"
    assert served.decisions == folder / "decisions.sock"
    files = {
        name: (PLUGIN / "lua" / name).read_text() for name in ("job_submit.lua", "ioncast.lua")
    }
    files["ioncast_settings.lua"] = SETTINGS.format(folder=folder)
    lines = ["JobSubmitPlugins=lua"]
    with cluster(
        folder / "slurm", nodes=1, files=files, lines=lines, rest=True, accounting=True
    ) as found:
        found.add_operator(ARBITER_USER)
        for user in (WATCH_USER, ARBITER_USER):
            give_secret(folder / f"{user}.jwt", found.token(user), user)
            settings = DAEMONS.format(folder=folder, user=user, rest=found.rest)
            (folder / f"{user}.toml").write_text(settings)
        yield found


@contextmanager
def daemon(folder: Path, command: str, user: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run `ioncast slurm COMMAND` as a user, with its log in the folder."""
    ioncast = [sys.executable, "-m", "ioncast", "slurm", command]
    config = ["--config", str(folder / f"{user}.toml")]
    with (
        (folder / f"{command}.log").open("wb") as log,
        subprocess.Popen([*as_user(user), *ioncast, *config], stderr=log) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()


def accounted(folder: Path, found: Cluster) -> dict[int, str]:
    """Ids and names of the jobs that slurmdbd gives the watch's user."""
    token = read_token(str(folder / f"{WATCH_USER}.jwt"))
    with Slurm(f"unix:{found.rest}", WATCH_USER, lambda: token, 60) as slurm:
        return {
            job.id: job.name
            for job in slurm.ended_jobs(int(time.time()) - 3600, int(time.time()) + 60)
        }


def has_held_jobs(folder: Path, found: Cluster) -> bool:
    token = read_token(str(folder / f"{ARBITER_USER}.jwt"))
    with Slurm(f"unix:{found.rest}", ARBITER_USER, lambda: token, 60) as slurm:
        return bool(releases(slurm.jobs(), time.time()))


def test_submissions_fare_as_without_ioncast_and_nothing_stops(
    folder: Path, plain: Cluster, with_ioncast: Cluster
) -> None:
    with ExitStack() as stack:
        daemons = [
            stack.enter_context(daemon(folder, command, user))
            for command, user in (("watch", WATCH_USER), ("arbitrate", ARBITER_USER))
        ]
        wait_for((folder / "arbiter" / "heartbeat").exists, "heartbeat")
        with ThreadPoolExecutor(4) as pool:
            fared = list(
                pool.map(
                    lambda number: (is_accepted(plain, number), is_accepted(with_ioncast, number)),
                    range(SUBMISSIONS),
                )
            )
        different = [submission(n)[0] for n, (one, other) in enumerate(fared) if one != other]
        assert not different
        accepted = sum(one for one, _ in fared)
        assert SUBMISSIONS / 10 < accepted < SUBMISSIONS
        log = with_ioncast.controller_log()
        assert log.count("ioncast: mode=arbitrate ") >= accepted
        assert "a job stays as it is" not in log
        assert " held=yes " in log
        with_ioncast.wait(lambda: not has_held_jobs(folder, with_ioncast), "released jobs")
        strange = with_ioncast.submit(b"--job-name=\xff", b"--comment=\xfe", user="nobody")
        with_ioncast.wait(lambda: strange in accounted(folder, with_ioncast), "job in slurmdbd")
        assert [process.poll() for process in daemons] == [None, None]
    for command in ("watch", "arbitrate"):
        said = (folder / f"{command}.log").read_text()
        assert "Traceback" not in said
        assert "not followed" not in said
