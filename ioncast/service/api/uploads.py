"""Files that clients send, and reading them in a disposable process."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from flask import request

from ioncast.service.context import service
from ioncast.service.sandbox.tasks import Place, TraceContent, Upload, read_trace
from ioncast_base.errors import BusyError

_LONGEST_NAME = 200
_CHUNK_BYTES = 1 << 20


@contextmanager
def uploaded(field: str) -> Iterator[Upload]:
    """Write a file of the form to a temporary file that other processes can read.

    Raises
    ------
    BusyError
        When the disk has no room for it.
    """
    sent = request.files[field]
    digest = hashlib.sha256()
    try:
        file = tempfile.NamedTemporaryFile(prefix="ioncast-upload-")  # noqa: SIM115
    except OSError as error:
        raise _no_room(error) from error
    with file:
        try:
            while chunk := sent.stream.read(_CHUNK_BYTES):
                digest.update(chunk)
                file.write(chunk)
            file.flush()
        except OSError as error:
            raise _no_room(error) from error
        yield Upload(file.name, name_of(sent.filename), digest.hexdigest())


def name_of(filename: str | None) -> str:
    r"""The name of a client's file, without folders and unprintable characters.

    Examples
    --------
    >>> name_of("C:\\logs\\app.darshan"), name_of("../../a\nb"), name_of("..")
    ('app.darshan', 'a?b', 'upload')
    """
    last = (filename or "").replace("\\", "/").rsplit("/", 1)[-1]
    name = "".join(letter if letter.isprintable() else "?" for letter in last)
    return name[-_LONGEST_NAME:] if name.strip(". ") else "upload"


def trace_of(upload: Upload) -> TraceContent:
    """Read a Darshan log, in a process of its own.

    Raises
    ------
    InputError
        When the log cannot be used; the error has the client's name of the file.
    BusyError
        When too many logs are being read.
    """
    return service().children.run(read_trace, upload)


def place() -> Place:
    """The place of the database, for functions in other processes."""
    settings = service().settings
    return Place(settings.database, settings.patience_s)


def _no_room(error: OSError) -> BusyError:
    return BusyError(f"an upload cannot be written to a temporary file: {error.strerror}")
