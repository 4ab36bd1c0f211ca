-- title: Reads and writes of each file with their bytes, and seconds of the file's slowest process
operations as (
    select log, file, 'read' as operation, first_read_seconds as first_seconds,
        last_read_seconds as last_seconds, read_bytes as bytes, read_seconds as own_seconds,
        read_seconds + write_seconds + metadata_seconds as all_seconds,
        coalesce(slowest_seconds, mean_seconds) as slowest_seconds
    from files where is_highest and first_read_seconds <= last_read_seconds
    union all
    select log, file, 'write' as operation, first_write_seconds as first_seconds,
        last_write_seconds as last_seconds, written_bytes as bytes, write_seconds as own_seconds,
        read_seconds + write_seconds + metadata_seconds as all_seconds,
        coalesce(slowest_seconds, mean_seconds) as slowest_seconds
    from files where is_highest and first_write_seconds <= last_write_seconds
)
