-- title: Samples of the OSTs of a log in a time
-- log: text; the log, by its SHA-256
-- system: text; the system of the samples
-- from_us: integer; the beginning, in microseconds of UTC
-- to_us: integer; the end
select cast(server as bigint) as server, time_start_us, time_end_us,
    cast(coalesce(read_bytes, 0) as double) + cast(coalesce(written_bytes, 0) as double) as bytes
from server_samples
where system = :system and kind = 'OST' and time_end_us > :from_us and time_start_us < :to_us
    and (read_bytes is not null or written_bytes is not null)
    and server in (
        select cast(server as varchar(20)) from file_osts where log = :log and server is not null)
order by server nulls last, time_start_us nulls last, time_end_us nulls last
