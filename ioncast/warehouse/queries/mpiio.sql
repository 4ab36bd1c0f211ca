-- title: Jobs of several processes that use MPI-IO and collective calls
-- system: text = -; only jobs of this system
-- month: month range = -; only jobs that started in these months (UTC): 2026-01-2026-03, or one
select count(*) as jobs,
    cast(count(case when uses_mpiio then 1 end) as double) / nullif(count(*), 0) as with_mpiio,
    cast(count(case when uses_mpiio and uses_collective then 1 end) as double)
        / nullif(count(case when uses_mpiio then 1 end), 0) as collective_of_mpiio,
    sum(case when uses_mpiio then cast(read_bytes + written_bytes as double) else 0 end)
        / nullif(sum(cast(read_bytes + written_bytes as double)), 0) as bytes_with_mpiio
from jobs
where (:system is null or system = :system)
    and (:month_from is null or month >= :month_from)
    and (:month_to is null or month <= :month_to)
    and processes > 1
