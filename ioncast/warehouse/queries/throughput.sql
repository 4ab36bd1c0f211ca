-- title: MB/s of each call at servers: bytes over the time in which the server works on the call
-- part: calls
-- part: servers
-- view: process|server = server; a row for each process and call, or for each server and call
select log, case when :view = 'process' then process end as process,
    case when :view = 'server' then server end as server, call_number,
    sum(moved_bytes) as bytes, sum(moved_bytes / 1e6 / nullif(busy_seconds, 0)) as mb_s
from (
    select log, process, server, call_number, cast(sum(moved_bytes) as double) as moved_bytes,
        sum(greatest(end_seconds - greatest(start_seconds,
            coalesce(busy_until_seconds, start_seconds)), 0)) as busy_seconds
    from (
        select *, max(end_seconds) over (
            partition by log, process, server, call
            order by start_seconds nulls last, id nulls last
            rows between unbounded preceding and 1 preceding) as busy_until_seconds
        from served
        where call is not null
    ) as following
    group by log, process, server, call_number
) as by_server
group by 1, 2, 3, 4
order by 1 nulls last, 2 nulls last, 3 nulls last, 4 nulls last
