"""`IorConfig`: the options of one benchmark run in IOR's terms, and its command line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ioncast_base.errors import InputError
from ioncast_base.kinds import FSYNCS, Kind
from ioncast_base.limits import LARGEST_BYTES
from ioncast_base.sizes import format_size, parse_count, parse_size
from ioncast_base.wording import counted
from ior_configs.command_grammar import Option, split_options
from ior_configs.conditions import canonical, hints_of, is_condition, spelled, tokens_of
from ior_configs.hints import aggregators_of, with_places
from ior_configs.launchers import split_command_line

_API = re.compile(r"[A-Z0-9][A-Z0-9_.-]*")
_SUMMARY_FORMATS = {name.lower(): name for name in ("default", "JSON", "CSV")}
_CHECKS = {"write": ("-W", "-O checkwrite"), "read": ("-R", "-O checkread")}
_ACCESS_SIZE = 8
_FSYNC_FLAGS = {"end": "-e", "each": "-Y"}


@dataclass(frozen=True, kw_only=True)
class IorConfig:
    """One benchmark run in IOR's terms; each field stands for an option of IOR.

    Values that every version of IOR from 3.0 on rejects are rejected. `problems` lists values
    that only some versions reject. Without `write` and `read` IOR does both, and so does a
    configuration. The option ``-R`` in `other_options` checks data after reading it, so it
    switches `read` on.

    Parameters
    ----------
    api : str
        ``-a``, stored in upper case.
    write, read, file_per_process, collective : bool
        ``-w``, ``-r``, ``-F`` and ``-c``.
    random_offsets : int
        How often ``-z`` is given: 0, 1 (requests are shuffled) or 2 (requests may overlap).
    block_size, transfer_size, segments : int
        ``-b`` and ``-t`` in bytes; ``-s``.
    reorder_tasks, intra_test_barriers, keep_file, multi_file, odirect : bool
        ``-C``, ``-g``, ``-k``, ``-m``; ``--posix.odirect``, or ``-B`` before IOR 3.3.
    fsync : {"none", "end", "each", None}
        No fsync, one at the end (``-e``), or one after each write (``-Y``, also with ``-e``); None:
        not known, which no option of IOR says.
    repetitions, inter_test_delay : int
        ``-i``; ``-d`` in seconds.
    test_file, summary_format : str or None
        ``-o``, with None IOR chooses the name; ``-O summaryFormat=`` default, JSON or CSV.
    tasks, nodes : int or None
        Options of the launcher, not of IOR; None if unknown. IOR's ``-N`` limits the tasks that
        take part, so it is read as `tasks`.
    conditions : tuple of str
        Options without a field that change what the run does to storage or memory, such as ``-Z``
        or ``-M 75%``, each in one spelling and without defaults (see `ior_configs.conditions`).
        Conditions that change nothing for the run's operations and interface are left out. Hints
        of MPI-IO are written as IOR reads them: ``IOR_HINT__MPI__cb_nodes=4``.
    other_options : tuple of str
        All other options of IOR as they were given, each flag on its own.

    Examples
    --------
    >>> config = IorConfig.from_command_line("mpiexec -n 32 ior -w -b 32m -t 2m")
    >>> config.tasks, config.operation, config.spatiality
    (32, 'write', 'contiguous')
    >>> config.command_line(launcher=True)
    'mpiexec -n 32 ior -a POSIX -w -b 32m -t 2m'
    """

    api: str = "POSIX"
    write: bool = False
    read: bool = False
    file_per_process: bool = False
    collective: bool = False
    random_offsets: int = 0
    block_size: int = 1 << 20
    transfer_size: int = 256 << 10
    segments: int = 1
    reorder_tasks: bool = False
    fsync: str | None = "none"
    intra_test_barriers: bool = False
    keep_file: bool = False
    repetitions: int = 1
    multi_file: bool = False
    inter_test_delay: int = 0
    test_file: str | None = None
    summary_format: str | None = None
    odirect: bool = False
    tasks: int | None = None
    nodes: int | None = None
    conditions: tuple[str, ...] = ()
    other_options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        others = _other_options(self.other_options)
        _set(self, api=self.api.upper(), **_operations(self.write, self.read, others))
        if self.conditions:
            _set(self, conditions=_conditions(self))
        refusal = next((reason for refused, reason in _refusals(self) if refused), None)
        if refusal:
            raise InputError(refusal)

    @classmethod
    def from_args(cls, args: Sequence[str]) -> IorConfig:
        """Read IOR's arguments, without the program's name; an option's last value counts."""
        values: dict[str, Any] = {}
        conditions: list[str] = []
        others: list[str] = []
        for option in split_options(args):
            if option.known:
                values[option.name] = _value(option, values.get(option.name, 0))
            elif is_condition(option):
                conditions.append(spelled(option))
            else:
                others.extend(option.tokens)
        fsync = _fsync(values.pop("fsync_at_end", False), values.pop("fsync_each_write", False))
        return cls(**values, fsync=fsync, conditions=tuple(conditions), other_options=tuple(others))

    @classmethod
    def from_command_line(cls, text: str) -> IorConfig:
        """Read a whole command line, with or without a launcher in front of IOR."""
        line = split_command_line(text)
        config = cls.from_args(line.args)
        tasks = line.tasks if config.tasks is None else config.tasks
        nodes = line.nodes if config.nodes is None else config.nodes
        conditions = (*config.conditions, *line.hints)
        return replace(config, tasks=tasks, nodes=nodes, conditions=conditions)

    def to_args(self) -> list[str]:
        """Write arguments for `from_args`, without tasks, nodes, hints and an unknown `fsync`."""
        flags = {
            "-w": self.write,
            "-r": self.read,
            "-F": self.file_per_process,
            "-c": self.collective,
            "-z": self.random_offsets,
            "-C": self.reorder_tasks,
            **{flag: self.fsync == when for when, flag in _FSYNC_FLAGS.items()},
            "-g": self.intra_test_barriers,
            "-k": self.keep_file,
            "-m": self.multi_file,
            "--posix.odirect": self.odirect,
        }
        args = ["-a", self.api]
        args += [flag for flag, times in flags.items() for _ in range(times)]
        args += _unless_default("-i", self.repetitions, 1)
        args += _unless_default("-d", self.inter_test_delay, 0)
        args += ["-b", format_size(self.block_size), "-t", format_size(self.transfer_size)]
        args += _unless_default("-s", self.segments, 1)
        if self.test_file is not None:
            args += ["-o", self.test_file]
        if self.summary_format is not None:
            args += ["-O", f"summaryFormat={self.summary_format}"]
        return [*args, *tokens_of(self.conditions), *self.other_options]

    def command_line(self, launcher: bool = False) -> str:
        """Write a line, quoted for a shell, that `from_command_line` reads as this configuration.

        It lacks `nodes`, without the launcher also `tasks`, and an `fsync` that is not known.
        """
        prefix = ["mpiexec", "-n", str(self.tasks)] if launcher and self.tasks is not None else []
        return shlex.join([*prefix, *self.environment(), "ior", *self.to_args()])

    def environment(self) -> list[str]:
        """The words in front of IOR that give it the hints of the `conditions`; none without."""
        hints = with_places(hints_of(self.conditions), self.nodes)
        return ["env", *hints] if hints else []

    @property
    def operation(self) -> str:
        """The measured operations: ``write``, ``read`` or ``write+read``."""
        return "+".join(name for name in ("write", "read") if getattr(self, name))

    @property
    def bytes_per_process(self) -> int:
        """Bytes that each process moves in one operation."""
        return self.block_size * self.segments

    @property
    def requests_per_process(self) -> int:
        """Requests of each process in one operation; the mean with ``-z`` in a shared file."""
        return self.bytes_per_process // self.transfer_size

    @property
    def file_access(self) -> str:
        """``unique`` if each process has a file of its own, else ``shared``."""
        return "unique" if self.file_per_process or self.tasks == 1 else "shared"

    @property
    def layout(self) -> str:
        """The order of a process's requests: ``contiguous``, ``1d-strided`` or ``random``."""
        if self.random_offsets:
            return "random"
        if self.segments > 1 and self.file_access == "shared":
            return "1d-strided"
        return "contiguous"

    @property
    def requests_per_block(self) -> int | None:
        """Requests of a process that follow one another in a 1D-strided run; else None."""
        strided = self.layout == "1d-strided"
        return self.block_size // self.transfer_size if strided else None

    @property
    def spatiality(self) -> str:
        """Spatiality by Darshan's counters: MPI-IO "collective" or "unknown", else the `order`."""
        if self.api == "MPIIO":
            return "collective" if self.collective else "unknown"
        return self.order

    @property
    def order(self) -> str:
        """The order of requests by Darshan's counters: contiguous, sequential or random.

        A strided run whose blocks have several requests is ``contiguous`` if at least four fifths
        of the requests, the first one left out, begin where the request before them ends.
        """
        if self.layout != "1d-strided":
            return self.layout
        requests = self.requests_per_process
        consecutive = requests - self.segments
        return "contiguous" if 5 * consecutive >= 4 * (requests - 1) else "sequential"

    @property
    def aggregators(self) -> int | None:
        """Processes that move the data of collective calls, if hints tell that these are buffered.

        None without such hints: MPI-IO then buffers, or not, as it does by default.
        """
        return aggregators_of(self.conditions, self.operation, self.nodes)

    @property
    def kind(self) -> Kind:
        """The kind of I/O of the run, which is also that of its phase in a Darshan log."""
        return Kind(self.operation, self.api, self.spatiality, self.file_access)

    def for_operation(self, operation: str) -> IorConfig:
        """Keep one operation; the other one is switched off, with the check of its data."""
        if operation not in _CHECKS:
            raise InputError(f"{operation!r} is not an operation", remedy="say write or read")
        dropped = _CHECKS["read" if operation == "write" else "write"]
        others = (o for o in split_options(self.other_options) if o.name not in dropped)
        return replace(
            self,
            write=operation == "write",
            read=operation == "read",
            other_options=tuple(token for option in others for token in option.tokens),
        )

    def pattern(self) -> IorConfig:
        """Reset the options that only control the run: repetitions, delays, files' names, output.

        The others, with the `conditions`, identify a configuration.
        """
        return replace(
            self,
            keep_file=False,
            repetitions=1,
            multi_file=False,
            inter_test_delay=0,
            test_file=None,
            summary_format=None,
            other_options=(),
        )

    def problems(self) -> list[str]:
        """List the options that IOR 4 rejects although IOR 3 accepted them, each as a clause."""
        if self.random_offsets == 1 and self.block_size == self.transfer_size:
            return ["-z shuffles within a block, so IOR 4 needs blocks larger than a transfer"]
        return []


