-- The plugin's logic: ask the ioncast service how many I/O nodes a submitted job gets.
--
-- This code runs inside slurmctld, which waits for it. So it never takes longer than the deadline,
-- never raises an error, and never keeps a job from being accepted. It cuts each text of a user to a
-- fixed length and then reads it once, so that no text can make it slow. For Lua 5.1 to 5.4.
--
-- A site with a job_submit.lua of its own loads the plugin there (the job_submit.lua beside this file
-- is an example):
--
--     local folder = "/etc/slurm/"
--     local settings = dofile(folder .. "ioncast_settings.lua")
--     local ioncast = dofile(folder .. "ioncast.lua").new(settings, slurm)
--
-- Run these lines under pcall, and call `ioncast.submit(job_desc, part_list)` for each job.

local LONGEST_RESPONSE = 16 * 1024
local LONGEST_SCRIPT = 64 * 1024
local LONGEST_ID = 32
local LONGEST_USER = 100
local LONGEST_NAME = 200
local LONGEST_EXECUTABLE = 1000
local LONGEST_LICENCES = 4 * 1024
local LONGEST_LIMITS = 64 * 1024
local LARGEST_POOL = 65536
local MOST_PARTITIONS = 20
local HEARTBEAT_S = 30
local LONGEST_HOLD_S = 300
-- Limits are still true while the watch does not run, but not for ever.
local LIMITS_S = 86400
-- If the plugin's own work has used this share of the deadline, no job script is sent, and a missing answer
-- does not count as a failure of the service.
local FAIR_SHARE = 0.5
local SOURCES = { history = true, model = true, default = true }
local NAMES_OF_SLURM = { wrap = true, sbatch = true, interactive = true }

-- Numbers and texts ------------------------------------------------------------------------------

local function is_whole(value, least)
    return type(value) == "number" and value >= least and value < 2 ^ 31
        and value == math.floor(value)
end

local function is_in_span(now, since, seconds)
    -- The clock may have been set back.
    return now >= since and now < since + seconds
end

-- Lua 5.3 and later write 4.0 for a float that is a whole number.
local function digits(number)
    return string.format("%d", math.floor(number))
end

-- The first bytes of a text; a UTF-8 character that does not fit as a whole is left out.
local function beginning(text, longest)
    if #text <= longest then
        return text
    end
    local last = longest
    for _ = 1, 3 do
        local following = text:byte(last + 1)
        if following < 128 or following > 191 then
            break
        end
        last = last - 1
    end
    return text:sub(1, last)
end

-- A text that Slurm gives, cut to its longest; nil if it is missing or empty.
local function text_of(value, longest)
    if type(value) == "string" and value ~= "" then
        return beginning(value, longest)
    end
    return nil
end

-- A number of at least 1 that Slurm gives; nil if it has the value for "not set".
local function count_of(value, unset)
    if value ~= unset and is_whole(value, 1) then
        return math.floor(value)
    end
    return nil
end

local function escape(character)
    return string.format("\\x%02x", character:byte())
end

-- One line of ASCII without double quotes, for use between them. Every other byte becomes an escape, such as
-- \xc3, and so does a backslash: different names stay different.
local function printable(value, longest)
    local text = tostring(value):sub(1, longest)
    return (text:gsub('"', "'"):gsub("\\", escape):gsub("[^\32-\126]", escape))
end

local UTF8_CHARACTERS = {
    "[\194-\223][\128-\191]",
    "\224[\160-\191][\128-\191]",
    "[\225-\236\238\239][\128-\191][\128-\191]",
    "\237[\128-\159][\128-\191]",
    "\240[\144-\191][\128-\191][\128-\191]",
    "[\241-\243][\128-\191][\128-\191][\128-\191]",
    "\244[\128-\143][\128-\191][\128-\191]",
}

local function is_utf8(text)
    for _, character in ipairs(UTF8_CHARACTERS) do
        text = text:gsub(character, " ")
    end
    return not text:find("[\128-\255]")
end

-- The service accepts only UTF-8. In any other text, only ASCII is kept.
local function valid_utf8(text)
    return is_utf8(text) and text or text:gsub("[\128-\255]", "?")
end

local function percent_encoded(text)
    return (valid_utf8(text):gsub("[^A-Za-z0-9._~-]", function(character)
        return string.format("%%%02X", character:byte())
    end))
end

local JSON_ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\t"] = "\\t" }
for byte = 0, 31 do
    local character = string.char(byte)
    JSON_ESCAPES[character] = JSON_ESCAPES[character] or string.format("\\u%04x", byte)
end

-- A text in UTF-8 as a string in JSON.
local function json_string(text)
    return '"' .. text:gsub('[%c"\\]', JSON_ESCAPES) .. '"'
end

-- A job script as a string in JSON, in one pass over up to 64 KiB. Other characters than ASCII become "?":
-- the service looks for names of programs, which are ASCII.
local JSON_ASCII_ESCAPES = setmetatable({}, { __index = JSON_ESCAPES })
for byte = 128, 255 do
    JSON_ASCII_ESCAPES[string.char(byte)] = "?"
