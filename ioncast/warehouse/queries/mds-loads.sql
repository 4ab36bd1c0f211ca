-- title: CPU loads of the metadata servers of a system in a time
-- system: text; the system of the samples
-- from_us: integer; the beginning, in microseconds of UTC
-- to_us: integer; the end
select server, time_start_us, time_end_us, cpu_percent
from server_samples
where system = :system and kind = 'MDS' and cpu_percent is not null
    and time_end_us > :from_us and time_start_us < :to_us
order by server nulls last, time_start_us nulls last, time_end_us nulls last
