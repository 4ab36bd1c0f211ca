-- title: A rank: its traced requests by file, api and operation
-- rank: integer; the number of the process
select job_id, api, operation, files.path, count(*) as requests,
    sum(cast(length_bytes as double)) as bytes, min(start_seconds) as first_start,
    max(end_seconds) as last_end, sum(end_seconds - start_seconds) as busy_seconds
from (select log, job_id from jobs) as jobs join requests using (log)
    left join (select distinct log, file, path from files) as files using (log, file)
where rank = :rank
group by job_id, api, operation, files.path
order by job_id nulls last, api nulls last, operation nulls last, files.path nulls last
