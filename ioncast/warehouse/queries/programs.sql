-- title: Programs with most time in I/O
-- limit: integer = 20; the most rows
select program, count(*) as jobs, sum(cast(read_bytes + written_bytes as double)) as bytes,
    sum(io_seconds) as io_seconds, sum(metadata_seconds) as metadata_seconds,
    sum(io_seconds + metadata_seconds) / nullif(sum(processes * run_seconds), 0) as io_share
from jobs
group by program
order by sum(io_seconds + metadata_seconds) desc nulls last, program nulls last
limit :limit
