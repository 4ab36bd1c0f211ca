-- title: A server: the jobs whose files it held, by file and api
-- server: integer; the number of the OST or MDT, in decimal digits
-- part: jobs
select system, program, job_id, start_us, api, file_path, bytes
from chosen_jobs join file_servers using (log)
    left join (select distinct log, file, path as file_path from files) as paths using (log, file)
where server = :server
order by system nulls last, start_us nulls last, job_id nulls last, file_path nulls last,
    api nulls last
