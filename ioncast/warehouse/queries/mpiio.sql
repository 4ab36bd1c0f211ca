-- title: Jobs of several processes that use MPI-IO and collective calls
select count(*) as jobs,
    avg(case when uses_mpiio then 1.0 else 0.0 end) as with_mpiio,
    avg(case when not uses_mpiio then null when uses_collective then 1.0 else 0.0 end)
        as collective_of_mpiio,
    sum(case when uses_mpiio then cast(read_bytes + written_bytes as double) else 0 end)
        / nullif(sum(cast(read_bytes + written_bytes as double)), 0) as bytes_with_mpiio
from jobs
where processes > 1
