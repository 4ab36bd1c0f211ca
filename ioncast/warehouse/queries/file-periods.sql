-- title: Files of a log with the period and the seconds of each operation
-- log: text; the log, by its SHA-256
select system, program, user_id, start_us, file, operation, first_seconds, last_seconds, bytes,
    case when all_seconds > 0
        then coalesce(slowest_seconds, mean_seconds) * own_seconds / all_seconds
        else 0.0 end as seconds
from jobs join (
    select log, file, 'read' as operation, first_read_seconds as first_seconds,
        last_read_seconds as last_seconds, read_bytes as bytes, read_seconds as own_seconds,
        read_seconds + write_seconds + metadata_seconds as all_seconds, slowest_seconds,
        mean_seconds
    from files where log = :log and is_highest
    union all
    select log, file, 'write' as operation, first_write_seconds as first_seconds,
        last_write_seconds as last_seconds, written_bytes as bytes, write_seconds as own_seconds,
        read_seconds + write_seconds + metadata_seconds as all_seconds, slowest_seconds,
        mean_seconds
    from files where log = :log and is_highest
) as periods on periods.log = jobs.log
where jobs.log = :log and first_seconds is not null
order by first_seconds nulls last, file nulls last, operation nulls last
