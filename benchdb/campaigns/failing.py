"""Errors of failed runs: the line of a log that names the error, and errors that are the same."""

from __future__ import annotations

import re

_ERROR = re.compile(
    r"error|fail|fatal|abort|killed|terminated with|assert|cannot|can't|could ?n[o']t|unable|denied"
    r"|no such|not (found|enough|permitted|allowed|available)|no space|quota|exceed|invalid"
    r"|unrecognized|unknown|refused|timed out|too (long|large|small|many)",
    re.IGNORECASE,
)
_WARNING = re.compile("warning", re.IGNORECASE)


def error_line(log: str) -> str | None:
    r"""Find the line of a log that names the error; it has only visible characters.

    It is the first line with a word for an error that is not a warning, else the last line, because
    launchers print general advice after the error of a program. An empty log has none.

    Examples
    --------
    >>> error_line("ior: cannot open x\nPlease see the FAQ page")
    'ior: cannot open x'
    """
    return named_error(log) or next(iter(_said(log)[-1:]), None)


def named_error(log: str) -> str | None:
    """The first line of a log with a word for an error that is not a warning; None if none has."""
    said = (line for line in _said(log) if _ERROR.search(line) and not _WARNING.search(line))
    return next(said, None)


def _said(log: str) -> list[str]:
    lines = ("".join(c for c in line if c.isprintable()).strip() for line in log.splitlines())
    return [line for line in lines if line]


def comparable(error: str) -> str:
    """An error without what differs between runs that fail for one cause.

    Paths, numbers, sizes and most names of nodes and files have a digit or a slash, so words with
    one of them are left out.

    Examples
    --------
    >>> comparable("node017: open /scratch/f3: Disk quota exceeded (122)")
    'open Disk quota exceeded'
    """
    words = [word for word in error.split() if not re.search(r"[0-9/]", word)]
    return " ".join(words) or error
