"""The job record of a log: who ran which program, when and with how many processes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from ioncast_base.errors import DamagedLogError
from ioncast_base.limits import LARGEST_COUNT
from summario.reading.header import Header, inconsistent
from summario.reading.inflate import InflateError, inflate

_METADATA_BYTES = 1024
_MAX_JOB_BYTES = 64 << 10


@dataclass(frozen=True)
class DarshanJob:
    """The job record: `nprocs` processes, times in seconds since the epoch.

    `mount_table` has a line for each file system: its type, a tab and its path. `library_version`
    is the version of Darshan's runtime, such as "3.5.0"; empty if the log does not tell it.
    """

    id: int
    uid: int
    nprocs: int
    start_seconds: float
    end_seconds: float
    executable: str
    mount_table: str = ""
    library_version: str = ""

    def mounts(self) -> Iterator[tuple[str, str]]:
        """Yield path and type of each file system."""
        for line in self.mount_table.splitlines():
            type_, tab, path = line.partition("\t")
            if tab:
                yield path, type_


def parse_job(header: Header, region: bytes, where: str) -> DarshanJob:
    """Decode the job record from all bytes between the header and the next region.

    Some MPI-IO libraries write zeros in front of the compressed stream. Darshan's own reader stops
    there; this function skips them.
    """
    try:
        streams = list(inflate(region.lstrip(b"\0"), header.compression, _MAX_JOB_BYTES))
    except InflateError as error:
        raise _damaged("the job record cannot be decompressed", where) from error
    if len(streams) != 1:
        # One process writes one stream. More streams belong to modules that a damaged map lacks.
        raise inconsistent(where)
    [record] = streams
    with_nanoseconds = header.version >= "3.41"
    fields = struct.Struct(f"{header.byte_order}{7 if with_nanoseconds else 5}q")
    if len(record) < fields.size + _METADATA_BYTES:
        raise _damaged("the job record is too short", where)
    values = fields.unpack_from(record)
    if with_nanoseconds:
        uid, start, start_ns, end, end_ns, nprocs, job_id = values
    else:
        uid, start, end, nprocs, job_id = values
        start_ns = end_ns = 0
    if not 1 <= nprocs <= LARGEST_COUNT:
        raise _damaged(f"the job record counts {nprocs} processes", where)
    text = record[fields.size + _METADATA_BYTES :].split(b"\0")[0].decode("utf-8", "replace")
    command, _, mount_table = text.partition("\n")
    return DarshanJob(
        id=job_id,
        uid=uid,
        nprocs=nprocs,
        start_seconds=start + start_ns / 1e9,
        end_seconds=end + end_ns / 1e9,
        executable=command.strip(),
        mount_table=mount_table,
        library_version=_library_version(record[fields.size : fields.size + _METADATA_BYTES]),
    )


def _library_version(metadata: bytes) -> str:
    """Find the version of the runtime in the metadata, which has lines of the form key=value."""
    for line in metadata.split(b"\0")[0].decode("utf-8", "replace").splitlines():
        key, _, value = line.partition("=")
        if key == "lib_ver":
            return value
    return ""


def _damaged(what: str, where: str) -> DamagedLogError:
    return DamagedLogError(what, where=where, remedy="fetch the log again")
