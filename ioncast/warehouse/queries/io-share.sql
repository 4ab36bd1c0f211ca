-- title: The share of the processes' time in I/O and metadata
-- part: jobs
select count(*) as jobs, sum(io_seconds) / nullif(sum(processes * run_seconds), 0) as io_share,
    sum(metadata_seconds) / nullif(sum(processes * run_seconds), 0) as metadata_share,
    sum(processes * run_seconds) / 3600 as core_hours,
    sum(io_seconds) / 3600 as io_core_hours,
    count(case when capped then 1 end) as capped_jobs
from chosen_jobs
