-- title: Files by size, in powers of 16: from `least_bytes` to below 16 times as many
-- part: jobs
select least_bytes, count(*) as files, sum(total) as bytes
from (select cast(size_bytes as double) as total,
        case when size_bytes < 16 then 1
            when size_bytes < 256 then 16
            when size_bytes < 4096 then 256
            when size_bytes < 65536 then 4096
            when size_bytes < 1048576 then 65536
            when size_bytes < 16777216 then 1048576
            when size_bytes < 268435456 then 16777216
            when size_bytes < 4294967296 then 268435456
            when size_bytes < 68719476736 then 4294967296
            when size_bytes < 1099511627776 then 68719476736
            else 1099511627776 end as least_bytes
    from files
    where is_highest and size_bytes is not null and log in (select log from chosen_jobs)) as each_bin
group by least_bytes
order by least_bytes nulls last
