"""Campaign files: lists of configurations of IOR and mdtest to measure together."""

from __future__ import annotations

import itertools
import json
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, Strict, model_validator

from ioncast_base.errors import InputError
from ioncast_base.kinds import FileAccess, Fsync
from ioncast_base.quantities import Count
from ioncast_base.sizes import format_size, parse_size
from ioncast_base.times import parse_duration
from ioncast_base.toml_files import (
    Line,
    Name,
    TomlTable,
    distinct,
    line_of,
    parse_toml,
    read_by,
    read_text,
    refusing,
)
from ior_configs.config import IorConfig
from ior_configs.mdtest import MdtestConfig

_BUNDLED = Path(__file__).parent / "campaigns"


@dataclass(frozen=True)
class Campaign:
    """Configurations, of one operation, to measure together; each once, with tasks and nodes.

    Each configuration runs `repetitions` times with each number of I/O nodes, in a random order
    with a `seed`. The runs are spread over `spread_s` seconds; with None, each run starts right
    after the one before it. `application_bytes` are the bytes that applications move with some of
    the configurations: an adaptive campaign weighs them by these. `files` are configurations of
    mdtest, each once.
    """

    name: str
    description: str
    repetitions: int
    seed: int
    spread_s: int | None
    configurations: tuple[IorConfig, ...]
    application_bytes: Mapping[IorConfig, int] = field(default_factory=dict)
    files: tuple[MdtestConfig, ...] = ()


def read_campaign(source: str | Path, *, nodes: int, processes_per_node: int) -> Campaign:
    """Read a campaign file; `nodes` and `processes_per_node` are for configurations without any."""
    text, where = campaign_text(source), str(source)
    return parse_campaign(text, where=where, nodes=nodes, processes_per_node=processes_per_node)


def campaign_text(source: str | Path) -> str:
    """Read the text of a campaign file, or of a bundled campaign by its name."""
    path, bundled = Path(source), bundled_campaigns()
    if str(source) in bundled and not path.is_file():
        return read_text(_BUNDLED / f"{source}.toml")
    try:
        return read_text(path)
    except InputError as error:
        remedy = error.remedy if path.suffix else f"bundled campaigns are {', '.join(bundled)}"
        raise InputError(error.what, where=error.where, remedy=remedy) from error


def bundled_campaigns() -> dict[str, str]:
    """Read the descriptions of the campaigns that are part of ioncast, by name."""
    files = sorted(_BUNDLED.glob("*.toml"))
    return {
        path.stem: parse_toml(read_text(path), _File, where=str(path)).description for path in files
    }


def parse_campaign(text: str, *, where: str, nodes: int, processes_per_node: int) -> Campaign:
    """Read the text of a campaign file as `read_campaign` does; `where` is the file's name."""
    file = parse_toml(text, _File, where=where)
    machine = _Machine(nodes, processes_per_node)
    configurations: dict[IorConfig, int | None] = {}
    files: dict[MdtestConfig, None] = {}
    for keys, found, application_bytes in _tables(file, machine):
        with _on_line(text, keys, where):
            for config in found:
                _check_new(config, configurations)
                configurations[config] = application_bytes
    for position, table in enumerate(file.files):
        with _on_line(text, ("files", position), where):
            for small in _of_files(table, machine):
                _check_new(small, files)
                files[small] = None
    return Campaign(
        name=file.name,
        description=file.description,
        repetitions=file.repetitions,
        seed=file.seed,
        spread_s=file.spread,
        configurations=tuple(configurations),
        application_bytes={
            config: moved for config, moved in configurations.items() if moved is not None
        },
        files=tuple(files),
    )


@contextmanager
def _on_line(text: str, keys: tuple[str, int], where: str) -> Iterator[None]:
    """Add the line of a table to its errors."""
    try:
        yield
    except InputError as error:
        line = line_of(text, keys)
        raise InputError(error.what, where=where, line=line, remedy=error.remedy) from error


