"""The service, as the plugin, the watch and the arbiter reach it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ioncast_base.errors import InputError
from ioncast_base.wording import counted, in_words
from scheduler_plugin.addresses import Address
from scheduler_plugin.check import asking_sources
from scheduler_plugin.check.asking_sources import can
from scheduler_plugin.check.row_values import MissingSource, Row, fail, ok, unknown, warn
from scheduler_plugin.service_client import Ioncast, ServiceRefusedError

_UNAUTHORISED, _FORBIDDEN, _NOT_FOUND = 401, 403, 404
_UNPROCESSABLE = (400, 422)
# Applications that a row names.
_NAMED = 3
_START = "look at `systemctl status ioncast` and at its log"


@dataclass(frozen=True)
class CheckedService:
    """The service at the address of the watch or the arbiter.

    Attributes
    ----------
    is_open : bool
        Whether reading needs no token.
    untried : mapping of str to mapping
        By system: `untried` and `largest_untried` as the service tells them, if there are any.
    """

    version: str
    keeper: str
    database: str
    systems: tuple[str, ...]
    is_open: bool
    untried: Mapping[str, Mapping[str, Any]]


def gather_service(address: str, token: str) -> CheckedService:
    """Ask the service for its state."""
    with _client(address, "") as anybody:
        state, version = anybody.readiness(), anybody.release()
        is_open = _is_open(anybody)
    with _client(address, token) as ours:
        systems = ours.systems()
    return CheckedService(
        version,
        str(state.get("keeper")),
        str(state.get("database")),
        tuple(system["name"] for system in systems if system["imports"]),
        is_open,
        {system["name"]: system for system in systems if system["untried"]},
    )


def _is_open(anybody: Ioncast) -> bool:
    try:
        anybody.measured_systems()
    except ServiceRefusedError as error:
        if error.status in {_UNAUTHORISED, _FORBIDDEN}:
            return False
        raise
    return True


def gather_rights(address: str, token: str) -> dict[str, Any]:
    """Ask the service about a token."""
    with _client(address, token) as service:
        return service.token_rights()


def gather_answer(address: str, token: str, user: str) -> int:
    """Ask at the plugin's address; return the status with which a wrong question is rejected."""
    url = address if address.startswith("unix:") else f"http://{address}"
    socket = Address.of(url).socket
    if socket is not None and not can(user, "w", socket):
        raise InputError(
            f"the user {user}, who runs slurmctld, cannot use this socket",
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


def _client(address: str, token: str) -> Ioncast:
    return Ioncast(address, lambda: token, asking_sources.ANSWER_S)


def answer_row(setting: str, address: str, status: int | MissingSource, *, has_token: bool) -> Row:
    """Judge the answer at an address of the plugin; `setting` is the address's name."""
    subject = f"plugin: {setting}"
    if isinstance(status, MissingSource):
        return fail(subject, status.reason, status.remedy or _START)
    if status in _UNPROCESSABLE:
        return ok(subject, f"{address} answers")
    if status in {_UNAUTHORISED, _FORBIDDEN}:
        token = "the plugin's token" if has_token else "questions without a token"
        return fail(
            subject,
            f"{address} rejects {token} ({status})",
            "set token_file to a token of the role scheduler (`ioncast token add plugin`)",
        )
    return fail(subject, f"{address} answers {status}", _START)


def service_rows(
    found: CheckedService | MissingSource,
    systems: Mapping[str, str],
    version: str,
    private: frozenset[str],
) -> list[Row]:
    """Judge the service."""
    if isinstance(found, MissingSource):
        return [unknown("service", found, _START)]
    return [
        _state_row(found),
        *_system_rows(found, systems),
        _version_row(found, version),
        _reading_row(found, private),
        *_untried_rows(found, systems),
    ]


def _state_row(found: CheckedService) -> Row:
    state = f"keeper {found.keeper}, database {found.database}"
    if found.keeper == "ok" and found.database == "ok":
        return ok("service", state)
    return warn("service", state, "decisions continue; look at the service's log")


def _system_rows(found: CheckedService, systems: Mapping[str, str]) -> list[Row]:
    names = sorted(set(systems.values()))
    if len(names) > 1:
        said = ", ".join(f"{part}: {name}" for part, name in systems.items())
        return [fail("system", f"the settings name different systems ({said})", "use one name")]
    absent = [name for name in names if name not in found.systems]
    if absent:
        known = ", ".join(found.systems) or "none"
        return [
            fail(
                "system",
                f"the service has no measurements of {absent[0]}, but of these: {known}",
                "correct the name, or import measurements (`ioncast bench import`)",
            )
        ]
    return [ok("system", f"the service has measurements of {name}") for name in names]


def _untried_rows(found: CheckedService, systems: Mapping[str, str]) -> list[Row]:
    return [
        ok("untried", _untried(found.untried[name]))
        for name in sorted(set(systems.values()))
        if name in found.untried
    ]


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


def _version_row(found: CheckedService, version: str) -> Row:
    if found.version == version:
        return ok("versions", f"service and this program are {version}")
    return warn(
        "versions",
        f"the service is {found.version}, and this program {version}",
        "restart the service, or install the same version (docs/service.md, Upgrading)",
    )


def _reading_row(found: CheckedService, private: frozenset[str]) -> Row:
    if not found.is_open:
        return ok("reading", "the service shows nothing without a token")
    if "jobs" in private:
        return fail(
            "reading",
            'everybody can read names of users and jobs in the service (reading = "open"), and'
            " Slurm hides them (PrivateData=jobs)",
            'set reading = "closed" in service.toml',
        )
    return ok("reading", "open, and Slurm shows jobs to everybody too")
