"""The service's settings: from a TOML file, then the environment, then flags."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_origin

from pydantic import AfterValidator, Field, Strict, TypeAdapter, ValidationError

from ioncast.warehouse.queries import Query, queries
from ioncast_base.errors import InputError, require_package
from ioncast_base.quantities import Count, PredictedIoNodes
from ioncast_base.toml_files import (
    Line,
    Name,
    TomlTable,
    distinct,
    in_plain_words,
    parse_toml,
    read_toml,
    refusing,
)
from predictor.curve.decision import MIN_CONFIDENCE, TOLERANCE

if TYPE_CHECKING:
    from ioncast.insights.checks.values import Thresholds
    from predictor.curve.prediction import DecisionRules


def _bind(text: str) -> str:
    host, _, port = text.rpartition(":")
    is_socket = text.startswith("unix:/")
    if not is_socket and not (host and port.isascii() and port.isdecimal() and int(port) < 2**16):
        raise InputError("must be HOST:PORT or unix:/PATH")
    return text


def _kept_days(days: int) -> int:
    if days < 1:
        raise InputError('must be at least 1; with keeping = "off" nobody can keep a result')
    return days


Bind = Annotated[Line, AfterValidator(refusing(_bind))]
Share = Annotated[float, Field(ge=0, lt=1)]
# The first year that a time can be in is 1.
Days = Annotated[int, Field(ge=0, le=100_000)]

_PREFIX = "IONCAST_"
# The database has the same variable in all commands.
_VARIABLES = {"database": "IONCAST_DB"}


def default_state() -> str:
    """Return the state folder of a user who sets none."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return str(Path(home) / "ioncast")


class SystemSettings(TomlTable):
    """Settings of one system, instead of those for all systems."""

    tolerance: Share | None = None
    min_confidence: Share | None = None
    default_io_nodes: PredictedIoNodes | None = None
    explore: Share | None = None


