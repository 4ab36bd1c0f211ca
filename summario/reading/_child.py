"""Program: copies the records of Darshan logs with libdarshan-util, in processes of its own.

The C library aborts, loops or corrupts memory on some damaged logs. So `summario.reading.log`
starts this program, which may crash. It serves requests on a socket and reads each log in a fork
of itself, which is quick to make. It imports only the standard library, because its start takes
most of the time of a small log.

    python -I -S _child.py LIBRARY SOCKET_FD

A request is a JSON object with `log`, `max_bytes`, `max_seconds` and `modules` (name to index),
with two file descriptors. The raw records go to the first one, one module after the other. The
second one gets a JSON object: the `[offset, length]` of each module, or null if the library could
not read it, and the counters' names of each module. If the log is rejected, the object has the
reason as `refused`; after another failure it has the reason as `failed`. An empty reply means that
the process crashed.
"""

import ctypes
import json
import os
import resource
import signal
import socket
import sys

CHUNK_BYTES = 4 << 20
MAX_REQUEST_BYTES = 64 << 10
COUNTER_TABLES = {"POSIX": "posix", "MPI-IO": "mpiio", "STDIO": "stdio"}


class RefusedError(Exception):
    """A log that is rejected; the message is the reason."""


class Output:
    def __init__(self, descriptor: int, max_bytes: int) -> None:
        self.descriptor = descriptor
        self.max_bytes = max_bytes
        self.size = 0

    def write(self, data: memoryview) -> None:
        self.size += len(data)
        if self.size > self.max_bytes:
            raise RefusedError("it holds more than the limit allows")
        while data:
            data = data[os.write(self.descriptor, data) :]


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
        raise RefusedError("the Darshan library does not open it")
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


def read_log(
    library: ctypes.CDLL, path: str, modules: dict[str, int], output: Output
) -> dict[str, object]:
    log = open_log(library, path)
    copied = {}
    for name, index in modules.items():
        copied[name] = copy_module(library, log, index, output)
        if copied[name] is None:
            # A failed decompression spoils the handle for all other modules.
            log = open_log(library, path)
    tables = {name: COUNTER_TABLES[name] for name in modules if name in COUNTER_TABLES}
    return {
        "modules": copied,
        "counters": {name: counter_names(library, table) for name, table in tables.items()},
    }


def load(path: str) -> ctypes.CDLL:
    library = ctypes.CDLL(path)
    library.darshan_log_open.restype = ctypes.c_void_p
    library.darshan_log_get_mod.argtypes = (
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.c_int,
    )
    return library


def limit(kind: int, most: int) -> None:
    """Lower a limit of this process; one that is lower already stays."""
    _, hard = resource.getrlimit(kind)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))


def answer(library: ctypes.CDLL, request: bytes, records: int, reply: int) -> None:
    """Read one log and reply; runs in a process of its own, which may die of the log."""
    asked = json.loads(request)
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_AS, asked["max_bytes"])
    limit(resource.RLIMIT_CPU, asked["max_seconds"])
    signal.alarm(asked["max_seconds"])
    # The library reports on standard error what the caller says in its own words.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    output = Output(records, asked["max_bytes"])
    report: dict[str, object]
    try:
        report = read_log(library, asked["log"], asked["modules"], output)
    except RefusedError as error:
        report = {"refused": str(error)}
    except OSError as error:
        report = {"failed": error.strerror}
    os.write(reply, json.dumps(report).encode())


def serve(library_path: str, descriptor: int) -> None:
    # Readers that ended need not be waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # An interrupt on the keyboard is for the caller, whose end ends this program.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    library = load(library_path)
    with socket.socket(fileno=descriptor) as requests:
        while True:
            request, descriptors, _, _ = socket.recv_fds(requests, MAX_REQUEST_BYTES, 2)
            if not request:
                return
            if os.fork() == 0:
                # With the server dead, nothing must seem to listen.
                requests.close()
                try:
                    answer(library, request, *descriptors)
                finally:
                    os._exit(0)
            for passed in descriptors:
                os.close(passed)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
