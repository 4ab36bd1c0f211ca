-- title: Traced requests of a log: who moved how much when
-- log: text; this log, by its SHA-256
select api, operation, rank, length_bytes, start_seconds, end_seconds
from requests
where log = :log and api in ('MPIIO', 'POSIX') and operation in ('read', 'write')
order by id nulls last
