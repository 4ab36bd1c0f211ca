-- title: Traced POSIX requests of all logs of a log's job, with their compute nodes
-- part: own
select log, file, operation, node, start_us + start_seconds * 1e6 as start_us,
    start_us + end_seconds * 1e6 as end_us, length_bytes as bytes
from own_jobs join requests using (log)
-- Requests of MPI-IO reach servers as requests of POSIX.
where api = 'POSIX' and node is not null and length_bytes > 0
    and 0 <= start_seconds and start_seconds <= end_seconds
order by log nulls last, start_us nulls last, end_us nulls last, node nulls last
