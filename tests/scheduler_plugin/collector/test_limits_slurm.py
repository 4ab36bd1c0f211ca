"""Slurm's limits on I/O nodes: from a real slurmdbd through the watch into the plugin."""

from __future__ import annotations

import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.scheduler_plugin.lua.test_job_submit_slurm import FILES, LUA, Site
from tests.scheduler_plugin.standin import stand_in
from tests.support.slurm import (
    WATCH_USER,
    Cluster,
    as_user,
    cluster,
    give_file_of_root,
    give_secret,
    version,
)

pytestmark = pytest.mark.slurm

# Of the jobs, all of whose decisions are 4 I/O nodes. Slurm 26.05 finds no associations of nobody.
USER = "games"
# `pending` lets a job above it wait for ever, `refused` lets Slurm reject it.
SETUP = (
    "add qos pending MaxTRESPerJob=license/ionode=2",
    "add qos refused MaxTRESPerJob=license/ionode=2 Flags=DenyOnLimit",
    "add qos group GrpTRES=license/ionode=1",
    "add qos partition MaxTRESPerJob=license/ionode=3",
    "add account limited MaxTRESPerJob=license/ionode=2",
    f"add user {USER} account=everybody qos=normal,pending,refused,group defaultqos=normal",
    f"add user {USER} account=limited qos=normal defaultqos=normal",
    f"add user {USER} account=everybody cluster=test partition=narrow qos=normal defaultqos=normal",
    f"modify user {USER} set MaxTRESPerJob=license/ionode=1 where partition=narrow",
    # Another cluster has stricter limits, and accounts of the same names.
    "add cluster other",
    "add account everybody cluster=other MaxTRESPerJob=license/ionode=1",
)
JOBS = {
    "free": ("ionode:4", ()),
    "pending": ("ionode:2", ("--qos=pending",)),
    "refused": ("ionode:2", ("--qos=refused",)),
    "group": ("ionode:1", ("--qos=group",)),
    "account": ("ionode:2", ("--account=limited",)),
    "partition": ("ionode:3", ("--partition=capped",)),
    "user in partition": ("ionode:1", ("--partition=narrow",)),
}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    files = {name: (LUA / name).read_text() for name in FILES}
    lines = ["JobSubmitPlugins=lua", "AccountingStorageEnforce=limits,qos"]
    with (
        # Other users cannot read pytest's folders.
        TemporaryDirectory(prefix="limits-") as folder,
        stand_in(Path(folder) / "service.sock") as service,
        cluster(
            Path(folder) / "slurm", files=files, lines=lines, rest=True, accounting=True
        ) as found,
    ):
        for command in SETUP:
            found.run("sacctmgr", "-i", *command.split())
        found.run("scontrol", "create", "PartitionName=capped", "Nodes=ALL", "QOS=partition")
        found.run("scontrol", "create", "PartitionName=narrow", "Nodes=ALL")
        config(found)
        yield Site(found, service)


def config(slurm: Cluster) -> None:
    """The settings and secrets of a watch, and the file as root makes it."""
    folder = slurm.folder / "watch"
    for each in (folder, folder / "state", folder / "logs"):
        each.mkdir(mode=0o755)
    shutil.chown(folder / "state", WATCH_USER)
    give_file_of_root(folder / "limits" / "limits", WATCH_USER)
    give_secret(folder / "jwt", slurm.token(WATCH_USER), WATCH_USER)
    give_secret(folder / "token", "ion_none", WATCH_USER)
    (folder / "watch.toml").write_text(
        f"""
        system = "testbed"
        [slurmrestd]
        address = "unix:{slurm.rest}"
        user = "{WATCH_USER}"
        token_file = "{folder}/jwt"
        timeout_s = 60
        cluster = "test"
        [service]
        address = "unix:{folder}/nobody.sock"
        token_file = "{folder}/token"
        [darshan]
        folder = "{folder}/logs"
        [watch]
        state = "{folder}/state/watch.sqlite"
        limits = "{folder}/limits/limits"
        """
    )


def limits(site: Site) -> Path:
    return site.cluster.folder / "watch" / "limits" / "limits"


def watch(site: Site) -> str:
    """Let a watch look once, without a service, and return the lines of the file of limits."""
    watched(site)
    return limits(site).read_text()