def to_toml(campaign: Campaign, comments: Mapping[IorConfig, str] | None = None) -> str:
    """Write a campaign of patterns (`IorConfig.pattern`) as `parse_campaign` reads it."""
    head = {
        "name": campaign.name,
        "description": campaign.description,
        "repetitions": campaign.repetitions,
        "seed": campaign.seed,
        **({} if campaign.spread_s is None else {"spread": f"{campaign.spread_s}s"}),
    }
    tables = (
        [
            "",
            *(f"# {_printable(line)}" for line in (comments or {}).get(config, "").splitlines()),
            "[[configuration]]",
            *_assignments(
                {"command": config.command_line(), "tasks": config.tasks, "nodes": config.nodes}
                | (
                    {"application_bytes": campaign.application_bytes[config]}
                    if config in campaign.application_bytes
                    else {}
                )
            ),
        ]
        for config in campaign.configurations
    )
    files = (["", "[[files]]", *_assignments(_file_values(config))] for config in campaign.files)
    lines = itertools.chain(_assignments(head), *tables, *files, [""])
    return "\n".join(lines)


def _file_values(config: MdtestConfig) -> dict[str, object]:
    return {
        "files_per_process": config.files_per_process,
        "bytes_per_file": format_size(config.bytes_per_file),
        "own_directory": config.own_directory,
        "processes": config.tasks,
        "nodes": config.nodes,
    }


def _assignments(values: Mapping[str, object]) -> list[str]:
    return [f"{key} = {_literal(value)}" for key, value in values.items()]


def _literal(value: object) -> str:
    """Write a text or a number as TOML; JSON's form is the same, except for the character DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


@dataclass(frozen=True)
class _Machine:
    """The number of nodes and processes for configurations that do not name their own."""

    nodes: int
    processes_per_node: int

    def place(
        self, tasks: int | None, nodes: int | None, per_node: int | None = None
    ) -> tuple[int, int]:
        """Complete the number of tasks and nodes of a run."""
        per_node = per_node or self.processes_per_node
        if tasks is None:
            nodes = nodes or self.nodes
            return nodes * per_node, nodes
        return tasks, nodes or -(-tasks // per_node)


_Value = TypeVar("_Value")


def _listed(value: object) -> object:
    return value if isinstance(value, list) else [value]


def _size(text: str) -> str:
    if parse_size(text) == 0:
        raise InputError("a size must be greater than 0")
    return text


def _size_or_0(text: str) -> str:
    parse_size(text)
    return text


def _fsync(value: object) -> object:
    """Read `true` as an fsync at the end, as IOR's option ``-e`` means."""
    if isinstance(value, bool):
        return "end" if value else "none"
    return value


Size = Annotated[str, read_by(_size)]
_Fsync = Annotated[Fsync, BeforeValidator(_fsync)]
OneOrMore = Annotated[
    tuple[_Value, ...],
    Strict(False),
    BeforeValidator(_listed),
    Field(min_length=1),
    AfterValidator(refusing(distinct)),
]


class _Grid(TomlTable):
    """A table whose keys list values; every combination of them is a configuration."""

    api: OneOrMore[Line] = ("POSIX",)
    operation: OneOrMore[Literal["write", "read"]] = Field(
        description="what is measured", examples=[["write", "read"]]
    )
    layout: OneOrMore[Literal["contiguous", "1d-strided", "random"]] = ("contiguous",)
    file_access: OneOrMore[FileAccess] = Field(
        description="one file for all processes, or a file for each",
        examples=[["shared", "unique"]],
    )
    collective: OneOrMore[bool] = (False,)
    transfer_size: OneOrMore[Size] = Field(
        description="the size of a request", examples=[["64k", "1m"]]
    )
    bytes_per_process: OneOrMore[Size] | None = None
    total_bytes: OneOrMore[Size] | None = None
    nodes: OneOrMore[Count] | None = None
    processes_per_node: OneOrMore[Count] | None = None
    processes: OneOrMore[Count] | None = None
    fsync: OneOrMore[_Fsync] = ("none",)
    odirect: OneOrMore[bool] = (False,)
    reorder_tasks: OneOrMore[bool] = (False,)

    @model_validator(mode="after")
    def _says_each_thing_once(self) -> _Grid:
        refusing(_refuse_unclear)(self)
        return self


