"""`ioncast slurm check` beside a real Slurm, service, watch and arbiter."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from benchdb.store.database import opened_database, transaction
from ioncast.service.running.demo_data import fill
from ioncast.service.store.paused_systems import pause_decisions, resume_decisions
from ioncast.service.store.tokens import add_token
from scheduler_plugin.arbiter.held_metrics import held_metrics
from scheduler_plugin.check import asking_sources
from scheduler_plugin.metrics_file import MetricsFile
from scheduler_plugin.slurm import Job
from tests.support.command import run_ioncast
from tests.support.prometheus import (
    DEPLOY,
    QUERIES,
    RULES,
    Prometheus,
    documented_job,
    running_prometheus,
)
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
)

pytestmark = [pytest.mark.slurm, pytest.mark.serving]

PROJECT = Path(__file__).resolve().parents[3]
LUA, HOOKS = PROJECT / "scheduler_plugin" / "lua", PROJECT / "scheduler_plugin" / "hooks"
LINES = """
JobSubmitPlugins=lua
AccountingStorageEnforce=limits,qos
PrologSlurmctld={hooks}/prolog_slurmctld.sh
EpilogSlurmctld={hooks}/epilog_slurmctld.sh
TaskProlog={hooks}/task_prolog.sh
"""
SETTINGS = """
return {{
    mode = "arbitrate", address = "unix:{served.socket}", system = "testbed", pool = {pool},
    heartbeat = "{folder}/heartbeat/heartbeat", limits = "{folder}/limits/limits",
    token_file = "{folder}/plugin.token",
}}
"""
DAEMON = """
system = "testbed"
[slurmrestd]
address = "unix:{slurm.rest}"
user = "{user}"
token_file = "{folder}/{part}.jwt"
timeout_s = 60
[service]
address = "unix:{served.socket}"
token_file = "{folder}/{part}.token"
"""
WATCH = """
[darshan]
folder = "{folder}/logs"
[watch]
state = "{folder}/watch-state/watch.sqlite"
limits = "{folder}/limits/limits"
metrics = "{folder}/watch-run/metrics.prom"
slurmctld_log = "{folder}/slurm/slurmctld.log"
"""
ARBITER = """
[arbitrate]
period_s = 0.5
heartbeat = "{folder}/heartbeat/heartbeat"
lock = "{folder}/run/lock"
metrics = "{folder}/run/metrics.prom"
"""
HELD = Job(1, "ann", "hacc", "batch", "PENDING", "BeginTime", False, 0, 5, None, None, 1, 1, "", "")
USERS = {"watch": WATCH_USER, "arbiter": ARBITER_USER}
SUBJECTS = {
    "slurmctld", "settings", "loaded settings", "lua-socket", "ioncast.lua", "job_submit.lua",
    "licences", "Slurm's limits", "PrologSlurmctld", "EpilogSlurmctld", "TaskProlog", "hooks.conf",
    "watch: token of Slurm", "watch: rights in Slurm", "watch: slurmrestd",
    "watch: slurmdbd over slurmrestd", "arbiter: slurmrestd",
    "arbiter: slurmdbd over slurmrestd", "watch: token of ioncast", "arbiter: token of Slurm",
    "arbiter: rights in Slurm", "arbiter: token of ioncast", "plugin: token of ioncast",
    "plugin: address", "service", "system", "versions", "reading", "heartbeat", "file of limits",
    "Darshan's folders", "watch: version", "arbiter: version", "rights",
}  # fmt: skip


@dataclass
class Site:
    """A cluster with everything that docs/slurm.md sets up."""

    folder: Path
    slurm: Cluster
    served: Served
    subjects: set[str] = field(default_factory=set)

    def write_settings(self, **changed: Any) -> None:
        """Write the plugin's settings, without telling slurmctld."""
        values = {"folder": self.folder, "served": self.served, "pool": 8, **changed}
        (self.slurm.folder / "ioncast_settings.lua").write_text(SETTINGS.format(**values))

    def reload(self) -> None:
        """Let slurmctld load the settings, which it does for the next job."""
        script = self.slurm.folder / "job_submit.lua"
        # slurmctld loads a script again if it is newer, in whole seconds, than the last load.
        changed = int(time.time()) + 1
        os.utime(script, (changed, changed))
        time.sleep(max(0, changed + 0.01 - time.time()))
        lines = self.slurm.controller_log().count("ioncast: loaded:")
        self.slurm.run("sbatch", "--test-only", "--wrap=true")
        self.slurm.wait(
            lambda: self.slurm.controller_log().count("ioncast: loaded:") > lines, "a reload"
        )

    def ioncast(self, *options: str) -> subprocess.CompletedProcess[str]:
        where = {"SLURM_CONF": self.slurm.environment["SLURM_CONF"]}
        return run_ioncast("slurm", "check", *options, environment=where)

    def rows(self) -> list[dict[str, str]]:
        """Run the command and return its rows."""
        files = [f"--{part}={self.folder}/{part}.toml" for part in USERS]
        done = self.ioncast(*files, "--format=json")
        assert done.stderr == ""
        found: list[dict[str, str]] = json.loads(done.stdout)
        assert done.returncode == any(row["status"] == "FAIL" for row in found)
        return found

    def check(self) -> tuple[int, dict[str, dict[str, str]]]:
        """Run the command; return its exit code and its rows that are not OK, by subject."""
        rows = self.rows()
        self.subjects = {row["subject"] for row in rows}
        bad = {row["subject"]: row for row in rows if row["status"] != "OK"}
        return int(any(row["status"] == "FAIL" for row in rows)), bad


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    files = {name: (LUA / name).read_text() for name in ("job_submit.lua", "ioncast.lua")}
    # Other users cannot read pytest's folders.
    with TemporaryDirectory(prefix="check-") as name:
        folder = Path(name)
        open_to_all(folder)
        shutil.copytree(HOOKS, folder / "hooks")
        lines = LINES.format(hooks=folder / "hooks").split("\n")
        with (
            service(folder) as served,
            cluster(
                folder / "slurm", nodes=1, files=files, lines=lines, rest=True, accounting=True
            ) as slurm,
        ):
            found = Site(folder, slurm, served)
            prepare(found)
            with arbiter(folder):
                yield found


