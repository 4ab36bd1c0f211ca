-- title: Causes of slow I/O by the number of jobs that have them
-- part: jobs
-- limit: integer = 20; the most rows
select code, level, count(distinct log) as jobs, sum(seconds_at_stake) as seconds_at_stake
from findings
where importance <> 'none' and log in (select log from chosen_jobs)
group by code, level
order by jobs desc nulls last, code nulls last, level nulls last
limit :limit
