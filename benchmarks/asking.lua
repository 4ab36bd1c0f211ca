-- Script for wrk: the requests (IONCAST_PATHS is a file with a path on each line), and the result as JSON.
local requests, place = {}, 0

function init()
    for path in io.lines(os.getenv("IONCAST_PATHS")) do
        requests[#requests + 1] = wrk.format("GET", path)
    end
end

function request()
    place = place % #requests + 1
    return requests[place]
end

function done(summary, latency)
    local errors = summary.errors
    io.write(string.format(
        '\n{"requests": %d, "seconds": %f, "p50_ms": %f, "p99_ms": %f, "errors": %d}\n',
        summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3,
        latency:percentile(99) / 1e3,
        errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
