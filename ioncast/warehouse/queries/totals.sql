-- title: Logs, jobs, users, programs, period and bytes
-- part: jobs
select count(*) as logs,
    count(distinct concat_ws(' ', system, cast(job_id as string))) as jobs,
    count(distinct user_id) as users, count(distinct program) as programs,
    count(distinct system) as systems, min(start_us) as first_start_us,
    max(start_us) as last_start_us, sum(cast(read_bytes as double)) as read_bytes,
    sum(cast(written_bytes as double)) as written_bytes, sum(io_seconds) as io_seconds,
    sum(metadata_seconds) as metadata_seconds
from chosen_jobs
