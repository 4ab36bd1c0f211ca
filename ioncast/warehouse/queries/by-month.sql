-- title: Jobs, bytes and times by month
-- part: jobs
select month, count(*) as jobs, count(distinct user_id) as users,
    count(distinct program) as programs, sum(cast(read_bytes as double)) as read_bytes,
    sum(cast(written_bytes as double)) as written_bytes, sum(io_seconds) as io_seconds,
    sum(metadata_seconds) as metadata_seconds, sum(processes * run_seconds) / 3600 as core_hours,
    sum(io_seconds) / nullif(sum(processes * run_seconds), 0) as io_share
from chosen_jobs
group by month
order by month nulls last
