-- title: Files of a job by its number of processes, from `least_processes` on, in powers of 4
-- part: jobs
select least_processes, count(*) as jobs, avg(cast(files as double)) as mean,
    percentile_cont(0.5) within group (order by files) as median,
    percentile_cont(0.95) within group (order by files) as p95, max(files) as most
from (select files,
        case when processes <= 1 then 1
            when processes <= 4 then 2
            when processes <= 16 then 5
            when processes <= 64 then 17
            when processes <= 256 then 65
            when processes <= 1024 then 257
            when processes <= 4096 then 1025
            when processes <= 16384 then 4097
            else 16385 end as least_processes
    from chosen_jobs) as each_job
group by least_processes
order by least_processes nulls last