def _set(config: IorConfig, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(config, name, value)


def _unless_default(option: str, value: int, default: int) -> list[str]:
    return [] if value == default else [option, str(value)]


def _other_options(tokens: tuple[str, ...]) -> list[Option]:
    """Split options that have no field; reject options with a field and grouped flags."""
    options = split_options(tokens)
    single = tuple(token for option in options for token in option.tokens)
    if single != tokens or any(option.known or is_condition(option) for option in options):
        raise InputError(
            f"{' '.join(tokens)!r} has options with fields of their own, or grouped flags"
        )
    return options


def _conditions(config: IorConfig) -> tuple[str, ...]:
    return canonical(
        config.conditions,
        api=config.api,
        operations=config.operation.split("+"),
        reordered=config.reorder_tasks,
        collective=config.collective,
    )


def _fsync(at_end: bool, each_write: bool) -> str:
    if each_write:
        return "each"
    return "end" if at_end else "none"


def _operations(write: bool, read: bool, others: list[Option]) -> dict[str, bool]:
    """Tell which operations IOR does: both by default; checking a read also reads."""
    checks = {
        operation: any(option.name in names and option.on for option in others)
        for operation, names in _CHECKS.items()
    }
    nothing_asked = not (write or read or any(checks.values()))
    return {"write": write or nothing_asked, "read": read or nothing_asked or checks["read"]}


def _refusals(config: IorConfig) -> list[tuple[bool, str]]:
    """Pair the violation of each rule with its message, the most basic rules first."""
    c = config
    shared = not c.file_per_process
    return [
        (_API.fullmatch(c.api) is None, f"{c.api!r} is not an API of IOR"),
        (not (c.write or c.read), "-W alone measures nothing, add -w or -r"),
        (c.transfer_size < 1, "the transfer size must be positive"),
        (c.block_size < 1, "the block size must be positive"),
        (c.transfer_size % _ACCESS_SIZE != 0, "the transfer size must be a multiple of 8 bytes"),
        (
            c.transfer_size > 0 and c.block_size % c.transfer_size != 0,
            f"the block size {c.block_size} must be a multiple of the transfer size"
            f" {c.transfer_size}",
        ),
        (c.segments < 1, "the number of segments must be positive"),
        (c.repetitions < 1, "the number of repetitions must be positive"),
        (c.inter_test_delay < 0, "the delay between tests must not be negative"),
        (
            max(
                c.block_size,
                c.segments,
                c.repetitions,
                c.inter_test_delay,
                c.tasks or 0,
                c.nodes or 0,
            )
            > LARGEST_BYTES,
            "IOR counts in 63 bits",
        ),
        (c.fsync not in {None, *FSYNCS}, f"{c.fsync!r} is not none, end or each"),
        (c.random_offsets not in {0, 1, 2}, "-z can be given once or twice"),
        (
            bool(c.random_offsets) and c.reorder_tasks and shared,
            "-z and -C exclude each other in a shared file",
        ),
        (
            bool(c.random_offsets) and c.api in {"HDF5", "NCMPI"},
            f"-z is not available with {c.api}",
        ),
        (c.file_per_process and c.api == "NCMPI", "-F is not available with NCMPI"),
        (
            c.summary_format not in {None, *_SUMMARY_FORMATS.values()},
            f"{c.summary_format!r} is not a summary format",
        ),
        (c.test_file is not None and not _is_file_name(c.test_file), "-o needs a file name"),
        (c.tasks is not None and c.tasks < 1, "the number of tasks must be positive"),
        (c.nodes is not None and c.nodes < 1, "the number of nodes must be positive"),
        (
            c.tasks is not None and c.nodes is not None and c.nodes > c.tasks,
            f"{counted(c.nodes or 0, 'node')} are more than {counted(c.tasks or 0, 'task')}",
        ),
    ]


def _is_file_name(text: str) -> bool:
    return bool(text) and "\0" not in text


def _summary_format(text: str) -> str:
    if text.lower() not in _SUMMARY_FORMATS:
        raise InputError(f"{text!r} is not a summary format", remedy="use default, JSON or CSV")
    return _SUMMARY_FORMATS[text.lower()]


_READ_TEXT: dict[str, Callable[[str], Any]] = {
    "api": str,
    "test_file": str,
    "summary_format": _summary_format,
    "block_size": parse_size,
    "transfer_size": parse_size,
    "segments": parse_size,
    "repetitions": parse_count,
    "inter_test_delay": parse_count,
    "tasks": parse_count,
    "nodes": parse_count,
}


def _value(option: Option, before: int) -> Any:
    """Read the value of an option; `before` is its value by earlier arguments."""
    if option.name == "random_offsets":
        return min(option.times(before), 2)
    if option.name in _READ_TEXT:
        return _READ_TEXT[option.name](option.value or "")
    return option.times(before) > 0
