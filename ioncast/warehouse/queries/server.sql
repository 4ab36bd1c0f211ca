-- title: A server: the jobs whose traced requests it served, by file and api
-- server: integer; the number of the OST or MDT, in decimal digits
-- system: text = -; only jobs of this system
-- month: month range = -; only jobs that started in these months (UTC): 2026-01-2026-03, or one
select system, program, job_id, start_us, api, file_path, bytes
from jobs join file_servers using (log)
    left join (select distinct log, file, path as file_path from files) as paths using (log, file)
where (:system is null or system = :system)
    and (:month_from is null or month >= :month_from)
    and (:month_to is null or month <= :month_to)
    and server = :server
order by system nulls last, start_us nulls last, job_id nulls last, file_path nulls last,
    api nulls last
