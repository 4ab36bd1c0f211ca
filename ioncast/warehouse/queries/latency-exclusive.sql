-- title: Seconds in each layer without the layer below it, by process and call
-- part: calls
-- part: layers
select log, case when grouping(process) = 1 then 'total' when grouping(call_number) = 1
        then 'process' else 'call' end as sum_of, process, call_number, count(*) as calls,
    sum(exclusive_mpi_seconds) as mpi_seconds, sum(client_seconds - coalesce(server_seconds, 0.0)) as client_seconds,
    case when count(*) = count(server_seconds) then sum(server_seconds) end as server_seconds
from layers
group by grouping sets ((log, process, call_number), (log, process), (log))
order by log nulls last, process nulls last, call_number nulls last
