-- title: Calls, fragments and seconds of each process in each layer, and of all processes
-- part: calls
-- part: layers
, joined_shares as (
    select log, process, grouping(process) as is_total,
        cast(sum(case when call is not null then length_bytes else 0 end) as double)
            / nullif(cast(sum(length_bytes) as double), 0) as joined_bytes_share
    from fragments group by grouping sets ((log, process), (log))
), sums as (
    select log, process, grouping(process) as is_total, count(*) as calls,
        cast(sum(fragments) as bigint) as fragments,
        cast(count(distinct process) as double) / nullif(count(distinct
            case when fragments > 0 then process end), 0) as processes_per_aggregator,
        sum(mpi_seconds) as mpi_seconds, sum(client_seconds) as client_seconds,
        sum(exclusive_mpi_seconds) as exclusive_mpi_seconds,
        sum(exclusive_mpi_seconds) / nullif(sum(case when exclusive_mpi_seconds is not null then mpi_seconds end), 0)
            as exclusive_mpi_share,
        case when count(*) = count(server_seconds) then sum(server_seconds) end as server_seconds
    from layers group by grouping sets ((log, process), (log))
)
select sums.log, case when sums.is_total = 1 then 'total' else 'process' end as sum_of,
    sums.process, calls, fragments, processes_per_aggregator, mpi_seconds, client_seconds,
    server_seconds, exclusive_mpi_seconds,
    client_seconds - coalesce(server_seconds, 0.0) as exclusive_client_seconds,
    exclusive_mpi_share, joined_bytes_share
from sums left join joined_shares on joined_shares.log = sums.log
    and joined_shares.is_total = sums.is_total
    and coalesce(joined_shares.process, -1) = coalesce(sums.process, -1)
order by sums.log nulls last, sums.process nulls last
