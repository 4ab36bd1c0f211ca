"""The service, as the plugin, the watch and the arbiter reach it, and their tokens for it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import version
from typing import Any

from ioncast_base.errors import InputError
from ioncast_base.visible_text import visible
from ioncast_base.wording import counted, in_words
from scheduler_plugin.addresses import Address
from scheduler_plugin.check import asking_sources
from scheduler_plugin.check.asking_sources import Row, can, fail, ok, warn
from scheduler_plugin.check.plugin import Plugin
from scheduler_plugin.check.watch_and_arbiter import in_words as time_in_words
from scheduler_plugin.service_client import Ioncast, ServiceRefusedError
from scheduler_plugin.settings import ServiceSettings
from scheduler_plugin.token_files import read_token

START = "look at `systemctl status ioncast 'ioncast@*'` and at its log"
_REJECTED = (401, 403)
_UNPROCESSABLE = (400, 422)
# Applications that a row names.
_NAMED = 3
# The role that each part needs, and no more.
ROLES: dict[str, str] = {"watch": "scheduler", "arbiter": "reader", "plugin": "scheduler"}
_STRONGER = {"reader": ("scheduler", "admin"), "scheduler": ("admin",)}
_WEEK_S = 7 * 86_400


def token_in(file: str, token: str = "") -> str:
    """The token in a file; `token` without a file, and empty if the file has none."""
    with suppress(InputError, OSError):
        return read_token(file) if file else token
    return ""


def _client(address: str, token: str) -> Ioncast:
    return Ioncast(address, lambda: token, asking_sources.ANSWER_S)


def answer_rows(setting: str, plugin: Plugin, user: str) -> Iterator[Row]:
    """Ask at an address of the plugin as slurmctld's user; a wrong question must be rejected."""
    subject, address = f"plugin: {setting}", plugin.of(setting)
    status = _status(address, token_in(plugin.of("token_file"), plugin.of("token")), user)
    if status in _UNPROCESSABLE:
        yield ok(subject, f"{address} answers")
    elif status in _REJECTED:
        token = "the plugin's token" if plugin.has_token else "questions without a token"
        yield fail(
            subject,
            f"{address} rejects {token} ({status})",
            "set token_file to a token of the role scheduler (`ioncast token add plugin`)",
        )
    else:
        yield fail(subject, f"{address} answers {status}", START)


def _status(address: str, token: str, user: str) -> int:
    url = address if address.startswith("unix:") else f"http://{address}"
    socket = Address.of(url).socket
    if socket is not None and (asker := _shut_out(user, socket)):
        raise InputError(
            f"{asker} cannot use this socket",
            where=socket,
            remedy="check that it exists, and that `decisions_group` in service.toml is a group of"
            " the user",
        )
    try:
        with _client(url, token) as service:
            service.try_question()
    except ServiceRefusedError as error:
        return error.status
    raise InputError("another program answers there", where=url, remedy="correct `address`")


def _shut_out(user: str, socket: str) -> str:
    """The user who may not use a socket: slurmctld's, or else that of this command."""
    if not can(user, "w", socket):
        return f"the user {user}, who runs slurmctld,"
    is_shut = os.access(socket, os.F_OK) and not os.access(socket, os.W_OK)
    return "your user" if is_shut else ""


def service_rows(
    settings: ServiceSettings, systems: Mapping[str, str], private: frozenset[str]
) -> Iterator[Row]:
    """Judge the service; `systems` are the names of the system in all settings, by part."""
    with _client(settings.address, "") as anybody:
        state, release = anybody.readiness(), anybody.release()
        is_open = _is_open(anybody)
    try:
        with _client(settings.address, token_in(settings.token_file)) as ours:
            known = {system["name"]: system for system in ours.systems()}
            slow = {name: ours.slow_io_nodes(name).ratios for name in sorted(set(systems.values()))}
    except ServiceRefusedError as error:
        if error.status not in _REJECTED:
            raise
        found = f"it rejects the token in {settings.token_file}"
        yield fail("service", found, "replace this token (docs/slurm.md, Replacing tokens)")
        return
    keeper, database = str(state.get("keeper")), str(state.get("database"))
    text = f"keeper {keeper}, database {database}"
    if keeper == database == "ok":
        yield ok("service", text)
    else:
        yield warn("service", text, "decisions continue; look at the service's log")
    yield from _system_rows([name for name in known if known[name]["imports"]], systems)
    yield _version_row(release)
    yield _reading_row(private, is_open=is_open)
    for name in sorted(set(systems.values())):
        if known.get(name, {}).get("untried"):
            yield ok("untried", _untried(known[name]))
    for ratios in filter(None, slow.values()):
        said = ", ".join(f"{visible(name)} ({ratio:.1f} times)" for name, ratio in ratios.items())
        advice = (
            "look at its links, its daemon and its load; the overview of the service tells more"
        )
        yield warn("slow I/O nodes", f"jobs are slower on {said}", advice)


