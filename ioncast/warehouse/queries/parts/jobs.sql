-- title: The jobs of a system and of some months
-- system: text = -; only jobs of this system
-- month: month range = -; only jobs that started in these months (UTC): 2026-01-2026-03, or one
chosen_jobs as (
    select jobs.* from jobs
    where (:system is null or system = :system)
        and (:month_from is null or month >= :month_from)
        and (:month_to is null or month <= :month_to)
)
