"""The platform file: the machine that a campaign runs on, and how runs are started there."""

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
    Table,
    distinct,
    one_line,
    read_by,
    read_toml,
    refusing,
)

PLACEHOLDERS = ("tasks", "nodes", "processes_per_node", "io_nodes")
KNOWN = re.compile(rf"(?<!\$)\{{({'|'.join(PLACEHOLDERS)})\}}")
_ANY = re.compile(r"(?<!\$)\{([A-Za-z_][A-Za-z0-9_]*)\}")
# IOR prints its command line without quotes, and takes @ for the end of a name.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9._+/{}-]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def fill(template: str, *, tasks: int, nodes: int, processes_per_node: int, io_nodes: int) -> str:
    """Put the numbers of a run into a template of the platform file.

    Parameters
    ----------
    template : str
        With ``{tasks}``, ``{nodes}``, ``{processes_per_node}`` and ``{io_nodes}``; other
        braces, ``${HOME}`` among them, are the shell's and stay.
    tasks, nodes, processes_per_node, io_nodes : int
        Of the run.

    Returns
    -------
    str
        What is to be run.

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
            remedy=f"known here are {', '.join(f'{{{name}}}' for name in known)}; braces of the"
            " shell have blanks inside",
        )
    return template


def _shell_text(text: str) -> str:
    if "\0" in text:
        raise InputError("must not hold a character of code 0")
    return text


def _directory(path: str) -> str:
    if not path.startswith("/"):
        raise InputError(f"must be an absolute path, not {path!r}", remedy="begin it with a slash")
    if not _PLAIN_PATH.fullmatch(path):
        raise InputError(
            f"{path!r} has characters that IOR does not take in a file name",
            remedy="use letters, digits and . _ + - / only",
        )
    return path


def _test_directory(path: str) -> str:
    return _only(_directory(path), ("io_nodes",))


def _node_directory(path: str) -> str:
    _only(_directory(path), ("io_nodes", "node"))
    if "{node}" not in path:
        raise InputError(
            "has no {node}: it would be one directory for all compute nodes",
            remedy="put {node}, which counts them from 0, where their paths differ",
        )
    return path


def _directive(text: str) -> str:
    if not text.startswith("-"):
        raise InputError(
            f"{text!r} is no option of sbatch",
            remedy='write it as after #SBATCH in a job script, like "--partition=batch"',
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


class Switch(Table):
    """How n I/O nodes are switched on for a run and off after it.

    Attributes
    ----------
    environment : dict of str to str
        Variables of the run; the values are templates.
    before, after : str
        Shell commands around each run; templates.
    """

    environment: Annotated[dict[str, Template], AfterValidator(refusing(_variables))] = Field(
        default_factory=dict
    )
    before: Template = ""
    after: Template = ""


class Programs(Table):
    """Where the benchmark programs are.

    Attributes
    ----------
    ior, fio : str or None
        Paths, or names on the PATH; None if the platform does not say.
    """

    ior: Line | None = None
    fio: Line | None = None

    def get(self, engine: str) -> str | None:
        """The program of an engine, if the platform says it."""
        program: str | None = getattr(self, engine)
        return program


class Slurm(Table):
    """How runs are submitted as Slurm jobs.

    Attributes
    ----------
    directives : tuple of str
        Options of sbatch; templates.
    poll_seconds : int
        How often the state of the jobs is asked for.
    """

    directives: Annotated[
        tuple[Annotated[LineTemplate, AfterValidator(refusing(_directive))], ...], Strict(False)
    ] = ()
    poll_seconds: Annotated[int, Field(gt=0, le=3600)] = 30


class Platform(Table):
    """A machine that campaigns run on.

    Attributes
    ----------
    system : str
        The name its measurements are stored under.
    io_nodes : tuple of int
        The numbers of I/O nodes that a run can get, each once.
    nodes : int
        Compute nodes that a run may use.
    processes_per_node : int
        Processes on each of them, where a campaign says none.
    test_directory : str
        Where runs write, an absolute path; may hold ``{io_nodes}``.
    node_directory : str or None
        Where this machine has that directory as compute node ``{node}`` sees it; may hold
        ``{io_nodes}``. None where it has no nodes' own paths.
    free_space_limit : int
        Bytes that each run must leave free there.
    launch : str
        Template of what stands in front of the benchmark's command line; may be empty.
    io_nodes_switch : Switch
        How I/O nodes are switched on and off.
    programs : Programs
        Where the benchmark programs are.
    slurm : Slurm or None
        None where runs are started on this machine.
    """

    system: Name = Field(
        description="the name that measurements are stored under", examples=["mysite"]
    )
    io_nodes: Annotated[
        tuple[IoNodes, ...],
        Strict(False),
        Field(min_length=1),
        AfterValidator(refusing(distinct)),
    ] = Field(description="the numbers of I/O nodes that a run can get", examples=[[0, 1, 2, 4, 8]])
    nodes: Count = Field(description="compute nodes that a run may use", examples=[16])
    processes_per_node: Count = Field(description="processes on each compute node", examples=[8])
    test_directory: Annotated[Line, AfterValidator(refusing(_test_directory))] = Field(
        description="where the runs write their files", examples=["/scratch/ioncast"]
    )
    node_directory: Annotated[Line, AfterValidator(refusing(_node_directory))] | None = None
    free_space_limit: Annotated[Bytes, read_by(parse_size)] = 1 << 30
    launch: Annotated[
        str,
        AfterValidator(refusing(one_line)),
        AfterValidator(refusing(_known_placeholders)),
    ] = Field(description="what stands in front of the benchmark", examples=["mpiexec -n {tasks}"])
    io_nodes_switch: Switch = Switch()
    programs: Programs = Programs()
    slurm: Slurm | None = None

    @model_validator(mode="after")
    def _io_nodes_matter(self) -> Platform:
        """Refuse runs that would be the same but for the number they are stored under."""
        if not any(self.tells_io_nodes(launched=launched) for launched in (True, False)):
            refusing(_refuse_same_runs)(self.io_nodes)
        return self

    def tells_io_nodes(self, *, launched: bool) -> bool:
        """Whether runs with different numbers of I/O nodes differ in anything else.

        Parameters
        ----------
        launched : bool
            Whether `launch` starts the benchmark's processes, in `test_directory`. Otherwise
            these are on one machine, in the nodes' directories where it has them.
        """
        switch, slurm = self.io_nodes_switch, self.slurm or Slurm()
        templates = [switch.before, switch.after, *switch.environment.values(), *slurm.directives]
        if launched:
            templates += [self.test_directory, self.launch]
        else:
            templates.append(self.node_directory or self.test_directory)
        return len(self.io_nodes) == 1 or any("{io_nodes}" in text for text in templates)

    def node_directories(self, nodes: int, io_nodes: int) -> tuple[str, ...]:
        """The directories of the first `nodes` compute nodes; none where they have none."""
        if self.node_directory is None:
            return ()
        directory = self.node_directory.replace("{io_nodes}", str(io_nodes))
        return tuple(directory.replace("{node}", str(node)) for node in range(nodes))


def _refuse_same_runs(io_nodes: tuple[int, ...]) -> None:
    raise InputError(
        f"io_nodes lists {len(io_nodes)} numbers, but nothing in the file uses {{io_nodes}}: the"
        " runs would all be the same",
        remedy="say how I/O nodes are switched on, such as `environment = {ION_COUNT ="
        ' "{io_nodes}"}` in a table [io_nodes_switch]',
    )


def read_platform(path: str | Path) -> Platform:
    """Read a platform file.

    Parameters
    ----------
    path : str or Path
        The file; docs/platform.md says what is in it.

    Returns
    -------
    Platform
        What it says.

    Raises
    ------
    InputError
        With the line of the first problem.
    """
    return read_toml(Path(path), Platform)
