"""Files that clients send, and reading them in a disposable process."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import ceil

from flask import Request, request
from werkzeug.datastructures import FileStorage

from ioncast.service.context import service
from ioncast.service.store.run_insights import NewInsights
from ioncast.service.web.http.problems import words_of
from ioncast.service.web.sandbox.child import ChildLimits
from ioncast.service.web.sandbox.reading_insights import read_logs
from ioncast.service.web.sandbox.tasks import Place, TraceContent
from ioncast.service.web.sandbox.uploaded_logs import Upload
from ioncast_base.errors import BusyError, IoncastError

# No request has more logs. A client that sends more would get no answer within a minute.
MOST_LOGS = 1000
_LONGEST_NAME = 200
# The log of 64,000 records takes half a second. A client waits this long, after its log was read.
_INSIGHTS_S = 20
_CHUNK_BYTES = 1 << 20


class UploadRequest(Request):
    """A request whose form may have long files, which Werkzeug writes to temporary ones."""

    def _load_form_data(self) -> None:
        with _room_for_files():
            super()._load_form_data()


@contextmanager
def _room_for_files() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BusyError(
            f"an upload cannot be written to a temporary file: {error.strerror}"
        ) from error


def uploaded(field: str) -> list[Upload]:
    """Give all files of a field of the form paths at which other processes can read them.

    The files have no names in a folder, so nothing is left of them after the request or a kill.
    """
    with _room_for_files():
        return [_readable(sent) for sent in request.files.getlist(field)]


def _readable(sent: FileStorage) -> Upload:
    digest = hashlib.sha256()
    while chunk := sent.stream.read(_CHUNK_BYTES):
        digest.update(chunk)
    # Werkzeug keeps a small file in memory until its descriptor is asked for.
    path = f"/proc/{os.getpid()}/fd/{sent.stream.fileno()}"
    sent.stream.flush()
    return Upload(path, name_of(sent.filename), digest.hexdigest())


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


def content_of(
    uploads: Sequence[Upload], nodes: int | None
) -> tuple[TraceContent, NewInsights | IoncastError | RuntimeError]:
    """Read the Darshan logs of a run once, in a process of its own.

    Raises
    ------
    InputError
        When a log cannot be used, or the logs are not of one run; the error has the client's
        names of the files.
    """
    of = service()
    seconds = of.children.limits.seconds, insights_limit_s()
    content, insights = of.children.run_parts(seconds, read_logs, uploads, nodes, of.thresholds)
    if isinstance(content, Exception):
        raise content
    return content, insights


def insights_limit_s() -> int:
    """The time limit of insights, in seconds."""
    return limit_in_seconds(_INSIGHTS_S)


def limit_in_seconds(by_default: int) -> int:
    """Compute a time limit of work on uploads: where `upload_s` is longer, it is longer, too."""
    return ceil(by_default * max(service().settings.upload_s / ChildLimits.seconds, 1))


def why_no_insights(error: IoncastError | RuntimeError) -> str:
    """A sentence for users whose log was read, but gave no insights."""
    said = words_of(error)
    return f"no insights were made{f': {said}' if said else '; send the log again to get them'}"


def place() -> Place:
    """The place of the database, for functions in other processes."""
    settings = service().settings
    return Place(settings.database, settings.patience_s)
