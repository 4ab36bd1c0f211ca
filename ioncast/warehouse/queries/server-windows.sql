-- title: The most that one OST of a file moved in each of the windows before a time
-- log: text; the log, by its SHA-256
-- file: text; the file, by its id
-- system: text; the system of the samples
-- from_us: integer; the beginning of the windows, in microseconds of UTC
-- to_us: integer; the end of the last window, whose number is 0
-- length_us: integer; the length of a window
with chosen as (
    select distinct cast(server as varchar(20)) as server
    from file_osts where log = :log and file = :file and server is not null
),
samples as (
    select samples.server, time_start_us, time_end_us,
        cast(coalesce(read_bytes, 0) as double) + cast(coalesce(written_bytes, 0) as double)
            as bytes,
        floor(cast(:to_us - time_end_us as double) / :length_us) as late_window,
        floor(cast(:to_us - time_start_us - 1 as double) / :length_us) as early_window
    from server_samples as samples join chosen on chosen.server = samples.server
    where system = :system and kind = 'OST' and time_start_us >= :from_us
        and time_end_us <= :to_us and time_end_us - time_start_us <= :length_us
        and (read_bytes is not null or written_bytes is not null)
),
-- A sample is at most as long as a window, so it is in one or in two.
parts as (
    select server, late_window as number, bytes, time_end_us - time_start_us as whole_us,
        time_end_us - greatest(time_start_us, :to_us - (late_window + 1) * :length_us)
            as covered_us
    from samples
    union all
    select server, early_window as number, bytes, time_end_us - time_start_us as whole_us,
        :to_us - early_window * :length_us - time_start_us as covered_us
    from samples where early_window > late_window
),
servers as (
    select number, server, sum(bytes * covered_us / whole_us) / sum(covered_us) as bytes_per_us,
        least(sum(covered_us), :length_us) as covered_us
    from parts group by number, server
)
select cast(number as bigint) as number, max(bytes_per_us) * 1e6 / 1048576 as most_mib_s
from servers
group by number
having sum(covered_us) >= 0.8 * :length_us * (select count(*) from chosen)
order by number nulls last
