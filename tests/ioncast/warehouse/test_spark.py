"""Spark beside the processes of one machine and DuckDB: the same rows, the same answers."""

from __future__ import annotations

import math
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from ioncast.warehouse import spark
from ioncast.warehouse.bundles import IngestOptions
from ioncast.warehouse.engine import Ask, asking
from ioncast.warehouse.ingest import ingest, open_store
from ioncast.warehouse.inputs import LogFile, find_logs
from ioncast.warehouse.queries import Query, queries
from tests.ioncast.warehouse.test_layer_queries import planted as planted_calls
from tests.ioncast.warehouse.test_queries import NEEDED
from tests.ioncast.warehouse.test_rows import planted
from tests.ioncast.warehouse.test_store import stored

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning"),
]
# To compile each of these small queries would take longer than to interpret it.
_QUICK = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}
_UP_S = 120


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> list[LogFile]:
    """Genuine logs of two programs and versions, a planted trace, a copy, and a damaged log."""
    folder = tmp_path_factory.mktemp("logs")
    for path in sorted((shared_data / "runs" / "logs").glob("*.darshan"))[::4]:
        shutil.copy2(path, folder)
    planted(folder)
    shutil.copy2(folder / "app.darshan", folder / "copy.darshan")
    (folder / "bad.darshan").write_bytes(b"no log")
    return [each for each in find_logs([str(folder)]) if isinstance(each, LogFile)]


@pytest.fixture(scope="module")
def by_processes(tmp_path_factory: pytest.TempPathFactory, logs: list[LogFile]) -> Path:
    store = tmp_path_factory.mktemp("processes") / "store"
    for half in (logs, logs[::2]):
        list(ingest(half, IngestOptions(open_store(str(store)), "here", requests=True), 2))
    return store


@contextmanager
def session_of(master: str, **settings: str) -> Iterator[Any]:
    """Start Spark with settings, and end its Java, which keeps those of the first session."""
    from pyspark import SparkContext  # noqa: PLC0415

    words = [f"--conf {name}={value}" for name, value in (_QUICK | settings).items()]
    os.environ["PYSPARK_SUBMIT_ARGS"] = " ".join([*words, "pyspark-shell"])
    with spark.spark_session(master) as session:
        yield session
    SparkContext._gateway.shutdown()
    SparkContext._gateway.proc.stdin.close()
    SparkContext._gateway.proc.wait()
    SparkContext._gateway = SparkContext._jvm = None


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """Run a master and two workers, which count as two computers."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    package = find_spec("pyspark")
    assert package is not None
    home = Path(str(package.origin)).parent
    environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    deploy = "org.apache.spark.deploy"
    master = f"spark://127.0.0.1:{port}"
    commands = [
        [f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", f"{port}"],
        *(
            [
                *(f"{deploy}.worker.Worker", "--host", f"127.0.0.{number}", "--cores", "1"),
                *("--memory", "1g", "--work-dir", str(folder / f"{number}"), master),
            ]
            for number in (1, 2)
        ),
    ]
    with ExitStack() as stack:
        log = stack.enter_context((folder / "cluster.log").open("wb"))
        for command in commands:
            started = subprocess.Popen(
                [home / "bin" / "spark-class", *command, "--webui-port", "0"],
                stdout=log,
                stderr=log,
                env=environment,
                cwd=folder,
            )
            stack.callback(started.wait)
            stack.callback(started.terminate)
        until = time.monotonic() + _UP_S
        while (folder / "cluster.log").read_text().count("registered with master") < 2:
            assert time.monotonic() < until, (folder / "cluster.log").read_text()
            time.sleep(0.1)
        yield master


def alike(one: Any, other: Any) -> bool:
    """Whether two values are equal, floats nearly: engines add in other orders."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9)
    return type(one) is type(other) and bool(one == other)


