-- title: The shortest time of each fragment at a single server, and where; or of each server's processes
-- part: calls
-- part: servers
-- part: extremes
select log, process, call_number, fragment, server, latency_seconds,
    row_number() over (partition by log, call_number, viewed
        order by latency_seconds nulls last, fragment nulls last) = 1 as is_of_call
from ranked
where nth_shortest = 1
order by log nulls last, viewed nulls last, call_number nulls last, fragment nulls last
