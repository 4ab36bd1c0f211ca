-- title: Findings by the number of jobs that have them
-- limit: integer = 20; the most rows
select code, level, count(distinct log) as jobs, sum(seconds_at_stake) as seconds_at_stake
from findings
group by code, level
order by count(distinct log) desc, code nulls last, level nulls last
limit :limit
