-- title: Logs with their programs, sizes, times and bandwidths
-- part: jobs
select log, job_id, user_id, program, processes, compute_nodes, start_us, run_seconds,
    bandwidth_mib_s
from chosen_jobs
order by start_us desc nulls last, log nulls last
