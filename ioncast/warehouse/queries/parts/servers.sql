-- title: Fragments at each of their servers; a fragment whose servers are not known has a null one
-- fragment: integer range = -; numbers of a call's POSIX requests, from 0: 0-3, or one
-- server: integer range = -; numbers of servers: 0-3, or one; -1: not known
-- kind: OST|ION = OST; servers: object storage targets, or I/O nodes
served as (
    select fragments.log, fragments.id, process, call, call_number, instance, fragment, operation,
        file, offset_bytes, length_bytes, fragment_seconds, server_kind, server, own_times,
        coalesce(bytes, length_bytes) as moved_bytes,
        coalesce(places.start_seconds, fragments.start_seconds) as start_seconds,
        coalesce(places.end_seconds, fragments.end_seconds) as end_seconds,
        coalesce(places.end_seconds - places.start_seconds, fragment_seconds) as latency_seconds
    from fragments left join request_servers as places
        on places.log = fragments.log and places.id = fragments.id and places.server_kind = :kind
    where (:fragment_from is null or fragment >= :fragment_from)
        and (:fragment_to is null or fragment <= :fragment_to)
        and (:server_from is null or coalesce(server, -1) >= :server_from)
        and (:server_to is null or coalesce(server, -1) <= :server_to)
)
