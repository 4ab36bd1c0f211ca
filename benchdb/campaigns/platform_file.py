"""The platform file: the machine of a campaign, and the commands that start runs on it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, Strict, model_validator

from ioncast_base.errors import InputError
from ioncast_base.quantities import Bytes, Count, IoNodes
from ioncast_base.sizes import parse_size
from ioncast_base.toml_files import (
    Line,
    Name,
    TomlTable,
    distinct,
    one_line,
    read_by,
    read_toml,
    refusing,
)

PLACEHOLDERS = ("tasks", "nodes", "processes_per_node", "io_nodes")
KNOWN = re.compile(rf"(?<!\$)\{{({'|'.join(PLACEHOLDERS)})\}}")
_ANY = re.compile(r"(?<!\$)\{([A-Za-z_][A-Za-z0-9_]*)\}")
# IOR prints its command line without quotes, and reads @ as the end of a name.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9._+/{}-]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def fill(template: str, *, tasks: int, nodes: int, processes_per_node: int, io_nodes: int) -> str:
    """Put the numbers of a run into a template of the platform file.

    Parameters
    ----------
    template : str
        A text with ``{tasks}``, ``{nodes}``, ``{processes_per_node}`` and ``{io_nodes}``. Other
        braces, such as ``${HOME}``, belong to the shell and stay.

    Examples
    --------
    >>> fill("srun -N{nodes} ${X}", tasks=16, nodes=2, processes_per_node=8, io_nodes=0)
    'srun -N2 ${X}'
    """
    numbers = {
        "tasks": tasks,
        "nodes": nodes,
        "processes_per_node": processes_per_node,
        "io_nodes": io_nodes,
    }
    return KNOWN.sub(lambda match: str(numbers[match[1]]), template)


def _known_placeholders(template: str) -> str:
    return _only(template, PLACEHOLDERS)


def _only(template: str, known: tuple[str, ...]) -> str:
    unknown = next((name for name in _ANY.findall(template) if name not in known), None)
    if unknown is not None:
        raise InputError(
            f"the placeholder {{{unknown}}} is unknown",
            remedy=f"the placeholders here are {', '.join(f'{{{name}}}' for name in known)}; write"
            " braces of the shell with blanks inside",
        )
    return template


def _shell_text(text: str) -> str:
    if "\0" in text:
        raise InputError("must not contain a NUL character")
    return text


def checked_directory(path: str) -> str:
    """Return a directory for test files; InputError unless absolute, and in IOR's characters."""
    if not path.startswith("/"):
        raise InputError(f"must be an absolute path, not {path!r}", remedy="begin it with a slash")
    if not _PLAIN_PATH.fullmatch(path):
        raise InputError(
            f"{path!r} has characters that IOR does not accept in a file name",
            remedy="use only letters, digits and . _ + - /",
        )
    return path


def _test_directory(path: str) -> str:
    return _only(checked_directory(path), ("io_nodes",))


def _node_directory(path: str) -> str:
    _only(checked_directory(path), ("io_nodes", "node"))
    if "{node}" not in path:
        raise InputError(
            "has no {node}, so all compute nodes would have one directory",
            remedy="put {node}, the number of the compute node from 0, where the paths differ",
        )
    return path


def _directive(text: str) -> str:
    if not text.startswith("-"):
        raise InputError(
            f"{text!r} is not an option of sbatch",
            remedy='write it as after #SBATCH in a job script, such as "--partition=batch"',
        )
    return text


def _variables(environment: dict[str, str]) -> dict[str, str]:
    wrong = next((name for name in environment if not _VARIABLE.fullmatch(name)), None)
    if wrong is not None:
        raise InputError(
            f"{wrong!r} is not the name of an environment variable",
            remedy="use letters, digits and underscores",
        )
    return environment


Template = Annotated[
    str, AfterValidator(refusing(_shell_text)), AfterValidator(refusing(_known_placeholders))
]
LineTemplate = Annotated[Line, AfterValidator(refusing(_known_placeholders))]


class Switch(TomlTable):
    """The commands that switch I/O nodes on for a run and off after it.

    Attributes
    ----------
    environment : dict of str to str
        Environment variables of the run; the values are templates.
    before, after : str
        Shell commands before and after each run; both are templates.
    """

    environment: Annotated[dict[str, Template], AfterValidator(refusing(_variables))] = Field(
        default_factory=dict
    )
    before: Template = ""
    after: Template = ""


class Programs(TomlTable):
    """The benchmark programs.

    Attributes
    ----------
    ior, fio, mdtest : str or None
        Paths, or names on the PATH; None if the platform file does not name the program.
    """

    ior: Line | None = None
    fio: Line | None = None
    mdtest: Line | None = None

    def get(self, engine: str) -> str | None:
        """The program of an engine; None if the platform file does not name it."""
        program: str | None = getattr(self, engine)
        return program


