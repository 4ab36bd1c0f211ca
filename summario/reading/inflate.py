"""Decompression of a log's regions, with a limit for what comes out."""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Callable
from typing import Any

# The number of a method in the header (enum darshan_comp_type), and what makes its decompressor.
_DECOMPRESSORS: dict[int, Callable[[], Any]] = {0: zlib.decompressobj, 1: bz2.BZ2Decompressor}
_CHUNK_BYTES = 256 << 10


class InflateError(Exception):
    """A region that cannot be decompressed."""


class TooLargeError(InflateError):
    """A region that holds more bytes than the limit allows."""


def can_inflate(method: int) -> bool:
    """Tell whether the compression method of a header is known."""
    return method in _DECOMPRESSORS


def inflate(region: bytes, method: int, max_bytes: int) -> list[bytes]:
    """Decompress a region of a log.

    Parameters
    ----------
    region : bytes
        The compressed bytes. Each process that wrote to the region wrote one stream.
    method : int
        The compression method in the header, for which `can_inflate` is true.
    max_bytes : int
        The most bytes of all streams together.

    Returns
    -------
    list of bytes
        The content of each stream. Its checksum is right.

    Raises
    ------
    InflateError
        When a stream is damaged or ends too early.
    TooLargeError
        When there are more than `max_bytes`.
    """
    streams: list[bytes] = []
    rest = memoryview(region)
    while rest:
        stream = _DECOMPRESSORS[method]()
        pieces: list[bytes] = []
        while not stream.eof:
            if not rest:
                raise InflateError
            chunk = rest[:_CHUNK_BYTES]
            try:
                pieces.append(stream.decompress(chunk, max_bytes + 1))
            except (zlib.error, OSError) as error:
                raise InflateError from error
            max_bytes -= len(pieces[-1])
            if max_bytes < 0:
                raise TooLargeError
            rest = rest[len(chunk) - len(stream.unused_data) :]
        streams.append(b"".join(pieces))
    return streams
