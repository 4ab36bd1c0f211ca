-- title: Phases of all jobs, with the compute nodes of their jobs
-- log: text = -; only this log, by its SHA-256
-- part: jobs
select *
from phases join (select log, compute_nodes from chosen_jobs
    where :log is null or log = :log) as chosen using (log)
order by log nulls last, start_seconds nulls last, end_seconds nulls last, api nulls last,
    operation nulls last, bytes nulls last, io_seconds nulls last, log_name nulls last
