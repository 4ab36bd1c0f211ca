"""The counters in a record of each module and version, in their order.

The names are those of Darshan's `darshan-*-log-format.h`. The older versions are taken from the
conversions in its `darshan-*-logutils.c`. A record has 8-byte words alone: the record id, the
rank, then the counters: whole numbers first, floating-point numbers last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

SIZE_BINS = (
    "0_100",
    "100_1K",
    "1K_10K",
    "10K_100K",
    "100K_1M",
    "1M_4M",
    "4M_10M",
    "10M_100M",
    "100M_1G",
    "1G_PLUS",
)
# The record id of the file that a dataset or a variable is in.
FILE_ID = "file_id"
_DIMENSIONS = 5
_COMMON = range(1, 5)


@dataclass(frozen=True)
class Layout:
    """A record's words behind id and rank; `leading` names those before counters (`FILE_ID`)."""

    counters: tuple[str, ...]
    leading: tuple[str, ...] = ()
    trailing: int = 0

    @property
    def words(self) -> int:
        """All words of a record, with its id and rank."""
        return 2 + len(self.leading) + len(self.counters) + self.trailing

    @cached_property
    def columns(self) -> Mapping[str, int]:
        """The word of each leading name and counter, from 0 for the record id."""
        return {name: index for index, name in enumerate((*self.leading, *self.counters), 2)}


def layout_of(module: str, version: int) -> Layout | None:
    """Look up the layout of a module's records; None for a version that is not known."""
    if not 1 <= version <= newest_version(module):
        return None
    older = _OLDER_VERSIONS.get((module, version))
    return older or _NEWEST[module][1]


def newest_version(module: str) -> int:
    """Look up the newest known version of a module's records."""
    return _NEWEST[module][0]


def _named(prefix: str, names: str, leading: tuple[str, ...] = (), trailing: int = 0) -> Layout:
    return Layout(tuple(f"{prefix}_{name}" for name in names.split()), leading, trailing)


def _histograms(infix: str = "") -> str:
    kinds = ("READ", "WRITE")
    return " ".join(f"SIZE_{kind}{infix}_{name}" for kind in kinds for name in SIZE_BINS)


def _common(*patterns: str) -> str:
    """Number the four most common values: all of a pattern, then all of the next one."""
    return " ".join(pattern.format(index) for pattern in patterns for index in _COMMON)


def _common_shapes() -> str:
    """Number the four most common accesses to an array, with their shapes."""
    shape = [f"{what}_D{i}" for what in ("LENGTH", "STRIDE") for i in range(1, _DIMENSIONS + 1)]
    return " ".join(f"ACCESS{i}_{name}" for i in _COMMON for name in ("ACCESS", *shape))


_ACCESSES = _common("ACCESS{}_ACCESS", "ACCESS{}_COUNT")
_RANKS = "FASTEST_RANK FASTEST_RANK_BYTES SLOWEST_RANK SLOWEST_RANK_BYTES"
_MAX_TIME_SIZES = "MAX_READ_TIME_SIZE MAX_WRITE_TIME_SIZE"
_TIMESTAMPS = " ".join(
    f"F_{call}_{side}_TIMESTAMP"
    for side in ("START", "END")
    for call in ("OPEN", "READ", "WRITE", "CLOSE")
)
_TIMES = "F_READ_TIME F_WRITE_TIME F_META_TIME F_MAX_READ_TIME F_MAX_WRITE_TIME"
_RANK_TIMES = "F_FASTEST_RANK_TIME F_SLOWEST_RANK_TIME"
_VARIANCES = "F_VARIANCE_RANK_TIME F_VARIANCE_RANK_BYTES"
_REALS = f"{_TIMESTAMPS} {_TIMES} {_RANK_TIMES} {_VARIANCES}"

