"""The tables: their columns and types.

`log` is the SHA-256 of a log's file. Times in a run are seconds since the job's start, times in UTC
microseconds. Files have 16 hexadecimal digits. Unknown values are null.
"""

from __future__ import annotations

import pyarrow as pa

# Raise it with each change that gives old logs other rows.
EXTRACTOR = 3

_TYPES = {"s": pa.string(), "i": pa.int64(), "f": pa.float64(), "b": pa.bool_()}
_COLUMNS = {
    # A row is a log. Times are of all processes, bytes and times of each file at its highest api.
    "jobs": """
        log:s path:s size_bytes:i modified_ns:i system:s job_id:i user_id:i program:s command:s
        processes:i compute_nodes:i start_us:i month:s run_seconds:f darshan_version:s modules:s
        partial:b read_bytes:i written_bytes:i io_seconds:f metadata_seconds:f capped:b
        bandwidth_mib_s:f files:i uses_mpiio:b uses_collective:b has_requests:b extractor:i
    """,
    # A file at one api; its size is the same at all, its bytes count where `is_highest`.
    "files": """
        log:s file:s path:s file_system:s api:s is_highest:b shared:b processes:i reads:i writes:i
        read_bytes:i written_bytes:i read_seconds:f write_seconds:f metadata_seconds:f
        slowest_seconds:f slowest_rank:i fastest_seconds:f mean_seconds:f size_bytes:i opens:i
        collective:i stripe_count:i stripe_size:i first_read_seconds:f last_read_seconds:f
        first_write_seconds:f last_write_seconds:f
    """,
    # The traced bytes of a file at one api on one server; without a trace, by its layout.
    "file_servers": "log:s file:s api:s server:i bytes:i",
    # An OST over which a file is striped, with its share of the bytes of the file.
    "file_osts": "log:s file:s server:i share:f",
    # The columns of `ioncast phases --format csv`, with names that are no words of SQL.
    "phases": """
        log:s job:i start_seconds:f end_seconds:f operation:s ranks:s bytes:i io_seconds:f api:s
        requests:i spatiality:s file_access:s n_files:i mode_processes:i processes:i nprocs:i
        parts:s partial:b log_name:s metadata_seconds:f fsync:s request_order:s aggregators:i
        elapsed_seconds:f largest_process:i largest_node:i nodes:i block_requests:f amplification:f
    """,
    # An api, an operation and one of Darshan's ten bins, if it has requests; those below 1 MiB
    # are `small`.
    "request_sizes": "log:s api:s operation:s bin:s requests:i small:i",
    # A traced request. `call` is the id of its MPI-IO call, `call_number` the place of this call in
    # its process, `instance` that of a collective call in the file, `fragment` that in the call.
    "requests": """
        log:s id:i api:s operation:s file:s rank:i node:s offset_bytes:i length_bytes:i
        start_seconds:f end_seconds:f call:i call_number:i instance:i fragment:i
    """,
    # A traced request (id) at a server: an OST, or an I/O node by its place in the platform's list.
    "request_servers": """
        log:s id:i server_kind:s server:i bytes:i start_seconds:f end_seconds:f own_times:b
    """,
    "findings": """
        log:s code:s level:s importance:s seconds_at_stake:f share_of_run:f files:i ranks:i
        sentence:s
    """,
    # A server in an interval, as its log has it. `server` is the number of an OST, MDT or I/O node
    # in decimal digits, else its name. `file_system` is null where the log does not name it.
    "server_samples": """
        system:s file_system:s kind:s server:s time_start_us:i time_end_us:i read_bytes:i
        written_bytes:i operations:i cpu_percent:f
    """,
    # A file that cannot be read.
    "failed": "path:s system:s size_bytes:i modified_ns:i reason:s extractor:i",
    # Another file with the content of a log.
    "copies": "log:s path:s system:s size_bytes:i modified_ns:i",
}
SCHEMAS: dict[str, pa.Schema] = {
    table: pa.schema(
        [(name, _TYPES[kind]) for name, kind in (each.split(":") for each in columns.split())]
    )
    for table, columns in _COLUMNS.items()
}
