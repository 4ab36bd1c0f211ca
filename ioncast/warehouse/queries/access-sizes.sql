-- title: Requests by size, in Darshan's ten bins
-- part: jobs
select api, operation, bin, sum(cast(requests as double)) as requests,
    sum(cast(small as double)) as small
from request_sizes
where log in (select log from chosen_jobs)
group by api, operation, bin
order by api nulls last, operation nulls last,
    case bin when '0_100' then 0 when '100_1K' then 1 when '1K_10K' then 2 when '10K_100K' then 3
        when '100K_1M' then 4 when '1M_4M' then 5 when '4M_10M' then 6 when '10M_100M' then 7
        when '100M_1G' then 8 else 9 end nulls last
