"""All errors that ioncast raises on purpose, as one tree of classes.

Every error makes the line that a user sees, and has the status code of an HTTP problem document.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from ioncast_base.visible_text import visible


def as_option(name: str) -> str:
    """Spell the name of a parameter as the command line does, such as ``--io-nodes``."""
    return f"--{name.replace('_', '-')}"


def as_field(name: str) -> str:
    """Spell the name of a parameter as a request does, such as ``io_nodes``."""
    return name


@dataclass(frozen=True)
class Remedy:
    """Advice to give or to change parameters, with ``{}`` in `template` in the place of each name.

    A parameter is an option on the command line and a field in a request, so its name is
    spelled where the error is shown.

    Examples
    --------
    >>> str(Remedy("give {}", ("io_nodes",)))
    'give --io-nodes'
    """

    template: str
    parameters: tuple[str, ...]

    def in_words(self, spelled: Callable[[str], str]) -> str:
        """Write the advice; `spelled` spells the name of a parameter."""
        return self.template.format(*map(spelled, self.parameters))

    def __str__(self) -> str:
        return self.in_words(as_option)


class IoncastError(Exception):
    """A problem that a user can act on.

    `kind` is for programs: it is part of the type in an HTTP problem document and never changes.
    `title` names the same kind for people.

    Parameters
    ----------
    what : str
        The problem, as a clause without a final full stop.
    where, line : str and int, optional
        The file, option or record that has the problem, and a line of the file, from 1.
    remedy : str or Remedy, optional
        How to solve the problem; printed after `what`.
    """

    exit_code = 2
    http_status = 400
    kind = "bad-request"
    title = "Bad request"

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        line: int | None = None,
        remedy: str | Remedy | None = None,
    ) -> None:
        self.what = what
        self.where = where
        self.line = line
        self.remedy = remedy
        super().__init__(what)

    def __str__(self) -> str:
        return self.in_words(as_option)

    def in_words(self, spelled: Callable[[str], str]) -> str:
        """Write the error on one line; `spelled` spells the name of a parameter."""
        remedy = self.remedy.in_words(spelled) if isinstance(self.remedy, Remedy) else self.remedy
        sentence = " ".join((f"{self.what}; {remedy}" if remedy else self.what).split())
        if not self.where:
            return sentence
        place = visible(self.where)
        return f"{place if self.line is None else f'{place}:{self.line}'}: {sentence}"


class InputError(IoncastError):
    """A file, option or value that cannot be used; `items` has (place, problem) in a given list."""

    items: tuple[tuple[int, str], ...] = ()

    http_status = 422
    kind = "unusable-input"
    title = "Unusable input"


class DamagedLogError(InputError):
    """A Darshan log whose content contradicts its header."""

    kind = "damaged-darshan-log"
    title = "Damaged Darshan log"


class NotOneRunError(InputError):
    """Darshan logs of several runs; `runs` has the places of each run's logs in the list."""

    kind = "not-one-run"
    title = "Logs of different runs"
    runs: tuple[tuple[int, ...], ...] = ()


class ConflictError(InputError):
    """A value that contradicts a stored one."""

    http_status = 409
    kind = "conflict"
    title = "Conflict"


class UnknownNameError(IoncastError):
    """The name of a system, configuration or application that is not stored."""

    http_status = 404
    kind = "not-found"
    title = "Not found"


class DatabaseError(IoncastError):
    """A database that cannot be opened, read or upgraded."""

    http_status = 503
    kind = "database-unavailable"
    title = "Database unavailable"


class NewerDatabaseError(DatabaseError):
    """A database that a newer ioncast upgraded; this one could damage it."""


class BusyError(IoncastError):
    """Work that cannot be done now; the same request may succeed later."""

    http_status = 503
    kind = "busy"
    title = "Busy"


# The extra of ioncast that installs a package, by the name that Python imports.
EXTRAS = {
    "darshan": "darshan",
    "duckdb": "warehouse",
    "flask": "service",
    "gunicorn": "service",
    "h5py": "servers",
    "iops": "campaigns",
    "itsdangerous": "service",
    "limits": "service",
    "pandas": "pandas",
    "prometheus_client": "slurm",
    "psycopg": "postgresql",
    "pyarrow": "parquet",
    "werkzeug": "service",
}


class MissingPackageError(InputError):
    """A package of an extra is not installed."""

    def __init__(self, package: str, where: str | None = None) -> None:
        super().__init__(
            f"this needs {package}, which is not installed",
            where=where,
            remedy=f"`pip install '.[{EXTRAS[package]}]'` in ioncast's source folder installs it",
        )


def missing_package(error: ImportError, where: str | None = None) -> InputError | None:
    """Explain why an import failed; None if the package belongs to no extra."""
    package = (error.name or "").partition(".")[0]
    if package == "experiments":
        return InputError(
            "this exists only in ioncast's source folder",
            where=where,
            remedy="`pip install --editable '.[all]'` there installs it",
        )
    return MissingPackageError(package, where) if package in EXTRAS else None


def require_package(package: str, where: str) -> None:
    """Raise a `MissingPackageError` unless a package of an extra is installed."""
    if find_spec(package) is None:
        raise MissingPackageError(package, where)
