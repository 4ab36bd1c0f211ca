-- title: Runs with most seconds at stake
-- system: text = -; only jobs of this system
-- month: month range = -; only jobs that started in these months (UTC): 2026-01-2026-03, or one
-- limit: integer = 20; the most rows
select program, job_id, processes, bandwidth_mib_s, run_seconds, largest_stake_seconds,
    largest_share as share_of_run, path
from jobs join (select log, max(seconds_at_stake) as largest_stake_seconds,
        max(share_of_run) as largest_share
    from findings
    where seconds_at_stake is not null
    group by log) as stakes using (log)
where (:system is null or system = :system)
    and (:month_from is null or month >= :month_from)
    and (:month_to is null or month <= :month_to)
order by largest_stake_seconds desc nulls last, path nulls last
limit :limit
