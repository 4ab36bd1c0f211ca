-- title: Logs that cannot be used, by reason, and partial ones
select reason, count(*) as logs from failed group by reason
union all
select 'partial: Darshan ran out of memory', count(*) from jobs where partial having count(*) > 0
union all
select 'no I/O', count(*) from jobs where read_bytes + written_bytes = 0 having count(*) > 0
order by 2 desc, 1 nulls last
