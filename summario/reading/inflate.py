"""Decompression of a log's regions, with a limit for what comes out."""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The number of a method in the header (enum darshan_comp_type), and what makes its decompressor.
_DECOMPRESSORS: dict[int, Callable[[], Any]] = {0: zlib.decompressobj, 1: bz2.BZ2Decompressor}
_CHUNK_BYTES = 256 << 10
# Records are mostly zeros, so they are about 16 times as large. Memory costs nothing before it is
# written to, but a process may have a limit for it.
_GUESSED_RATIO = 16
_MOST_GUESSED_BYTES = 256 << 20


class InflateError(Exception):
    """A region that cannot be decompressed."""


class TooLargeError(InflateError):
    """A region that holds more bytes than the limit allows."""


def can_inflate(method: int) -> bool:
    """Tell whether the compression method of a header is known."""
    return method in _DECOMPRESSORS


def inflate(region: bytes, method: int, max_bytes: int) -> Iterator[bytes]:
    """Decompress a region of a log.

    Parameters
    ----------
    region : bytes
        The compressed bytes. Each process that wrote to the region wrote one stream.
    method : int
        The compression method in the header, for which `can_inflate` is true.
    max_bytes : int
        The most bytes of all streams together.

    Yields
    ------
    bytes
        The content of each stream. Its checksum is right.

    Raises
    ------
    InflateError
        When a stream is damaged or ends too early.
    TooLargeError
        When there are more than `max_bytes`.
    """
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
        yield b"".join(pieces)


def inflate_joined(region: bytes, method: int, max_bytes: int) -> bytes:
    """Decompress a region to the contents of all streams, one after the other; see `inflate`."""
    return b"".join(inflate(region, method, max_bytes))


def inflate_together(region: bytes, method: int, max_bytes: int) -> NDArray[np.uint8]:
    """Do the same as `inflate_joined`, faster if the contents are large.

    To join large streams costs as much as to decompress them, because each has memory of its own.
    Here they use the same memory one after the other.
    """
    streams = inflate(region, method, max_bytes)
    together = np.frombuffer(next(streams, b""), np.uint8)
    size = len(together)
    for stream in streams:
        end = size + len(stream)
        if end > len(together):
            guess = min(_GUESSED_RATIO * len(region), _MOST_GUESSED_BYTES)
            longer = np.empty(max(end, 2 * len(together), guess), np.uint8)
            longer[:size] = together[:size]
            together = longer
        together[size:end] = np.frombuffer(stream, np.uint8)
        size = end
    return together[:size]
