-- title: Phases of all jobs, with the compute nodes of their jobs
-- system: text = -; only jobs of this system
-- log: text = -; only this log, by its SHA-256
-- month: month range = -; only jobs that started in these months (UTC): 2026-01-2026-03, or one
select *
from phases join (select log, compute_nodes from jobs
    where (:system is null or system = :system)
        and (:log is null or log = :log)
        and (:month_from is null or month >= :month_from)
        and (:month_to is null or month <= :month_to)) as chosen using (log)
order by log nulls last, start_seconds nulls last, end_seconds nulls last, api nulls last,
    operation nulls last, bytes nulls last, io_seconds nulls last, log_name nulls last
