-- title: Fragments at servers by their time, for each process or each server
-- view: process|server = process; find the server for each process, or the process for each server
ranked as (
    select log, process, call_number, fragment, server, viewed, other, latency_seconds,
        row_number() over (partition by log, call_number, fragment, viewed
            order by latency_seconds desc nulls last, other nulls last, id nulls last) as nth_longest,
        row_number() over (partition by log, call_number, fragment, viewed
            order by latency_seconds nulls last, other nulls last, id nulls last) as nth_shortest
    from (
        select *, case when :view = 'process' then process else server end as viewed,
            case when :view = 'process' then server else process end as other
        from served
        where call is not null
    ) as each_view
)
