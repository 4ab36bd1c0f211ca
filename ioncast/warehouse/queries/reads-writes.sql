-- title: Reads and writes by api
-- system: text = -; only jobs of this system
-- month: month range = -; only jobs that started in these months (UTC): 2026-01-2026-03, or one
select api, sum(cast(read_bytes as double)) as read_bytes,
    sum(cast(written_bytes as double)) as written_bytes, sum(cast(reads as double)) as reads,
    sum(cast(writes as double)) as writes, count(distinct log) as jobs
from files
where log in (
    select log from jobs
    where (:system is null or system = :system)
        and (:month_from is null or month >= :month_from)
        and (:month_to is null or month <= :month_to)
)
group by api
order by api nulls last
