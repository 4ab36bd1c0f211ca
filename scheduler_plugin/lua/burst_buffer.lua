-- I/O nodes as a pool of burst buffers instead of licences, for BurstBufferType=burst_buffer/lua.
-- This file must be beside slurm.conf and ioncast_settings.lua, which has the pool's name and size.
--
-- Advantages: I/O nodes are switched without PrologSlurmctld; the reason of a failure is in the job's
-- SystemComment; batch jobs, srun and salloc have ION_COUNT without TaskProlog.
-- Disadvantages: root's jobs cannot use it; a job may start seconds later; a job that asks for more than
-- the whole pool is accepted and waits forever.

-- The folder of prolog_slurmctld.sh and epilog_slurmctld.sh, such as "/etc/ioncast/hooks", if they have to
-- switch I/O nodes; "" otherwise. LICENCE in the hooks.conf beside them must be the pool's name.
-- If the prolog fails, Slurm queues the job again for two minutes later, and holds it at the fourth failure.
-- A failed epilog is tried three times.
local HOOKS = ""

local FOLDER = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"

local function log(text)
    slurm.log_info("ioncast: %s", text)
end

-- The pool's name and its number of I/O nodes; or nil and the problem.
local function pool()
    local chunk, problem = loadfile(FOLDER .. "ioncast_settings.lua")
    if not chunk then
        return nil, problem
    end
    local ran, settings = pcall(chunk)
    if not ran or type(settings) ~= "table" then
        return nil, FOLDER .. "ioncast_settings.lua does not return a table"
    end
    local size = tonumber(settings.pool)
    if not size or size < 0 or size % 1 ~= 0 then
        return nil, FOLDER .. "ioncast_settings.lua: pool is not a number of I/O nodes"
    end
    return settings.licence or "ionode", size
end

-- Slurm gives the size to slurm_bb_setup only. So a file in StateSaveLocation keeps it for the other functions,
-- as a text such as ionode:4. From 24.05 on, an array's task has no folder of its own there yet.
local function request_file(job_id, job_script)
    local folder = job_script:match("^(.*/)hash%.%d+/job%.%d+/") or job_script:match("^(.*/)") or "./"
    return folder .. "ionodes." .. job_id
end

local function keep_request(job_id, job_script, request)
    local path = request_file(job_id, job_script)
    local file = io.open(path, "w")
    local is_kept = file and file:write(request, "\n") and file:flush()
    if file then
        file:close()
    end
    return not is_kept and "cannot write " .. path or nil
end

-- The text of request_file; nil for a job without I/O nodes.
local function kept_request(job_id, job_script)
    local file = io.open(request_file(job_id, job_script))
    if not file then
        return nil
    end
    local request = file:read("*l")
    file:close()
    return request and request:match("^.+:%d+$")
end

local function quoted(text)
    return "'" .. text:gsub("'", "'\\''") .. "'"
end

-- A command's output without the last line's end, and whether the command succeeded.
local function run(command)
    -- The shell prints the exit code, because close() does not return it in Lua 5.1.
    local pipe = io.popen(command .. " 2>&1; echo \":$?\"")
    local said = pipe:read("*a")
    pipe:close()
    local text, code = said:match("^(.-)%s*:(%d+)%s*$")
    return text, code == "0"
end

-- The job's compute nodes. For a task of an array, squeue lists all tasks, so pick the line of this one.
local function nodes_of(job_id)
    local said = run("squeue -h -t all -o '%A %N' -j " .. quoted(job_id))
    return ("\n" .. said):match("\n" .. job_id .. " (%S+)") or ""
end

local function call_hook(hook, job_id, request)
    local said, succeeded = run(string.format(
        "SLURM_JOB_ID=%s SLURM_JOB_LICENSES=%s SLURM_JOB_NODELIST=%s %s",
        quoted(job_id), quoted(request), quoted(nodes_of(job_id)), quoted(HOOKS .. "/" .. hook)))
    if succeeded then
        return slurm.SUCCESS
    end
    local line = said:gsub("%s*\n%s*", "; ")
    log("job " .. job_id .. ": " .. hook .. " failed: " .. line)
    return slurm.ERROR, line
end

local function switch(hook, job_id, job_script)
    local request = HOOKS ~= "" and kept_request(job_id, job_script)
    if not request then
        return slurm.SUCCESS
    end
    return call_hook(hook, job_id, request)
end

-- slurmctld waits for this function, and calls it again every half a minute.
function slurm_bb_pools()
    local name, size = pool()
    if not name then
        log(size)
        return slurm.ERROR, size
    end
    return slurm.SUCCESS, string.format('{"pools":[{"id":"%s","quantity":%d,"granularity":1}]}', name, size)
end

-- slurmctld waits for this function at every submission.
function slurm_bb_job_process()
    return slurm.SUCCESS
end

function slurm_bb_setup(job_id, _, _, job_pool, count, job_script)
    if count == "0" then
        return slurm.SUCCESS
    end
    local problem = keep_request(job_id, job_script, job_pool .. ":" .. count)
    if problem then
        return slurm.ERROR, problem
    end
    return slurm.SUCCESS
end

-- slurmctld waits for this function when a job starts, so it reads only one small local file.
function slurm_bb_paths(job_id, job_script, path_file)
    local request = kept_request(job_id, job_script)
    local file = request and io.open(path_file, "w")
    if file then
        file:write("ION_COUNT=", request:match("%d+$"), "\n")
        -- Tells task_prolog.sh that ION_COUNT is right although JOBS_FOLDER has no count of the job.
        file:write("IONCAST_BURST_BUFFER_OF=", job_id, "\n")
        file:close()
    end
    return slurm.SUCCESS
end

-- The job has its compute nodes, and starts when this function returns.
function slurm_bb_pre_run(job_id, job_script)
    return switch("prolog_slurmctld.sh", job_id, job_script)
end

-- After this function other jobs get the I/O nodes. Slurm calls it also for a job that never ran.
function slurm_bb_job_teardown(job_id, job_script)
    local code, said = switch("epilog_slurmctld.sh", job_id, job_script)
    if code == slurm.SUCCESS then
        os.remove(request_file(job_id, job_script))
    end
    return code, said
end

local function nothing_to_do()
    return slurm.SUCCESS
end

-- Slurm does not load a script in which one of these is missing. The two tests are needed from 24.05 on.
slurm_bb_data_in = nothing_to_do
slurm_bb_test_data_in = nothing_to_do
slurm_bb_real_size = nothing_to_do
slurm_bb_post_run = nothing_to_do
slurm_bb_data_out = nothing_to_do
slurm_bb_test_data_out = nothing_to_do

-- The output of `scontrol show bbstat`.
function slurm_bb_get_status()
    local name, size = pool()
    if not name then
        return slurm.SUCCESS, size .. "\n"
    end
    return slurm.SUCCESS, string.format("%s: %d I/O nodes\n", name, size)
end
