-- title: Users with most time in I/O
-- limit: integer = 20; the most rows
select user_id, count(*) as jobs, count(distinct program) as programs,
    sum(cast(read_bytes + written_bytes as double)) as bytes,
    sum(io_seconds) as io_seconds, sum(metadata_seconds) as metadata_seconds
from jobs
group by user_id
order by sum(io_seconds + metadata_seconds) desc nulls last, user_id nulls last
limit :limit
