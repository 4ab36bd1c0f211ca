-- title: Shares of MPI-IO in jobs of several processes, of collective calls in those, and in bytes
-- system: text = -; only jobs of this system
-- month: month range = -; only jobs that started in these months (UTC): 2026-01-2026-03, or one
select count(*) as jobs,
    cast(count(case when uses_mpiio then 1 end) as double) / nullif(count(*), 0) as mpiio_share,
    cast(count(case when uses_mpiio and uses_collective then 1 end) as double)
        / nullif(count(case when uses_mpiio then 1 end), 0) as collective_share,
    sum(case when uses_mpiio then cast(read_bytes + written_bytes as double) else 0 end)
        / nullif(sum(cast(read_bytes + written_bytes as double)), 0) as mpiio_bytes_share
from jobs
where (:system is null or system = :system)
    and (:month_from is null or month >= :month_from)
    and (:month_to is null or month <= :month_to)
    and processes > 1
