-- title: Logs of a system whose files have OSTs, near a time, the nearest first
-- system: text; the system
-- start_us: integer; the time, in microseconds of UTC
-- limit: integer = 20; the most logs
select log
from jobs
where system = :system and abs(start_us - :start_us) <= 604800000000
    and log in (select log from file_osts)
order by abs(start_us - :start_us) nulls last, log nulls last
limit :limit