class _Files(TomlTable):
    """A table for mdtest whose keys list values; every combination of them is a configuration."""

    files_per_process: OneOrMore[Count] = Field(
        description="the number of files of each process", examples=[200]
    )
    bytes_per_file: OneOrMore[Annotated[str, read_by(_size_or_0)]] = ("0",)
    own_directory: OneOrMore[bool] = (True,)
    nodes: OneOrMore[Count] | None = None
    processes_per_node: OneOrMore[Count] | None = None
    processes: OneOrMore[Count] | None = None

    @model_validator(mode="after")
    def _says_processes_once(self) -> _Files:
        refusing(partial(_refuse_processes_twice, name="table"))(self)
        return self


def _refuse_unclear(grid: _Grid) -> None:
    if (grid.bytes_per_process is None) == (grid.total_bytes is None):
        number = "neither" if grid.total_bytes is None else "both"
        raise InputError(
            f"this grid has {number} of the keys `bytes_per_process` and `total_bytes`",
            remedy="give one of them",
        )
    _refuse_processes_twice(grid, "grid")


def _refuse_processes_twice(table: _Grid | _Files, name: str) -> None:
    if table.processes is not None and table.processes_per_node is not None:
        raise InputError(
            f"this {name} has both of the keys `processes` and `processes_per_node`",
            remedy="give one of them",
        )


class _Configuration(TomlTable):
    """One IOR command line."""

    command: Line = Field(
        description="the IOR run, as `ioncast match` prints it",
        examples=["mpiexec -n 16 ior -a POSIX -w -F -b 24m -t 24m"],
    )
    tasks: Count | None = None
    nodes: Count | None = None
    application_bytes: Annotated[int, Field(gt=0, le=2**63 - 1)] | None = None


class _File(TomlTable):
    name: Name = Field(description="the name of the campaign", examples=["patterns"])
    description: Line = Field(description="what it measures", examples=["What our applications do"])
    repetitions: Annotated[int, Field(gt=0, le=10_000)] = Field(
        description="the number of runs of each configuration", examples=[5]
    )
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = Field(
        description="the seed of the random order of the runs", examples=[1]
    )
    spread: Annotated[int, read_by(parse_duration)] | None = None
    grid: Annotated[tuple[_Grid, ...], Strict(False)] = ()
    configuration: Annotated[tuple[_Configuration, ...], Strict(False)] = ()
    files: Annotated[tuple[_Files, ...], Strict(False)] = ()

    @model_validator(mode="after")
    def _says_what_to_run(self) -> _File:
        refusing(_refuse_empty)(self)
        return self


def _refuse_empty(file: _File) -> None:
    if not (file.grid or file.configuration or file.files):
        raise InputError(
            "the campaign has no runs",
            remedy="add a table [[grid]], [[configuration]] or [[files]]",
        )


def _tables(
    file: _File, machine: _Machine
) -> Iterator[tuple[tuple[str, int], Iterator[IorConfig], int | None]]:
    """Yield the path of each table, its configurations, and the bytes of applications."""
    for position, grid in enumerate(file.grid):
        yield ("grid", position), _combined(grid, machine), None
    for position, table in enumerate(file.configuration):
        yield ("configuration", position), _commanded(table, machine), table.application_bytes


def _check_new(config: IorConfig | MdtestConfig, known: Container[object]) -> None:
    if config in known:
        raise InputError(
            f"{config.command_line(launcher=True)} on {config.nodes} nodes is in the campaign"
            " already",
            remedy="list each run once",
        )


