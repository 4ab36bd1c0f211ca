-- title: A file: every job and api that used it
-- path: text; the path of the file, or a pattern of SQL such as %.h5
select program, job_id, api, processes, files.read_bytes, files.written_bytes, read_seconds,
    write_seconds, files.metadata_seconds, slowest_rank, stripe_count, files.path
from (select log, program, job_id from jobs) as jobs join files using (log)
where files.path like :path
order by job_id nulls last, files.path nulls last, api nulls last, log nulls last
