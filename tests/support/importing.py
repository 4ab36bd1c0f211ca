"""Program: imports modules, and prints the files, processes and variables that they ask for.

Usage: python importing.py PROJECT MODULE...

A line is a module's file, the event and its first argument. Only requests of a module in the
folder PROJECT are printed, not those of the libraries that it imports.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from types import FrameType

# Audit events of Python, or the beginnings of their names.
_EVENTS = (
    *("open", "os.", "glob.", "shutil.", "tempfile.", "fcntl.", "sqlite3.", "ctypes.dlopen"),
    *("subprocess.", "pty.", "socket.", "urllib.", "http."),
)
_LIBRARIES = f"{os.sep}site-packages{os.sep}"


def _callers() -> Iterator[FrameType]:
    """Yield the frames of all callers, the nearest first."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        yield frame


def _imported() -> str | None:
    """Find the file whose body runs; None while no module is imported."""
    bodies = (one.f_code.co_filename for one in _callers() if one.f_code.co_name == "<module>")
    file = next(bodies, None)
    return file if file != __file__ else None


class Watch:
    """Notes what the modules in a folder ask for while they are imported."""

    def __init__(self, folder: str) -> None:
        self.folder = f"{folder}{os.sep}"
        self.found: dict[str, None] = {}

    def start(self) -> None:
        """Watch until the interpreter ends."""
        environment = type(os.environ)
        for name in ("__getitem__", "__iter__", "copy"):
            setattr(environment, name, self._reading(getattr(environment, name)))
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[object, ...]) -> None:
        if not event.startswith(_EVENTS):
            return
        # The import itself opens sources and lists folders.
        if not sys._getframe(1).f_code.co_filename.startswith("<frozen importlib"):
            self._note(event, *args[:1])

    def _reading(self, original: object) -> object:
        assert callable(original)

        def read(*args: object) -> object:
            # Libraries have variables of their own, which they may read when they are called.
            if not any(_LIBRARIES in frame.f_code.co_filename for frame in _callers()):
                self._note("environment", *args[1:])
            return original(*args)

        return read

    def _note(self, event: str, *about: object) -> None:
        file = _imported()
        if file is not None and file.startswith(self.folder) and _LIBRARIES not in file:
            place = file.removeprefix(self.folder)
            self.found[" ".join([place, event, *map(str, about)])] = None


if __name__ == "__main__":
    project, *modules = sys.argv[1:]
    sys.path.insert(0, project)
    watch = Watch(project)
    watch.start()
    for module in modules:
        importlib.import_module(module)
    sys.stdout.write("".join(f"{line}\n" for line in watch.found))
