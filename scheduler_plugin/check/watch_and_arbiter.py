"""The watch and the arbiter: their settings, their tokens, and what slurmrestd answers to them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from ioncast_base.errors import InputError, IoncastError
from scheduler_plugin.check import asking_sources
from scheduler_plugin.check.row_values import MissingSource, Row, fail, ok, unknown, warn
from scheduler_plugin.settings import SiteSettings, read_settings
from scheduler_plugin.slurm import Slurm, SlurmAnswerError
from scheduler_plugin.slurm.jwt_claims import claims_of
from scheduler_plugin.slurm.licence_limits import Limits
from scheduler_plugin.token_files import read_token

Part = Literal["watch", "arbiter"]
# The role that each part needs, and no more.
ROLES: dict[str, str] = {"watch": "scheduler", "arbiter": "reader", "plugin": "scheduler"}
_STRONGER = {"reader": ("scheduler", "admin"), "scheduler": ("admin",)}
# renew-slurm-token runs every hour for a token of two hours.
_SOON_S = 1800
_WEEK_S = 7 * 86_400
_OPERATOR = "Operator"
_VERSION = re.compile(r'^ioncast_\w+_build_info\{version="([^"]*)"\} 1', re.MULTILINE)
_LOOK = "its log says why it writes no metrics"
_RENEW = "run renew-slurm-token, and look why cron and the unit did not (docs/slurm.md)"


@dataclass(frozen=True)
class SlurmToken:
    """A JWT of Slurm: its user, and its end in Unix time."""

    user: str
    expires_s: float


@dataclass(frozen=True)
class Rest:
    """Answers of slurmrestd: its version of the interface, and Slurm's limits on the licence.

    `limits` is None without slurmdbd.
    """

    version: str
    limits: Limits | MissingSource | None


def gather_settings(path: str, part: Part) -> SiteSettings:
    """Read the settings of a part."""
    settings = read_settings(path)
    if part == "watch" and settings.darshan is None:
        raise InputError("key `darshan` is missing", where=path)
    return settings


def gather_slurm_token(settings: SiteSettings) -> SlurmToken:
    """Read the token of Slurm, without its signature."""
    path = settings.slurmrestd.token_file
    claims = claims_of(read_token(path))
    if not claims.user:
        raise InputError("this is not a token of Slurm", where=path, remedy=_RENEW)
    return SlurmToken(claims.user, claims.ends_s)


def gather_rest(settings: SiteSettings, *, has_slurmdbd: bool) -> Rest:
    """Ask slurmrestd for its version and for Slurm's limits."""
    rest = settings.slurmrestd
    timeout_s = min(rest.timeout_s, asking_sources.ANSWER_S)
    with Slurm(
        rest.address,
        rest.user,
        lambda: read_token(rest.token_file),
        timeout_s,
        cluster=rest.cluster,
    ) as slurm:
        slurm.ping()
        total = slurm.licence_total(settings.licence.name)
        return Rest(slurm.version, _limits(slurm, settings, total) if has_slurmdbd else None)


def _limits(slurm: Slurm, settings: SiteSettings, total: int) -> Limits | MissingSource:
    try:
        return slurm.limits(settings.licence.name, total)
    except SlurmAnswerError as error:
        return MissingSource(error.what)
    except IoncastError as error:
        return MissingSource(error.what, str(error.remedy or ""))


def gather_running_version(path: Path) -> str:
    """The version in the metrics of a running part; empty if they do not tell it."""
    match = _VERSION.search(path.read_text(encoding="utf-8", errors="replace"))
    return match[1] if match else ""


def version_row(part: Part, running: str | MissingSource, installed: str) -> Row:
    """Judge the version of a running part by its metrics."""
    subject = f"{part}: version"
    restart = f"systemctl restart ioncast-{part}"
    if isinstance(running, MissingSource):
        return unknown(subject, replace(running, remedy=f"{restart}; {_LOOK}"))
    if running != installed:
        return warn(
            subject, f"{running or 'an unknown one'} runs, {installed} is this one", restart
        )
    return ok(subject, f"{running} runs")


def slurm_token_row(
    part: Part, user: str, found: SlurmToken | MissingSource, slurm_user: str, now_s: float
) -> Row:
    """Judge a token of Slurm: its owner and its end."""
    subject = f"{part}: token of Slurm"
    if isinstance(found, MissingSource):
        return unknown(subject, found)
    fine = ok(subject, f"of {found.user}, for {in_words(found.expires_s - now_s)}")
    return next(_token_problems(subject, user, found, slurm_user, now_s), fine)


