-- title: Files of a job
-- system: text = -; only jobs of this system
-- month: month range = -; only jobs that started in these months (UTC): 2026-01-2026-03, or one
select count(*) as jobs, avg(cast(files as double)) as mean,
    percentile_cont(0.5) within group (order by files) as median,
    percentile_cont(0.95) within group (order by files) as p95, max(files) as most
from jobs
where (:system is null or system = :system)
    and (:month_from is null or month >= :month_from)
    and (:month_to is null or month <= :month_to)
