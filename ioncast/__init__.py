"""The roof, which is built on the rooms: the Python interface, the command and the service."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ioncast.frames import curves, match, phases, predict, validate
    from ioncast_base.errors import IoncastError
    from summario.phases.settings import ExtractionSettings

_MODULES = {
    "phases": "ioncast.frames",
    "match": "ioncast.frames",
    "curves": "ioncast.frames",
    "predict": "ioncast.frames",
    "validate": "ioncast.frames",
    "ExtractionSettings": "summario.phases.settings",
    "IoncastError": "ioncast_base.errors",
}
__all__ = [
    "ExtractionSettings",
    "IoncastError",
    "curves",
    "match",
    "phases",
    "predict",
    "validate",
]


def __getattr__(name: str) -> Any:
    """Load a function of the interface when it is used first: the command needs none of them."""
    if name not in _MODULES:
        raise AttributeError(f"module 'ioncast' has no attribute {name!r}")
    try:
        return getattr(import_module(_MODULES[name]), name)
    except ModuleNotFoundError as error:
        from ioncast_base.errors import missing_package  # noqa: PLC0415

        raise (missing_package(error, f"ioncast.{name}") or error) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
