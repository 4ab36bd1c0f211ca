"""Names in a log: of the files behind the record ids, and in fields of a fixed size."""

from __future__ import annotations

import re
import struct

import numpy as np
from numpy.typing import NDArray

from ioncast_base.errors import DamagedLogError
from summario.reading.header import Header
from summario.reading.inflate import InflateError, inflate

_MAX_NAMES_BYTES = 256 << 20
_MAX_NAMES = 4_000_000
_NAME_RECORD = re.compile(rb".{8}[^\0]*\0", re.DOTALL)


def parse_names(header: Header, region: bytes, where: str) -> dict[int, str]:
    """Decode the names of the files behind the record ids.

    Parameters
    ----------
    header : Header
        The log's header.
    region : bytes
        The region of the names, compressed.
    where : str
        The file's name, for errors.

    Raises
    ------
    DamagedLogError
        When the names are damaged or too many.
    """
    try:
        data = b"".join(inflate(region, header.compression, _MAX_NAMES_BYTES))
    except InflateError as error:
        raise _unreadable(where) from error
    records = _split_3_00(header, data) if header.version == "3.00" else _split(data)
    if records is None:
        raise _unreadable(where)
    ids = np.frombuffer(b"".join([record[:8] for record in records]), f"{header.byte_order}u8")
    # Each name still has the zero at its end: decode all names at once and split them there.
    texts = b"".join([record[8:] for record in records]).decode("utf-8", "replace").split("\0")
    names = dict(zip(ids.tolist(), texts, strict=False))
    if len(names) < len(records):
        # Each process writes the ids, but some write empty names; do not let these win.
        names |= {id_: text for id_, text in zip(ids.tolist(), texts, strict=False) if text}
    return names


def name_in(field: bytes) -> str:
    """Decode a name that ends with a zero or with its field."""
    return field.split(b"\0")[0].decode("utf-8", "replace")


def numbered_names(fields: NDArray[np.int64], numbers: dict[str, int]) -> NDArray[np.int64]:
    """Number names.

    Parameters
    ----------
    fields : ndarray of int64, shape (names, words)
        The fields, in the byte order of the log.
    numbers : dict of str to int
        The number of each name; new names are added.

    Returns
    -------
    ndarray of int64, shape (names,)
        The number of the name in each field.
    """
    # Neighbouring records mostly have the same name: all records of a process name its host.
    new = np.ones(len(fields), bool)
    new[1:] = (fields[1:] != fields[:-1]).any(axis=1)
    distinct = np.array(
        [numbers.setdefault(name_in(row.tobytes()), len(numbers)) for row in fields[new]], np.int64
    )
    indices: NDArray[np.int64] = distinct[np.cumsum(new) - 1]
    return indices


def _split(data: bytes) -> list[bytes] | None:
    """Split records of an id and a name that ends with a zero; None for other bytes."""
    if data.count(0) > _MAX_NAMES:
        return None
    records: list[bytes] = _NAME_RECORD.findall(data)
    return records if sum(map(len, records)) == len(data) else None


def _split_3_00(header: Header, data: bytes) -> list[bytes] | None:
    """Split records of an id, the length of a name and the name, into an id, a name and a zero."""
    length = struct.Struct(f"{header.byte_order}I")
    records: list[bytes] = []
    position = 0
    while position + 12 <= len(data) and len(records) < _MAX_NAMES:
        end = position + 12 + length.unpack_from(data, position + 8)[0]
        name = data[position + 12 : end].split(b"\0")[0]
        records.append(data[position : position + 8] + name + b"\0")
        position = end
    return records if position == len(data) else None


def _unreadable(where: str) -> DamagedLogError:
    return DamagedLogError(
        "the file names cannot be decompressed", where=where, remedy="fetch the log again"
    )
