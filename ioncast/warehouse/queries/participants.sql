-- title: Processes, aggregators and servers that take part in each collective or single call
-- part: calls
-- part: layers
, reached as (
    select fragments.log, file, instance, case when instance is null then call end as single_call,
        count(distinct server) as servers
    from fragments join request_servers as places on places.log = fragments.log
        and places.id = fragments.id and places.server_kind = :kind
    where call is not null
    group by 1, 2, 3, 4
), taking_part as (
    select log, file, instance, case when instance is null then call end as single_call,
        min(call_number) as call_number, min(start_seconds) as start_seconds,
        count(distinct process) as processes,
        count(distinct case when fragments > 0 then process end) as aggregators,
        cast(sum(fragments) as bigint) as fragments,
        cast(sum(length_bytes) as double) as bytes,
        cast(sum(below_bytes) as double) as below_bytes,
        sum(exclusive_mpi_seconds) / nullif(sum(case when exclusive_mpi_seconds is not null then mpi_seconds end), 0)
            as exclusive_mpi_share
    from layers
    group by 1, 2, 3, 4
)
select taking_part.log, taking_part.file, taking_part.instance, call_number, start_seconds,
    processes, aggregators,
    processes / nullif(cast(aggregators as double), 0) as processes_per_aggregator,
    nullif(servers, 0) as servers, fragments, bytes, below_bytes, exclusive_mpi_share
from taking_part left join reached on reached.log = taking_part.log
    and reached.file = taking_part.file
    and coalesce(reached.instance, -1) = coalesce(taking_part.instance, -1)
    and coalesce(reached.single_call, -1) = coalesce(taking_part.single_call, -1)
order by taking_part.log nulls last, start_seconds nulls last, taking_part.file nulls last,
    call_number nulls last, taking_part.single_call nulls last