def _token_problems(
    subject: str, user: str, found: SlurmToken, slurm_user: str, now_s: float
) -> Iterator[Row]:
    left_s = found.expires_s - now_s
    if found.user in {"root", slurm_user}:
        yield fail(
            subject,
            f"it is a token of {found.user}: its bearer could submit jobs as root",
            "make one of another user with renew-slurm-token (docs/slurm.md, Who may do what)",
        )
    if found.user != user:
        yield fail(
            subject,
            f"it is of {found.user!r}, and slurmrestd.user is {user!r}",
            "make a token of this user with renew-slurm-token",
        )
    if left_s <= 0:
        yield fail(subject, f"it expired {in_words(-left_s)} ago", _RENEW)
    if left_s < _SOON_S:
        yield warn(subject, f"it expires in {in_words(left_s)}", _RENEW)


def rights_row(
    part: Part, user: str, level: str | MissingSource | None, private: frozenset[str]
) -> Row:
    """Judge the rights of a part in Slurm; None without slurmdbd, which knows operators."""
    subject = f"{part}: rights in Slurm"
    if isinstance(level, MissingSource):
        return unknown(subject, level)
    fine = ok(subject, f"{user} is an operator" if level == _OPERATOR else f"{user} can see jobs")
    return next(_rights_problems(part, subject, user, level, private), fine)


def _rights_problems(
    part: Part, subject: str, user: str, level: str | None, private: frozenset[str]
) -> Iterator[Row]:
    make = f"sacctmgr add user {user} account=root adminlevel={_OPERATOR}"
    hiding = sorted(private & {"accounts", "usage", "users"})
    if level == _OPERATOR:
        return
    if level == "Administrator":
        yield warn(subject, f"{user} is an administrator", f"an operator is enough: {make}")
    elif part == "arbiter" and level is None:
        yield fail(subject, "Slurm has no operators without slurmdbd", "do not use the arbiter")
    elif part == "arbiter":
        yield fail(subject, f"{user} is not an operator and cannot change jobs", make)
    elif "jobs" in private:
        yield fail(subject, f"PrivateData=jobs hides the jobs of others from {user}", make)
    elif hiding and level is not None:
        names = ",".join(hiding)
        yield warn(subject, f"PrivateData={names} hides the limits of accounts from {user}", make)


def rest_rows(part: Part, found: Rest | MissingSource) -> list[Row]:
    """Judge slurmrestd and its plugin for slurmdbd."""
    subject, dbd = f"{part}: slurmrestd", f"{part}: slurmdbd over slurmrestd"
    if isinstance(found, MissingSource):
        return [unknown(subject, found)]
    rows = [ok(subject, f"version {found.version} of the interface")]
    if isinstance(found.limits, MissingSource):
        advice = f"let slurmrestd load openapi/dbv{found.version} (its option -s), and slurmdbd run"
        return [*rows, fail(dbd, found.limits.reason, found.limits.remedy or advice)]
    if found.limits is not None:
        rows.append(ok(dbd, "limits can be read"))
    return rows


def role_row(part: str, rights: Mapping[str, Any] | MissingSource, now_s: float) -> Row:
    """Judge a token of ioncast by what the service says about it (`GET /v1/token`)."""
    subject, needed = f"{part}: token of ioncast", ROLES[part]
    make = f"make one with `ioncast token add NAME --role {needed}`"
    if isinstance(rights, MissingSource):
        return unknown(subject, rights)
    role, expires_s = rights.get("role"), rights.get("expires_s")
    if role in _STRONGER[needed]:
        return warn(subject, f"it has the role {role}, and {needed} is enough", make)
    if role != needed:
        return fail(subject, f"it has the role {role}, and {needed} is needed", make)
    if isinstance(expires_s, int | float) and expires_s - now_s < _WEEK_S:
        return warn(subject, f"it expires in {in_words(expires_s - now_s)}", make)
    return ok(subject, f"role {role}")


def in_words(seconds: float) -> str:
    """A time in minutes, hours or days."""
    if seconds < 3600:
        return f"{max(int(seconds // 60), 0)} min"
    return f"{seconds / 3600:.0f} h" if seconds < 2 * 86_400 else f"{seconds / 86_400:.0f} days"
