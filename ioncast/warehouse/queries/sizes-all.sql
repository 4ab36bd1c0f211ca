-- title: Sizes of all files: the highest offset that was used, plus 1
-- part: jobs
select count(*) as files, avg(cast(size_bytes as double)) as mean_bytes,
    percentile_cont(0.5) within group (order by size_bytes) as median_bytes,
    max(size_bytes) as largest_bytes
from files
where is_highest and size_bytes is not null and log in (select log from chosen_jobs)
