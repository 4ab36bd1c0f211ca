"""What a site sets of the service: from a TOML file, the environment and flags, in this order."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_origin

from pydantic import AfterValidator, Field, Strict, TypeAdapter, ValidationError

from ioncast_base.errors import InputError
from ioncast_base.quantities import Count, PredictedIoNodes
from ioncast_base.toml_files import (
    Line,
    Name,
    Table,
    distinct,
    in_plain_words,
    parse_toml,
    read_toml,
    refusing,
)
from predictor.composition.decision import TOLERANCE


def _bind(text: str) -> str:
    host, _, port = text.rpartition(":")
    is_socket = text.startswith("unix:/")
    if not is_socket and not (host and port.isascii() and port.isdecimal() and int(port) < 2**16):
        raise InputError("is no place to listen", remedy="give HOST:PORT or unix:/PATH")
    return text


Bind = Annotated[Line, AfterValidator(refusing(_bind))]
Share = Annotated[float, Field(ge=0, lt=1)]

_PREFIX = "IONCAST_"
# As of all other commands.
_VARIABLES = {"database": "IONCAST_DB"}


def default_state() -> str:
    """The folder of a user who names none."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return str(Path(home) / "ioncast")


class SystemSettings(Table):
    """What differs on one system."""

    tolerance: Share | None = None
    default_io_nodes: PredictedIoNodes | None = None


class Settings(Table):
    """All that can be set; what is not set has a value that works.

    Sizes are in MiB and times in seconds, as the names say.
    """

    database: Line | None = Field(
        None, description="An SQLite file or a SQLAlchemy URL, as --db of all commands."
    )
    state: Line = Field(
        default_factory=default_state,
        description="The folder of prepared answers and of decisions not yet in the database;"
        " on a local disk, of one service only.",
    )
    bind: Annotated[tuple[Bind, ...], Strict(False), AfterValidator(refusing(distinct))] = Field(
        ("127.0.0.1:8420",), min_length=1, description="HOST:PORT or unix:/PATH, one or several."
    )
    workers: Annotated[Count, Field(le=256)] = Field(
        2, description="Processes that answer requests."
    )
    threads: Annotated[Count, Field(le=256)] = Field(8, description="Requests at once in each.")
    reading: Literal["open", "closed"] = Field(
        "open", description="Whether reading needs a token; writing always does."
    )
    tolerance: Share = Field(
        TOLERANCE,
        description="Share of the best bandwidth that may be given up for fewer I/O nodes.",
    )
    default_io_nodes: PredictedIoNodes | None = Field(
        None, description="What a job gets of which nothing is known; unset for no answer."
    )
    systems: dict[Name, SystemSettings] = Field(
        default_factory=dict, description="Tolerance and default of single systems."
    )
    patience_s: Annotated[float, Field(gt=0, le=60)] = Field(
        5.0, description="How long a request waits for a database that is locked or away."
    )
    max_upload_mib: Annotated[Count, Field(le=65_536)] = Field(
        256, description="The largest request."
    )
    upload_s: Annotated[Count, Field(le=3600)] = Field(
        60, description="The longest that reading an upload or predicting from it may take."
    )
    upload_memory_mib: Annotated[int, Field(ge=512, le=1_048_576)] = Field(
        2048, description="What that may take of memory."
    )
    uploads_at_once: Annotated[Count, Field(le=256)] = Field(
        2, description="How many of these each worker does at the same time."
    )
    requests_per_minute: Count = Field(
        600,
        description="What a client may send to each worker besides questions for decisions;"
        " a tenth of it with tokens that are none.",
    )
    proxies: Annotated[int, Field(ge=0, le=10)] = Field(
        0, description="How many proxies stand in front, whose X-Forwarded headers are true."
    )

    def tolerance_of(self, system: str) -> float:
        """The share of the best bandwidth that a decision on a system may give up."""
        own = self.systems.get(system)
        return self.tolerance if own is None or own.tolerance is None else own.tolerance

    def default_of(self, system: str) -> int | None:
        """The I/O nodes of a job on a system of which nothing is known."""
        own = self.systems.get(system)
        if own is None or own.default_io_nodes is None:
            return self.default_io_nodes
        return own.default_io_nodes


def read_settings(
    path: str | Path | None = None,
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Put the settings together; flags win over the environment, that over the file.

    Parameters
    ----------
    path : str or Path, optional
        A TOML file with the fields of `Settings`.
    flags : mapping of str to value, optional
        Fields by name; None is not given.
    environment : mapping of str to str, optional
        `os.environ` by default: fields as ``IONCAST_WORKERS``, those of several values with
        commas; the database is ``IONCAST_DB``.

    Raises
    ------
    InputError
        Naming the line, the variable or the flag that cannot be used.
    """
    settings = read_toml(Path(path), Settings) if path else parse_toml("", Settings, where="")
    values: dict[str, Any] = {}
    for name, text in _texts(os.environ if environment is None else environment).items():
        values[name] = _parsed(name, text, _variable(name))
    for name, value in (flags or {}).items():
        if value is not None:
            values[name] = _parsed(name, value, f"--{name.replace('_', '-')}")
    return settings.model_copy(update=values)


def _variable(name: str) -> str:
    return _VARIABLES.get(name, _PREFIX + name.upper())


def _texts(environment: Mapping[str, str]) -> dict[str, str]:
    """What the environment says, by field; empty is not set."""
    names = [name for name in Settings.model_fields if name != "systems"]
    return {name: text for name in names if (text := environment.get(_variable(name)))}


def _parsed(name: str, value: Any, where: str) -> Any:
    field = Settings.model_fields[name]
    checked: Any = Annotated[field.annotation, field]
    adapter: TypeAdapter[Any] = TypeAdapter(checked)
    several = get_origin(field.annotation) is tuple
    if several and isinstance(value, str):
        value = tuple(filter(None, (part.strip() for part in value.split(","))))
    try:
        if several:
            return adapter.validate_python(tuple(value))
        return adapter.validate_strings(str(value))
    except ValidationError as error:
        what = in_plain_words(error.errors(include_url=False)[0])
        shown = value if isinstance(value, str) else ", ".join(map(str, value))
        raise InputError(f"{shown!r}: {what}", where=where) from error