def _combined(grid: _Grid, machine: _Machine) -> Iterator[IorConfig]:
    """Yield the combinations of a grid."""
    lists = {name: values for name, values in grid if values is not None}
    varied = [name for name, values in lists.items() if len(values) > 1]
    for values in itertools.product(*lists.values()):
        chosen = dict(zip(lists, values, strict=True))
        names = varied or ["operation", "layout", "file_access"]
        said = ", ".join(f"{name} {json.dumps(chosen[name])}" for name in names)
        try:
            yield _runnable(_of_choice(chosen, machine))
        except InputError as error:
            raise InputError(f"{said}: {error.what}", remedy=error.remedy) from error


def _of_files(table: _Files, machine: _Machine) -> Iterator[MdtestConfig]:
    """Yield the combinations of a table for mdtest."""
    lists = {name: values for name, values in table if values is not None}
    for values in itertools.product(*lists.values()):
        chosen = dict(zip(lists, values, strict=True))
        tasks, nodes = machine.place(
            chosen.get("processes"), chosen.get("nodes"), chosen.get("processes_per_node")
        )
        yield MdtestConfig(
            files_per_process=chosen["files_per_process"],
            bytes_per_file=parse_size(chosen["bytes_per_file"]),
            own_directory=chosen["own_directory"],
            tasks=tasks,
            nodes=nodes,
        )


def _of_choice(chosen: Mapping[str, Any], machine: _Machine) -> IorConfig:
    tasks, nodes = machine.place(
        chosen.get("processes"), chosen.get("nodes"), chosen.get("processes_per_node")
    )
    strided, unique = chosen["layout"] == "1d-strided", chosen["file_access"] == "unique"
    if strided and unique:
        raise InputError(
            "IOR cannot skip within a process's own file", remedy="use file_access shared"
        )
    transfer = parse_size(chosen["transfer_size"])
    size = _bytes_per_process(chosen, tasks, transfer)
    if size % transfer:
        raise InputError(
            f"{size} bytes per process are not a whole number of requests of {transfer} bytes"
        )
    return IorConfig(
        api=chosen["api"],
        write=chosen["operation"] == "write",
        read=chosen["operation"] == "read",
        file_per_process=unique,
        collective=chosen["collective"],
        random_offsets=int(chosen["layout"] == "random"),
        transfer_size=transfer,
        block_size=transfer if strided else size,
        segments=size // transfer if strided else 1,
        fsync=chosen["fsync"],
        odirect=chosen["odirect"],
        reorder_tasks=chosen["reorder_tasks"],
        tasks=tasks,
        nodes=nodes,
    )


def _bytes_per_process(chosen: Mapping[str, Any], tasks: int, transfer: int) -> int:
    """Bytes of each process; a total gives the nearest whole number of requests, at least one."""
    if "bytes_per_process" in chosen:
        return parse_size(chosen["bytes_per_process"])
    return max(1, round(parse_size(chosen["total_bytes"]) / tasks / transfer)) * transfer


def _commanded(table: _Configuration, machine: _Machine) -> Iterator[IorConfig]:
    """Yield one configuration for each operation of a command line."""
    config = IorConfig.from_command_line(table.command)
    pattern = config.pattern().to_args()
    controls = [word for word in config.to_args() if word not in pattern]
    if controls:
        raise InputError(
            f"the command has options that control the run ({' '.join(controls)})",
            remedy="leave them out: the campaign sets the repetitions, the platform the folder",
        )
    for name, said, commanded in (
        ("tasks", table.tasks, config.tasks),
        ("nodes", table.nodes, config.nodes),
    ):
        if None not in (said, commanded) and said != commanded:
            raise InputError(
                f"key `{name}` is {said}, but the command says {commanded}",
                remedy="give the number once",
            )
    tasks, nodes = machine.place(table.tasks or config.tasks, table.nodes or config.nodes)
    for operation in config.operation.split("+"):
        placed = replace(config.for_operation(operation), tasks=tasks, nodes=nodes)
        yield _runnable(placed)


def _runnable(config: IorConfig) -> IorConfig:
    problems = config.problems()
    if problems:
        raise InputError(problems[0])
    return config
