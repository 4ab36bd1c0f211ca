"""The registry of readers for the formats that IOR prints."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from ioncast_base.errors import InputError
from ior_configs.config import IorConfig
from ior_configs.results import IorResult

Reader = Callable[[str, IorConfig | None], list[IorResult]]

_READERS: dict[str, Reader] = {}
_SIGNATURES = {
    "ior-rank-csv": re.compile(r"\A\s*access,rank,"),
    "ior-csv": re.compile(r"^access,bw\(MiB/s\),", re.MULTILINE),
    "ior-json": re.compile(r'^[ \t]*\{\s*"(?:Version|Began)"\s*:', re.MULTILINE),
    "ior-text": re.compile(r"^IOR-\S+: MPI Coordinated Test|^Command line\b.*:", re.MULTILINE),
}


def reader(name: str) -> Callable[[Reader], Reader]:
    """Register the reader of the format that `sniff` calls `name`.

    A reader's arguments are the text and the configuration of the command line that the user gave
    with it, or None. It returns at least one result or raises `InputError`.
    """

    def register(read: Reader) -> Reader:
        _READERS[name] = read
        return read

    return register


def sniff(text: str) -> str | None:
    """Recognise the format of an output of IOR.

    Parameters
    ----------
    text : str
        The whole output.

    Returns
    -------
    {"ior-json", "ior-text", "ior-csv", "ior-rank-csv"} or None
        The format; None for any other text. A text that is cut off still has its format.
    """
    return next((name for name, mark in _SIGNATURES.items() if mark.search(text)), None)


def read_outputs(
    text: str, *, where: str, command: str | None = None, nodes: int | None = None
) -> list[IorResult]:
    """Read all results of one output of IOR, whatever its format.

    A repetition without a positive finite bandwidth is left out, and the other results get a
    warning. It is an error if no repetition of a test is left, or if the line of a rank has no
    usable numbers, because the bytes of all ranks are added up.

    Parameters
    ----------
    text : str
        The whole output.
    where : str
        The name of the file, for errors.
    command : str, optional
        The command line of the run, for values that are not in the output: the whole
        configuration (CSV) or the number of tasks.
    nodes : int, optional
        The number of compute nodes, if it is known. IOR counts host names, which may be fewer.

    Returns
    -------
    list of IorResult
        The results in the order of the output, at least one.

    Raises
    ------
    InputError
        If the text is not a whole output of IOR, or has no usable result.
    """
    try:
        given = None if command is None else IorConfig.from_command_line(command)
        results = _reader_of(text)(text, given)
        return [_completed(result, command, nodes) for result in results]
    except InputError as error:
        raise InputError(error.what, where=where, remedy=error.remedy) from error


def _reader_of(text: str) -> Reader:
    name = sniff(text)
    if name is None:
        raise InputError(
            "this is not an output of IOR" if text.strip() else "the file is empty",
            remedy="give IOR's own output: text, or -O summaryFormat=JSON or CSV",
        )
    return _READERS[name]


def _completed(result: IorResult, command: str | None, nodes: int | None) -> IorResult:
    config = result.config if nodes is None else replace(result.config, nodes=nodes)
    return replace(result, config=config, command=result.command or command)


def config_as_printed(command: str, given: IorConfig | None) -> IorConfig:
    """Read the command line in an output, which IOR prints without quoting.

    Parameters
    ----------
    command : str
        The program and its arguments, separated by blanks.
    given : IorConfig or None
        The configuration that the user gave with the output.

    Returns
    -------
    IorConfig
        The printed configuration; tasks and nodes that it lacks are those of `given`.
    """
    config = IorConfig.from_args(command.split()[1:])
    if given is None:
        return config
    return replace(
        config,
        tasks=given.tasks if config.tasks is None else config.tasks,
        nodes=given.nodes if config.nodes is None else config.nodes,
    )
