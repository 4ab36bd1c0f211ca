"""PyDarshan (the package `darshan`), loaded only when it is asked for, and not always there."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, files
from typing import Any

from ioncast_base.errors import InputError


class MissingPyDarshanError(InputError):
    """PyDarshan is not installed, or without its library.

    Parameters
    ----------
    purpose : str
        The work that needs it, as the subject of the sentence.
    """

    def __init__(self, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs PyDarshan, which is not installed",
            remedy="use Python 3.12 or older and run `pip install darshan` there",
        )


def library_path(purpose: str) -> str:
    """Find libdarshan-util, the library in PyDarshan's wheel, without importing PyDarshan.

    Parameters
    ----------
    purpose : str
        The work that needs it, for the error.

    Raises
    ------
    MissingPyDarshanError
        When it is not installed.
    """
    try:
        wheel = files("darshan") or []
    except PackageNotFoundError:
        wheel = []
    for file in wheel:
        if file.name.startswith("libdarshan-util"):
            return str(file.locate())
    raise MissingPyDarshanError(purpose)


def import_pydarshan(purpose: str) -> Any:
    """Import PyDarshan, which takes a second.

    Parameters
    ----------
    purpose : str
        The work that needs it, for the error.

    Raises
    ------
    MissingPyDarshanError
        When it is not installed.
    """
    try:
        return import_module("darshan")
    except (ImportError, RuntimeError) as error:
        # Without its library it raises a RuntimeError.
        raise MissingPyDarshanError(purpose) from error
