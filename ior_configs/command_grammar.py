"""The grammar of IOR's command line, without the meaning of the values.

`split_options` accepts the forms of IOR 3.0, which uses getopt, and of later parsers: ``-b 16m``,
``-b=16m``, ``-b16m``, grouped flags ``-wr``, flags with a value ``-w=0``, long options
``--collective`` and lists of directives ``-O blockSize=16m,writeFile=1``.

IOR 4 also reads the letters of an attached value as flags: ``-b16m`` switches on ``-m``. Here an
attached value is only a value, as in earlier versions, and values are always written as words of
their own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ioncast_base.errors import InputError
from ioncast_base.sizes import parse_count

_FLAGS = {
    "w": "write",
    "r": "read",
    "F": "file_per_process",
    "c": "collective",
    "z": "random_offsets",
    "C": "reorder_tasks",
    "e": "fsync_at_end",
    "Y": "fsync_each_write",
    "g": "intra_test_barriers",
    "k": "keep_file",
    "m": "multi_file",
    "B": "odirect",
}
_VALUES = {
    "a": "api",
    "b": "block_size",
    "t": "transfer_size",
    "s": "segments",
    "i": "repetitions",
    "d": "inter_test_delay",
    "o": "test_file",
    "N": "tasks",
}
_LONG_FLAGS = {"collective": "collective", "posix.odirect": "odirect"}
_DIRECTIVES = {
    "api": "api",
    "writefile": "write",
    "readfile": "read",
    "fileperproc": "file_per_process",
    "collective": "collective",
    "randomoffset": "random_offsets",
    "blocksize": "block_size",
    "transfersize": "transfer_size",
    "segmentcount": "segments",
    "reordertasks": "reorder_tasks",
    "reordertasksconstant": "reorder_tasks",
    "fsync": "fsync_at_end",
    "fsyncperwrite": "fsync_each_write",
    "intratestbarriers": "intra_test_barriers",
    "keepfile": "keep_file",
    "repetitions": "repetitions",
    "multifile": "multi_file",
    "intertestdelay": "inter_test_delay",
    "testfile": "test_file",
    "summaryformat": "summary_format",
    "useo_direct": "odirect",
    "posix.odirect": "odirect",
    "--posix.odirect": "odirect",
    "numtasks": "tasks",
    "numnodes": "nodes",
}
_OTHER_FLAGS = frozenset("EHIKPRSVWZnpquvxy")
_OTHER_VALUES = frozenset("ADGJMQTUXfjl")
_OTHER_LONG_VALUES = frozenset({"dataPacketType", "randomPrefill", "random-offset-seed"})
_OTHER_LONG_FLAGS = frozenset({"dryRun", "gpuDirect", "warningAsErrors"})


_OPTIONS_START_WITH_DASH = "IOR accepts only options, which start with -"


@dataclass(frozen=True)
class Option:
    """One option of IOR on a command line; the value of a flag without a value is None.

    `name` is the field of `IorConfig` that the option sets, except for ``-e`` and ``-Y``, which set
    a field together, and for options without a field, which have IOR's spelling: ``-R``,
    ``--dryRun``, ``-O checkread`` (lower case).
    """

    name: str
    value: str | None
    tokens: tuple[str, ...]

    @property
    def known(self) -> bool:
        """Whether the option sets a field of `IorConfig`."""
        return not self.name.startswith("-")

    @property
    def on(self) -> bool:
        """Whether a flag is switched on."""
        return self.value is None or self.value.strip("0") != ""

    def times(self, before: int) -> int:
        """Count a flag as IOR does: each flag adds one, a value replaces the count."""
        return before + 1 if self.value is None else parse_count(self.value)


def split_options(args: Sequence[str]) -> list[Option]:
    """Split IOR's arguments into options."""
    waiting = deque(args)
    options: list[Option] = []
    while waiting:
        token = waiting.popleft()
        if token.startswith("--"):
            options.append(_long_option(token, waiting))
        elif token.startswith("-"):
            options.extend(_short_options(token, waiting))
        else:
            raise InputError(f"{token!r} is not an option of IOR", remedy=_OPTIONS_START_WITH_DASH)
    return options


def _long_option(token: str, waiting: deque[str]) -> Option:
    name, equals, value = token[2:].partition("=")
    if not name or (equals and not value):
        raise InputError(f"{token!r} is not an option of IOR")
    if name in _LONG_FLAGS:
        return Option(_LONG_FLAGS[name], value or None, (token,))
    if equals or name in _OTHER_LONG_FLAGS:
        return Option(f"--{name}", value or None, (token,))
    if name in _OTHER_LONG_VALUES or (waiting and not waiting[0].startswith("-")):
        value = _next_value(token, waiting)
        return Option(f"--{name}", value, (token, value))
    return Option(f"--{name}", None, (token,))


def _short_options(token: str, waiting: deque[str]) -> Iterator[Option]:
    """Yield the options of one token such as ``-wr``, ``-z=2`` or ``-b16m``."""
    letters, equals, value = token[1:].partition("=")
    if not letters or (equals and not value):
        raise InputError(f"{token!r} is not an option of IOR")
    for position, letter in enumerate(letters):
        if letter == "O" or letter in _VALUES or letter in _OTHER_VALUES:
            attached = letters[position + 1 :]
            if attached and equals:
                raise InputError(
                    f"{token!r} is read differently by different versions of IOR",
                    remedy=f"write -{letter} and its value as two words",
                )
            yield from _valued_options(f"-{letter}", f"{attached}{equals}{value}", waiting)
            return
        yield _flag(letter, value or None)


def _valued_options(option: str, attached: str, waiting: deque[str]) -> Iterator[Option]:
    """Yield one option with its attached or following value, or the directives of ``-O``."""
    value = attached.removeprefix("=") or _next_value(option, waiting)
    if option == "-O":
        yield from _directives(value)
    else:
        tokens = (f"{option}{attached}",) if attached else (option, value)
        yield Option(_VALUES.get(option[1], option), value, tokens)


def _flag(letter: str, value: str | None) -> Option:
    token = f"-{letter}" if value is None else f"-{letter}={value}"
    if letter in _FLAGS:
        return Option(_FLAGS[letter], value, (token,))
    if letter in _OTHER_FLAGS:
        return Option(token[:2], value, (token,))
    raise InputError(f"-{letter} is not an option of IOR")


def _directives(text: str) -> Iterator[Option]:
    """Yield the options of ``-O NAME=VALUE,NAME=VALUE``; ``#`` starts a comment."""
    for directive in text.partition("#")[0].split(","):
        name, equals, value = (part.strip() for part in directive.partition("="))
        if not (name and equals and value) or len(f"{name}{value}".split()) != 1:
            raise InputError(
                f"{directive!r} is not a directive of IOR", remedy="write -O NAME=VALUE,NAME=VALUE"
            )
        known = _DIRECTIVES.get(name.lower(), f"-O {name.lower()}")
        yield Option(known, value, ("-O", f"{name}={value}"))


def _next_value(token: str, waiting: deque[str]) -> str:
    if not waiting or not waiting[0]:
        raise InputError(f"{token} needs a value")
    return waiting.popleft()
