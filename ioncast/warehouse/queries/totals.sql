-- title: Logs, jobs, users, programs, period and bytes
-- system: text = -; only jobs of this system
-- month: month range = -; only jobs that started in these months (UTC): 2026-01-2026-03, or one
select count(*) as logs,
    count(distinct concat_ws(' ', system, cast(job_id as string))) as jobs,
    count(distinct user_id) as users, count(distinct program) as programs,
    count(distinct system) as systems, min(start_us) as first_start_us,
    max(start_us) as last_start_us, sum(cast(read_bytes as double)) as read_bytes,
    sum(cast(written_bytes as double)) as written_bytes, sum(io_seconds) as io_seconds,
    sum(metadata_seconds) as metadata_seconds
from jobs
where (:system is null or system = :system)
    and (:month_from is null or month >= :month_from)
    and (:month_to is null or month <= :month_to)
