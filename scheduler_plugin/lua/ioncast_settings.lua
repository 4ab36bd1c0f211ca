-- Settings of ioncast in job_submit.lua. Changed ones count after `touch job_submit.lua`.
-- What is commented out shows the value that holds without it, if nothing else is said.

return {
    -- "off": nothing. "shadow": what would be done is logged, jobs stay as they are. "on": jobs get
    -- their I/O nodes. "arbitrate": as "on", and jobs that ioncast knows are held for
    -- `ioncast slurm arbitrate` while that runs.
    mode = "shadow",

    -- Where `ioncast serve` listens: "unix:/path", "127.0.0.1:8420" or "[::1]:8420". A name that
    -- would have to be looked up is refused: that has no deadline, and slurmctld would wait.
    address = "unix:/run/ioncast/ioncast.sock",

    -- This machine, as it is named in ioncast's database.
    system = "mysite",

    -- How many I/O nodes there are: not more than `Licenses=ionode:8` in slurm.conf says, because
    -- Slurm refuses jobs that ask for more.
    pool = 8,

    -- I/O nodes of a job where there is no answer. Without it such a job stays as it is.
    -- default = 1,

    -- As what I/O nodes are given: "licence", or "burst_buffer" (see burst_buffer.lua).
    -- resource = "licence",

    -- The name of the licence, or of the burst buffers' pool.
    -- licence = "ionode",

    -- How long slurmctld waits for an answer, all in all.
    -- deadline_ms = 50,

    -- After so many questions in a row that failed, none is asked for some seconds.
    -- failures = 2,
    -- pause_s = 5,

    -- With a token of the role `scheduler` (`ioncast token add plugin --role scheduler`) the job
    -- script is sent too, from which the service learns the program. Let only slurmctld's user read
    -- the file. Without it: no token.
    -- token_file = "/etc/slurm/ioncast.token",

    -- In mode "arbitrate": the file that `ioncast slurm arbitrate` writes the time to. No job is
    -- held without it, or when it is older than 30 seconds. Without it: none.
    -- heartbeat = "/run/ioncast-arbiter/heartbeat",

    -- What differs in some partitions: `mode`, `default`, `pool` or `deadline_ms`. Of a job for
    -- several partitions the first one counts. A name that no partition has is not noticed, for
    -- Slurm tells only of those that a job's user may use. Without it: none.
    -- partitions = {
    --     debug = { mode = "off" },
    --     large = { mode = "on", default = 4, deadline_ms = 100 },
    -- },
}
