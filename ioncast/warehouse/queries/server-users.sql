-- title: Bytes that logs of other jobs move at an OST in a time, by the periods of their files
-- part: own
-- part: operations
-- server: integer; the number of the OST
-- system: text; the system of the logs
-- from_us: integer; the beginning, in microseconds of UTC
-- to_us: integer; the end
, periods as (
    select log, jobs.start_us + first_seconds * 1e6 as first_us,
        jobs.start_us + last_seconds * 1e6 + 1 as last_us, operations.bytes * share as bytes
    from jobs join operations using (log) join file_osts using (log, file)
    where system = :system and log not in (select log from own_jobs) and server = :server
        and jobs.start_us < :to_us and jobs.start_us + (run_seconds + 1) * 1e6 > :from_us
)
select log, sum(bytes * (least(last_us, :to_us) - greatest(first_us, :from_us))
    / (last_us - first_us)) as bytes
from periods
where first_us < :to_us and last_us > :from_us
group by log
order by bytes desc nulls last, log nulls last
