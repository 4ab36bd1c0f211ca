"""The watch and the arbiter: settings, tokens, slurmrestd, versions, and the files they write."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from concurrent.futures import Future
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from ioncast_base.errors import InputError, IoncastError
from scheduler_plugin.arbiter.heartbeat import HEARTBEAT_S, STOPPED_S, beat_at
from scheduler_plugin.check import asking_sources
from scheduler_plugin.check.asking_sources import Row, fail, ok, said_by, warn
from scheduler_plugin.check.controller import Controller
from scheduler_plugin.check.plugin import Plugin
from scheduler_plugin.collector.limits_file import LONGEST_BYTES
from scheduler_plugin.settings import (
    DarshanSettings,
    SiteSettings,
    SlurmrestdSettings,
    read_settings,
)
from scheduler_plugin.slurm import Slurm, SlurmAnswerError
from scheduler_plugin.slurm.jwt_claims import claims_of
from scheduler_plugin.slurm.licence_limits import Limits
from scheduler_plugin.token_files import read_token

Part = Literal["watch", "arbiter"]
# The rows about slurmrestd, and Slurm's limits if slurmdbd tells them.
Answer = tuple[list[Row], Limits | None]
MAKE_FOLDER = (
    "make it (docs/slurm.md, Darshan's folders), or set `folder` in [darshan] of watch.toml; then"
    " systemctl restart ioncast-watch"
)
LOOK = "look at `systemctl status ioncast-{}` and at its log; after its start wait for a minute"
# As in ioncast.lua: limits that are too old.
LIMITS_S = 86_400
# The watch writes once a minute.
_LATE_S = 600
# renew-slurm-token runs every hour for a token of two hours.
_SOON_S = 1800
_OPERATOR = "Operator"
_VERSION = re.compile(r'^ioncast_\w+_build_info\{version="([^"]*)"\} 1', re.MULTILINE)
_LIMITS = re.compile(r"ioncast-limits\t1\t(\d{1,12})\t([^\t\n]+)\n")
_RENEW = "run renew-slurm-token, and look why cron and the unit did not (docs/slurm.md)"


def read_part(path: str, part: Part) -> SiteSettings:
    """Read the settings of a part."""
    settings = read_settings(path)
    if part == "watch" and settings.darshan is None:
        raise InputError("key `darshan` is missing", where=path)
    return settings


def slurm_token_rows(part: Part, rest: SlurmrestdSettings, slurm: Controller) -> Iterator[Row]:
    """Judge a token of Slurm: its owner and its end."""
    subject, path, user = f"{part}: token of Slurm", rest.token_file, rest.user
    # The signature is left out.
    owner, ends_s = claims_of(read_token(path))
    left_s = ends_s - time.time()
    if not owner:
        raise InputError("this is not a token of Slurm", where=path, remedy=_RENEW)
    if owner in {"root", slurm.user}:
        yield fail(
            subject,
            f"it is a token of {owner}: its bearer could submit jobs as root",
            "make one of another user with renew-slurm-token (docs/slurm.md, Who may do what)",
        )
    elif owner != user:
        advice = "make a token of this user with renew-slurm-token"
        yield fail(subject, f"it is of {owner!r}, and slurmrestd.user is {user!r}", advice)
    elif left_s <= 0:
        yield fail(subject, f"it expired {in_words(-left_s)} ago", _RENEW)
    elif left_s < _SOON_S:
        yield warn(subject, f"it expires in {in_words(left_s)}", _RENEW)
    else:
        yield ok(subject, f"of {owner}, for {in_words(left_s)}")


def rights_rows(part: Part, user: str, slurm: Controller) -> Iterator[Row]:
    """Judge the rights of a part in Slurm, where only slurmdbd knows operators."""
    subject, level = f"{part}: rights in Slurm", _admin_level(user) if slurm.has_slurmdbd else ""
    make = f"sacctmgr add user {user} account=root adminlevel={_OPERATOR}"
    hiding = ",".join(sorted(slurm.private & {"accounts", "usage", "users"}))
    if level == _OPERATOR:
        yield ok(subject, f"{user} is an operator")
    elif level == "Administrator":
        yield warn(subject, f"{user} is an administrator", f"an operator is enough: {make}")
    elif part == "arbiter" and not level:
        yield fail(subject, "Slurm has no operators without slurmdbd", "do not use the arbiter")
    elif part == "arbiter":
        yield fail(subject, f"{user} is not an operator and cannot change jobs", make)
    elif "jobs" in slurm.private:
        yield fail(subject, f"PrivateData=jobs hides the jobs of others from {user}", make)
    elif hiding and level:
        yield warn(subject, f"PrivateData={hiding} hides the limits of accounts from {user}", make)
    else:
        yield ok(subject, f"{user} can see jobs")


def _admin_level(user: str) -> str:
    """A user's rights in Slurm: ``None``, ``Operator`` or ``Administrator``."""
    asked = ("show", "user", f"name={user}", "format=adminlevel")
    return said_by("sacctmgr", "--noheader", "--parsable2", *asked).strip() or "None"


