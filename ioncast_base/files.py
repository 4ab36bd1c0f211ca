"""Files that are there as a whole or as they were before."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ioncast_base.errors import InputError


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Give a place to write to, which becomes the file when the block ends well.

    What is no regular file, such as a pipe, is written to at the end.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    target = Path(os.path.realpath(path))
    part = target.with_name(f".ioncast-{os.getpid()}.part")
    try:
        # A pipe behind /dev/stdout has no path of its own.
        if Path(path).exists() and not Path(path).is_file():
            with tempfile.TemporaryDirectory() as folder, Path(path).open("wb") as special:
                place = Path(folder) / "part"
                yield place
                with place.open("rb") as file:
                    shutil.copyfileobj(file, special)
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
