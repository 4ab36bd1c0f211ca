"""The roof, which is built on the rooms: the Python interface, the command and the service."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ioncast.python.of_logs import characterize, check, phases, timeline
    from ioncast.python.of_stores import diagnose, sql
    from ioncast.python.of_systems import (
        advise,
        curves,
        import_results,
        match,
        predict,
        validate,
    )
    from ioncast.python.results import Plot, Result
    from ioncast_base.errors import IoncastError
    from summario.phases.settings import ExtractionSettings

    __version__: str

_MODULES = {
    **dict.fromkeys(("phases", "check", "characterize", "timeline"), "ioncast.python.of_logs"),
    **dict.fromkeys(
        ("match", "predict", "curves", "advise", "validate", "import_results"),
        "ioncast.python.of_systems",
    ),
    **dict.fromkeys(("sql", "diagnose"), "ioncast.python.of_stores"),
    **dict.fromkeys(("Plot", "Result"), "ioncast.python.results"),
    "ExtractionSettings": "summario.phases.settings",
    "IoncastError": "ioncast_base.errors",
}
__all__ = [
    "ExtractionSettings",
    "IoncastError",
    "Plot",
    "Result",
    "__version__",
    "advise",
    "characterize",
    "check",
    "curves",
    "diagnose",
    "import_results",
    "match",
    "phases",
    "predict",
    "sql",
    "timeline",
    "validate",
]


def __getattr__(name: str) -> Any:
    """Load a function of the interface when it is used first: the command needs none of them."""
    if name == "__version__":
        # Reading the version of the installed package takes as long as starting Python.
        from importlib.metadata import version  # noqa: PLC0415

        return version("ioncast")
    if name not in _MODULES:
        raise AttributeError(f"module 'ioncast' has no attribute {name!r}")
    try:
        return getattr(import_module(_MODULES[name]), name)
    except ModuleNotFoundError as error:
        from ioncast_base.errors import missing_package  # noqa: PLC0415

        raise (missing_package(error, f"ioncast.{name}") or error) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
