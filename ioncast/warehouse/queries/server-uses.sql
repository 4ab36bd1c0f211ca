-- title: Bytes at each server by time: of traced requests, else of files (estimated)
-- log: text = -; only this log, by its SHA-256
select uses.log, server_kind, server, cast(bytes as double) as bytes, uses.start_seconds,
    uses.end_seconds, false as estimated
from request_servers as uses join requests
    on requests.log = uses.log and requests.id = uses.id
-- Requests of MPI-IO reach servers as requests of POSIX.
where (:log is null or uses.log = :log) and api <> 'MPIIO' and server is not null
union all
select sums.log, 'OST' as server_kind, server, bytes, start_seconds, end_seconds,
    true as estimated
from (select log, server, sum(cast(bytes as double)) as bytes
    from file_servers
    where (:log is null or log = :log) and api <> 'MPIIO' and server is not null
    group by log, server) as sums
    join (select log, min(start_seconds) as start_seconds, max(end_seconds) as end_seconds
        from phases group by log) as spans on spans.log = sums.log
where not exists (
    select 1 from request_servers
    where request_servers.log = sums.log and server_kind = 'OST' and server is not null)
order by log nulls last, server_kind nulls last, server nulls last, start_seconds nulls last,
    end_seconds nulls last, bytes nulls last
