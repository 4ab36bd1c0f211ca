"""The one tree of errors that ioncast raises on purpose.

Every error renders itself as the one line a user sees on the command line and
carries the status an HTTP problem document needs, so no caller has to translate.
"""

from __future__ import annotations


class IoncastError(Exception):
    """Something a user can act on.

    Parameters
    ----------
    what : str
        What is wrong, as a clause without a final full stop.
    where : str, optional
        The file, option or record concerned; printed before `what`.
    remedy : str, optional
        What to do about it; printed after `what`.
    """

    exit_code = 2
    http_status = 400
    title = "Bad request"

    def __init__(self, what: str, *, where: str | None = None, remedy: str | None = None) -> None:
        self.what = what
        self.where = where
        self.remedy = remedy
        super().__init__(what)

    def __str__(self) -> str:
        line = f"{self.where}: {self.what}" if self.where else self.what
        if self.remedy:
            line = f"{line}; {self.remedy}"
        return " ".join(line.split())


class InputError(IoncastError):
    """A file, option or value that cannot be used as it is."""

    http_status = 422
    title = "Unusable input"


class DamagedLogError(InputError):
    """A Darshan log that does not hold what its header promises."""

    title = "Damaged Darshan log"


class ConflictError(InputError):
    """What contradicts something that is stored."""

    http_status = 409
    title = "Conflict"


class UnknownNameError(IoncastError):
    """A system, configuration or application that nothing is stored under."""

    http_status = 404
    title = "Not found"


class DatabaseError(IoncastError):
    """A database that cannot be opened, read or brought up to date."""

    http_status = 503
    title = "Database unavailable"


class BusyError(IoncastError):
    """Work that would not wait: it has to be asked for again."""

    http_status = 503
    title = "Busy"
