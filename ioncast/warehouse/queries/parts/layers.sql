-- title: Seconds of each call in each layer; null at servers whose own times are not known
-- kind: OST|ION = OST; servers: object storage targets, or I/O nodes
slowest as (
    select log, id,
        case when bool_and(own_times) then max(end_seconds - start_seconds) end as slowest_seconds
    from request_servers where server_kind = :kind group by log, id
),
following as (
    select fragments.*, slowest_seconds, max(end_seconds) over (
        partition by fragments.log, call order by start_seconds nulls last, fragments.id nulls last
        rows between unbounded preceding and 1 preceding) as busy_until_seconds
    from fragments left join slowest
        on slowest.log = fragments.log and slowest.id = fragments.id
    where call is not null
),
below as (
    select log, call, count(*) as fragments, sum(length_bytes) as below_bytes,
        max(end_seconds) as last_seconds,
        sum(greatest(end_seconds - greatest(start_seconds,
            coalesce(busy_until_seconds, start_seconds)), 0)) as client_seconds,
        case when count(*) = count(slowest_seconds) then sum(slowest_seconds) end as server_seconds
    from following group by log, call
),
layers as (
    select mpi_calls.log, mpi_calls.call, process, call_number, instance, file, operation,
        length_bytes, start_seconds, mpi_seconds, coalesce(fragments, 0) as fragments,
        coalesce(below_bytes, 0) as below_bytes, coalesce(client_seconds, 0.0) as client_seconds,
        case when fragments is null then 0.0 else server_seconds end as server_seconds,
        -- The trace times only the start of a nonblocking call, so that its requests end later.
        case when coalesce(last_seconds, end_seconds) <= end_seconds + 1e-6
            then mpi_seconds - coalesce(client_seconds, 0.0) end as exclusive_mpi_seconds
    from mpi_calls left join below on below.log = mpi_calls.log and below.call = mpi_calls.call
)
