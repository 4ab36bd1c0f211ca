-- title: Requests from processes to servers, and the server or the process with most of them
-- part: calls
-- part: servers
-- view: process|server = process; mark the server with most of a process, or the reverse
select log, sum_of, process, server, call_number, requests, bytes,
    row_number() over (
        partition by log, sum_of, call_number,
            case when :view = 'process' then process else server end
        order by requests desc nulls last,
            case when :view = 'process' then server else process end nulls last) = 1 as has_most
from (
    select log, case when grouping(call_number) = 1 then 'total' else 'call' end as sum_of,
        process, server, call_number, count(*) as requests,
        cast(sum(moved_bytes) as double) as bytes
    from served
    group by grouping sets ((log, process, server, call_number), (log, process, server))
) as counted
order by log nulls last, sum_of nulls last,
    case when :view = 'process' then process else server end nulls last,
    case when :view = 'process' then server else process end nulls last, call_number nulls last
