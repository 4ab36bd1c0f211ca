-- title: Times in which the program of a log does I/O for its user, in microseconds of UTC
-- log: text; the log, by its SHA-256
-- from_us: integer; the beginning
-- to_us: integer; the end
select alike.start_us + phases.start_seconds * 1e6 as start_us,
    alike.start_us + phases.end_seconds * 1e6 as end_us
from jobs as chosen join jobs as alike
    on coalesce(alike.system, '') = coalesce(chosen.system, '')
        and coalesce(alike.program, '') = coalesce(chosen.program, '')
        and coalesce(alike.user_id, -1) = coalesce(chosen.user_id, -1)
    join phases on phases.log = alike.log
where chosen.log = :log and alike.start_us < :to_us
    and alike.start_us + coalesce(alike.run_seconds, 0.0) * 1e6 > :from_us
order by start_us nulls last, end_us nulls last
