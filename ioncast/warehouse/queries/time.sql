-- title: A time: the traced requests that were under way
-- seconds: number; seconds since the job's start
-- limit: integer = 100; the most rows
select job_id, rank, api, operation, files.path, offset_bytes, length_bytes, start_seconds,
    end_seconds
from (select log, job_id from jobs) as jobs join requests using (log)
    left join (select distinct log, file, path from files) as files using (log, file)
where start_seconds <= :seconds and end_seconds >= :seconds
order by job_id nulls last, start_seconds nulls last, rank nulls last, id nulls last
limit :limit
