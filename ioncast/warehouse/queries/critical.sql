-- title: The chain that each collective call waits for: process, its longest fragment, its server
-- part: calls
-- part: layers
, slowest_process as (
    select *, row_number() over (partition by log, file, instance
        order by client_seconds desc nulls last, process nulls last) as place
    from layers
    where instance is not null and fragments > 0
), slowest_fragment as (
    select fragments.log, fragments.call, fragment, fragment_seconds, server,
        places.end_seconds - places.start_seconds as at_server_seconds, own_times,
        row_number() over (partition by fragments.log, fragments.call
            order by fragment_seconds desc nulls last,
                places.end_seconds - places.start_seconds desc nulls last, server nulls last,
                fragment nulls last) as place
    from fragments left join request_servers as places on places.log = fragments.log
        and places.id = fragments.id and places.server_kind = :kind
)
select log, file, instance, process, call_number, mpi_seconds, client_seconds, fragment,
    fragment_seconds, server, case when own_times then at_server_seconds end as server_seconds
from slowest_process join slowest_fragment using (log, call)
where slowest_process.place = 1 and slowest_fragment.place = 1
order by log nulls last, file nulls last, instance nulls last