def test_spark_writes_the_same_rows_and_answers_every_query_as_duckdb_does(
    tmp_path: Path, logs: list[LogFile], by_processes: Path
) -> None:
    store = open_store(str(tmp_path / "store"))
    options = IngestOptions(store, "here", requests=True)
    # Calls with times at servers, which no log has.
    of_calls = tmp_path / "calls"
    (of_calls / "bundle=a").mkdir(parents=True)
    for name, table in planted_calls().items():
        pq.write_table(table, of_calls / "bundle=a" / f"{name}.parquet")
    with session_of("local[2]") as session:
        for half in (logs, logs[::2]):
            spark.ingest_with_spark(session, half, options)
        assert stored(store) == stored(by_processes)
        with spark.asking_spark(session, store) as ask_spark, asking(by_processes) as ask:
            compare(ask_spark, ask, queries())
        with spark.asking_spark(session, of_calls) as ask_spark, asking(of_calls) as ask:
            compare(ask_spark, ask, [query for query in queries() if "calls" in query.parts])


def compare(ask_spark: Ask, ask: Ask, asked: list[Query]) -> None:
    """Ask both engines, with the usual values and those that are needed."""
    for query in asked:
        needed = {each.name for each in query.parameters if each.usual is None}
        values = query.values({name: NEEDED[name] for name in needed})
        expected, found = ask(query, values), ask_spark(query, values)
        assert found.column_names == expected.column_names
        assert len(found) == len(expected), query.name
        rows = zip(found.to_pylist(), expected.to_pylist(), strict=True)
        for row, right in rows:
            unlike = [name for name in row if not alike(row[name], right[name])]
            assert not unlike, (query.name, unlike, row, right)


def test_two_attempts_at_a_bundle_on_a_cluster_store_it_once(
    tmp_path: Path,
    logs: list[LogFile],
    by_processes: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spark starts a slow task again elsewhere; both attempts write the same bundle."""
    attempts = tmp_path / "attempts"
    attempts.mkdir()
    folder = str(attempts)

    def slowed(batches: Any, options: Any, memory_mib: Any) -> Any:
        import time  # noqa: PLC0415
        from pathlib import Path  # noqa: PLC0415

        from pyspark import TaskContext  # noqa: PLC0415

        from ioncast.warehouse.bundles import write_bundle  # noqa: PLC0415
        from ioncast.warehouse.spark import _write_all  # noqa: PLC0415

        assert write_bundle
        task = TaskContext.get()
        Path(folder, f"{task.partitionId()}-{task.attemptNumber()}").touch()
        if task.partitionId() == 0 and task.attemptNumber() == 0:
            time.sleep(10)
        yield from _write_all(batches, options=options, memory_mib=memory_mib)

    # Then the workers need no module of the tests.
    slowed.__module__ = "__main__"
    monkeypatch.setattr(spark, "_write_all", slowed)
    monkeypatch.setattr(
        spark, "divided", lambda files, workers: [tuple(files[n::6]) for n in range(6)]
    )
    store = open_store(str(tmp_path / "store"))
    options = IngestOptions(store, "here", requests=True)
    speculating = {
        "spark.speculation": "true",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1.01",
        "spark.speculation.minTaskRuntime": "100ms",
        "spark.executor.memory": "512m",
    }
    with cluster(tmp_path) as master, session_of(master, **speculating) as session:
        written = spark.ingest_with_spark(session, logs, options)
        assert len(written) == 6
    assert {"0-0", "0-1"} <= {path.name for path in attempts.iterdir()}
    assert len(list(store.glob("bundle=*"))) == 6
    found, expected = stored(store), stored(by_processes)
    # The copy may come before its original, in another bundle and under another path.
    for name in ("files", "requests", "request_sizes", "findings", "failed"):
        assert found[name] == expected[name]
    assert {row["log"] for row in found["jobs"]} == {row["log"] for row in expected["jobs"]}
    assert len(found["jobs"]) == len(expected["jobs"])
