-- title: Logs of applications: bandwidths, times, and the stripes of each log's largest file
-- program: text = -; only this base name of the executable
-- processes: integer = -; only this number of processes
-- system: text = -; only jobs of this system
-- user: integer = -; only jobs of this user id
-- log: text = -; only this log, by its SHA-256
-- job: integer = -; only this job
with chosen as (
    select log, path, system, job_id, user_id, program, processes, compute_nodes, start_us,
        run_seconds, read_bytes + written_bytes as moved_bytes, bandwidth_mib_s, has_requests
    from jobs
    where (:program is null or program = :program)
        and (:processes is null or processes = :processes)
        and (:system is null or system = :system)
        and (:user is null or user_id = :user)
        and (:log is null or log = :log)
        and (:job is null or job_id = :job)
), used as (
    select files.* from files join chosen on chosen.log = files.log
), times as (
    -- Opens of MPI-IO wait for each other, so their times say little about the file system.
    select log, sum(metadata_seconds) as metadata_seconds,
        sum(read_seconds + write_seconds) as data_seconds
    from used where api in ('POSIX', 'STDIO')
    group by log
), largest as (
    select log, stripe_count, stripe_size, processes as file_processes,
        read_bytes + written_bytes as file_bytes
    from (
        select *, row_number() over (partition by log
            order by read_bytes + written_bytes desc nulls last, file nulls last) as place
        from used where is_highest and stripe_count > 0) as striped
    where place = 1
)
select chosen.*, metadata_seconds, data_seconds, stripe_count, stripe_size, file_processes,
    file_bytes
from chosen left join times on times.log = chosen.log
    left join largest on largest.log = chosen.log
order by chosen.log nulls last
