-- title: Sizes of all files: the highest offset that was used, plus 1
-- system: text = -; only jobs of this system
-- month: month range = -; only jobs that started in these months (UTC): 2026-01-2026-03, or one
select count(*) as files, avg(cast(size_bytes as double)) as mean_bytes,
    percentile_cont(0.5) within group (order by size_bytes) as median_bytes,
    max(size_bytes) as largest_bytes
from files
where is_highest and size_bytes is not null and log in (
        select log from jobs
        where (:system is null or system = :system)
            and (:month_from is null or month >= :month_from)
            and (:month_to is null or month <= :month_to)
    )
