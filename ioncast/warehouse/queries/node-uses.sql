-- title: Bytes of traced requests of each compute node by time
-- log: text = -; only this log, by its SHA-256
select log, node, length_bytes as bytes, start_seconds, end_seconds
from requests
where (:log is null or log = :log) and api <> 'MPIIO' and node is not null
order by log nulls last, node nulls last, start_seconds nulls last, end_seconds nulls last,
    bytes nulls last
