-- title: The mean time of a call's fragments at its servers
-- part: calls
-- part: servers
-- view: process|server = process; a row for each process and call, or for each server and call
select log, case when :view = 'process' then process end as process,
    case when :view = 'server' then server end as server, call_number, count(*) as operations,
    avg(latency_seconds) as mean_seconds
from served
where call is not null
group by 1, 2, 3, 4
order by 1 nulls last, 2 nulls last, 3 nulls last, 4 nulls last