end

local function json_ascii_string(text)
    return '"' .. text:gsub('[%c"\\\128-\255]', JSON_ASCII_ESCAPES) .. '"'
end

-- Settings ---------------------------------------------------------------------------------------

local function is_ipv4(host)
    local parts = { host:match("^(%d+)%.(%d+)%.(%d+)%.(%d+)$") }
    for _, part in ipairs(parts) do
        -- The C library reads 010 as octal, which is eight.
        if #part > 3 or tonumber(part) > 255 or part:match("^0%d") then
            return false
        end
    end
    return #parts == 4
end

local function is_ipv6(host)
    local groups = 0
    for group in host:gmatch("[^:]+") do
        groups = groups + 1
        if not group:match("^%x%x?%x?%x?$") then
            return false
        end
    end
    local _, colons = host:gsub(":", "")
    local _, gaps = host:gsub("::", "")
    if gaps == 0 then
        return groups == 8 and colons == 7
    end
    return gaps == 1 and groups < 8 and not host:find(":::", 1, true)
        and not host:match("^:[^:]") and not host:match("[^:]:$")
end

-- Where the service listens. nil for a host name: looking it up has no deadline.
local function address_of(text)
    local path = text:match("^unix:(/.+)$")
    if path then
        return { place = path, name = "localhost", text = text }
    end
    local ipv4, ipv4_port = text:match("^([%d.]+):(%d+)$")
    local ipv6, ipv6_port = text:match("^%[([%x:]+)%]:(%d+)$")
    local port = tonumber(ipv4_port or ipv6_port)
    if port and port < 65536 and (ipv4 and is_ipv4(ipv4) or ipv6 and is_ipv6(ipv6)) then
        return { place = ipv4 or ipv6, port = port, name = text, text = text }
    end
    return nil
end

local function is_address(value)
    return type(value) == "string" and address_of(value) ~= nil
end

local function is_text(value)
    return type(value) == "string" and value ~= ""
end

local function is_io_nodes(value)
    return is_whole(value, 0)
end

local function is_at_least_one(value)
    return is_whole(value, 1)
end

local function is_boolean(value)
    return type(value) == "boolean"
end

local function is_table(value)
    return type(value) == "table"
end

local function is_within(least, most)
    return function(value)
        return type(value) == "number" and value >= least and value <= most
    end
end

local function is_one_of(names)
    return function(value)
        return value ~= nil and names[value] == true
    end
end

local function is_made_of(pattern)
    return function(value)
        return type(value) == "string" and value:match(pattern) ~= nil
    end
end

local is_mode = is_one_of({ off = true, shadow = true, on = true, arbitrate = true })
local is_mode_of_interactive = is_one_of({ on = true, shadow = true })
local is_licence = is_made_of("^[%w_.@/-]+$")
local is_token = is_made_of("^[%w._~+/=-]+$")

local function setting(is_right, wants, default)
    return { is_right = is_right, wants = wants, default = default }
end

local KNOWN = {
    address = setting(
        is_address,
        'must be "unix:/path", "127.0.0.1:8420" or "[::1]:8420" without a host name'
    ),
    second_address = setting(is_address, 'must be a second address, in the form of "address"'),
    system = setting(is_text, "must be a text"),
    mode = setting(is_mode, 'must be "off", "shadow", "on" or "arbitrate"', "off"),
    interactive = setting(is_mode_of_interactive, 'must be "on" or "shadow"', "shadow"),
    pool = setting(is_io_nodes, "must be a number of I/O nodes"),
    default = setting(is_io_nodes, "must be a number of I/O nodes"),
    licence = setting(is_licence, "must be a name without separators", "ionode"),
    deadline_ms = setting(is_within(1, 10000), "must be milliseconds, 1 to 10000", 50),
    failures = setting(is_at_least_one, "must be a whole number of at least 1", 2),
    pause_s = setting(is_within(0, 86400), "must be seconds, 0 to 86400", 5),
    token = setting(is_token, "must be the token that `ioncast token add` printed"),
    token_file = setting(is_text, "must be the name of a file"),
    heartbeat = setting(is_text, "must be the name of a file"),
    limits = setting(is_text, "must be the name of a file"),
    tell_user = setting(is_boolean, "must be true or false", false),
    partitions = setting(is_table, "must be a table of tables", {}),
}

local NEEDED = { "address", "system", "pool" }
local OF_PARTITIONS =
    { mode = true, interactive = true, default = true, pool = true, deadline_ms = true }

local function shown(value)
    if type(value) == "string" then
        return '"' .. printable(value, 50) .. '"'
    elseif is_table(value) then
        return "a table"
    end
    return printable(value, 50)
end

-- The consequence of a wrong setting.
local function consequence(name, instead)
    if instead ~= nil and not is_table(instead) then
        return shown(instead) .. " is used"
    end
    for _, needed in ipairs(NEEDED) do
        if name == needed then
            return "jobs stay as they are"
        end
    end
    return "the setting is ignored"
