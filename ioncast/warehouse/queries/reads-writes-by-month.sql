-- title: Reads and writes by month: bytes, requests and jobs, each file at its highest api
-- system: text = -; only jobs of this system
-- month: month range = -; only jobs that started in these months (UTC): 2026-01-2026-03, or one
select month, sum(cast(read_bytes as double)) as read_bytes,
    sum(cast(written_bytes as double)) as written_bytes, sum(log_reads) as reads,
    sum(log_writes) as writes, count(case when read_bytes > 0 then 1 end) as reading_jobs,
    count(case when written_bytes > 0 then 1 end) as writing_jobs
from (select log, month, read_bytes, written_bytes from jobs
    where (:system is null or system = :system)
        and (:month_from is null or month >= :month_from)
        and (:month_to is null or month <= :month_to)) as chosen
    left join (select log, sum(cast(reads as double)) as log_reads,
            sum(cast(writes as double)) as log_writes
        from (select log, reads, writes, row_number() over (partition by log, file
                order by case when reads + writes + read_bytes + written_bytes > 0 then 0 else 1 end
                    nulls last,
                    case api when 'MPIIO' then 0 when 'STDIO' then 1 else 2 end nulls last
            ) as place from files) as each_api
        where place = 1
        group by log) as requests_of_logs using (log)
group by month
order by month nulls last
