-- title: Logs of a system whose servers may be known, near a time, the nearest first
-- kind: OST|ION = OST; servers: object storage targets, or I/O nodes
-- system: text; the system
-- start_us: integer; the time, in microseconds of UTC
-- limit: integer = 20; the most logs
select log
from (
    select log, abs(start_us - :start_us) as distance_us
    from jobs
    where system = :system
        and case when :kind = 'OST' then log in (select log from file_osts) else has_requests end
) as runs
where distance_us <= 604800000000
order by distance_us nulls last, log nulls last
limit :limit
