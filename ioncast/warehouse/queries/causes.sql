-- title: Causes of slow I/O by the number of jobs that have them
-- system: text = -; only jobs of this system
-- month: month range = -; only jobs that started in these months (UTC): 2026-01-2026-03, or one
-- limit: integer = 20; the most rows
select code, level, count(distinct log) as jobs, sum(seconds_at_stake) as seconds_at_stake
from findings
where importance <> 'none' and log in (
    select log from jobs
    where (:system is null or system = :system)
        and (:month_from is null or month >= :month_from)
        and (:month_to is null or month <= :month_to)
)
group by code, level
order by jobs desc nulls last, code nulls last, level nulls last
limit :limit
