-- title: Estimated joules of servers, from their watts: active while they work, else inactive
-- part: calls
-- part: servers
-- active_w: number; watts of a server that works
-- inactive_w: number; watts of a server that waits
-- view: process|server = server; a row for each server, or its joules shared by processes' seconds
, following as (
    select log, process, server, start_seconds, end_seconds,
        max(end_seconds) over (partition by log, server
            order by start_seconds nulls last, id nulls last
            rows between unbounded preceding and 1 preceding) as busy_until_seconds,
        max(end_seconds) over (partition by log, server, process
            order by start_seconds nulls last, id nulls last
            rows between unbounded preceding and 1 preceding) as own_until_seconds
    from served
    where server is not null
), by_process as (
    select log, process, server, sum(greatest(end_seconds - greatest(start_seconds,
            coalesce(busy_until_seconds, start_seconds)), 0)) as busy_seconds,
        sum(greatest(end_seconds - greatest(start_seconds,
            coalesce(own_until_seconds, start_seconds)), 0)) as own_seconds
    from following group by log, process, server
), by_server as (
    select log, process, server, own_seconds,
        sum(own_seconds) over (partition by log, server) as all_own_seconds,
        sum(busy_seconds) over (partition by log, server) as busy_seconds,
        window_seconds
    from by_process join (select log, max(end_seconds) - min(start_seconds) as window_seconds
        from following group by log) as windows using (log)
)
select log, case when :view = 'process' then process end as process,
    case when :view = 'server' then server end as server,
    sum(own_seconds) as process_seconds, max(window_seconds) as window_seconds,
    sum((:active_w * busy_seconds + :inactive_w * (window_seconds - busy_seconds))
        * coalesce(own_seconds / nullif(all_own_seconds, 0), 0)) as estimated_joules
from by_server
group by 1, 2, 3
order by 1 nulls last, 2 nulls last, 3 nulls last
