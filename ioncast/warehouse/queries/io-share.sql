-- title: The share of the processes' time in I/O and metadata
select count(*) as jobs, sum(io_seconds) / nullif(sum(processes * run_seconds), 0) as io_share,
    sum(metadata_seconds) / nullif(sum(processes * run_seconds), 0) as metadata_share,
    sum(processes * run_seconds) / 3600 as process_hours,
    sum(case when capped then 1 else 0 end) as capped_jobs
from jobs
