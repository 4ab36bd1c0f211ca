"""Files that are there as a whole or as they were before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ioncast_errors import InputError


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Give a place to write to, which becomes the file when the block ends well.

    What is no regular file, such as a pipe, is itself written to.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    target = Path(os.path.realpath(path))
    part = target.with_name(f".ioncast-{os.getpid()}.part")
    try:
        if target.exists() and not target.is_file():
            yield target
        else:
            yield part
            part.replace(target)
    except OSError as error:
        raise InputError(error.strerror or str(error), where=str(path)) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def write_file(path: str | Path, text: str) -> None:
    """Write a text file, whole or not at all (see `whole_file`)."""
    with whole_file(path) as place:
        place.write_text(text, encoding="utf-8")
