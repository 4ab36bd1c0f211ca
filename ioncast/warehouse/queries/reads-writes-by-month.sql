-- title: Reads and writes by month: bytes, requests and jobs, each file at its highest api
-- part: jobs
select month, sum(cast(read_bytes as double)) as read_bytes,
    sum(cast(written_bytes as double)) as written_bytes, sum(cast(reads as double)) as reads,
    sum(cast(writes as double)) as writes,
    count(distinct case when read_bytes > 0 then log end) as reading_jobs,
    count(distinct case when written_bytes > 0 then log end) as writing_jobs
from (select log, reads, writes, read_bytes, written_bytes from files where is_highest) as each_file
    right join (select log, month from chosen_jobs) as chosen using (log)
group by month
order by month nulls last
