"""The calls of PnetCDF and HDF5: kinds of calls, selections, collective use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ioncast.insights.facts.values import Ints, possible
from ioncast.insights.tables.scopes import Scope
from ioncast.insights.tables.values import Line, Table
from summario.reading.records import Records

_PNETCDF_KINDS = ("VAR", "VAR1", "VARA", "VARS", "VARM", "VARN", "VARD")
_PNETCDF_CALLS = {"PUT": "put", "GET": "get", "IPUT": "iput", "IGET": "iget", "BPUT": "bput"}
# By module: the counters and what they count.
_COUNTERS: Mapping[str, Mapping[str, str]] = {
    "H5F": {"OPENS": "file opens", "FLUSHES": "flushes", "USE_MPIIO": "files through MPI-IO"},
    "H5D": {
        "OPENS": "dataset opens",
        "READS": "reads",
        "WRITES": "writes",
        "FLUSHES": "flushes",
        "REGULAR_HYPERSLAB_SELECTS": "regular hyperslab selections",
        "IRREGULAR_HYPERSLAB_SELECTS": "irregular hyperslab selections",
        "POINT_SELECTS": "point selections",
        "USE_MPIIO_COLLECTIVE": "datasets with collective access",
    },
    "PNETCDF_FILE": {
        "CREATES": "file creates",
        "OPENS": "file opens",
        "REDEFS": "redefinitions",
        "INDEP_WAITS": "independent waits",
        "COLL_WAITS": "collective waits",
        "SYNCS": "syncs",
    },
    "PNETCDF_VAR": {
        "OPENS": "variable opens",
        "INDEP_READS": "independent reads",
        "INDEP_WRITES": "independent writes",
        "COLL_READS": "collective reads",
        "COLL_WRITES": "collective writes",
        "NB_READS": "nonblocking reads",
        "NB_WRITES": "nonblocking writes",
        **{
            f"{call}_{kind}": f"calls of {name}_{kind.lower()}"
            for call, name in _PNETCDF_CALLS.items()
            for kind in _PNETCDF_KINDS
        },
    },
}


def libraries(scope: Scope) -> Table:
    """Count the calls of the libraries above MPI-IO that Darshan recorded."""
    lines = [
        line
        for module, records in scope.facts.libraries.items()
        for line in _lines(scope, module, records)
    ]
    return Table("libraries", "HDF5 and PnetCDF", tuple(lines))


def _lines(scope: Scope, module: str, records: Records) -> Iterator[Line]:
    groups = _groups(scope, records)
    present = np.zeros(len(scope), bool)
    present[groups[groups >= 0]] = True
    for counter, name in _COUNTERS[module].items():
        if f"{module}_{counter}" in records.columns:
            values = possible(records.integer(f"{module}_{counter}"))
            sums = _sums(values, groups, len(scope))
            yield Line(module, name, sums, present=present, is_rare=True)


def _groups(scope: Scope, records: Records) -> Ints:
    """Find the group of each record, -1 if its file does not count or is not known."""
    ids = records.file_ids if records.file_ids is not None else records.ids
    known = scope.facts.files.id
    if not scope.by_file and scope.has_all:
        # Files that only the library has records of, and datasets of an old Darshan, count too.
        return np.zeros(len(ids), np.int64)
    if not len(known):
        return np.full(len(ids), -1)
    place = np.searchsorted(known, ids).clip(max=len(known) - 1)
    return np.where(known[place] == ids, scope.group_of_file[place], -1)


def _sums(values: Ints, groups: Ints, number: int) -> NDArray[Any]:
    # Python's whole numbers do not overflow; a log has few records of libraries.
    sums = np.zeros(number, object)
    np.add.at(sums, groups[groups >= 0], values[groups >= 0])
    return sums
