-- title: Files of each log by server: bytes and the time of the slowest process; jobs by I/O node
-- system: text = -; only jobs of this system
select log, 'OST' as kind, server, files.file, files.read_bytes + files.written_bytes as moved_bytes,
    coalesce(slowest_seconds, mean_seconds) as seconds
from (select distinct log, file, server from file_servers where server is not null) as places
    join files using (log, file)
    join (select log, system from jobs) as jobs using (log)
where is_highest and files.read_bytes + files.written_bytes > 0
    and coalesce(slowest_seconds, mean_seconds) > 0
    and (:system is null or system = :system)
union all
select distinct log, server_kind as kind, server, cast(null as varchar(16)) as file,
    cast(null as bigint) as moved_bytes, cast(null as double) as seconds
from request_servers join (select log, system from jobs) as jobs using (log)
where server is not null and server_kind <> 'OST' and (:system is null or system = :system)
order by log nulls last, kind nulls last, file nulls last, server nulls last
