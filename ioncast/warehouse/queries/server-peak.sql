-- title: The 99.9 % quantile of what a server moves in its samples of a time, in MiB/s
-- kind: OST|ION = OST; servers: object storage targets, or I/O nodes
-- server: text; its number
-- system: text; the system of the samples
-- from_us: integer; the beginning, in microseconds of UTC
-- to_us: integer; the end
select percentile_cont(0.999) within group (order by mib_s) as peak_mib_s
from (
    select (cast(coalesce(read_bytes, 0) as double) + cast(coalesce(written_bytes, 0) as double))
        / (time_end_us - time_start_us) * 1e6 / 1048576 as mib_s
    from server_samples
    where system = :system and kind = :kind and server = :server and time_start_us >= :from_us
        and time_end_us <= :to_us and (read_bytes is not null or written_bytes is not null)
) as samples
