-- title: Runs with most bytes: each log with its job, bytes, times and files
-- part: jobs
-- limit: integer = 20; the most rows
select program, job_id, user_id, processes, run_seconds, read_bytes, written_bytes, io_seconds,
    metadata_seconds, bandwidth_mib_s, files, path
from chosen_jobs
order by read_bytes + written_bytes desc nulls last, path nulls last, log nulls last
limit :limit
