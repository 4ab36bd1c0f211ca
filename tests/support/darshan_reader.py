"""Reads a log with PyDarshan, as arguments of `write_log`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiments.applications.darshan_writer import Dxt, Heatmap, Record
from tests.support.libdarshan import backend

_COUNTER_MODULES = ("POSIX", "MPI-IO", "STDIO")
_DXT_MODULES = ("DXT_POSIX", "DXT_MPIIO")


def read_log(path: Path) -> dict[str, Any]:
    """Read all contents of a log; `write_log(path, **read_log(other))` copies it."""
    log = backend().log_open(str(path))
    try:
        job = backend().log_get_job(log)
        names = backend().log_get_name_records(log)
        modules = backend().log_get_modules(log)
        return {
            "nprocs": job["nprocs"],
            "jobid": job["jobid"],
            "uid": job["uid"],
            "start": (job["start_time_sec"], job["start_time_nsec"]),
            "end": (job["end_time_sec"], job["end_time_nsec"]),
            "metadata": "".join(f"{key}={value}\n" for key, value in job["metadata"].items()),
            "exe": backend().log_get_exe(log),
            "mounts": backend().log_get_mounts(log),
            "names": sorted(names.values()),
            "partial_modules": [name for name, module in modules.items() if module["partial_flag"]],
            "records": [
                _record(module, raw, names)
                for module in _COUNTER_MODULES
                for raw in _raw_records(log, module)
            ],
            "dxt": [
                _dxt(module, raw, names)
                for module in _DXT_MODULES
                for raw in _raw_records(log, module)
            ],
            "heatmaps": [_heatmap(raw, names) for raw in _raw_records(log, "HEATMAP")],
        }
    finally:
        backend().log_close(log)


def module_versions(path: Path) -> dict[str, int]:
    """Read the version of each module that has records in a log."""
    log = backend().log_open(str(path))
    try:
        return {name: module["ver"] for name, module in backend().log_get_modules(log).items()}
    finally:
        backend().log_close(log)


def _raw_records(log: Any, module: str) -> Iterator[dict[str, Any]]:
    while (raw := backend().log_get_record(log, module)) is not None:
        yield raw


def _record(module: Any, raw: dict[str, Any], names: dict[int, str]) -> Record:
    return Record(
        module,
        names[raw["id"]],
        raw["rank"],
        _named(backend().counter_names(module), raw["counters"]),
        _named(backend().fcounter_names(module), raw["fcounters"]),
    )


def _named(names: list[str], values: Any) -> dict[str, Any]:
    return dict(zip(names, values.tolist(), strict=True))


def _dxt(module: Any, raw: dict[str, Any], names: dict[int, str]) -> Dxt:
    return Dxt(
        module,
        names[raw["id"]],
        raw["rank"],
        raw["hostname"],
        [tuple(segment.values()) for segment in raw["write_segments"]],
        [tuple(segment.values()) for segment in raw["read_segments"]],
    )


def _heatmap(raw: dict[str, Any], names: dict[int, str]) -> Heatmap:
    module: Any = names[raw["id"]].removeprefix("heatmap:")
    return Heatmap(
        module,
        raw["rank"],
        raw["bin_width_seconds"],
        raw["write_bins"].tolist(),
        raw["read_bins"].tolist(),
    )
