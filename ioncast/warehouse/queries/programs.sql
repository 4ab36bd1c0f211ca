-- title: Programs with most time in I/O, or most of other things
-- part: jobs
-- by: io|metadata|bytes|jobs = io; the order, and the amount of which `share` is a share
-- limit: integer = 20; the most rows
select program, jobs, users, total_bytes as bytes, total_io_seconds as io_seconds,
    total_metadata_seconds as metadata_seconds, io_share,
    amount / nullif(sum(amount) over (), 0) as share
from (select *, case :by when 'bytes' then total_bytes when 'metadata' then total_metadata_seconds
        when 'jobs' then cast(jobs as double) else total_io_seconds end as amount
    from (select program, count(*) as jobs, count(distinct user_id) as users,
            sum(cast(read_bytes + written_bytes as double)) as total_bytes,
            sum(io_seconds) as total_io_seconds, sum(metadata_seconds) as total_metadata_seconds,
            sum(io_seconds) / nullif(sum(processes * run_seconds), 0) as io_share
        from chosen_jobs
        group by program) as each_program) as with_amount
order by amount desc nulls last, program nulls last
limit :limit
