-- title: Runs with most seconds at stake
-- part: jobs
-- limit: integer = 20; the most rows
select program, job_id, processes, bandwidth_mib_s, run_seconds, largest_stake_seconds,
    largest_share as share_of_run, path
from chosen_jobs join (select log, max(seconds_at_stake) as largest_stake_seconds,
        max(share_of_run) as largest_share
    from findings
    where seconds_at_stake is not null
    group by log) as stakes using (log)
order by largest_stake_seconds desc nulls last, path nulls last
limit :limit
