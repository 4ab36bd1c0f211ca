-- title: Logs of a job, and of the jobs of its system that ran at the same time
-- job: integer = -; the number of the job; without it, all logs
-- system: text = -; only jobs of this system
select log, path, system, job_id, user_id, program, processes, start_us, run_seconds,
    read_bytes + written_bytes as moved_bytes
from jobs
where (:system is null or system = :system) and (:job is null or exists (
    select 1 from jobs as chosen
    where chosen.job_id = :job
        and coalesce(chosen.system, '') = coalesce(jobs.system, '')
        and (chosen.log = jobs.log
            or (chosen.start_us <= jobs.start_us + (jobs.run_seconds + 1) * 1e6
                and jobs.start_us <= chosen.start_us + (chosen.run_seconds + 1) * 1e6))))
order by start_us nulls last, log nulls last
