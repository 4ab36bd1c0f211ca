-- title: Files of a job
-- part: jobs
select count(*) as jobs, avg(cast(files as double)) as mean,
    percentile_cont(0.5) within group (order by files) as median,
    percentile_cont(0.95) within group (order by files) as p95, max(files) as most
from chosen_jobs
