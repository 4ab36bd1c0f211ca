"""The logs that a command's arguments name: files, folders, patterns and standard input."""

from __future__ import annotations

import io
import os
import re
import stat
import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ioncast_base.errors import InputError, IoncastError
from summario.reading.log import MAX_BYTES, PHASE_MODULES, DarshanLog, decode_log, read_log
from summario.reading.packed import in_memory

SUFFIXES = (".darshan", ".darshan.gz")
_STANDARD_INPUT = "-"
_WILDCARD = re.compile(r"[*?[]")


@dataclass(frozen=True)
class Source:
    """A log to read: a file's path, or a name and a `content`, such as that of standard input.

    `modified_ns` is the Unix time of the content in nanoseconds, if it is known.
    """

    name: str
    content: bytes | None = None
    modified_ns: int | None = None


def source_of(argument: str) -> Source:
    """Name the log of an argument that stands for one log; `-` is read from standard input."""
    return _standard_input() if argument == _STANDARD_INPUT else Source(argument)


def find_sources(
    arguments: Iterable[str], suffixes: tuple[str, ...] = SUFFIXES
) -> Iterator[Source | IoncastError]:
    """List the logs of arguments in their order, each log or the error in its place.

    An argument is a file; a folder, for all files with one of `suffixes` in it and below; a pattern
    such as `2026/**/*.darshan`, if no file has this very name; or `-` for standard input.
    """
    for argument in arguments:
        try:
            if _is_folder(argument):
                yield from logs_below(argument, suffixes)
            elif _WILDCARD.search(argument) and not os.path.lexists(argument):
                yield from _matching(argument, suffixes)
            else:
                yield source_of(argument)
        except IoncastError as error:
            yield error


def logs_below(folder: str, suffixes: tuple[str, ...] = SUFFIXES) -> Iterator[Source | InputError]:
    """List the logs in a folder and below, sorted by name; an error in place of unreadable folders.

    Hidden files and files with other suffixes do not count. Links to folders are
    followed, but each folder counts once, so a loop of links ends. Without any log, an InputError
    is raised.
    """
    nothing_yet = True
    for found in _below(folder, suffixes):
        nothing_yet = False
        yield found
    if nothing_yet:
        raise InputError(
            f"this folder has no Darshan logs ({', '.join(f'*{each}' for each in suffixes)})",
            where=folder,
        )


def _below(folder: str, suffixes: tuple[str, ...]) -> Iterator[Source | InputError]:
    seen = set()
    waiting = [(folder, True)]
    while waiting:
        path, is_folder = waiting.pop()
        if not is_folder:
            yield Source(path)
            continue
        try:
            status = Path(path).stat()
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            with os.scandir(path) as entries:
                inside = sorted(entries, key=lambda entry: entry.name, reverse=True)
        except OSError as error:
            yield InputError(error.strerror or str(error), where=path)
            continue
        for entry in inside:
            if entry.name.startswith("."):
                continue
            below = entry.is_dir(follow_symlinks=False) or (
                entry.is_symlink() and _is_folder(entry.path)
            )
            if below or entry.name.endswith(suffixes):
                waiting.append((entry.path, below))


def _matching(pattern: str, suffixes: tuple[str, ...]) -> Iterator[Source | InputError]:
    """List the logs that a pattern matches, each once; a folder stands for the logs below it."""
    names_hidden = _is_hidden(Path(pattern))
    found: list[Source | InputError] = []
    try:
        matches = _matches(Path(pattern))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"this pattern cannot be used: {error}", where=pattern) from error
    for match in matches:
        if _is_hidden(match) and not names_hidden:
            continue
        if _is_folder(str(match)):
            found += _below(str(match), suffixes)
        else:
            found.append(Source(str(match)))
    if not found:
        raise InputError("there is no such file, and no log matches this pattern", where=pattern)
    # A folder and the logs in it may both match.
    yield from dict.fromkeys(found)


def _matches(pattern: Path) -> list[Path]:
    while pattern.name == "**":
        # The folder stands for everything below it.
        pattern = pattern.parent
    folder = Path(pattern.anchor)
    names = pattern.relative_to(folder)
    # Unlike glob.glob, this does not follow links for `**`, where two loops of links would have
    # 2^40 paths.
    return sorted(folder.glob(str(names))) if names.parts else [folder]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") and part != ".." for part in path.parts)


def _is_folder(path: str) -> bool:
    """Whether this is a folder; an error of anything else is found when it is read as a log."""
    try:
        return stat.S_ISDIR(Path(path).stat().st_mode)
    except OSError:
        return False


def read_source(source: Source, modules: Collection[str] = PHASE_MODULES) -> DarshanLog:
    """Read a log; see `summario.reading.log.read_log` for the modules and the errors."""
    if source.content is None:
        return read_log(source.name, modules=modules)
    return decode_log(io.BytesIO(source.content), source.name, modules=modules)


def _standard_input() -> Source:
    name = "standard input"
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("there is no log", where=name, remedy="send one, as with `< app.darshan`")
    try:
        content = in_memory(sys.stdin.buffer, name, MAX_BYTES, "write it to a file").getvalue()
    except OSError as error:
        raise InputError(error.strerror or str(error), where=name) from error
    if not content:
        raise InputError("there is no log", where=name, remedy="send one, and give - only once")
    return Source(name, content)
