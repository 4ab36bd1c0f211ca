-- Settings of the plugin. `touch job_submit.lua` after a change, so that slurmctld reads them again.
-- A setting that is commented out shows its default, unless its text says otherwise.

return {
    -- "off": nothing happens. "shadow": decisions are logged, and jobs stay as they are. "on": jobs
    -- get their I/O nodes. "arbitrate": as "on", but jobs that ioncast knows are held for
    -- `ioncast slurm arbitrate` while it runs.
    mode = "shadow",

    -- Jobs without a script (of srun and salloc): "on" treats them as batch jobs; "shadow" only logs
    -- their decisions. With "on" a job of `srun -I3` fails if its I/O nodes are not free in time.
    -- interactive = "shadow",

    -- Where `ioncast serve` answers decisions (its setting `decisions_bind`): "unix:/path",
    -- "127.0.0.1:8421" or "[::1]:8421". A host name is rejected: slurmctld would wait for looking it
    -- up, which has no deadline.
    address = "unix:/run/ioncast/decisions.sock",

    -- A second service with the same database, which is asked if the first one has no answer.
    -- deadline_ms is the time for both. Default: none.
    -- second_address = "10.0.0.2:8420",

    -- This system's name in ioncast's database.
    system = "mysite",

    -- Number of I/O nodes: at most the number in slurm.conf (`Licenses=ionode:8`), because Slurm
    -- rejects jobs that ask for more.
    pool = 8,

    -- I/O nodes for a job without an answer. Without this setting such a job stays as it is.
    -- default = 1,

    -- Name of the licence that stands for an I/O node.
    -- licence = "ionode",

    -- Milliseconds for all the plugin's work on a job, including the wait for an answer.
    -- deadline_ms = 50,

    -- After this many failed questions in a row, the service is not asked for pause_s seconds.
    -- failures = 2,
    -- pause_s = 5,

    -- A file with a token of the role `scheduler` (`ioncast token add plugin --role scheduler`). With
    -- a token the plugin also sends the job script, in which the service finds the program. Only
    -- slurmctld's user should be able to read the file. Without the file no script is sent.
    token_file = "/etc/slurm/ioncast.token",

    -- For mode "arbitrate": the file into which `ioncast slurm arbitrate` writes the time. No job is
    -- held if the file is missing or its time is older than 30 seconds. Default: no file.
    -- heartbeat = "/run/ioncast-heartbeat/heartbeat",

    -- The file into which `ioncast slurm watch` writes Slurm's limits on the licence (of partitions, QOS
    -- and accounts, and its total number), so that no job gets more. Without the file there is no limit.
    limits = "/run/ioncast-limits/limits",

    -- Whether `sbatch` and `srun` print a line about the I/O nodes that the job gets, and why.
    -- tell_user = false,

    -- Other values of `mode`, `interactive`, `default`, `pool` or `deadline_ms` for some partitions.
    -- For a job with several partitions the first one counts. A wrong name of a partition is not
    -- noticed, because Slurm shows the plugin only partitions that the job's user may use. Default: no
    -- partitions.
    -- partitions = {
    --     debug = { mode = "off" },
    --     large = { mode = "on", interactive = "on", default = 4, deadline_ms = 100 },
    -- },
}
