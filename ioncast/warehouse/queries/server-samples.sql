-- title: Samples of some OSTs or I/O nodes in a time
-- kind: OST|ION = OST; servers: object storage targets, or I/O nodes
-- servers: text; their numbers, with a comma before and after each: ,3,4,
-- system: text; the system of the samples
-- from_us: integer; the beginning, in microseconds of UTC
-- to_us: integer; the end
select cast(server as bigint) as server, time_start_us, time_end_us,
    cast(coalesce(read_bytes, 0) as double) + cast(coalesce(written_bytes, 0) as double) as bytes
from server_samples
where system = :system and kind = :kind and :servers like concat('%,', server, ',%')
    and time_end_us > :from_us and time_start_us < :to_us
    and (read_bytes is not null or written_bytes is not null)
order by server nulls last, time_start_us nulls last, time_end_us nulls last
