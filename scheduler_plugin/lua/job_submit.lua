-- The script that slurmctld calls for each submitted job. The plugin is in ioncast.lua and its settings are
-- in ioncast_settings.lua, beside this file. After a change there `touch` this file: Slurm checks only this one.

-- An error here would stop slurmctld when it starts.
local is_loaded, ioncast = pcall(function()
    local folder = debug.getinfo(1, "S").source:match("^@(.*/)") or "/etc/slurm/"
    return dofile(folder .. "ioncast.lua").new(dofile(folder .. "ioncast_settings.lua"), slurm)
end)
if not is_loaded then
    slurm.log_error("ioncast: all jobs stay as they are: %s", tostring(ioncast))
end

function slurm_job_submit(job_desc, part_list, submit_uid)
    if is_loaded then
        ioncast.submit(job_desc, part_list)
    end
    return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
    return slurm.SUCCESS
end

return slurm.SUCCESS