_POSIX = _named(
    "POSIX",
    "OPENS FILENOS DUPS READS WRITES SEEKS STATS MMAPS FSYNCS FDSYNCS RENAME_SOURCES"
    " RENAME_TARGETS RENAMED_FROM MODE BYTES_READ BYTES_WRITTEN MAX_BYTE_READ MAX_BYTE_WRITTEN"
    " CONSEC_READS CONSEC_WRITES SEQ_READS SEQ_WRITES RW_SWITCHES MEM_NOT_ALIGNED MEM_ALIGNMENT"
    f" FILE_NOT_ALIGNED FILE_ALIGNMENT {_MAX_TIME_SIZES} {_histograms()}"
    f" {_common('STRIDE{}_STRIDE', 'STRIDE{}_COUNT')} {_ACCESSES} {_RANKS} {_REALS}",
)
_MPIIO = _named(
    "MPIIO",
    "INDEP_OPENS COLL_OPENS INDEP_READS INDEP_WRITES COLL_READS COLL_WRITES SPLIT_READS"
    " SPLIT_WRITES NB_READS NB_WRITES SYNCS HINTS VIEWS MODE BYTES_READ BYTES_WRITTEN RW_SWITCHES"
    f" {_MAX_TIME_SIZES} {_histograms('_AGG')} {_ACCESSES} {_RANKS} {_REALS}",
)
_STDIO = _named(
    "STDIO",
    "OPENS FDOPENS READS WRITES SEEKS FLUSHES BYTES_WRITTEN BYTES_READ MAX_BYTE_READ"
    f" MAX_BYTE_WRITTEN {_RANKS} F_META_TIME F_WRITE_TIME F_READ_TIME F_OPEN_START_TIMESTAMP"
    " F_CLOSE_START_TIMESTAMP F_WRITE_START_TIMESTAMP F_READ_START_TIMESTAMP F_OPEN_END_TIMESTAMP"
    " F_CLOSE_END_TIMESTAMP F_WRITE_END_TIMESTAMP F_READ_END_TIMESTAMP"
    f" {_RANK_TIMES} {_VARIANCES}",
)
_H5F = _named(
    "H5F",
    "OPENS FLUSHES USE_MPIIO F_OPEN_START_TIMESTAMP F_CLOSE_START_TIMESTAMP F_OPEN_END_TIMESTAMP"
    " F_CLOSE_END_TIMESTAMP F_META_TIME",
)
_H5D = _named(
    "H5D",
    "OPENS READS WRITES FLUSHES BYTES_READ BYTES_WRITTEN RW_SWITCHES REGULAR_HYPERSLAB_SELECTS"
    f" IRREGULAR_HYPERSLAB_SELECTS POINT_SELECTS {_MAX_TIME_SIZES} {_histograms('_AGG')}"
    f" {_common_shapes()} {_common('ACCESS{}_COUNT')} DATASPACE_NDIMS DATASPACE_NPOINTS"
    " DATATYPE_SIZE CHUNK_SIZE_D1 CHUNK_SIZE_D2 CHUNK_SIZE_D3 CHUNK_SIZE_D4 CHUNK_SIZE_D5"
    f" USE_MPIIO_COLLECTIVE USE_DEPRECATED {_RANKS} {_REALS}",
    leading=(FILE_ID,),
)
_PNETCDF_FILE = _named(
    "PNETCDF_FILE",
    "CREATES OPENS REDEFS INDEP_WAITS COLL_WAITS SYNCS BYTES_READ BYTES_WRITTEN WAIT_FAILURES"
    " F_OPEN_START_TIMESTAMP F_CLOSE_START_TIMESTAMP F_WAIT_START_TIMESTAMP F_OPEN_END_TIMESTAMP"
    " F_CLOSE_END_TIMESTAMP F_WAIT_END_TIMESTAMP F_META_TIME F_WAIT_TIME",
)
_PNETCDF_CALLS = " ".join(
    f"{call}_VAR{kind}"
    for call, kinds in (
        ("PUT", ("", "1", "A", "S", "M", "N", "D")),
        ("GET", ("", "1", "A", "S", "M", "N", "D")),
        ("IPUT", ("", "1", "A", "S", "M", "N")),
        ("IGET", ("", "1", "A", "S", "M", "N")),
        ("BPUT", ("", "1", "A", "S", "M", "N")),
    )
    for kind in kinds
)
_PNETCDF_VAR = _named(
    "PNETCDF_VAR",
    "OPENS INDEP_READS INDEP_WRITES COLL_READS COLL_WRITES NB_READS NB_WRITES BYTES_READ"
    f" BYTES_WRITTEN RW_SWITCHES {_PNETCDF_CALLS} {_MAX_TIME_SIZES} {_histograms('_AGG')}"
    f" {_common_shapes()} {_common('ACCESS{}_COUNT')} NDIMS NPOINTS DATATYPE_SIZE IS_RECORD_VAR"
    f" {_RANKS} {_REALS}",
    leading=(FILE_ID,),
)
_BGQ = _named(
    "BGQ",
    "CSJOBID NNODES RANKSPERNODE DDRPERNODE INODES ANODES BNODES CNODES DNODES ENODES TORUSENABLED"
    " F_TIMESTAMP",
)
_DFS = _named(
    "DFS",
    "OPENS GLOBAL_OPENS LOOKUPS DUPS READS READXS WRITES WRITEXS NB_READS NB_WRITES GET_SIZES"
    " PUNCHES REMOVES STATS BYTES_READ BYTES_WRITTEN RW_SWITCHES"
    f" {_MAX_TIME_SIZES} {_histograms()} {_ACCESSES} CHUNK_SIZE {_RANKS}"
    f" {_TIMESTAMPS} {_TIMES} {_RANK_TIMES}",
    trailing=4,
)
_DAOS = _named(
    "DAOS",
    "OBJ_OPENS OBJ_FETCHES OBJ_UPDATES OBJ_PUNCHES OBJ_DKEY_PUNCHES OBJ_AKEY_PUNCHES"
    " OBJ_DKEY_LISTS OBJ_AKEY_LISTS OBJ_RECX_LISTS ARRAY_OPENS ARRAY_READS ARRAY_WRITES"
    " ARRAY_GET_SIZES ARRAY_SET_SIZES ARRAY_STATS ARRAY_PUNCHES ARRAY_DESTROYS KV_OPENS KV_GETS"
    " KV_PUTS KV_REMOVES KV_LISTS KV_DESTROYS NB_OPS BYTES_READ BYTES_WRITTEN RW_SWITCHES"
    f" {_MAX_TIME_SIZES} {_histograms()} {_ACCESSES} OBJ_OTYPE ARRAY_CELL_SIZE ARRAY_CHUNK_SIZE"
    f" {_RANKS} {_TIMESTAMPS} {_TIMES} {_RANK_TIMES}",
    trailing=6,
)

