-- title: Bytes that traced requests of other jobs move from each compute node in a time
-- part: own
-- system: text; the system of the logs
-- from_us: integer; the beginning, in microseconds of UTC
-- to_us: integer; the end
, moved as (
    select log, node, jobs.start_us + start_seconds * 1e6 as first_us,
        jobs.start_us + end_seconds * 1e6 + 1 as last_us, length_bytes
    from jobs join requests using (log)
    where system = :system and log not in (select log from own_jobs)
        and jobs.start_us < :to_us and jobs.start_us + (run_seconds + 1) * 1e6 > :from_us
        and api = 'POSIX' and node is not null and start_seconds <= end_seconds
)
select log, node, sum(length_bytes * (least(last_us, :to_us) - greatest(first_us, :from_us))
    / (last_us - first_us)) as bytes
from moved
where first_us < :to_us and last_us > :from_us
group by log, node
order by bytes desc nulls last, log nulls last, node nulls last
