-- title: MPI-IO calls, and the POSIX requests below them; those that join no call have a null call
-- process: integer range = -; ranks: 0-3, or one
-- call: integer range = -; numbers of a rank's MPI-IO calls, from 0: 1-10, or one
-- time: number range = -; calls that start in these seconds of the run: 10-20
-- job: integer = -; only this job
-- log: text = -; only this log, by the SHA-256 of its file
chosen as (
    select requests.log, requests.id, requests.api, requests.operation, requests.file,
        requests.rank as process, calls.call, calls.call_number, calls.instance,
        requests.fragment, requests.offset_bytes, requests.length_bytes, requests.start_seconds,
        requests.end_seconds
    from requests left join (
        select log, call, call_number, instance, start_seconds as call_seconds
        from requests where api = 'MPIIO') as calls
        on calls.log = requests.log and calls.call = requests.call
    where requests.api in ('MPIIO', 'POSIX')
        and (:log is null or requests.log = :log)
        and (:job is null or requests.log in (select log from jobs where job_id = :job))
        and (:process_from is null or requests.rank >= :process_from)
        and (:process_to is null or requests.rank <= :process_to)
        and (:call_from is null or calls.call_number >= :call_from)
        and (:call_to is null or calls.call_number <= :call_to)
        and (:time_from is null or coalesce(call_seconds, start_seconds) >= :time_from)
        and (:time_to is null or coalesce(call_seconds, start_seconds) <= :time_to)
),
mpi_calls as (
    select *, end_seconds - start_seconds as mpi_seconds from chosen where api = 'MPIIO'
),
fragments as (
    select *, end_seconds - start_seconds as fragment_seconds from chosen where api = 'POSIX'
)