def ask_slurmrestd(part: Part, settings: SiteSettings, *, has_slurmdbd: bool) -> Answer:
    """Judge slurmrestd and its plugin for slurmdbd; return also Slurm's limits on the licence."""
    rest, licence = settings.slurmrestd, settings.licence.name
    dbd = f"{part}: slurmdbd over slurmrestd"
    with Slurm(
        rest.address,
        rest.user,
        lambda: read_token(rest.token_file),
        min(rest.timeout_s, asking_sources.ANSWER_S),
        cluster=rest.cluster,
    ) as slurm:
        slurm.ping()
        total = slurm.licence_total(licence)
        row = ok(f"{part}: slurmrestd", f"version {slurm.version} of the interface")
        if not has_slurmdbd:
            return [row], None
        try:
            limits = slurm.limits(licence, total)
        except IoncastError as error:
            remedy = "" if isinstance(error, SlurmAnswerError) else str(error.remedy or "")
            load = f"let slurmrestd load openapi/dbv{slurm.version} (its option -s)"
            return [row, fail(dbd, error.what, remedy or f"{load}, and slurmdbd run")], None
    return [row, ok(dbd, "limits can be read")], limits


def slurmrestd_rows(answer: Future[Answer]) -> list[Row]:
    """The rows about slurmrestd."""
    return answer.result()[0]


def slurm_limits_rows(plugin: Plugin, answer: Future[Answer]) -> Iterator[Row]:
    """Judge whether the plugin knows Slurm's limits on jobs that are below its pool."""
    subject, pool, limits = "Slurm's limits", plugin.pool, answer.result()[1]
    if limits is None:
        return
    named = {
        **{f"QOS {name}": limit for name, limit in limits.qos.items()},
        **{f"partition {name}": limit for name, limit in limits.partitions.items()},
        **{f"account {name}": limit for name, limit in limits.accounts.items()},
        **{f"user {name} of {account}": n for (account, name), n in limits.users.items()},
    }
    lower = [f"{name}: {limit}" for name, limit in named.items() if limit < pool]
    shown = ", ".join(lower[:5]) + (f" and {len(lower) - 5} more" if len(lower) > 5 else "")
    if not lower:
        yield ok(subject, f"all jobs may have {pool} {limits.licence}")
    elif plugin.of("limits"):
        yield ok(subject, f"{shown}; the plugin reads them")
    else:
        advice = "set `limits` in watch.toml and in ioncast_settings.lua"
        yield fail(subject, f"{shown}; with more, jobs are rejected or wait for ever", advice)


def version_rows(part: Part, metrics: str) -> Iterator[Row]:
    """Judge the version of a running part by its metrics."""
    subject, installed = f"{part}: version", version("ioncast")
    match = _VERSION.search(Path(metrics).read_text(encoding="utf-8", errors="replace"))
    running = match[1] if match else ""
    if running == installed:
        yield ok(subject, f"{running} runs")
    else:
        text = f"{running or 'an unknown one'} runs, {installed} is this one"
        yield warn(subject, text, f"systemctl restart ioncast-{part}")