@contextmanager
def service(folder: Path) -> Iterator[Served]:
    database = str(folder / "demo.sqlite")
    fill(database)
    with opened_database(database) as opened, transaction(opened, write=True) as connection:
        for name, role in (("watch", "scheduler"), ("arbiter", "reader"), ("plugin", "scheduler")):
            user = USERS.get(name, "slurm")
            give_secret(folder / f"{name}.token", add_token(connection, name, role), user)
        add_token(connection, "portal", "reader", datetime.now(timezone.utc) + timedelta(days=90))
    with running(folder, "--db", database, "--workers", "1") as served:
        served.wait_until_ready()
        yield served


def prepare(site: Site) -> None:
    """Do what an admin does: folders, tokens, settings; and let the watch write Slurm's limits."""
    folder = site.folder
    for name, owner in (("jobs", "slurm"), ("watch-state", WATCH_USER), ("run", ARBITER_USER)):
        (folder / name).mkdir(mode=0o755)
        shutil.chown(folder / name, owner)
    give_file_of_root(folder / "limits" / "limits", WATCH_USER)
    give_file_of_root(folder / "heartbeat" / "heartbeat", ARBITER_USER)
    (folder / "watch-run").mkdir()
    shutil.chown(folder / "watch-run", WATCH_USER)
    day = folder / "logs" / date.today().strftime("%Y/%-m/%-d")
    day.mkdir(parents=True)
    day.chmod(0o1777)
    (folder / "hooks" / "hooks.conf").write_text(f"LICENCE=ionode\nJOBS_FOLDER={folder}/jobs\n")
    site.slurm.add_operator(ARBITER_USER)
    told = {"folder": folder, "slurm": site.slurm, "served": site.served}
    for part, own in (("watch", WATCH), ("arbiter", ARBITER)):
        user = USERS[part]
        give_secret(folder / f"{part}.jwt", site.slurm.token(user), user)
        text = (DAEMON + own).format(part=part, user=user, **told)
        (folder / f"{part}.toml").write_text(text)
    site.write_settings()
    site.reload()
    ioncast = [*as_user(WATCH_USER), sys.executable, "-m", "ioncast"]
    watch = [*ioncast, "slurm", "watch", "--config", str(folder / "watch.toml"), "--once"]
    subprocess.run(watch, check=True, cwd=PROJECT)