end

local function complaint(name, label, value, instead)
    -- A token must not get into the log.
    local but = name == "token" and "" or ", not " .. shown(value)
    return string.format("%s %s%s: %s", label, KNOWN[name].wants, but, consequence(name, instead))
end

-- The valid settings among `given`. For each other setting one line is logged, which names the value in
-- `instead` that is used.
local function right_ones(given, where, is_allowed, instead, complain)
    local right = {}
    for name, value in pairs(given) do
        local known = KNOWN[name]
        local label = printable(where .. tostring(name), 100)
        if not known or not is_allowed(name) then
            complain("unknown setting " .. label)
        elseif known.is_right(value) then
            right[name] = value
        else
            complain(complaint(name, label, value, instead[name]))
        end
    end
    return right
end

local function defaults()
    local found = {}
    for name, known in pairs(KNOWN) do
        found[name] = known.default
    end
    return found
end

local function file_content(path, longest)
    local file = io.open(path, "r")
    if not file then
        return nil
    end
    local content = file:read(longest)
    file:close()
    return content
end

local function token_in(path, complain)
    local token = (file_content(path, 1000) or ""):match("^%s*(.-)%s*$")
    if is_token(token) then
        return token
    end
    complain("cannot read a token from " .. printable(path, 200) .. ": no token is sent")
    return nil
end

-- The modes in use: the general mode and those of partitions.
local function modes_of(settings)
    local modes = { [settings.mode] = true }
    for _, partition in pairs(settings.partitions) do
        modes[partition.mode] = true
    end
    return modes
end

local function is_used(settings)
    local modes = modes_of(settings)
    return modes.shadow or modes.on or modes.arbitrate
end

local function partition_settings(base, complain)
    local partitions = {}
    for name, given in pairs(base.partitions) do
        local where = "partitions." .. tostring(name)
        if not is_table(given) then
            complain(string.format("%s must be a table, not %s: the general settings are used",
                printable(where, 100), shown(given)))
            given = {}
        end
        local right = right_ones(given, where .. ".", function(key)
            return OF_PARTITIONS[key]
        end, base, complain)
        partitions[name] = setmetatable(right, { __index = base })
    end
    return partitions
end

-- Log which necessary settings are missing. Wrong settings were logged before.
local function find_gaps(settings, given, complain)
    for _, name in ipairs(NEEDED) do
        settings.cannot_work = settings.cannot_work or settings[name] == nil
        if given[name] == nil then
            complain("the setting " .. name .. " is missing: jobs stay as they are")
        end
    end
    if modes_of(settings).arbitrate and given.heartbeat == nil then
        complain('the mode "arbitrate" needs the setting heartbeat: jobs are not held')
    end
end