_NEWEST = {
    "POSIX": (4, _POSIX),
    "MPI-IO": (3, _MPIIO),
    "STDIO": (2, _STDIO),
    "H5F": (3, _H5F),
    "H5D": (2, _H5D),
    "PNETCDF_FILE": (3, _PNETCDF_FILE),
    "PNETCDF_VAR": (1, _PNETCDF_VAR),
    "BG/Q": (2, _BGQ),
    "DFS": (1, _DFS),
    "DAOS": (1, _DAOS),
}
COUNTER_MODULES = tuple(_NEWEST)


def _without(layout: Layout, prefix: str, names: str) -> Layout:
    absent = {f"{prefix}_{name}" for name in names.split()}
    return replace(layout, counters=tuple(n for n in layout.counters if n not in absent))


def _posix_1(newer: Layout) -> Layout:
    """Version 1 counts the calls of stdio in the POSIX module."""
    place = newer.counters.index("POSIX_FSYNCS")
    added = ("POSIX_FOPENS", "POSIX_FREADS", "POSIX_FWRITES", "POSIX_FSEEKS")
    return Layout((*newer.counters[:place], *added, *newer.counters[place:]))


_LATE_TIMESTAMPS = "F_CLOSE_START_TIMESTAMP F_OPEN_END_TIMESTAMP"
_POSIX_3 = _without(_POSIX, "POSIX", "FILENOS DUPS RENAMED_FROM RENAME_SOURCES RENAME_TARGETS")
_POSIX_2 = _without(_POSIX_3, "POSIX", _LATE_TIMESTAMPS)
_MPIIO_2 = _without(_MPIIO, "MPIIO", _LATE_TIMESTAMPS)
_H5F_2 = _without(_H5F, "H5F", "FLUSHES USE_MPIIO F_META_TIME")
_PNETCDF_FILE_2 = _named(
    "PNETCDF_FILE",
    "INDEP_OPENS COLL_OPENS F_OPEN_START_TIMESTAMP F_CLOSE_START_TIMESTAMP F_OPEN_END_TIMESTAMP"
    " F_CLOSE_END_TIMESTAMP",
)
_OLDER_VERSIONS = {
    ("POSIX", 3): _POSIX_3,
    ("POSIX", 2): _POSIX_2,
    ("POSIX", 1): _posix_1(_POSIX_2),
    ("MPI-IO", 2): _MPIIO_2,
    ("MPI-IO", 1): _MPIIO_2,
    ("STDIO", 1): _without(_STDIO, "STDIO", "FDOPENS"),
    ("H5F", 2): _H5F_2,
    ("H5F", 1): _without(_H5F_2, "H5F", _LATE_TIMESTAMPS),
    ("H5D", 1): replace(_H5D, leading=()),
    ("PNETCDF_FILE", 2): _PNETCDF_FILE_2,
    ("PNETCDF_FILE", 1): _without(_PNETCDF_FILE_2, "PNETCDF_FILE", _LATE_TIMESTAMPS),
    # A padded number stands before the counters of version 1.
    ("BG/Q", 1): replace(_BGQ, leading=("alignment",)),
}
