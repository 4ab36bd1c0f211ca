"""`provenance.json`: the system, the programs and the settings behind a data set."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError

from ioncast_base.errors import InputError
from ioncast_base.quantities import Count
from ioncast_base.toml_files import Line, Name, TomlTable, in_plain_words, read_text, refusing

PROVENANCE = "provenance.json"
_ABOUT_KEYS = {"missing": "is missing", "extra_forbidden": "is unknown"}


def _check_date(text: str) -> str:
    try:
        date.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"must be a date such as 2026-11-21, not {text!r}") from error
    return text


class Machine(TomlTable):
    """The machine that the platform ran on.

    Attributes
    ----------
    cores, memory_bytes : int or None
        Number of cores and bytes of memory; None if unknown.
    kernel : str or None
        Release of its Linux kernel; None if unknown.
    """

    cores: Count | None
    memory_bytes: Annotated[int, Field(gt=0)] | None
    kernel: Line | None


class Log(TomlTable):
    """The Darshan log of a run of an application.

    Attributes
    ----------
    file : str
        File name in `logs/`.
    application : str
        Name of the application, as in `applications.csv`.
    io_nodes : int
        Number of I/O nodes of the run.
    source : str
        The program that wrote the log.
    """

    file: Annotated[Name, Field(pattern=r"^[^/]+$")]
    application: Name
    io_nodes: Annotated[int, Field(ge=0)]
    source: Line


class Provenance(TomlTable):
    """The origin of a data set.

    Attributes
    ----------
    study : str
        Subject of the measurements.
    command : str
        The command that measures the same again.
    date : str
        Date of the first run, ISO 8601.
    seeds : tuple of int
        Seeds of the random order of runs.
    scale : float or None
        Share of the full size's bytes; None if the applications have no full size.
    system : str
        Name of the system, for databases.
    tasks, nodes : int
        Number of processes and of compute nodes of a run, unless its row says otherwise.
    engine : str or None
        The program that ran the benchmarks; None without benchmarks.
    platform : mapping
        Description of the system.
    machine : Machine
        The machine that the platform ran on.
    versions : mapping of str to str
        Versions of the programs that took part.
    logs : tuple of Log
        The logs; an application is predicted from its first one. Empty if nothing is predicted.
    notes : tuple of str
        Anything else that a reader has to know.
    """

    study: Name
    command: Line
    date: Annotated[str, AfterValidator(refusing(_check_date))]
    seeds: Annotated[tuple[int, ...], Field(min_length=1)]
    scale: Annotated[float, Field(gt=0)] | None
    system: Name
    tasks: Count
    nodes: Count
    engine: Name | None
    platform: dict[str, Any]
    machine: Machine
    versions: dict[str, str]
    logs: tuple[Log, ...]
    notes: tuple[Line, ...] = ()


def read_provenance(path: Path) -> Provenance:
    """Read a `provenance.json`.

    Raises
    ------
    InputError
        Naming the first key that is missing, unknown or has an unusable value.
    """
    try:
        return Provenance.model_validate_json(read_text(path))
    except ValidationError as error:
        raise InputError(_in_words(error.errors(include_url=False)[0]), where=str(path)) from error


def printable(text: str) -> str:
    r"""Replace the characters that a line of `provenance.json` cannot hold with `?`.

    Examples
    --------
    >>> printable("No space left\x1b[0m\n")
    'No space left?[0m?'
    """
    return "".join(one if one.isprintable() else "?" for one in text).strip()


def _in_words(problem: Any) -> str:
    key = f"key `{'.'.join(map(str, problem['loc']))}`"
    if problem["type"] in _ABOUT_KEYS:
        return f"{key} {_ABOUT_KEYS[problem['type']]}"
    words = in_plain_words(problem)
    return f"{key}: {words}" if problem["loc"] else words
