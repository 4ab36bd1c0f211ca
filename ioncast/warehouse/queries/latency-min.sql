-- title: The shortest time of each fragment at a single server, and where; or of each server's processes
-- part: calls
-- part: servers
-- view: process|server = process; find the server for each process, or the process for each server
select log, process, call_number, fragment, server, latency_seconds,
    row_number() over (
        partition by log, call_number, case when :view = 'process' then process else server end
        order by latency_seconds asc nulls last, fragment nulls last) = 1 as is_of_call
from (
    select *, row_number() over (
        partition by log, call_number, fragment,
            case when :view = 'process' then process else server end
        order by latency_seconds asc nulls last,
            case when :view = 'process' then server else process end nulls last,
            id nulls last) as place
    from served
    where call is not null
) as ranked
where place = 1
order by log nulls last, case when :view = 'process' then process else server end nulls last,
    call_number nulls last, fragment nulls last
