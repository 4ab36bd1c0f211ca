-- title: The logs of the job of a log: its steps, restarts and forks have logs of their own
-- log: text; the log, by its SHA-256
own_jobs as (
    select alike.*
    from jobs as chosen join jobs as alike
        on coalesce(alike.system, '') = coalesce(chosen.system, '')
    where chosen.log = :log and (alike.log = chosen.log or alike.job_id = chosen.job_id)
)