def watched(site: Site) -> str:
    """Let a watch look once, and return its log."""
    settings = site.cluster.folder / "watch" / "watch.toml"
    ioncast = [sys.executable, "-m", "ioncast", "slurm", "watch", "--config", str(settings)]
    command = [*as_user(WATCH_USER), *ioncast, "--once"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def submit(site: Site, *options: str) -> subprocess.CompletedProcess[str]:
    return site.cluster.run(
        *("sbatch", "--parsable", "--output=/dev/null", "--wrap=true", *options),
        user=USER,
        check=False,
    )


def ended(site: Site, *options: str) -> str:
    """Submit a job, wait for its end, and return its licences."""
    done = submit(site, *options)
    assert done.returncode == 0, done.stderr
    return site.cluster.wait_for(int(done.stdout), "COMPLETED")["Licenses"]


@pytest.mark.promise("slurm-tasks-ask")
def test_a_job_whose_tasks_ask_for_io_nodes_gets_no_more_of_them(site: Site) -> None:
    if version() < (23, 2):
        pytest.skip("--tres-per-task has licences from Slurm 23.02 on")
    site.set()
    site.service.io_nodes = 8
    # Slurm adds up both numbers, and rejects a job with more than all licences.
    options = ("--ntasks=2", "--tres-per-task=license/ionode:1")
    assert "Invalid license" in submit(site, "--licenses=ionode:7", *options).stderr
    assert ended(site, *options) == "ionode=2"
    site.service.io_nodes = 4


def test_a_job_above_a_limit_is_rejected_or_waits_for_ever_without_the_file(site: Site) -> None:
    site.set()
    assert "QOSMaxLicensePerJob" in submit(site, "--qos=refused").stderr
    job = int(submit(site, "--qos=pending").stdout)
    site.cluster.wait(
        lambda: site.cluster.job(job)["Reason"] == "QOSMaxLicensePerJob", "a job that waits"
    )
    site.cluster.run("scancel", str(job))


def test_every_job_runs_with_what_slurms_limits_allow(site: Site) -> None:
    assert "\nqos\tpending\t2\n" in watch(site)
    site.set(limits=str(limits(site)))
    found = {name: ended(site, *options) for name, (_, options) in JOBS.items()}
    assert found == {name: expected for name, (expected, _) in JOBS.items()}


def test_licences_that_an_admin_takes_away_are_noticed(site: Site) -> None:
    configuration = site.cluster.folder / "slurm.conf"
    before = configuration.read_text()
    site.set(limits=str(limits(site)))
    try:
        configuration.write_text(before.replace("ionode:8", "ionode:3"))
        site.cluster.run("scontrol", "reconfigure")
        site.cluster.wait(lambda: "\ntotal\t3\n" in watch(site), "three licences")
        assert ended(site) == "ionode:3"
    finally:
        configuration.write_text(before)
        site.cluster.run("scontrol", "reconfigure")
        site.cluster.wait(lambda: "\ntotal\t8\n" in watch(site), "eight licences")


@pytest.mark.promise("slurm-limits-file-broken")
@pytest.mark.parametrize("content", [b"", b"\0" * 70_000, b"qos\tnormal\t0\n"])
def test_a_damaged_file_limits_no_job(site: Site, content: bytes) -> None:
    site.set(limits=str(limits(site)))
    limits(site).write_bytes(content)
    assert ended(site) == "ionode:4"


# A lease lets its holder delay each opening of the file by others, for up to 45 seconds.
LEASE = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
"""


@pytest.mark.promise("slurm-token-user-attacks")
def test_the_watch_writes_the_file_and_cannot_delay_slurmctld_with_it(site: Site) -> None:
    assert "\ntotal\t8\n" in watch(site)
    found = limits(site).stat()
    assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (0, 0o664)
    lease = [*as_user(WATCH_USER), sys.executable, "-c", LEASE, str(limits(site))]
    done = subprocess.run(lease, capture_output=True, text=True, check=False)
    assert "PermissionError" in done.stderr


def test_a_file_that_the_watch_cannot_write_is_one_line(site: Site) -> None:
    limits(site).chmod(0o644)
    try:
        lines = [line for line in watched(site).splitlines() if "Slurm's limits" in line]
    finally:
        limits(site).chmod(0o664)
    [line] = lines
    assert line.startswith(f"ioncast: reading Slurm's limits fails: {limits(site)}: ")
    assert "watch.limits cannot be written: Permission denied" in line


def test_a_cluster_whose_name_is_unknown_is_one_line(site: Site) -> None:
    settings = site.cluster.folder / "watch" / "watch.toml"
    before = settings.read_text()
    try:
        settings.write_text(before.replace('cluster = "test"', ""))
        lines = [line for line in watched(site).splitlines() if "Slurm's limits" in line]
    finally:
        settings.write_text(before)
    [line] = lines
    assert "slurmdbd has the clusters other and test; it is unknown which is this one" in line
    assert "set `slurmrestd.cluster` to slurm.conf's ClusterName" in line
