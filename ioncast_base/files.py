"""Files that are replaced as a whole or not at all, ends of long files, programs."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from ioncast_base.errors import InputError

_LOG_BYTES = 1 << 20
_IN_MEMORY = "/dev/shm"  # noqa: S108 - each use makes a file or folder with a name of its own
# `python -m` would import modules from the current folder, which may belong to another user;
# `python -P` does not, from Python 3.11 on.
_RUN_MODULE = """
import sys
if sys.path[:1] == [""]:
    del sys.path[0]
import runpy
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Yield a path to write to; the file there replaces `path` when the block ends normally.

    A pipe or a device cannot be replaced, so the content is copied to it at the end.
    """
    target = Path(os.path.realpath(path))
    part = target.with_name(f".ioncast-{os.getpid()}.part")
    try:
        # The real path of /dev/stdout may be /proc/…/fd/pipe:[…], which cannot be opened.
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
    """Write a text file as a whole or not at all (see `whole_file`)."""
    with whole_file(path) as place:
        place.write_text(text, encoding="utf-8")


def memory_folder() -> str | None:
    """The folder in memory for small files of programs that must not need a disk.

    None where this process cannot write to it.
    """
    return _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else None


def runtime_folder(environment: Mapping[str, str]) -> str:
    """The folder in memory that systemd made for a service, such as /run/ioncast.

    The text is empty without systemd.
    """
    return environment.get("RUNTIME_DIRECTORY", "").partition(":")[0]


def running_module(module: str, *arguments: str) -> list[str]:
    """The command that runs a module as `python -m` does, but imports none from this folder."""
    return [sys.executable, "-c", _RUN_MODULE, module, *arguments]


def end_of_log(log: Path) -> str:
    """Read the last MiB of a log, which may be of any size; nothing if it cannot be read."""
    try:
        with log.open("rb") as file:
            file.seek(max(log.stat().st_size - _LOG_BYTES, 0))
            return file.read(_LOG_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def program_of(executable: str) -> str:
    """The executable without its folder: `hacc_io` of `/opt/hacc/bin/hacc_io`."""
    return executable.rstrip("/").rpartition("/")[2]