-- Complete and valid settings. Each problem is logged, once.
local function checked(given, complain)
    if not is_table(given) then
        complain("it must return a table, not " .. shown(given) .. ": jobs stay as they are")
        given = {}
    end
    local settings = right_ones(given, "", function()
        return true
    end, defaults(), complain)
    for name, default in pairs(defaults()) do
        if settings[name] == nil then
            settings[name] = default
        end
    end
    settings.partitions = partition_settings(settings, complain)
    if is_used(settings) then
        find_gaps(settings, given, complain)
    end
    settings.addresses = {}
    for _, name in ipairs({ "address", "second_address" }) do
        settings.addresses[#settings.addresses + 1] = settings[name] and address_of(settings[name])
    end
    if settings.token_file then
        settings.token = token_in(settings.token_file, complain)
    end
    return settings
end

-- The settings for jobs without a script.
local function for_interactive(settings)
    if settings.interactive == "on" then
        return settings
    end
    return setmetatable({ mode = "shadow" }, { __index = settings })
end

-- The question -----------------------------------------------------------------------------------

-- The program of srun; a batch job's program is in its script.
local function executable_of(job, script)
    local arguments = not script and job.argv
    return type(arguments) == "table" and text_of(arguments[0], LONGEST_EXECUTABLE) or nil
end

-- Number of processes; nil if the user does not give it. Then `mpirun` in the script decides.
local function tasks_of(job, nodes, slurm)
    local per_node = count_of(job.ntasks_per_node, slurm.NO_VAL16)
    return count_of(job.num_tasks, slurm.NO_VAL) or nodes and per_node and nodes * per_node
end

-- nil for the names that Slurm gives to jobs without a name: they say nothing about the application.
local function name_of(job)
    local name = text_of(job.name, LONGEST_NAME)
    return not NAMES_OF_SLURM[name or ""] and name or nil
end

-- The question's pairs of name and value, always in the same order.
local function question_of(job, script, settings, available, slurm)
    local nodes = count_of(job.min_nodes, slurm.NO_VAL)
    local asked = {
        { "system", settings.system },
        { "user", text_of(job.user_name, LONGEST_USER) },
        { "name", name_of(job) },
        { "executable", executable_of(job, script) },
        { "nodes", nodes },
        { "tasks", tasks_of(job, nodes, slurm) },
        { "available", available },
        -- A number that the job does not get teaches nothing.
        { "explore", settings.mode ~= "shadow" or nil },
    }
    local question = {}
    for _, pair in ipairs(asked) do
        if pair[2] ~= nil then
            question[#question + 1] = pair
        end
    end
    return question
end

-- A number or `true`, which are written alike in JSON and in a URL; nil for a text.
local function plain(value)
    return type(value) == "number" and digits(value) or value == true and "true" or nil
end

local function as_query(question)
    local parts = {}
    for _, pair in ipairs(question) do
        parts[#parts + 1] = pair[1] .. "=" .. percent_encoded(plain(pair[2]) or pair[2])
    end
    return table.concat(parts, "&")
end

local function as_json(question, script)
    local parts = {}
    for _, pair in ipairs(question) do
        local value = plain(pair[2]) or json_string(valid_utf8(pair[2]))
        parts[#parts + 1] = json_string(pair[1]) .. ":" .. value
    end
    parts[#parts + 1] = '"script":' .. json_ascii_string(script)
    return "{" .. table.concat(parts, ",") .. "}"
end

local function message(first_line, address, settings, more_headers, body)
    local lines = {
        first_line .. " HTTP/1.0",
        "Host: " .. address.name,
        "Accept: text/plain",
        "Connection: close",
    }
    if settings.token then
        lines[#lines + 1] = "Authorization: Bearer " .. settings.token
    end
    for _, header in ipairs(more_headers) do
        lines[#lines + 1] = header
    end
    return table.concat(lines, "\r\n") .. "\r\n\r\n" .. body
end

-- A question without a script fits in a URL, because its texts were cut.
local function request_for(question, script, address, settings)
    if not script then
        return message("GET /v1/decisions?" .. as_query(question), address, settings, {}, "")
    end
    local body = as_json(question, script)
    local headers = { "Content-Type: application/json", "Content-Length: " .. digits(#body) }
    return message("POST /v1/decisions", address, settings, headers, body)
end

-- The answer -------------------------------------------------------------------------------------

local function headers_in(head)
    local headers = {}
    for name, value in head:gmatch("\n([^:\r\n]+):[ \t]*([^\r\n]*)") do
        headers[name:lower()] = value
    end
    return headers
end

local function decision_in(headers, number)
    local id, source = headers["x-decision-id"] or "", headers["x-decision-source"]
    return {
        io_nodes = number,
        id = #id <= LONGEST_ID and id:match("^[%w_-]+$") or nil,
        source = SOURCES[source or ""] and source or "service",
        why = headers["x-decision-why"] or "",
    }
end

local function refusal(status)
    local is_denied = status == 401 or status == 403
    return "HTTP status " .. digits(status) .. (is_denied and ": check the token" or "")
end

-- The service's decision; or nil, the reason, and true if the service itself rejects the question. Such a
-- service works: its answer depends on the question.
local function answer_in(response, most)
    local head, body = response:match("^(.-)\r?\n\r?\n(.*)$")
    local status = tonumber(head and head:match("^HTTP/%d%.%d (%d%d%d)"))
    if not status then
        return nil, "the answer is not HTTP"
    end
    local headers = headers_in(head)
    if status == 204 then
        return decision_in(headers, nil)
    elseif status ~= 200 then
        return nil, refusal(status), true
    end
    local length = headers["content-length"]
    if length and tonumber(length) ~= #body then
        return nil, "the answer is cut off"
    end
    local number = tonumber(body:match("^%s*(%d+)%s*$"))
    if not number then
        return nil, "the answer is not a number of I/O nodes"
    elseif number > most then
        return nil, "the answer is more I/O nodes than there are", true
    end
    return decision_in(headers, number)
end

-- One exchange over lua-socket -------------------------------------------------------------------

-- The functions of lua-socket that are needed; nil if it is not installed. Its versions differ in the form
-- of socket.unix.
local function lua_socket()
    local is_there, socket = pcall(require, "socket")
    if not is_there then
        return nil
    end
    local has_unix, unix = pcall(require, "socket.unix")
    if has_unix and type(unix) == "table" then
        unix = unix.stream or unix.tcp
    end
    return { gettime = socket.gettime, tcp = socket.tcp, unix = has_unix and unix or nil }
end

-- A timeout of lua-socket limits one call, so the remaining time is set before each call. One call receives
-- everything until the service closes the connection, so that single bytes do not start a new timeout.
-- "timeout" and "closed" are lua-socket's own words.
local function converse(connection, address, request, is_in_time)
    local function call(method, ...)
        if not is_in_time() then
            return nil, "timeout"
        end
        return connection[method](connection, ...)
    end
    local partial
    local done, problem = call("connect", address.place, address.port)
    if not done then
        return nil, problem
    end
    done, problem = call("send", request)
    if not done then
        return nil, problem
    end
    done, problem, partial = call("receive", LONGEST_RESPONSE + 1)
    if done then
        return nil, "the answer is too long"
    elseif problem ~= "closed" then
        return nil, problem
    end
    return partial or ""
end

-- The response to a request; or nil and the reason. The deadline is measured from the start of submit.
local function exchange(library, address, request, began, deadline_s)
    local open = address.port and library.tcp or library.unix
    if not open then
        return nil, "this lua-socket has no unix sockets"
    end
    local connection, problem = open()
    if not connection then
        return nil, problem
    end
    local function is_in_time()
        local now = library.gettime()
        if not is_in_span(now, began, deadline_s) then
            return false
        end
        connection:settimeout(began + deadline_s - now, "t")
        return true
    end
    local is_fine, response, why = pcall(converse, connection, address, request, is_in_time)
    connection:close()
    if not is_fine then
        return nil, response
    end
    return response, why
end

-- A circuit breaker: it stops questions while the service does not answer.
--
-- After several failures in a row no question is asked for a while, and then one, as a test. A question with
-- a job script may fail because of this script, so it does not count as a failure. But the next question is
-- asked without a script. For a while no script of this user is sent, and no script at all after scripts of
-- several users failed.
local function new_breaker(most_failures, pause_s)
    local failures, failed_at = 0, 0
    local slow_users, slow_scripts, slow_at = {}, 0, 0
    local is_in_doubt = false
    local breaker = {}

    function breaker.is_open(now)
        return failures >= most_failures and is_in_span(now, failed_at, pause_s)
    end

    function breaker.takes_script_of(user, now)
        if not is_in_span(now, slow_at, pause_s) then
            slow_users, slow_scripts = {}, 0
        end
        return not is_in_doubt and slow_scripts < most_failures and not slow_users[user]
    end

    function breaker.note_answer()
        failures, is_in_doubt = 0, false
    end

    function breaker.note_failure(now)
        failures, failed_at = failures + 1, now
    end

    function breaker.note_failure_with_script(now, user)
        slow_users[user], slow_scripts, slow_at = true, slow_scripts + 1, now
        is_in_doubt = true
    end

    return breaker
end

-- The services ----------------------------------------------------------------------------------

-- Returns a function that asks one service after the other about a job, a table with its `question`, `user` and
-- `script`, its `settings` and the time when its submission `began`. It returns the decision of the first service
-- that has one, in whose `failure` is why the service before it had none; or a fallback with the failures of all.
-- `is_paused` says whether a service was not asked, because its last questions failed.
local function asker(settings, library)
    local services = {}
    for place, address in ipairs(settings.addresses) do
        services[place] = { address = address, breaker = new_breaker(settings.failures, settings.pause_s) }
    end

    -- The part of a job's script to send; nil if no script may be sent.
    local function script_to_send(script, user, chosen, breaker, now)
        local is_sent = chosen.token and breaker.takes_script_of(user, now)
        return is_sent and text_of(script, LONGEST_SCRIPT) or nil
    end

    -- A service's decision; or nil and the reason.
    local function ask(service, asked, deadline_s)
        local chosen, address, breaker = asked.settings, service.address, service.breaker
        local now = library.gettime()
        local is_fair = is_in_span(now, asked.began, chosen.deadline_ms / 1000 * FAIR_SHARE)
        local sent = is_fair and script_to_send(asked.script, asked.user, chosen, breaker, now) or nil
        local request = request_for(asked.question, sent, address, chosen)
        local response, why = exchange(library, address, request, asked.began, deadline_s)
        local decision, is_rejected
        if response then
            decision, why, is_rejected = answer_in(response, chosen.pool)
        end
        local ended = library.gettime()
        if decision or is_rejected then
            breaker.note_answer()
        elseif sent then
            breaker.note_failure_with_script(ended, asked.user)
        elseif is_fair then
            breaker.note_failure(ended)
        end
        return decision, why
    end

    -- While another service can be asked afterwards, a service has half of the time that is left.
    local function deadline_of(place, asked)
        local deadline_s = asked.settings.deadline_ms / 1000
        local following = services[place + 1]
        if following and not following.breaker.is_open(asked.began) then
            return (deadline_s + library.gettime() - asked.began) / 2
        end
        return deadline_s
    end

    return function(asked)
        local failures, is_paused = {}, false
        for place, service in ipairs(services) do
            local decision, why
            if not library then
                why = "lua-socket is not installed"
            elseif service.breaker.is_open(asked.began) then
                is_paused, why = true, "not asked, because the last questions failed"
            else
                decision, why = ask(service, asked, deadline_of(place, asked))
            end
            if decision then
                decision.failure, decision.is_paused = failures[1], is_paused
                return decision
            end
            failures[place] = "no answer from " .. service.address.text .. ": " .. tostring(why)
        end
        return { source = "fallback", why = table.concat(failures, "; "), is_paused = is_paused }
    end
end

-- Requests of the job itself ---------------------------------------------------------------------

local function local_name(licence)
    return licence:match("^[^@]*")
end

-- Whether a job's licences name one licence, and its count; no count if they are alternatives, or if the count
-- is negative or above any pool: Slurm keeps the low 32 bits of such a number, which is left alone.
local function own_licences(licences, name)
    local is_named, count = false, 0
    for part in (licences or ""):gmatch("[^,;|]+") do
        local part_name, separator, number = part:match("^([^:=]+)([:=]?)(.*)$")
        if part_name and local_name(part_name) == local_name(name) then
            is_named = true
            count = count + (separator == "" and 1 or tonumber(number:match("^%s*[+-]?%d+$") or 0))
        end
    end
    local is_clear = is_named and count >= 0 and count <= LARGEST_POOL and not licences:find("|", 1, true)
    return is_named, is_clear and count or nil
end

-- Whether the job's tasks ask for a licence: `--tres-per-task=license/ionode:1`, from Slurm 23.02 on. Slurm
-- adds their sum to the job's licences, and rejects the job if it has fewer.
local function is_named_by_tasks(job, name)
    for licence in (job.tres_per_task or ""):gmatch("license[/:]([^:=,]+)") do
        if local_name(licence) == local_name(name) then
            return true
        end
    end
    return false
end

local function own_request(job, settings)
    local is_named, count = own_licences(job.licenses, settings.licence)
    if is_named_by_tasks(job, settings.licence) then
        return true, nil
    end
    return is_named, count
end

-- Slurm's limits ---------------------------------------------------------------------------------

-- The lines of the file into which `ioncast slurm watch` writes Slurm's limits. Its first and its last line
-- have the same time. nil if a part is missing, or if it is older than a day or about another licence: then no
-- limit is known.
local function known_limits(settings)
    local content = settings.limits and file_content(settings.limits, LONGEST_LIMITS) or ""
    local written, licence = content:match("^ioncast%-limits\t1\t(%d+)\t([^\t\n]+)\n")
    local last = written and content:find("\nend\t" .. written .. "\n", 1, true)
    if not last or licence ~= settings.licence
        or math.abs(os.time() - tonumber(written)) >= LIMITS_S then
        return nil
    end
    return content:sub(1, last)
end

local function limit_in(lines, ...)
    local _, last = lines:find("\n" .. table.concat({ ... }, "\t") .. "\t", 1, true)
    local number = last and tonumber(lines:match("^(%d+)\n", last + 1))
    return is_whole(number, 0) and number or nil
end

-- Slurm compares names of accounts and QOS without regard to case, and the file has lower case.
local function lower_name(value)
    return (text_of(value, LONGEST_NAME) or ""):lower()
end

-- The lowest of Slurm's limits on a job's I/O nodes, and its name in words; nil without a limit. With more,
-- Slurm would reject the job, or let it wait for ever.
local function limit_of(job, partition, settings)
    local lines = known_limits(settings)
    if not lines then
        return nil
    end
    local account = lower_name(job.account or job.default_account)
    local user, qos = text_of(job.user_name, LONGEST_USER) or "", lower_name(job.qos or job.default_qos)
    local lowest, name
    local function note(limit, of)
        if limit and (not lowest or limit < lowest) then
            lowest, name = limit, of
        end
    end
    note(limit_in(lines, "total"), "all licences")
    note(limit_in(lines, "qos", qos), "QOS " .. qos)
    note(limit_in(lines, "account", account), "account " .. account)
    note(limit_in(lines, "user", account, user), "user " .. user .. " of account " .. account)
    local count = 0
    for each in (text_of(job.partition, LONGEST_LICENCES) or partition or ""):gmatch("[^,]+") do
        count = count + 1
        if count <= MOST_PARTITIONS then
            note(limit_in(lines, "partition", each), "partition " .. each)
            note(
                limit_in(lines, "partition-user", each, account, user),
                ("user %s of account %s in partition %s"):format(user, account, each)
            )
        end
    end
    return lowest, name
end

-- Changes of the job -----------------------------------------------------------------------------

local function joined(before, separator, after)
    return before and before ~= "" and before .. separator .. after or after
end

local function unreadable(job)
    if #(job.licenses or "") > LONGEST_LICENCES or #(job.tres_per_task or "") > LONGEST_LICENCES then
        return "its licences are too long to read"
    end
    return nil
end

-- The number of a component of a heterogeneous job after the first one; nil for any other job.
local function place_after_leader(job)
    return is_whole(job.het_job_offset, 1) and job.het_job_offset or nil
end

-- Why Slurm would reject the job if we added I/O nodes; nil if it would accept it.
local function obstacle(job)
    if job.immediate == true or job.immediate == 1 then
        return "it starts at once or not at all, and I/O nodes may not be free"
    elseif (job.licenses or ""):find("|", 1, true) then
        return "its licences are alternatives, and Slurm accepts no other licence beside them"
    end
    return nil
end

local function resource_changes(job, settings, io_nodes)
    if io_nodes == 0 then
        return {}
    end
    local licence = settings.licence .. ":" .. digits(io_nodes)
    return { licenses = joined(job.licenses, ",", licence) }
end

-- Seconds for which a job may be held, from the arbiter's heartbeat; or nil and the reason why the arbiter
-- seems not to run.
local function hold_of_arbiter(settings, now)
    if not settings.heartbeat then
        return nil, "the setting heartbeat is missing"
    end
    local content = file_content(settings.heartbeat, 40) or ""
    local beat, hold_s = content:match("^(%d+) (%d+)\n$")
    if not beat then
        return nil, "no heartbeat in " .. settings.heartbeat
    end
    local age_s = now - tonumber(beat)
    if math.abs(age_s) < HEARTBEAT_S then
        return math.min(tonumber(hold_s), LONGEST_HOLD_S)
    elseif age_s < 0 then
        return nil, "the heartbeat is at least " .. HEARTBEAT_S .. " s ahead of this machine's clock"
    end
    return nil, "the heartbeat is older than " .. HEARTBEAT_S .. " s"
end

-- Why a job in mode "arbitrate" is not held; nil if nothing but the arbiter's absence can prevent it. If a held
-- job also waited for another job or a time, the arbiter could not know it and would keep I/O nodes for it.
local function hindrance(job, decision, now)
    if not decision.id then
        return "the answer has no id"
    elseif job.priority == 0 then
        return "it is held already"
    elseif text_of(job.dependency, 1) then
        return "it waits for another job"
    elseif (tonumber(job.begin_time) or 0) > now then
        return "it must not start before a later time"
    end
    return nil
end

-- The time until which a job is held for the arbiter; or nil and the reason why it is not held. A hold is a
-- begin time, so that it ends by itself if the arbiter does not end it.
local function held_until(job, settings, decision)
    local now, hold_s = os.time(), nil
    local why = hindrance(job, decision, now)
    if not why then
        hold_s, why = hold_of_arbiter(settings, now)
    end
    return hold_s and now + hold_s, why
end

local function changes_of(job, settings, decision)
    local changes = {}
    if decision.io_nodes and not decision.is_own then
        changes = resource_changes(job, settings, decision.io_nodes)
    end
    if settings.mode == "arbitrate" and decision.is_known then
        changes.begin_time, decision.not_held = held_until(job, settings, decision)
        decision.is_held = not decision.not_held
    end
    -- Only a job with a known decision gets a mark. From the mark and no licences the watch concludes that
    -- the job was given 0 I/O nodes.
    if decision.id and decision.is_known then
        local held = decision.is_held and ":held until:" .. digits(changes.begin_time) or ""
        local mark = "ioncast:" .. decision.id .. held
        changes.admin_comment = joined(job.admin_comment, " ", mark)
    end
    return changes
end

local function apply(job, script, changes, decision)
    for field, value in pairs(changes) do
        job[field] = value
    end
    -- TaskProlog sets ION_COUNT for srun and salloc, whose environment cannot be changed here, and for
    -- held jobs, whose number is not known yet.
    if decision.io_nodes and script and not decision.is_held then
        job.environment["ION_COUNT"] = digits(decision.io_nodes)
    end
end

-- The line of the log ----------------------------------------------------------------------------

local LINE = 'mode=%s partition="%s" user="%s" job="%s" io_nodes=%s source=%s ms=%.1f '
    .. 'decision=%s%s%s why="%s"'

local function held_field(decision)
    if decision.is_held == nil then
        return ""
    end
    return decision.is_held and " held=yes" or " held=no"
end

local function why_of(decision)
    local why = printable(decision.why, 500)
    if decision.failure then
        why = why .. "; " .. printable(decision.failure, 300)
    end
    if decision.limit then
        why = why .. "; " .. printable(decision.limit, 300)
    end
    local not_held = decision.not_held
    return why .. (not_held and "; not held: " .. printable(not_held, 300) or "")
end

local function line_of(job, partition, settings, decision)
    return string.format(
        LINE,
        settings.mode,
        printable(partition or "none", 100),
        printable(job.user_name or "none", 100),
        printable(job.name or "", 100),
        decision.io_nodes and digits(decision.io_nodes) or "none",
        decision.source,
        decision.ms or 0,
        decision.id or "none",
        held_field(decision),
        decision.is_paused and " paused=yes" or "",
        why_of(decision)
    )
end

-- The line that `sbatch` prints, if the job got a number of I/O nodes here.
local function words_for_user(decision)
    local count = decision.io_nodes
    local nodes = count == 0 and "no I/O nodes" or count == 1 and "1 I/O node" or digits(count) .. " I/O nodes"
    return nodes .. ": " .. why_of(decision)
end

local function text_or_none(value)
    return value and printable(value, 200) or "none"
end

local function yes_or_no(value)
    return value and "yes" or "no"
end

-- The line of a start or a reload, from which an admin sees which settings are in use.
local function loaded_line(settings, library)
    local partitions = {}
    for name, partition in pairs(settings.partitions) do
        partitions[#partitions + 1] = printable(name, 100) .. "=" .. partition.mode
    end
    table.sort(partitions)
    return string.format(
        'loaded: mode=%s interactive=%s partitions="%s" address=%s second_address=%s system="%s" pool=%s '
            .. "token=%s heartbeat=%s limits=%s lua_socket=%s",
        settings.mode,
        settings.interactive,
        table.concat(partitions, " "),
        text_or_none(settings.address),
        text_or_none(settings.second_address),
        printable(settings.system or "", 100),
        settings.pool and digits(settings.pool) or "none",
        yes_or_no(settings.token),
        yes_or_no(settings.heartbeat),
        yes_or_no(settings.limits),
        yes_or_no(library)
    )
end

-- The job's first partition. A job without one goes to the default partition.
local function partition_of(job, partitions)
    local named = text_of(job.partition, 1000)
    if named then
        return named:match("^[^,]+")
    end
    for name, partition in pairs(partitions or {}) do
        if partition.flag_default == 1 then
            return name
        end
    end
    return nil
end

-- The module -------------------------------------------------------------------------------------

-- Parameters: the table of settings, Slurm's table `slurm`, and optionally a table with lua-socket's
-- functions `gettime`, `tcp` and `unix`; without it lua-socket is loaded.
-- Returns a table with the function `submit(job_desc, part_list)`, to be called for each job. It never
-- raises an error, and returns nothing.
local function new(given, slurm, library)
    local function complain(text)
        slurm.log_error("ioncast: %s", text)
    end

    local settings = checked(given, function(text)
        complain("ioncast_settings.lua: " .. text)
    end)
    library = library or lua_socket()
    if not library and is_used(settings) then
        complain("lua-socket is not installed: the service is not asked, and all jobs get the default")
    end

    slurm.log_info("ioncast: %s", loaded_line(settings, library))
    local ask = asker(settings, library)

    local function decide(job, script, chosen, available, limit, began)
        local problem = unreadable(job)
        local is_own, count
        if not problem then
            is_own, count = own_request(job, chosen)
        end
        if is_own then
            return { io_nodes = count, is_own = true, source = "user", why = "asked for by the user" }
        end
        -- From 23.02 on, Slurm rejects a het job if another component than the first one asks for licences.
        local place = place_after_leader(job)
        if place then
            local why = "component " .. digits(place) .. " of a heterogeneous job: its component 0 has the I/O nodes"
            return { source = "leader", why = why }
        end
        problem = problem or obstacle(job)
        if not problem and limit and available == 0 then
            problem = limit
        end
        if problem then
            return { source = "fallback", why = problem }
        end
        local decision = ask({
            question = question_of(job, script, chosen, available, slurm),
            user = tostring(job.user_name),
            script = script,
            settings = chosen,
            began = began,
        })
        decision.ms, decision.limit = library and (library.gettime() - began) * 1000, limit
        decision.is_known = decision.io_nodes ~= nil
        local io_nodes = decision.io_nodes or chosen.default
        decision.io_nodes = io_nodes and math.min(io_nodes, available)
        return decision
    end

    -- The number of I/O nodes that a job can have; and in words the limit of Slurm that makes it lower.
    local function available_to(job, partition, chosen)
        local limit, name = limit_of(job, partition, chosen)
        if not limit or limit >= chosen.pool then
            return chosen.pool
        end
        return limit, "Slurm's limit for " .. name .. " is " .. digits(limit)
    end

    local is_working = is_used(settings) and not settings.cannot_work

    local function handle(job, partitions)
        if not is_working then
            return
        end
        local began = library and library.gettime()
        -- Slurm copies the script each time it is read, so read it once.
        local script = job.script
        local partition = partition_of(job, partitions)
        local chosen = settings.partitions[partition or ""] or settings
        if chosen.mode == "off" then
            return
        elseif not script and not place_after_leader(job) then
            chosen = for_interactive(chosen)
        end
        local available, limit = available_to(job, partition, chosen)
        local decision = decide(job, script, chosen, available, limit, began)
        if chosen.mode ~= "shadow" then
            apply(job, script, changes_of(job, chosen, decision), decision)
            if settings.tell_user and decision.io_nodes and not decision.is_held then
                slurm.log_user("ioncast: %s", words_for_user(decision))
            end
        end
        slurm.log_info("ioncast: %s", line_of(job, partition, chosen, decision))
    end

    local function submit(job, partitions)
        local is_fine, problem = pcall(handle, job, partitions)
        if not is_fine then
            pcall(complain, "a job stays as it is: " .. printable(problem, 500))
        end
    end

    return { submit = submit }
end

return {
    new = new,
    -- For tests.
    percent_encoded = percent_encoded,
    json_string = json_string,
    json_ascii_string = json_ascii_string,
    valid_utf8 = valid_utf8,
    own_licences = own_licences,
    address_of = address_of,
}