def heartbeat_rows(expected: str, path: str) -> Iterator[Row]:
    """Judge the arbiter's heartbeat; `expected` is the plugin's path, `path` the arbiter's."""
    subject, look = "heartbeat", LOOK.format("arbiter")
    if expected != path:
        text = f"the plugin reads {expected or 'no file'}, and the arbiter writes {path}"
        yield fail(subject, text, "set `heartbeat` in ioncast_settings.lua to the arbiter's file")
        return
    try:
        beat_s = beat_at(path)
    except FileNotFoundError as error:
        raise _missing(path) from error
    age_s = time.time() - beat_s
    if beat_s == STOPPED_S:
        yield fail(subject, "the arbiter does not work: no jobs are held", look)
    elif abs(age_s) >= HEARTBEAT_S:
        yield fail(subject, f"its time is {age_s:.0f} s old: no jobs are held", look)
    else:
        yield ok(subject, f"{path} is up to date")


def limits_rows(plugin: Plugin, path: str) -> Iterator[Row]:
    """Judge the file of Slurm's limits, which the watch writes to `path`."""
    subject, expected, look = "file of limits", plugin.of("limits"), LOOK.format("watch")
    if expected != path:
        text = f"the plugin reads {expected or 'no file'}, and the watch writes {path or 'no file'}"
        advice = "set `limits` in ioncast_settings.lua and in watch.toml to the same file"
        yield fail(subject, text, advice)
        return
    text = _beginning(path, LONGEST_BYTES)
    first = _LIMITS.match(text)
    if first is None or f"\nend\t{first[1]}\n" not in text:
        raise InputError("this file of limits is empty or damaged", where=path, remedy=look)
    age_s = abs(time.time() - int(first[1]))
    if first[2] != plugin.licence:
        yield fail(
            subject,
            f"it is about the licence {first[2]}, and the plugin gives {plugin.licence}",
            "set the same name in [licence] of watch.toml and in ioncast_settings.lua",
        )
    elif age_s >= LIMITS_S:
        yield fail(subject, f"it is {in_words(age_s)} old, and the plugin does not use it", look)
    elif age_s > _LATE_S:
        yield warn(subject, f"it is {in_words(age_s)} old", look)
    else:
        yield ok(subject, f"{path} is up to date")


def _beginning(path: str, longest: int) -> str:
    try:
        with Path(path).open("rb") as file:
            return file.read(longest).decode(errors="replace")
    except FileNotFoundError as error:
        raise _missing(path) from error


def _missing(path: str) -> InputError:
    return InputError("this file is missing", where=path)


def darshan_rows(settings: DarshanSettings, today: date) -> Iterator[Row]:
    """Look at Darshan's folders."""
    subject, make = "Darshan's folders", "run darshan-mk-log-dirs.pl, which makes them"
    folder = Path(settings.folder)
    if not folder.exists():
        yield fail(subject, f"{folder} is missing, so the watch does not start", MAKE_FOLDER)
        return
    _look_into(folder)
    day = folder / today.strftime(settings.layout)
    try:
        mode = stat.S_IMODE(day.stat().st_mode)
    except FileNotFoundError:
        yield warn(subject, f"{day} is missing: no job can write a log today", make)
        return
    _look_into(day)
    if not mode & stat.S_IWOTH:
        yield warn(subject, f"users cannot write to {day} (mode {mode:o})", make)
    elif not mode & stat.S_ISVTX:
        text = f"users can delete the logs of others in {day} (mode {mode:o})"
        yield warn(subject, text, f"chmod +t {day}")
    else:
        yield ok(subject, f"{day} has the mode {mode:o}")


def _look_into(folder: Path) -> None:
    with os.scandir(folder) as entries:
        next(entries, None)


def in_words(seconds: float) -> str:
    """A time in minutes, hours or days."""
    if seconds < 3600:
        return f"{max(int(seconds // 60), 0)} min"
    return f"{seconds / 3600:.0f} h" if seconds < 2 * 86_400 else f"{seconds / 86_400:.0f} days"
