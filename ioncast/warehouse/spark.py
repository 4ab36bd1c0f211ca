"""Spark as the engine: it writes bundles on many computers, and answers the same queries."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ioncast.warehouse.bundles import IngestOptions, Written, divided
from ioncast.warehouse.engine import Ask
from ioncast.warehouse.ingest import written_safely
from ioncast.warehouse.inputs import LogFile
from ioncast.warehouse.queries import Query
from ioncast.warehouse.schema import SCHEMAS
from ioncast.warehouse.views import LOSING, check_extractor, files_of, view_of, without_decimals
from ioncast_base.errors import InputError
from ioncast_base.visible_text import visible

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BUNDLE = "paths array<string>, members array<string>, sizes array<long>, times array<long>"
_WRITTEN = "name string, logs long, failed long, copies long, stored_bytes long"
_TYPES = {pa.string(): "string", pa.int64(): "long", pa.float64(): "double", pa.bool_(): "boolean"}


@contextmanager
def spark_session(master: str) -> Iterator[SparkSession]:
    """Start Spark, or use the session that runs; `master` is as of `spark-submit --master`.

    Raises
    ------
    InputError
        If Spark does not start, for example without Java.
    """
    try:
        from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415
        from pyspark.sql import SparkSession  # noqa: PLC0415
    except ImportError as error:
        raise InputError("Spark is not installed", remedy="pip install 'ioncast[spark]'") from error
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        session = SparkSession.builder.master(master).appName("ioncast").getOrCreate()
    except (PySparkRuntimeError, OSError) as error:
        raise InputError(
            f"Spark does not start: {visible(str(error))}", remedy="install Java 17 or newer"
        ) from error
    # Its warnings, such as of patterns in paths, concern nobody.
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


def ingest_with_spark(
    session: SparkSession,
    files: Sequence[LogFile],
    options: IngestOptions,
    memory_mib: int | None = None,
) -> list[Written]:
    """Write the bundles of logs with Spark, a task for each bundle.

    All its computers need ioncast, the logs and the store under the same paths. Only paths go to
    the tasks, and a line for each bundle comes back.
    """
    context = session.sparkContext
    bundles = divided(files, context.defaultParallelism)
    if not bundles:
        return []
    rows = [
        (
            [file.path for file in bundle],
            [file.member for file in bundle],
            [file.size_bytes for file in bundle],
            [file.modified_ns for file in bundle],
        )
        for bundle in bundles
    ]
    write = partial(_write_all, options=options, memory_mib=memory_mib)
    frame = session.createDataFrame(context.parallelize(rows, len(rows)), _BUNDLE)
    return [Written(**row.asDict()) for row in frame.mapInArrow(write, _WRITTEN).collect()]


def _write_all(
    batches: Iterator[pa.RecordBatch], options: IngestOptions, memory_mib: int | None
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for row in batch.to_pylist():
            columns = (row["paths"], row["members"], row["sizes"], row["times"])
            bundle = [LogFile(*values) for values in zip(*columns, strict=True)]
            written = written_safely(bundle, options, memory_mib)
            yield pa.RecordBatch.from_pylist([asdict(written)])


@contextmanager
def asking_spark(session: SparkSession, store: Path) -> Iterator[Ask]:
    """Open a store for queries, as `ioncast.warehouse.engine.asking` does, but with Spark."""
    for name, schema in SCHEMAS.items():
        columns = [f"{field.name} {_TYPES[field.type]}" for field in schema]
        reader = session.read.schema(", ".join([*columns, "bundle string"]))
        pattern = files_of(store, name)
        frame = (
            reader.option("basePath", str(store)).parquet(pattern)
            if pattern
            else session.createDataFrame([], ", ".join([*columns, "bundle string"]))
        )
        frame.createOrReplaceTempView(f"raw_{name}")
    [[newest]] = session.sql("select max(extractor) from raw_jobs").collect()
    check_extractor(newest, store)
    losing = session.sql(LOSING).toArrow()
    session.createDataFrame(losing, "log string, bundle string").createOrReplaceTempView("losing")
    for name, schema in SCHEMAS.items():
        view = session.sql(view_of(name, schema.names, are_twice=len(losing) > 0))
        view.createOrReplaceTempView(name)
    yield partial(_answer, session)


def _answer(session: SparkSession, query: Query, values: Mapping[str, Any]) -> pa.Table:
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        return without_decimals(session.sql(query.text, args=dict(values)).toArrow())
    except PySparkException as error:
        first = visible(str(error).split("\n", 1)[0])
        raise InputError(f"the query fails: {first}", where=query.name) from error
