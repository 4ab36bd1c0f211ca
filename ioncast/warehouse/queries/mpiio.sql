-- title: Shares of MPI-IO in jobs of several processes, of collective calls in those, and in bytes
-- part: jobs
select count(*) as jobs,
    cast(count(case when uses_mpiio then 1 end) as double) / nullif(count(*), 0) as mpiio_share,
    cast(count(case when uses_mpiio and uses_collective then 1 end) as double)
        / nullif(count(case when uses_mpiio then 1 end), 0) as collective_share,
    sum(case when uses_mpiio then cast(read_bytes + written_bytes as double) else 0 end)
        / nullif(sum(cast(read_bytes + written_bytes as double)), 0) as mpiio_bytes_share
from chosen_jobs where processes > 1
