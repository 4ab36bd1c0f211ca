"""The one tree of errors that ioncast raises on purpose.

Every error renders itself as the one line a user sees on the command line and
carries the status an HTTP problem document needs, so no caller has to translate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def as_option(name: str) -> str:
    """Spell the name of a parameter as the command line does, such as ``--io-nodes``."""
    return f"--{name.replace('_', '-')}"


def as_field(name: str) -> str:
    """Spell the name of a parameter as a request does, such as ``io_nodes``."""
    return name


@dataclass(frozen=True)
class Remedy:
    """What to do about an error, where that is to give or to change parameters.

    A parameter is an option on the command line and a field in a request, so the words are
    made where the error is shown.

    Attributes
    ----------
    template : str
        The sentence, with ``{}`` in the place of each name.
    parameters : tuple of str
        The names, spelled as fields.

    Examples
    --------
    >>> str(Remedy("give {}", ("io_nodes",)))
    'give --io-nodes'
    """

    template: str
    parameters: tuple[str, ...]

    def in_words(self, spelled: Callable[[str], str]) -> str:
        """Make the sentence; `spelled` spells the name of a parameter."""
        return self.template.format(*map(spelled, self.parameters))

    def __str__(self) -> str:
        return self.in_words(as_option)


class IoncastError(Exception):
    """Something a user can act on.

    `kind` is for programs: it is in the type of an HTTP problem document and never changes.
    `title` is the same for people.

    Parameters
    ----------
    what : str
        The problem, as a clause without a final full stop.
    where : str, optional
        The file, option or record concerned; printed before `what`.
    line : int, optional
        The line of that file; the first is 1.
    remedy : str or Remedy, optional
        What to do about it; printed after `what`.
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
        """Make one line of the error; `spelled` spells the name of a parameter."""
        remedy = self.remedy.in_words(spelled) if isinstance(self.remedy, Remedy) else self.remedy
        sentence = f"{self.what}; {remedy}" if remedy else self.what
        if self.where:
            place = self.where if self.line is None else f"{self.where}:{self.line}"
            sentence = f"{place}: {sentence}"
        return " ".join(sentence.split())


class InputError(IoncastError):
    """A file, option or value that cannot be used as it is."""

    http_status = 422
    kind = "unusable-input"
    title = "Unusable input"


class DamagedLogError(InputError):
    """A Darshan log whose content contradicts its header."""

    kind = "damaged-darshan-log"
    title = "Damaged Darshan log"


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


class BusyError(IoncastError):
    """Work that cannot be done now; the same request may succeed later."""

    http_status = 503
    kind = "busy"
    title = "Busy"
