-- title: Sizes of files by file system: the highest offset that was used, plus 1
select file_system, count(*) as files, avg(cast(size_bytes as double)) as mean,
    percentile_cont(0.5) within group (order by size_bytes) as median, max(size_bytes) as largest
from (select log, file, file_system, max(size_bytes) as size_bytes from files
    group by log, file, file_system) as each_file
where size_bytes is not null
group by file_system
order by count(*) desc, file_system nulls last
