-- title: Unusable logs by reason; unreadable ones belong to no month
-- part: jobs
select reason, count(*) as logs
from failed
where (:system is null or system = :system) and :month_from is null and :month_to is null
group by reason
union all
select reason, count(*) as logs
from (select 'partial: Darshan ran out of memory' as reason from chosen_jobs where partial
    union all
    select case when files = 0 then 'empty: no files' else 'no I/O: files, but no bytes' end
    from chosen_jobs
    where read_bytes + written_bytes = 0) as each_log
group by reason
order by logs desc nulls last, reason nulls last
