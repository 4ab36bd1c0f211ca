-- title: Bytes that other logs move at an OST in a time, by the periods of their files
-- log: text; not this log, by its SHA-256
-- server: integer; the number of the OST
-- system: text; the system of the logs
-- from_us: integer; the beginning, in microseconds of UTC
-- to_us: integer; the end
with periods as (
    select files.log, jobs.start_us + first_write_seconds * 1e6 as first_us,
        jobs.start_us + last_write_seconds * 1e6 + 1 as last_us, files.written_bytes * share as bytes
    from jobs join files on files.log = jobs.log
        join file_osts on file_osts.log = files.log and file_osts.file = files.file
    where system = :system and jobs.log <> :log and is_highest and server = :server
        and jobs.start_us < :to_us and first_write_seconds is not null
        and jobs.start_us + (run_seconds + 1) * 1e6 > :from_us
    union all
    select files.log, jobs.start_us + first_read_seconds * 1e6 as first_us,
        jobs.start_us + last_read_seconds * 1e6 + 1 as last_us, files.read_bytes * share as bytes
    from jobs join files on files.log = jobs.log
        join file_osts on file_osts.log = files.log and file_osts.file = files.file
    where system = :system and jobs.log <> :log and is_highest and server = :server
        and jobs.start_us < :to_us and first_read_seconds is not null
        and jobs.start_us + (run_seconds + 1) * 1e6 > :from_us
)
select log, sum(bytes * (least(last_us, :to_us) - greatest(first_us, :from_us))
    / (last_us - first_us)) as bytes
from periods
where first_us < :to_us and last_us > :from_us
group by log
order by bytes desc nulls last, log nulls last
