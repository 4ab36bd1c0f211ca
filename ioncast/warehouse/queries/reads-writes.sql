-- title: Reads and writes by api
-- part: jobs
select api, sum(cast(read_bytes as double)) as read_bytes,
    sum(cast(written_bytes as double)) as written_bytes, sum(cast(reads as double)) as reads,
    sum(cast(writes as double)) as writes, count(distinct log) as jobs
from files
where log in (select log from chosen_jobs)
group by api
order by api nulls last
