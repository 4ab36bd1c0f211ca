"""Conditions: options of IOR without a field that change what a run does to storage or memory.

An option is a condition if it changes which requests reach the storage, where they go, what the
data are or what is in memory. The other options only control the run, its checks and its output.
Different spellings of a condition count as one, and a default is no condition. Hints of MPI-IO are
conditions too, although IOR reads them from its environment (see `ior_configs.hints`).
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from ioncast_base.errors import InputError
from ioncast_base.sizes import format_size, parse_count, parse_size
from ior_configs.command_grammar import Option, split_options
from ior_configs.hints import canonical_hints, is_hint

_BOTH = ("write", "read")
_PACKETS = {"o": "offset", "i": "incompressible", "t": "timestamp", "r": "random"}
# The last words of modules' options that name a place or a user, or only print something.
_PLACES = frozenset(
    {
        *("access-key", "bucket-name", "bucket-name-prefix", "conf", "cont", "destroy", "group"),
        *("host", "name_node", "pool", "prefix", "region", "remote_prefix", "secret-key"),
        *("showHints", "svcl", "user"),
    }
)


@dataclass(frozen=True)
class _Condition:
    """A condition: IOR's newest spelling, the operations that it changes, and its value.

    `kind` is "flag", "levels" (a flag that may be given twice), "count", "size", "packet" or
    "text". With `api`, the option has no effect with other interfaces.
    """

    option: str
    kind: str = "flag"
    operations: tuple[str, ...] = _BOTH
    default: str = "0"
    api: str | None = None


_RANDOM_TASKS = _Condition("-Z", "levels", ("read",))
_TASK_OFFSET = _Condition("-Q", "count", ("read",), "1")
_EXISTING_FILE = _Condition("-E", operations=("write",))
_UNIQUE_DIRECTORY, _DUAL_MOUNT = _Condition("-u"), _Condition("-y")
_NODE_MEMORY, _TASK_MEMORY = _Condition("-M", "size"), _Condition("-O memoryPerTask", "size")
_PACKET = _Condition("-l", "packet", default="timestamp")
_FILE_VIEW = _Condition("--mpiio.useFileView", api="MPIIO")
_PREALLOCATE = _Condition("--mpiio.preallocate", operations=("write",), api="MPIIO")
_NO_FILL = _Condition("--hdf5.noFill", operations=("write",), api="HDF5")
_ALIGNMENT = _Condition("--hdf5.setAlignment", "size", default="1", api="HDF5")
_SCRIPT, _DRY_RUN = _Condition("-f", "text"), _Condition("--dryRun")

_CONDITIONS: dict[str, _Condition] = {
    "-Z": _RANDOM_TASKS,
    "-O reordertasksrandom": _RANDOM_TASKS,
    "-Q": _TASK_OFFSET,
    "-O taskpernodeoffset": _TASK_OFFSET,
    "-E": _EXISTING_FILE,
    "-O useexistingtestfile": _EXISTING_FILE,
    "-u": _UNIQUE_DIRECTORY,
    "-O uniquedir": _UNIQUE_DIRECTORY,
    "-y": _DUAL_MOUNT,
    "-O dualmount": _DUAL_MOUNT,
    "-M": _NODE_MEMORY,
    "-O memorypernode": _NODE_MEMORY,
    "-O memorypertask": _TASK_MEMORY,
    "-l": _PACKET,
    "--dataPacketType": _PACKET,
    "-O datapackettype": _PACKET,
    "-V": _FILE_VIEW,
    "-O usefileview": _FILE_VIEW,
    "--mpiio.useFileView": _FILE_VIEW,
    "-p": _PREALLOCATE,
    "-O preallocate": _PREALLOCATE,
    "--mpiio.preallocate": _PREALLOCATE,
    "-n": _NO_FILL,
    "-O nofill": _NO_FILL,
    "--hdf5.noFill": _NO_FILL,
    "-J": _ALIGNMENT,
    "-O setalignment": _ALIGNMENT,
    "--hdf5.setAlignment": _ALIGNMENT,
    "--randomPrefill": _Condition("--randomPrefill", "size", ("write",)),
    "-O interiodelay": _Condition("-O interIODelay", "count"),
    "-O mintimeduration": _Condition("-O minTimeDuration", "count"),
    "-O allocatebufferongpu": _Condition("-O allocateBufferOnGPU", "count"),
    "--gpuDirect": _Condition("--gpuDirect"),
    "-O gpudirect": _Condition("--gpuDirect"),
    "-O lustrestripecount": _Condition("--posix.lustre.stripecount", "text", api="POSIX"),
    "-O lustrestripesize": _Condition("--posix.lustre.stripesize", "size", api="POSIX"),
    "-O lustrestartost": _Condition("--posix.lustre.startost", "text", default="-1", api="POSIX"),
    "-O lustreignorelocks": _Condition("--posix.lustre.ignorelocks", api="POSIX"),
    "-O gpfshintaccess": _Condition("--posix.gpfs.hintaccess", api="POSIX"),
    "-O gpfsreleasetoken": _Condition("--posix.gpfs.releasetoken", api="POSIX"),
    "-O beegfsnumtargets": _Condition("--posix.beegfs.NumTargets", "count", api="POSIX"),
    "-O beegfschunksize": _Condition("--posix.beegfs.ChunkSize", "size", api="POSIX"),
    "-f": _SCRIPT,
    "--dryRun": _DRY_RUN,
}
# Options of the newest spelling, such as --posix.lustre.stripecount, are found by it too.
_CONDITIONS |= {found.option: found for found in list(_CONDITIONS.values())}
_HINT_FILES = frozenset({"-U", "-O hintsfilename"})
_HINTED = frozenset({"MPIIO", "HDF5", "NCMPI"})
_REFUSALS = {
    _SCRIPT.option: "IOR read options from a script (-f), which the command does not show",
    _DRY_RUN.option: "with --dryRun IOR does no I/O",
}


def is_condition(option: Option) -> bool:
    """Whether an option without a field changes what a run does to storage or memory."""
    name = option.name
    return name in _CONDITIONS or name in _HINT_FILES or _is_of_module(name)


def spelled(option: Option) -> str:
    """Write an option as one text, from which `tokens_of` makes its arguments again."""
    if option.name.startswith("--") and option.value is not None:
        return f"{option.name}={option.value}"
    return " ".join(option.tokens)


def tokens_of(conditions: Iterable[str]) -> list[str]:
    """Write conditions as arguments of IOR, without hints, which are in its environment."""
    options = (condition for condition in conditions if not is_hint(condition))
    return [token for condition in options for token in _tokens(condition)]


def hints_of(conditions: Iterable[str]) -> list[str]:
    """The hints of MPI-IO among conditions."""
    return [condition for condition in conditions if is_hint(condition)]


def conditions_to_text(conditions: Iterable[str]) -> str:
    """Write conditions as words for a shell, as the database and its exports keep them."""
    return shlex.join([*hints_of(conditions), *tokens_of(conditions)])


def conditions_of_text(text: str) -> tuple[str, ...]:
    """Read the text that `conditions_to_text` writes."""
    if not text:
        return ()
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"the conditions {text[:40]!r} cannot be split: {error}") from error
    options = [word for word in words if not is_hint(word)]
    return (*hints_of(words), *map(spelled, split_options(options)))


def canonical(
    conditions: Iterable[str],
    *,
    api: str,
    operations: Iterable[str],
    reordered: bool,
    collective: bool,
) -> tuple[str, ...]:
    """Write conditions in their newest spelling, sorted, without those that change nothing.

    Each condition is an option in any spelling: ``-M 75%``, ``-O reorderTasksRandom=1``. If a
    condition is given twice, the last one counts.
    """
    conditions, done = list(conditions), set(operations)
    hints = hints_of(conditions) if api in _HINTED else []
    found: dict[str, str | None] = {}
    levels: Counter[str] = Counter()
    for option in split_options(tokens_of(conditions)):
        if not is_condition(option):
            raise InputError(f"{' '.join(option.tokens)!r} is not a condition of IOR")
        condition = _condition(option, api)
        if condition.api not in {None, api} or not done & set(condition.operations):
            continue
        if condition.kind in {"flag", "levels"}:
            level = levels[condition.option] = option.times(levels[condition.option])
            found[condition.option] = _switched(condition, level)
        else:
            found[condition.option] = _with_value(condition, option.value or "1")
    if not (reordered or found.get("-Z")):
        found.pop("-Q", None)
    kept = canonical_hints(hints, operations=done, collective=collective)
    return tuple(sorted([*kept, *(written for written in found.values() if written)]))


def refusals(conditions: Iterable[str]) -> list[str]:
    """Give the reasons why a run under these conditions does not tell what storage does."""
    options = (condition.split(" ", 1)[0] for condition in conditions)
    return [_REFUSALS[option] for option in options if option in _REFUSALS]


def _is_of_module(name: str) -> bool:
    module, dot, option = name.removeprefix("-O ").removeprefix("--").partition(".")
    return bool(dot and module) and option.rpartition(".")[2] not in _PLACES


def _condition(option: Option, api: str) -> _Condition:
    """Find the condition of an option; an unknown one is the option of a module."""
    if option.name in _HINT_FILES:
        module = api if api in _HINTED else "MPIIO"
        return _Condition(f"--{module.lower()}.hintsFileName", "text", api=module)
    if option.name in _CONDITIONS:
        return _CONDITIONS[option.name]
    name = option.name
    if name.startswith("-O "):
        name = option.tokens[1].partition("=")[0]
    name = name if name.startswith("--") else f"--{name}"
    return _CONDITIONS.get(name, _Condition(name, "text"))


def _switched(condition: _Condition, level: int) -> str | None:
    if condition.kind == "levels" and level > 1:
        return f"{condition.option}=2"
    return condition.option if level else None


def _with_value(condition: _Condition, text: str) -> str | None:
    """Write a condition with its value; None for the default."""
    value = _value(condition.kind, text)
    if value == condition.default:
        return None
    joined = "=" if condition.option[:2] in {"--", "-O"} else " "
    return f"{condition.option}{joined}{value}"


def _value(kind: str, text: str) -> str:
    """Write a value in one way; an unusual one, such as 75% of the memory, stays as it is."""
    if kind == "packet":
        return _PACKETS.get(text[:1], text)
    with suppress(InputError):
        if kind == "count":
            return str(parse_count(text))
        if kind == "size":
            return format_size(parse_size(text))
    return text


def _tokens(condition: str) -> list[str]:
    return [condition] if condition.startswith("--") else condition.split(" ", 1)
