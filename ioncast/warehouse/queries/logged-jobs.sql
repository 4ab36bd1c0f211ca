-- title: Logs with their programs, sizes, times and bandwidths
-- part: jobs
select log, job_id, user_id, program, processes, compute_nodes, start_us, run_seconds,
    -- Neither infinite nor NaN, which is larger than all numbers.
    case when bandwidth_mib_s > 0 and bandwidth_mib_s < 1e12 then bandwidth_mib_s end
        as bandwidth_mib_s
from chosen_jobs
order by start_us desc nulls last, log nulls last