@contextmanager
def arbiter(folder: Path) -> Iterator[None]:
    ioncast = [*as_user(ARBITER_USER), sys.executable, "-m", "ioncast"]
    command = [*ioncast, "slurm", "arbitrate", "--config", str(folder / "arbiter.toml")]
    with subprocess.Popen(command, cwd=PROJECT) as process:
        try:
            heartbeat = folder / "heartbeat" / "heartbeat"
            wait_for(lambda: heartbeat.read_text()[:1] == "1", "heartbeat")
            yield
        finally:
            process.terminate()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines that run tests are slow."""
    monkeypatch.setattr(asking_sources, "ANSWER_S", PATIENCE_S)
    monkeypatch.setattr(asking_sources, "PATIENCE_S", 2 * PATIENCE_S)


def test_a_healthy_cluster_has_only_good_rows(site: Site) -> None:
    assert site.check() == (0, {})
    assert site.subjects == SUBJECTS


def exported(text: str) -> set[str]:
    families = text_string_to_metric_families(text)
    return {sample.name for family in families for sample in family.samples}


def numbers_of(served: Served) -> str:
    """The service's numbers; nothing until a system is paused."""
    text = served.ask("/metrics").body.decode()
    return text if "ioncast_decisions_paused{" in text else ""


def test_alerts_and_dashboard_use_only_numbers_that_exist(site: Site) -> None:
    texts = [(site.folder / name / "metrics.prom").read_text() for name in ("watch-run", "run")]
    database = f"--db={site.folder}/demo.sqlite"
    assert run_ioncast("decisions", "pause", "testbed", database).returncode == 0
    texts.append(wait_for(lambda: numbers_of(site.served), "a pause"))
    assert run_ioncast("decisions", "resume", "testbed", database).returncode == 0
    names = set().union(*map(exported, texts))
    # No job is held here.
    held = held_metrics([HELD], {})
    names |= {sample.name for metric in held for sample in metric.samples}
    for file in ("alerts.yml", "grafana.json"):
        used = set(re.findall(r"\bioncast_\w+", (DEPLOY / file).read_text()))
        assert used
        assert used - names == set()


@contextmanager
def replaced(path: Path, content: str | None) -> Iterator[None]:
    """A file with another content, or without the file; its rights stay."""
    before = path.read_text()
    kept = path.with_name(f"{path.name}.kept")
    shutil.copy2(path, kept)
    shutil.chown(kept, path.owner(), path.group())
    try:
        if content is None:
            path.unlink()
        else:
            path.write_text(content)
        yield
    finally:
        kept.replace(path)
        assert path.read_text() == before


def test_a_wrong_pool_fails(site: Site) -> None:
    site.write_settings(pool=9)
    site.reload()
    try:
        code, rows = site.check()
    finally:
        site.write_settings()
        site.reload()
    assert (code, set(rows)) == (1, {"licences"})
    assert "the pool is 9, and Slurm has 8 ionode" in rows["licences"]["found"]


def test_settings_that_were_not_loaded_fail(site: Site) -> None:
    site.write_settings(pool=4)
    try:
        code, rows = site.check()
    finally:
        site.write_settings()
    assert (code, set(rows)) == (1, {"loaded settings"})
    assert "pool=8" in rows["loaded settings"]["found"]
    assert rows["loaded settings"]["remedy"].startswith("touch ")


def test_broken_settings_fail(site: Site) -> None:
    path = site.slurm.folder / "ioncast_settings.lua"
    with replaced(path, "return {"):
        code, rows = site.check()
    assert code == 1
    assert "settings" in rows
    with replaced(path, path.read_text().replace("pool = 8", "pool = 'all'")):
        code, rows = site.check()
    assert code == 1
    assert "pool must be a number of I/O nodes" in rows["settings"]["found"]


def test_an_expired_token_of_slurm_fails(site: Site) -> None:
    token = site.slurm.token(WATCH_USER, lifespan_s=1)
    time.sleep(2)
    with replaced(site.folder / "watch.jwt", token):
        code, rows = site.check()
    assert code == 1
    assert "expired" in rows["watch: token of Slurm"]["found"]
    assert rows["watch: slurmrestd"]["status"] == "FAIL"


def test_a_token_of_root_fails(site: Site) -> None:
    with replaced(site.folder / "watch.jwt", site.slurm.token("root")):
        code, rows = site.check()
    assert code == 1
    assert "submit jobs as root" in rows["watch: token of Slurm"]["found"]


def test_tokens_of_ioncast_with_other_roles_are_noticed(site: Site) -> None:
    tokens = {name: (site.folder / f"{name}.token").read_text() for name in ("watch", "arbiter")}
    with (
        replaced(site.folder / "watch.token", tokens["arbiter"]),
        replaced(site.folder / "arbiter.token", tokens["watch"]),
    ):
        code, rows = site.check()
    assert code == 1
    found = {subject: row["status"] for subject, row in rows.items()}
    assert found == {"watch: token of ioncast": "FAIL", "arbiter: token of ioncast": "WARN"}


