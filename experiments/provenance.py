"""`provenance.json`: who measured a data set where, how and when."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError

from ioncast_base.errors import InputError
from ioncast_base.quantities import Count
from ioncast_base.toml_files import Line, Name, Table, in_plain_words, read_text, refusing

PROVENANCE = "provenance.json"
_ABOUT_KEYS = {"missing": "is missing", "extra_forbidden": "is unknown"}


def _check_date(text: str) -> str:
    try:
        date.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"must be a day such as 2026-11-21, not {text!r}") from error
    return text


class Machine(Table):
    """What the platform ran on.

    Attributes
    ----------
    cores, memory_bytes : int or None
        What it has; None where that was not written down.
    kernel : str or None
        The release of its Linux.
    """

    cores: Count | None
    memory_bytes: Annotated[int, Field(gt=0)] | None
    kernel: Line | None


class Log(Table):
    """The Darshan log of a run of an application.

    Attributes
    ----------
    file : str
        Its name in `logs/`.
    application : str
        As in `applications.csv`.
    io_nodes : int
        With how many the run was.
    source : str
        What wrote it.
    """

    file: Annotated[Name, Field(pattern=r"^[^/]+$")]
    application: Name
    io_nodes: Annotated[int, Field(ge=0)]
    source: Line


class Provenance(Table):
    """Where a data set is from.

    Attributes
    ----------
    study : str
        What was studied.
    command : str
        What measures the same again.
    date : str
        The day of the first run, ISO 8601.
    seeds : tuple of int
        Of the random order of runs.
    scale : float or None
        The share of an experiment's bytes that was moved; None where it is no such experiment.
    system : str
        The name of the system in databases.
    tasks, nodes : int
        Processes and compute nodes of a run, unless its row says otherwise.
    engine : str
        The program that ran the benchmarks.
    platform : mapping
        The description of the system.
    machine : Machine
        What it ran on.
    versions : mapping of str to str
        Of the programs that took part.
    logs : tuple of Log
        The first of an application is what its prediction rests on.
    notes : tuple of str
        What else is to be known.
    """

    study: Name
    command: Line
    date: Annotated[str, AfterValidator(refusing(_check_date))]
    seeds: Annotated[tuple[int, ...], Field(min_length=1)]
    scale: Annotated[float, Field(gt=0)] | None
    system: Name
    tasks: Count
    nodes: Count
    engine: Name
    platform: dict[str, Any]
    machine: Machine
    versions: dict[str, str]
    logs: Annotated[tuple[Log, ...], Field(min_length=1)]
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
    r"""What a line of `provenance.json` can hold of a text; for anything else stands a `?`.

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
