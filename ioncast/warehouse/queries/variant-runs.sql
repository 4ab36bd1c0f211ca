-- title: Logs of a program with a number of processes
-- program: text; the base name of the executable
-- processes: integer; the number of processes
-- system: text = -; only jobs of this system
-- user: integer = -; only jobs of this user id
select log, job_id, run_seconds, read_bytes + written_bytes as moved_bytes
from jobs
where program = :program and processes = :processes
    and (:system is null or system = :system)
    and (:user is null or user_id = :user)
order by log nulls last