@pytest.mark.parametrize(
    ("name", "subject"),
    [
        ("hooks/prolog_slurmctld.sh", "PrologSlurmctld"),
        ("hooks/hooks.conf", "hooks.conf"),
        ("limits/limits", "file of limits"),
        ("slurm/ioncast.lua", "settings"),
        ("watch.token", "watch: token of ioncast"),
        ("watch.toml", None),
    ],
)
def test_a_missing_file_fails(site: Site, name: str, subject: str | None) -> None:
    with replaced(site.folder / name, None):
        if subject is None:
            # A wrong option.
            assert site.ioncast(f"--watch={site.folder}/{name}").returncode == 2
            return
        code, rows = site.check()
    assert (code, rows[subject]["status"]) == (1, "FAIL")


# Others can change or read these files and folders: by their modes, or by their owner.
UNSAFE: dict[str, int | str] = {
    "slurm/slurm.conf": 0o666, "slurm/slurmdbd.conf": 0o644, "slurm/jwt.key": 0o644,
    "slurm/job_submit.lua": 0o646, "slurm/ioncast.lua": 0o664, "slurm/ioncast_settings.lua": 0o666,
    "plugin.token": 0o644, "watch.token": WATCH_USER, "watch.jwt": 0o644, "arbiter.token": 0o644,
    "arbiter.jwt": 0o660, "watch.toml": 0o666, "arbiter.toml": ARBITER_USER, "hooks": 0o777,
    "hooks/prolog_slurmctld.sh": 0o775, "hooks/epilog_slurmctld.sh": 0o757,
    "hooks/task_prolog.sh": WATCH_USER, "hooks/io_nodes.sh": 0o666, "hooks/hooks.conf": 0o666,
    "jobs": 0o1777, "limits": 0o775, "limits/limits": WATCH_USER,
    "heartbeat": ARBITER_USER, "heartbeat/heartbeat": 0o666,
}  # fmt: skip


@contextmanager
def unsafe(folder: Path) -> Iterator[None]:
    """Make all files of `UNSAFE` unsafe."""
    before = {folder / name: (folder / name).stat() for name in UNSAFE}
    try:
        for name, wrong in UNSAFE.items():
            if isinstance(wrong, int):
                (folder / name).chmod(wrong)
            else:
                shutil.chown(folder / name, wrong)
        yield
    finally:
        for path, info in before.items():
            os.chown(path, info.st_uid, info.st_gid)
            path.chmod(info.st_mode)


@pytest.mark.promise("slurm-file-rights")
def test_each_unsafe_file_has_a_row_and_its_remedy_makes_it_safe(site: Site) -> None:
    with unsafe(site.folder):
        rows = [row for row in site.rows() if row["subject"] == "rights"]
        for row in rows:
            command = row["remedy"].partition(", and ")[0]
            subprocess.run(["sh", "-c", command], check=True)
        after = site.check()
    assert {row["status"] for row in rows} == {"FAIL"}
    named = [re.findall(rf"{site.folder}/(\S+) \(", row["found"]) for row in rows]
    assert sorted(named) == sorted([name] for name in UNSAFE)
    assert after == (0, {})


def test_a_hook_of_another_version_is_noticed(site: Site) -> None:
    path = site.folder / "hooks" / "task_prolog.sh"
    with replaced(path, path.read_text() + "# changed\n"):
        code, rows = site.check()
    assert code == 0
    assert list(rows) == ["TaskProlog"]


def test_hidden_jobs_fail_while_everybody_can_read_the_service(site: Site) -> None:
    configuration = site.slurm.folder / "slurm.conf"
    try:
        with replaced(configuration, configuration.read_text() + "PrivateData=jobs\n"):
            site.slurm.run("scontrol", "reconfigure")
            code, rows = site.check()
    finally:
        site.slurm.run("scontrol", "reconfigure")
    assert (code, set(rows)) == (1, {"reading", "watch: rights in Slurm"})


def test_limits_of_a_qos_are_shown(site: Site) -> None:
    site.slurm.run("sacctmgr", "-i", "add", "qos", "small", "MaxTRESPerJob=license/ionode=2")
    try:
        assert site.check() == (0, {})
    finally:
        site.slurm.run("sacctmgr", "-i", "delete", "qos", "small")


