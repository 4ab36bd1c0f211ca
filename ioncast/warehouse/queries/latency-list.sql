-- title: Each fragment at each of its servers
-- part: calls
-- part: servers
select log, process, call_number, instance, fragment, server_kind, server, operation, offset_bytes,
    length_bytes, moved_bytes, start_seconds, end_seconds, latency_seconds,
    case when own_times then fragment_seconds - latency_seconds end as exclusive_seconds,
    own_times, call is not null as joined
from served
order by log nulls last, process nulls last, call_number nulls last, fragment nulls last,
    server nulls last, start_seconds nulls last, id nulls last
