"""The logs that an ingest is given: files, folders, patterns, lists of paths, members of tar files.

The process that plans the work only lists them. A process that makes rows reads them.
"""

from __future__ import annotations

import lzma
import os
import sys
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ioncast_base.errors import InputError, IoncastError
from summario.reading.log import MAX_BYTES
from summario.reading.sources import SUFFIXES, Source, find_sources

_TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_LIST_SUFFIX = ".txt"
_STANDARD_INPUT = "-"
_TAR_ERRORS = (tarfile.TarError, OSError, EOFError, ValueError, zlib.error, lzma.LZMAError)


@dataclass(frozen=True)
class LogFile:
    """A log's file, or a member of the tar file `path`, with its size and its Unix time."""

    path: str
    member: str | None
    size_bytes: int
    modified_ns: int

    @property
    def name(self) -> str:
        """The path as the tables have it; a member comes after its tar file and a colon."""
        return self.path if self.member is None else f"{self.path}:{self.member}"


def find_logs(arguments: Iterable[str]) -> Iterator[LogFile | IoncastError]:
    """List the logs of arguments, with an error in the place of each that is not there.

    An argument is a log, a tar file, a folder, a pattern, a list of such paths (a file `*.txt`), or
    `-` for a list on standard input.
    """
    for argument in arguments:
        try:
            paths = _listed(argument)
        except (OSError, UnicodeDecodeError) as error:
            yield InputError(f"the list cannot be read: {error}", where=argument)
            continue
        for found in find_sources(paths, (*SUFFIXES, *_TAR_SUFFIXES)):
            if isinstance(found, IoncastError):
                yield found
            elif found.name.endswith(_TAR_SUFFIXES):
                yield from _members(os.path.abspath(found.name))  # noqa: PTH100
            else:
                yield _log_file(os.path.abspath(found.name))  # noqa: PTH100


def sources_of(files: Iterable[LogFile]) -> Iterator[Source | IoncastError]:
    """Read members of tar files, and name the other logs; errors are in the places of logs.

    Neighbouring members of one tar file are read from one opening of it.
    """
    with ExitStack() as stack:
        path, tar = None, None
        for file in files:
            if file.member is None:
                yield Source(file.path)
                continue
            try:
                if tar is None or file.path != path:
                    stack.close()
                    path, tar = file.path, stack.enter_context(tarfile.open(file.path))
                yield Source(file.name, _content(tar, file), file.modified_ns)
            except _TAR_ERRORS as error:
                yield InputError(f"the tar file cannot be read: {error}", where=file.name)


def _listed(argument: str) -> list[str]:
    if argument == _STANDARD_INPUT:
        return sys.stdin.read().split("\n")[:-1]
    if argument.endswith(_LIST_SUFFIX):
        return [line for line in Path(argument).read_text("utf-8").split("\n") if line]
    return [argument]


def _log_file(path: str) -> LogFile | InputError:
    try:
        status = Path(path).stat()
    except OSError as error:
        return InputError(error.strerror or str(error), where=path)
    return LogFile(path, None, status.st_size, status.st_mtime_ns)


def _members(path: str) -> Iterator[LogFile | InputError]:
    try:
        with tarfile.open(path) as tar:
            for member in tar:
                if member.isreg() and member.name.endswith(SUFFIXES):
                    modified_ns = round(member.mtime * 1e9)
                    yield LogFile(path, member.name, member.size, modified_ns)
    except _TAR_ERRORS as error:
        yield InputError(f"the tar file cannot be read: {error}", where=path)


def _content(tar: tarfile.TarFile, file: LogFile) -> bytes:
    if file.size_bytes > MAX_BYTES:
        raise ValueError(f"{file.member} is too large")
    member = tar.extractfile(str(file.member))
    if member is None:
        raise ValueError(f"{file.member} is not a file")
    return member.read(MAX_BYTES)