def _is_open(anybody: Ioncast) -> bool:
    try:
        anybody.measured_systems()
    except ServiceRefusedError as error:
        if error.status in _REJECTED:
            return False
        raise
    return True


def _system_rows(measured: list[str], systems: Mapping[str, str]) -> Iterator[Row]:
    names = sorted(set(systems.values()))
    absent = [name for name in names if name not in measured]
    if len(names) > 1:
        said = ", ".join(f"{part}: {name}" for part, name in systems.items())
        yield fail("system", f"the settings name different systems ({said})", "use one name")
    elif absent:
        yield fail(
            "system",
            f"the service has no measurements of {absent[0]}; systems with measurements:"
            f" {', '.join(measured) or 'none'}",
            "correct the name, or import measurements (docs/slurm.md, step 2)",
        )
    else:
        yield from (ok("system", f"the service has measurements of {name}") for name in names)


def _version_row(release: str) -> Row:
    installed = version("ioncast")
    if release == installed:
        return ok("versions", f"service and this program are {installed}")
    return warn(
        "versions",
        f"the service is {release}, and this program {installed}",
        "restart the service, or install the same version (docs/service.md, Upgrading)",
    )


def _reading_row(private: frozenset[str], *, is_open: bool) -> Row:
    if not is_open:
        return ok("reading", "the service shows nothing without a token")
    if "jobs" not in private:
        return ok("reading", "open, and Slurm shows jobs to everybody too")
    return fail(
        "reading",
        'everybody can read names of users and jobs in the service (reading = "open"), and'
        " Slurm hides them (PrivateData=jobs)",
        'set reading = "closed" in service.toml',
    )


def _untried(system: Mapping[str, Any]) -> str:
    """Say which applications never ran with a number that may be better."""
    number = system["untried"]
    named = "; ".join(
        f"{one['program']} of {one['user']} with {in_words(one['io_nodes'])} instead of"
        f" {one['chosen']}, {one['loss']:.0%} less expected"
        for one in system["largest_untried"][:_NAMED]
    )
    return (
        f"{counted(number, 'application')} never ran with a number of I/O nodes that may be"
        f" better: {named}{'; ...' if number > _NAMED else ''};"
        " `explore` in service.toml tries such numbers"
    )


def role_rows(part: str, address: str, token_file: str, token: str = "") -> Iterator[Row]:
    """Judge a token of ioncast by the service's answer (`GET /v1/token`), if it has an address."""
    subject, needed = f"{part}: token of ioncast", ROLES[part]
    # A token in the database of the user who runs the command is unknown to the service.
    make = (
        f"make one in the service's database with `ioncast token add NAME --role {needed}`"
        " (docs/slurm.md, Replacing tokens)"
    )
    token = read_token(token_file) if token_file else token
    if not address:
        return
    try:
        with _client(address, token) as service:
            rights = service.token_rights()
    except ServiceRefusedError as error:
        if error.status not in _REJECTED:
            raise
        yield fail(subject, "the service does not know it, or it was revoked or has expired", make)
        return
    role, expires_s = rights.get("role"), rights.get("expires_s")
    left_s = expires_s - time.time() if isinstance(expires_s, int | float) else _WEEK_S
    if role in _STRONGER[needed]:
        yield warn(subject, f"it has the role {role}, and {needed} is enough", make)
    elif role != needed:
        yield fail(subject, f"it has the role {role}, and {needed} is needed", make)
    elif left_s < _WEEK_S:
        yield warn(subject, f"it expires in {time_in_words(left_s)}", make)
    else:
        yield ok(subject, f"role {role}")
