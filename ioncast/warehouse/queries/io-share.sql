-- title: The share of the processes' time in I/O and metadata
-- system: text = -; only jobs of this system
-- month: month range = -; only jobs that started in these months (UTC): 2026-01-2026-03, or one
select count(*) as jobs, sum(io_seconds) / nullif(sum(processes * run_seconds), 0) as io_share,
    sum(metadata_seconds) / nullif(sum(processes * run_seconds), 0) as metadata_share,
    sum(processes * run_seconds) / 3600 as core_hours,
    sum(io_seconds) / 3600 as io_core_hours,
    count(case when capped then 1 end) as capped_jobs
from jobs
where (:system is null or system = :system)
    and (:month_from is null or month >= :month_from)
    and (:month_to is null or month <= :month_to)
