"""Decompression of a log's regions, with a limit for what comes out."""

from __future__ import annotations

import bz2
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    # It does the same as Python's zlib in 40 % of the time.
    from zlib_ng import zlib_ng as zlib
except ImportError:
    import zlib

# The number of a method in the header (enum darshan_comp_type), and what makes its decompressor.
_DECOMPRESSORS: dict[int, Callable[[], Any]] = {0: zlib.decompressobj, 1: bz2.BZ2Decompressor}
_FIRST_CHUNK_BYTES = 16 << 10
_CHUNK_BYTES = 256 << 10
# Ids and times differ from record to record, so genuine logs hold at most about 50 times their
# compressed bytes. A small log is always read.
_MOST_RATIO = 128
_SMALL_BYTES = 256 << 20
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


def most_inflated_bytes(compressed_bytes: int, max_bytes: int) -> int:
    """Limit what a log may hold, so that a small file cannot take gigabytes of memory."""
    return min(max_bytes, max(_SMALL_BYTES, _MOST_RATIO * compressed_bytes))


def inflate(region: bytes, method: int, max_bytes: int) -> Iterator[bytes]:
    """Decompress a region of a log: one stream of each process that wrote to the region."""
    rest = memoryview(region)
    while rest:
        stream = _DECOMPRESSORS[method]()
        pieces: list[bytes] = []
        # The decompressor copies all bytes behind its stream, and a stream may have eight bytes.
        chunk_bytes = _FIRST_CHUNK_BYTES
        while not stream.eof:
            if not rest:
                raise InflateError
            chunk = rest[:chunk_bytes]
            try:
                pieces.append(stream.decompress(chunk, max_bytes + 1))
            except (zlib.error, OSError) as error:
                raise InflateError from error
            max_bytes -= len(pieces[-1])
            if max_bytes < 0:
                raise TooLargeError
            rest = rest[len(chunk) - len(stream.unused_data) :]
            chunk_bytes = min(4 * chunk_bytes, _CHUNK_BYTES)
        yield b"".join(pieces)


def inflate_joined(region: bytes, method: int, max_bytes: int) -> bytes:
    """Decompress a region to the contents of all streams, one after the other; see `inflate`."""
    return b"".join(inflate(region, method, max_bytes))


def inflate_together(region: bytes, method: int, max_bytes: int) -> NDArray[np.uint8]:
    """Do the same as `inflate_joined`, faster if the contents are large.

    Joining large streams costs as much as decompressing them, because each has memory of its own.
    Here they use the same memory one after the other.
    """
    # A process without records writes an empty stream.
    streams = filter(None, inflate(region, method, max_bytes))
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
