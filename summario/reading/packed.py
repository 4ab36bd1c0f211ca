"""Logs that are not in a file of their own: compressed once more with gzip, or from a pipe."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from typing import IO

from ioncast_base.errors import DamagedLogError
from summario.reading.header import MAX_HEADER_BYTES, parse_header
from summario.reading.inflate import most_inflated_bytes

_GZIP = b"\x1f\x8b"
_CHUNK_BYTES = 1 << 20


def unpacked(file: IO[bytes], where: str, max_bytes: int) -> IO[bytes]:
    """Decompress a file that gzip wrote, whatever its name is; return any other as it is."""
    is_packed = file.read(len(_GZIP)) == _GZIP
    packed_bytes = file.seek(0, os.SEEK_END)
    file.seek(0)
    if not is_packed:
        return file
    try:
        with gzip.GzipFile(fileobj=file) as packed:
            limit = most_inflated_bytes(packed_bytes, max_bytes)
            return in_memory(packed, where, limit, remedy="inflate it with gunzip")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DamagedLogError(
            f"gzip cannot inflate it: {error}", where=where, remedy="fetch the log again"
        ) from error


def in_memory(
    file: IO[bytes] | gzip.GzipFile, where: str, max_bytes: int, remedy: str
) -> io.BytesIO:
    """Read a log to its end; errors are those of `unpacked`."""
    head = file.read(MAX_HEADER_BYTES)
    may_be_packed = not isinstance(file, gzip.GzipFile)
    if head and not (may_be_packed and head.startswith(_GZIP)):
        # Anything but a log is rejected before gigabytes of it are read.
        parse_header(head, where)
    content = io.BytesIO()
    content.write(head)
    while chunk := file.read(_CHUNK_BYTES):
        content.write(chunk)
        if content.tell() > max_bytes:
            raise DamagedLogError(
                f"the log has more than {max_bytes >> 20} MiB", where=where, remedy=remedy
            )
    return content
