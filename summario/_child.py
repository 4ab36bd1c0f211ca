"""Copies a Darshan log's records out of libdarshan-util; runs as a process of its own.

The C library aborts, loops or corrupts memory on some damaged logs, so the process that
needs the records starts this one and survives it. Only the standard library is
imported: start-up is most of the time a small log takes.

    python -I -S _child.py LIBRARY LOG OUTPUT_FD MAX_BYTES MAX_SECONDS INDEX:MODULE...

Raw records go to OUTPUT_FD one module after the other; standard output gets one JSON
object with each module's `[offset, length]` (or null where the library could not read
it), the same for the names, and the counters' names of each module.
"""

import ctypes
import json
import os
import resource
import struct
import sys

CHUNK_BYTES = 4 << 20
COUNTER_TABLES = {"POSIX": "posix", "MPI-IO": "mpiio", "STDIO": "stdio"}


class NameRecord(ctypes.Structure):
    _fields_ = (("id", ctypes.c_uint64), ("name", ctypes.c_void_p))


class Output:
    def __init__(self, descriptor: int, max_bytes: int) -> None:
        self.descriptor = descriptor
        self.max_bytes = max_bytes
        self.size = 0

    def write(self, data: bytes | memoryview) -> None:
        self.size += len(data)
        if self.size > self.max_bytes:
            sys.exit("too large")
        view = memoryview(data)
        while view:
            view = view[os.write(self.descriptor, view) :]


def counter_names(library: ctypes.CDLL, prefix: str) -> list[str]:
    names: list[str] = []
    for table in (f"{prefix}_counter_names", f"{prefix}_f_counter_names"):
        address = ctypes.addressof(ctypes.c_char_p.in_dll(library, table))
        strings = (ctypes.c_char_p * 256).from_address(address)
        for name in strings:
            if name is None or name.endswith(b"_NUM_INDICES"):
                break
            names.append(name.decode())
    return names


def open_log(library: ctypes.CDLL, path: str) -> int:
    log: int | None = library.darshan_log_open(os.fsencode(path))
    if not log:
        sys.exit("not opened")
    return log


def copy_module(library: ctypes.CDLL, log: int, index: int, output: Output) -> list[int] | None:
    start = output.size
    buffer = ctypes.create_string_buffer(CHUNK_BYTES)
    while True:
        count = library.darshan_log_get_mod(log, index, buffer, CHUNK_BYTES)
        if count < 0:
            return None
        output.write(memoryview(buffer)[:count])
        if count < CHUNK_BYTES:
            return [start, output.size - start]


def copy_names(library: ctypes.CDLL, log: int, output: Output) -> list[int] | None:
    records = ctypes.POINTER(NameRecord)()
    count = ctypes.c_int(-1)
    library.darshan_log_get_name_records(log, ctypes.byref(records), ctypes.byref(count))
    if count.value < 0:
        return None
    start = output.size
    ids, names = [], []
    for record in (records[i] for i in range(count.value)):
        ids.append(record.id)
        names.append(ctypes.string_at(record.name))
    output.write(struct.pack(f"={len(ids)}Q", *ids))
    output.write(b"\0".join(names))
    return [start, output.size - start, len(ids)]


def main(
    library_path: str,
    log_path: str,
    descriptor: str,
    max_bytes: str,
    max_seconds: str,
    *modules: str,
) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (int(max_bytes), int(max_bytes)))
    resource.setrlimit(resource.RLIMIT_CPU, (int(max_seconds), int(max_seconds) + 1))
    library = ctypes.CDLL(library_path)
    library.darshan_log_open.restype = ctypes.c_void_p
    library.darshan_log_get_mod.argtypes = (
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.c_int,
    )
    library.darshan_log_get_name_records.argtypes = (ctypes.c_void_p,) * 3
    output = Output(int(descriptor), int(max_bytes))
    log = open_log(library, log_path)
    copied = {}
    for module in modules:
        index, name = module.split(":")
        copied[name] = copy_module(library, log, int(index), output)
        if copied[name] is None:
            # A failed decompression spoils the handle for all other modules.
            log = open_log(library, log_path)
    report = {
        "modules": copied,
        # Last, because the library closes the handle where the names are damaged.
        "names": copy_names(library, log, output),
        "counters": {
            name: counter_names(library, COUNTER_TABLES[name])
            for name in copied
            if name in COUNTER_TABLES
        },
    }
    json.dump(report, sys.stdout)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