def test_a_service_that_is_away_is_a_row_and_no_traceback(site: Site) -> None:
    settings = site.slurm.folder / "ioncast_settings.lua"
    text = settings.read_text().replace(str(site.served.socket), "/nowhere.sock")
    with replaced(settings, text):
        code, rows = site.check()
    assert code == 1
    assert "plugin: address" in rows


def test_without_slurm_the_rest_is_still_checked(site: Site, tmp_path: Path) -> None:
    # Slurm's programs wait a minute for a file that does not exist.
    without = tmp_path / "slurm.conf"
    without.touch()
    where = {"SLURM_CONF": str(without)}
    options = f"--watch={site.folder}/watch.toml"
    done = run_ioncast("slurm", "check", options, environment=where)
    assert done.returncode == 1
    assert "FAIL  slurmctld:" in done.stdout
    assert "Darshan's folders" in done.stdout


class SilentHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served_files(folder: Path) -> Iterator[str]:
    """Give out a folder's files as node_exporter gives out those of its textfile collector."""
    giving = partial(SilentHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), giving) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def scrape_jobs(site: Site, files: str) -> list[dict[str, Any]]:
    """The service as docs/service.md says, and the numbers of watch and arbiter."""
    address = f"127.0.0.1:{site.served.port}"
    token = {"credentials_file": str(site.folder / "arbiter.token")}
    of_service = {"static_configs": [{"targets": [address]}], "authorization": token}
    parts = [
        {
            "job_name": part,
            "metrics_path": f"/{folder}/metrics.prom",
            "static_configs": [{"targets": [files]}],
        }
        for part, folder in (("watch", "watch-run"), ("arbiter", "run"), ("held", "held-run"))
    ]
    return [{**documented_job(), **of_service}, *parts]


def without_series(prometheus: Prometheus) -> set[str]:
    """The queries of dashboard and alerts whose numbers Prometheus does not have."""
    # With `bool` a comparison gives 0 or 1 instead of nothing, if its numbers exist.
    asked = {query: query for query in QUERIES}
    asked |= {rule["expr"]: re.sub("==|[<>]", r"\g<0> bool", rule["expr"]) for rule in RULES}
    return {query for query, existing in asked.items() if not prometheus.series(existing)}


@pytest.mark.prometheus
def test_a_real_prometheus_answers_all_queries_and_fires_alerts(site: Site, tmp_path: Path) -> None:
    (site.folder / "held-run").mkdir()
    held = MetricsFile(str(site.folder / "held-run" / "metrics.prom"), logging.getLogger())
    held.write(held_metrics([HELD], {}))
    held.close()
    with opened_database(str(site.folder / "demo.sqlite")) as database:
        with transaction(database, write=True) as connection:
            pause_decisions(connection, "testbed", "an administrator")
            soon = datetime.now(timezone.utc) + timedelta(days=6)
            add_token(connection, "for a week", "reader", soon)
        with (
            served_files(site.folder) as files,
            running_prometheus(tmp_path, scrape_jobs(site, files)) as prometheus,
        ):
            for ask in (site.served.ask, site.served.decide):
                assert ask("/v1/decisions?system=testbed&user=ada&executable=app").status == 200
            # A service that was ready at the first question has answered nothing with a 5xx.
            failures = {rule["expr"] for rule in RULES if rule["alert"] == "IoncastFails"}
            with suppress(AssertionError):
                wait_for(lambda: without_series(prometheus) <= failures, "series", 30)
            assert without_series(prometheus) <= failures
            groups = prometheus.ask("rules")["groups"]
            rules = [rule for group in groups for rule in group["rules"]]
            assert [rule["name"] for rule in rules] == [rule["alert"] for rule in RULES]
            assert {(rule["health"], rule.get("lastError")) for rule in rules} == {("ok", None)}
            fires = {"IoncastTokenExpires", "IoncastPaused", "IoncastJobHeldLong"}
            wait_for(lambda: fires <= prometheus.firing(), "alerts")
            wait_for(lambda: "IoncastDown" not in prometheus.firing(), "a service that answers")
            with site.served.stopped(site.served.processes()):
                wait_for(lambda: "IoncastDown" in prometheus.firing(), "alert")
            wait_for(lambda: "IoncastDown" not in prometheus.firing(), "a service that answers")
        with transaction(database, write=True) as connection:
            resume_decisions(connection, "testbed")
