-- title: Runs with most bytes: each log with its job, bytes, times and files
-- system: text = -; only jobs of this system
-- month: month range = -; only jobs that started in these months (UTC): 2026-01-2026-03, or one
-- limit: integer = 20; the most rows
select program, job_id, user_id, processes, run_seconds, read_bytes, written_bytes, io_seconds,
    metadata_seconds, bandwidth_mib_s, files, path
from jobs
where (:system is null or system = :system)
    and (:month_from is null or month >= :month_from)
    and (:month_to is null or month <= :month_to)
order by read_bytes + written_bytes desc nulls last, path nulls last, log nulls last
limit :limit
