-- title: Runs with their times, bandwidths, servers and file systems
-- system: text = -; only jobs of this system
-- program: text = -; only jobs of the months in which this program ran
select log, system, job_id, user_id, program, processes, start_us, run_seconds, bandwidth_mib_s,
    kind, place
from jobs join (
    select distinct log, 'OST' as kind, cast(server as varchar(20)) as place
    from file_servers where server is not null
    union
    select distinct log, server_kind as kind, cast(server as varchar(20)) as place
    from request_servers where server is not null
    union
    select distinct log, 'file system' as kind, file_system as place
    from files where file_system is not null) as places using (log)
where (:system is null or system = :system)
    and (:program is null or month in (select month from jobs where program = :program))
    and start_us is not null and run_seconds >= 0 and bandwidth_mib_s > 0
    -- Neither infinite nor NaN, which is larger than all numbers.
    and bandwidth_mib_s < 1e12
    and program is not null and processes is not null
order by log nulls last, kind nulls last, place nulls last