class SlurmJobSettings(TomlTable):
    """The settings for runs as Slurm jobs.

    Attributes
    ----------
    directives : tuple of str
        Options of sbatch; all are templates.
    poll_seconds : int
        Seconds between two questions for the state of the jobs.
    """

    directives: Annotated[
        tuple[Annotated[LineTemplate, AfterValidator(refusing(_directive))], ...], Strict(False)
    ] = ()
    poll_seconds: Annotated[int, Field(gt=0, le=3600)] = 30


class Platform(TomlTable):
    """A machine that campaigns run on.

    Attributes
    ----------
    system : str
        The system that measurements are stored for.
    io_nodes : tuple of int
        The numbers of I/O nodes that a run can get, each once.
    nodes : int
        Number of compute nodes that a run may use.
    processes_per_node : int
        Number of processes on each compute node, unless the campaign file gives one.
    test_directory : str
        Directory of the test files, an absolute path; may contain ``{io_nodes}``.
    node_directory : str or None
        Path on this machine that shows the test directory as compute node ``{node}`` sees it; may
        contain ``{io_nodes}``. None if this machine has no such paths.
    free_space_limit : int
        Bytes that each run must leave free in the test directory.
    same_failures_limit : int
        A campaign stops after as many failures in a row with the same error.
    launch : str
        Template of the words in front of the benchmark's command line; may be empty.
    io_nodes_switch : Switch
        The commands that switch I/O nodes on and off.
    slurm : SlurmJobSettings or None
        The settings for Slurm jobs; None if runs start on this machine.
    """

    system: Name = Field(description="the name of the system in the database", examples=["mysite"])
    io_nodes: Annotated[
        tuple[IoNodes, ...],
        Strict(False),
        Field(min_length=1),
        AfterValidator(refusing(distinct)),
    ] = Field(description="the numbers of I/O nodes that a run can get", examples=[[0, 1, 2, 4, 8]])
    nodes: Count = Field(
        description="the number of compute nodes that a run may use", examples=[16]
    )
    processes_per_node: Count = Field(
        description="the number of processes on each compute node", examples=[8]
    )
    test_directory: Annotated[Line, AfterValidator(refusing(_test_directory))] = Field(
        description="the directory of the test files", examples=["/scratch/ioncast"]
    )
    node_directory: Annotated[Line, AfterValidator(refusing(_node_directory))] | None = None
    free_space_limit: Annotated[Bytes, read_by(parse_size)] = 1 << 30
    same_failures_limit: Count = 3
    launch: Annotated[
        str,
        AfterValidator(refusing(one_line)),
        AfterValidator(refusing(_known_placeholders)),
    ] = Field(
        description="the words in front of the benchmark's command line",
        examples=["mpiexec -n {tasks}"],
    )
    io_nodes_switch: Switch = Switch()
    programs: Programs = Programs()
    slurm: SlurmJobSettings | None = None

    @model_validator(mode="after")
    def _io_nodes_matter(self) -> Platform:
        """Reject a platform whose runs do not depend on the number of I/O nodes."""
        if not any(self.tells_io_nodes(launched=launched) for launched in (True, False)):
            refusing(_reject_equal_runs)(self.io_nodes)
        return self

    def tells_io_nodes(self, *, launched: bool) -> bool:
        """Whether the number of I/O nodes changes a run.

        Parameters
        ----------
        launched : bool
            Whether `launch` starts the benchmark's processes, in `test_directory`. Otherwise they
            run on this machine, in `node_directory` if there is one.
        """
        switch, slurm = self.io_nodes_switch, self.slurm or SlurmJobSettings()
        templates = [switch.before, switch.after, *switch.environment.values(), *slurm.directives]
        if launched:
            templates += [self.test_directory, self.launch]
        else:
            templates.append(self.node_directory or self.test_directory)
        return len(self.io_nodes) == 1 or any("{io_nodes}" in text for text in templates)

    def node_directories(self, nodes: int, io_nodes: int) -> tuple[str, ...]:
        """The directories of the first `nodes` compute nodes; empty without `node_directory`."""
        if self.node_directory is None:
            return ()
        directory = self.node_directory.replace("{io_nodes}", str(io_nodes))
        return tuple(directory.replace("{node}", str(node)) for node in range(nodes))


def _reject_equal_runs(io_nodes: tuple[int, ...]) -> None:
    raise InputError(
        f"io_nodes lists {len(io_nodes)} numbers, but no setting in the file contains {{io_nodes}},"
        " so all runs would be the same",
        remedy="switch I/O nodes on, for example with `environment = {ION_COUNT ="
        ' "{io_nodes}"}` in a table [io_nodes_switch]',
    )


def read_platform(path: str | Path) -> Platform:
    """Read a platform file.

    Parameters
    ----------
    path : str or Path
        The file; docs/platform.md describes it.

    Raises
    ------
    InputError
        If the file cannot be used; the error names the line of the first problem.
    """
    return read_toml(Path(path), Platform)
