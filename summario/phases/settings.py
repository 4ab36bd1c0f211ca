"""Settings of the extraction, and their defaults."""

from __future__ import annotations

from dataclasses import dataclass, fields

SOURCES = ("counters", "dxt")
LAYERS = ("highest", "posix", "mpiio", "stdio", "all")


@dataclass(frozen=True)
class ExtractionSettings:
    """The choices that a user has when phases are extracted from a log.

    Attributes
    ----------
    threshold : float
        The share of requests that may be out of order in a contiguous or sequential phase, or
        not collective in a collective phase.
    time_distance : float
        A longer time without I/O, in seconds, ends a phase.
    layer : str
        One of `LAYERS`: for each file the highest layer that the application used, one layer for
        all files, or all layers. With all layers the same bytes may count twice.
    all_files : bool
        Also count files of the system: /proc, /sys, /dev, /etc, shared libraries, compiled
        Python modules, standard streams.
    min_share : float
        Phases with a smaller share of the bytes are left out.
    phases : str
        One of `SOURCES`: whether the counters or the DXT trace tell the order and the sizes of
        requests. Only a trace tells how the bytes lie over processes and compute nodes.
    """

    threshold: float = 0.2
    time_distance: float = 1.0
    layer: str = "highest"
    all_files: bool = False
    min_share: float = 0.0
    phases: str = "counters"

    @property
    def changed(self) -> dict[str, float | str | bool]:
        """The settings that are not the default, by name."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }


DEFAULTS = ExtractionSettings()
