-- title: Files of all logs of a log's job with the period and the seconds of each operation
-- part: own
-- part: operations
select log, system, start_us, has_requests, file, operation, first_seconds, last_seconds,
    coalesce(bytes, 0) as bytes,
    coalesce(case when all_seconds > 0 then slowest_seconds * own_seconds / all_seconds end, 0.0)
        as seconds
from own_jobs join operations using (log)
where start_us is not null
order by log nulls last, first_seconds nulls last, file nulls last, operation nulls last
