-- title: Runs with most seconds at stake
-- limit: integer = 20; the most rows
select program, job_id, processes, bandwidth_mib_s, run_seconds,
    max(seconds_at_stake) as largest_stake_seconds, max(share_of_run) as share_of_run, path
from jobs join findings using (log)
where seconds_at_stake is not null
group by log, program, job_id, processes, bandwidth_mib_s, run_seconds, path
order by max(seconds_at_stake) desc nulls last, path nulls last
limit :limit
