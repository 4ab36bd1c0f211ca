-- title: The most that one of some OSTs or I/O nodes moved in each of the windows before a time
-- kind: OST|ION = OST; servers: object storage targets, or I/O nodes
-- servers: text; their numbers, with a comma before and after each: ,3,4,
-- system: text; the system of the samples
-- from_us: integer; the beginning of the windows, in microseconds of UTC
-- to_us: integer; the end of the last window, whose number is 0
-- length_us: integer; the length of a window
with samples as (
    select server, time_start_us, time_end_us,
        cast(coalesce(read_bytes, 0) as double) + cast(coalesce(written_bytes, 0) as double)
            as bytes,
        floor(cast(:to_us - time_end_us as double) / :length_us) as late_window,
        floor(cast(:to_us - time_start_us - 1 as double) / :length_us) as early_window
    from server_samples
    where system = :system and kind = :kind and :servers like concat('%,', server, ',%')
        and time_start_us >= :from_us and time_end_us <= :to_us
        and time_end_us - time_start_us <= :length_us
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
select cast(number as bigint) as number, max(bytes_per_us) * 1e6 / 1048576 as most_mib_s,
    cast(sum(covered_us) as double) as covered_us
from servers
group by number
order by number nulls last