class Settings(TomlTable):
    """All settings of the service; each has a default that works.

    The names tell the units: MiB, seconds.
    """

    database: Line | None = Field(
        None, description="SQLite file or SQLAlchemy URL, like --db of all commands."
    )
    state: Line = Field(
        default_factory=default_state,
        description="State folder: prepared answers, and decisions not yet in the database;"
        " on a local disk, for one service only.",
    )
    bind: Annotated[tuple[Bind, ...], Strict(False), AfterValidator(refusing(distinct))] = Field(
        ("127.0.0.1:8420",),
        min_length=1,
        description="Addresses to listen at: HOST:PORT or unix:/PATH, one or several.",
    )
    decisions_bind: Annotated[
        tuple[Bind, ...], Strict(False), AfterValidator(refusing(distinct))
    ] = Field(
        (),
        description="Addresses for decisions only, answered by processes of their own. Without this"
        " setting the socket decisions.sock in systemd's runtime folder, else in the state folder.",
    )
    decisions_group: Line = Field(
        "slurm",
        description="Group whose members may use the sockets of decisions_bind. If there is no such"
        " group, or the service's user is not a member, all local users may.",
    )
    workers: Annotated[Count, Field(le=16)] = Field(
        2,
        description="Number of processes for decisions; each holds all prepared answers in memory.",
    )
    threads: Annotated[Count, Field(le=256)] = Field(
        8,
        description="Number of requests that the web process, and each process for decisions,"
        " answers at the same time.",
    )
    reading: Literal["open", "closed"] = Field(
        "open", description="Whether reading needs a token; writing always needs one."
    )
    tolerance: Share = Field(
        TOLERANCE,
        description="Share of the best bandwidth that may be given up for fewer I/O nodes.",
    )
    min_confidence: Share = Field(
        MIN_CONFIDENCE,
        description="Least probability that a decision reaches 90 % of the best bandwidth, or is"
        " better than the default; else the default is the answer.",
    )
    default_io_nodes: PredictedIoNodes | None = Field(
        None,
        description="Number of I/O nodes for jobs of which nothing, or too little, is known; unset"
        " for no answer.",
    )
    explore: Share = Field(
        0.0,
        description="Mean share of the bandwidth that trying other numbers of I/O nodes may cost;"
        " 0 for no trials.",
    )
    systems: dict[Name, SystemSettings] = Field(
        default_factory=dict, description="The same four settings for single systems."
    )
    checks: Line | None = Field(
        None, description="TOML file with other thresholds of the checks, as for `ioncast check`."
    )
    store: Line | None = Field(
        None, description="Folder of a store of `ioncast ingest`, for its survey and queries."
    )
    queries: Line | None = Field(
        None, description="Folder of named queries of the site, as `ioncast sql --queries`."
    )
    patience_s: Annotated[float, Field(gt=0, le=60)] = Field(
        5.0, description="Seconds that a request waits for a locked or missing database."
    )
    max_upload_mib: Annotated[Count, Field(le=65_536)] = Field(
        256, description="Size of the largest request, in MiB."
    )
    upload_s: Annotated[Count, Field(le=3600)] = Field(
        60,
        description="Seconds that reading an upload, or predicting from it, may take; findings may"
        " take a third of it, but at least 20 s, and advice on a page a sixth, but at least 10 s.",
    )
    upload_memory_mib: Annotated[int, Field(ge=512, le=1_048_576)] = Field(
        2048, description="MiB of memory that reading an upload, or predicting from it, may take."
    )
    uploads_at_once: Annotated[Count, Field(le=256)] = Field(
        2, description="Number of uploads that are read at the same time."
    )
    keeping: Literal["on", "off"] = Field(
        "on", description="Whether users can keep results of uploads."
    )
    kept_days: Annotated[int, Field(le=3650), AfterValidator(refusing(_kept_days))] = Field(
        30, description="Days that a kept result is stored."
    )
    kept_mib: Annotated[Count, Field(le=65_536)] = Field(
        256, description="MiB of the database for all kept results together."
    )
    requests_per_minute: Count = Field(
        600,
        description="Number of requests that a client may send in a minute, without"
        " questions for decisions; a tenth of it with wrong tokens.",
    )
    keep_decisions_days: Days = Field(
        400,
        description="Days that decisions and reports of the queue stay in the database; 0 for"
        " ever.",
    )
    keep_runs_days: Days = Field(
        1095, description="Days that runs stay in the history after they were stored; 0 for ever."
    )
    keep_outcomes_days: Days = Field(
        1095, description="Days that outcomes stay after they were reported; 0 for ever."
    )
    proxies: Annotated[int, Field(ge=0, le=10)] = Field(
        0,
        description="Number of proxies in front of the service; so many X-Forwarded values count.",
    )

    def of_system(self, system: str) -> Settings:
        """Return the settings for a system: its own values in place of those for all systems."""
        own = self.systems.get(system)
        return self if own is None else self.model_copy(update=own.model_dump(exclude_none=True))

    def rules_of(self, system: str) -> DecisionRules:
        """Return the rules for decisions on a system."""
        # Processes for decisions need no predictor.
        from predictor.curve.prediction import DecisionRules  # noqa: PLC0415

        own = self.of_system(system)
        return DecisionRules(
            tolerance=own.tolerance,
            min_confidence=own.min_confidence,
            default=own.default_io_nodes,
        )

    def thresholds(self) -> Thresholds:
        """Read the file `checks`."""
        # The checks load NumPy, with which each process for decisions would start later.
        from ioncast.insights.checks.settings import read_thresholds  # noqa: PLC0415
        from ioncast.insights.checks.values import Thresholds  # noqa: PLC0415

        return Thresholds() if self.checks is None else read_thresholds(self.checks)

    def named_queries(self) -> list[Query]:
        """Read the named queries; MissingPackageError if a store lacks the packages to ask it."""
        if self.store is not None:
            for package in ("duckdb", "pyarrow"):
                require_package(package, "store")
        return queries(None if self.queries is None else Path(self.queries))


def read_settings(
    path: str | Path | None = None,
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Read the settings; flags win over the environment, and the environment over the file.

    Parameters
    ----------
    path : str or Path, optional
        A TOML file with the fields of `Settings`.
    flags : mapping of str to value, optional
        Fields by name; None means that the flag was not given.
    environment : mapping of str to str, optional
        Variables such as ``IONCAST_THREADS``, `os.environ` by default. Several values are
        separated by commas. The database is ``IONCAST_DB``.

    Raises
    ------
    InputError
        When a value cannot be used; it names the line, the variable or the flag.
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
    """Return the environment's values by field; an empty variable counts as not set."""
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
