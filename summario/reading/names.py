"""Names in a log: of the files behind the record ids, and in fields of a fixed size."""

from __future__ import annotations

import re
import struct

import numpy as np
from numpy.typing import NDArray

from ioncast_base.errors import DamagedLogError
from summario.reading.header import Header
from summario.reading.inflate import InflateError, inflate_joined

_MAX_NAMES_BYTES = 256 << 20
_MAX_NAMES = 4_000_000
_ID_BYTES = 8
_NAME = re.compile(rb".{8}([^\0]*)\0", re.DOTALL)

Ints = NDArray[np.int64]


def parse_names(header: Header, region: bytes, where: str) -> dict[int, str]:
    """Decode the names of the files behind the record ids."""
    try:
        data = inflate_joined(region, header.compression, _MAX_NAMES_BYTES)
    except InflateError as error:
        raise _unreadable(where) from error
    records = _split_3_00(header, data) if header.version == "3.00" else _split(data)
    if records is None:
        raise _unreadable(where)
    starts, encoded = records
    if not encoded:
        return {}
    # A word that may start at any byte.
    words = np.ndarray(len(data) - _ID_BYTES + 1, f"{header.byte_order}u8", data, strides=1)
    ids = words[starts].tolist()
    # To decode all names at once takes a quarter of the time.
    texts = b"\0".join(encoded).decode("utf-8", "replace").split("\0")
    names = dict(zip(ids, texts, strict=True))
    if len(names) < len(ids):
        # Each process writes the ids, but some write empty names; do not let these win.
        names |= {id_: text for id_, text in zip(ids, texts, strict=True) if text}
    return names


def name_in(field: bytes) -> str:
    """Decode a name that ends with a zero or with its field."""
    return field.split(b"\0")[0].decode("utf-8", "replace")


def numbered_names(fields: NDArray[np.int64], numbers: dict[str, int]) -> NDArray[np.int64]:
    """Number the names in fields of shape (names, words), in the byte order of the log."""
    # Neighbouring records mostly have the same name: all records of a process name its host.
    new = np.ones(len(fields), bool)
    new[1:] = (fields[1:] != fields[:-1]).any(axis=1)
    distinct = np.array(
        [numbers.setdefault(name_in(row.tobytes()), len(numbers)) for row in fields[new]], np.int64
    )
    indices: NDArray[np.int64] = distinct[np.cumsum(new) - 1]
    return indices


def _split(data: bytes) -> tuple[Ints, list[bytes]] | None:
    """Find where each record begins, an id and a name that ends with a zero; None for others."""
    # Without the last zero, the pattern would look for it from every byte on.
    if data.count(0) > _MAX_NAMES or data[-1:] not in (b"", b"\0"):
        return None
    names: list[bytes] = _NAME.findall(data)
    sizes = np.fromiter(map(len, names), np.int64, len(names)) + _ID_BYTES + 1
    if sizes.sum() != len(data):
        return None
    return sizes.cumsum() - sizes, names


def _split_3_00(header: Header, data: bytes) -> tuple[Ints, list[bytes]] | None:
    """Find where each record begins: an id, the length of the name, the name."""
    length = struct.Struct(f"{header.byte_order}I")
    starts: list[int] = []
    names: list[bytes] = []
    position = 0
    while position + 12 <= len(data) and len(names) < _MAX_NAMES:
        end = position + 12 + length.unpack_from(data, position + 8)[0]
        starts.append(position)
        names.append(data[position + 12 : end].split(b"\0", 1)[0])
        position = end
    return (np.array(starts, np.int64), names) if position == len(data) else None


def _unreadable(where: str) -> DamagedLogError:
    return DamagedLogError(
        "the file names cannot be decompressed", where=where, remedy="fetch the log again"
    )
