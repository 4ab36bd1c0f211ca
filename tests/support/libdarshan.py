"""Records as PyDarshan reads them, the oracle of our own reader."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from summario.reading.layouts import layout_of, newest_version
from summario.reading.pydarshan import import_pydarshan


@cache
def backend() -> Any:
    """Import PyDarshan's functions on logs."""
    return import_pydarshan("this test").backend.cffi_backend


def counter_names(module: str) -> tuple[list[str], list[str]]:
    """Name the counters: whole numbers, then floating-point numbers.

    PyDarshan has no names for BG/Q's counters, so they are ours.
    """
    if module != "BG/Q":
        return backend().counter_names(module), backend().fcounter_names(module)
    layout = layout_of(module, newest_version(module))
    assert layout is not None
    return list(layout.counters[:-1]), list(layout.counters[-1:])


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Open a log; its handle goes to the functions of the backend."""
    handle = backend().log_open(str(path))
    try:
        yield handle
    finally:
        backend().log_close(handle)


def records_of(handle: Any, module: str) -> Iterator[dict[str, Any]]:
    """Read the records of a module in its newest version; `named` has the counters by name."""
    names = [name for kind in counter_names(module) for name in kind]
    while (record := backend().log_get_record(handle, module, "numpy")) is not None:
        counters = [*record["counters"].tolist(), *record["fcounters"].tolist()]
        yield {**record, "named": dict(zip(names, counters, strict=True))}


def misread_counters(module: str, version: int, byte_order: str) -> set[str]:
    """List the counters that libdarshan-util 3.5.0 reads wrongly.

    Its conversion of POSIX records to version 4 cuts off the last two floating-point counters of
    version 3, and four of version 2. It leaves three counters of big-endian POSIX records in the
    wrong byte order, and adds the opens of PnetCDF before it has swapped their bytes.
    """
    layout = layout_of(module, version)
    assert layout is not None
    if module == "PNETCDF_FILE" and version < 3 and byte_order == ">":
        return {"PNETCDF_FILE_OPENS"}
    if module != "POSIX" or version > 3:
        return set()
    misread = set(layout.counters[{1: len(layout.counters), 2: -4, 3: -2}[version] :])
    if byte_order == ">":
        misread |= {"POSIX_F_META_TIME", "POSIX_F_MAX_READ_TIME", "POSIX_F_MAX_WRITE_TIME"}
    return misread
