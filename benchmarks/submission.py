"""Cost of ioncast for submissions: 60 at once on a real Slurm, with working and failing services.

Some job scripts are hostile: bytes that are not text, and more commands than the service reads.

    python benchmarks/submission.py [--rounds N]

Run it as root, because slurmd starts jobs for other users. Each round measures every case once, the
one without a plugin first; ratios compare with that one, for the same script in the same round. The
claim at the end is for information: a missed one does not change the exit code.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from measuring import Claim, machine

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchdb.store.database import opened_database, transaction  # noqa: E402
from ioncast.service.running.demo_data import fill  # noqa: E402
from ioncast.service.store.tokens import add_token  # noqa: E402
from tests.scheduler_plugin.standin import stand_in  # noqa: E402
from tests.support.services import allow, problem  # noqa: E402
from tests.support.serving import Served, running, wait_for  # noqa: E402
from tests.support.slurm import Cluster, cluster  # noqa: E402

LUA = HERE.parent / "scheduler_plugin" / "lua"
SUBMISSIONS = 60
CLAIM_S = 1.0
# A job from the demonstration's history.
JOB = ("--job-name=hacc-io", "--ntasks=16", "--hold", "--output=/dev/null")
SCRIPT = b"#!/bin/sh\nsrun hacc_io_write_posix_fpp 400000 out\n"
NO_TEXT = b"#!/bin/sh\nexit\n" + b"\xff" * 65_000
COMMANDS = b"#!/bin/sh\nexit\n" + b"srun -n 4 ./a$B\n" * 4_000
QUESTION = "/v1/decisions?system=testbed&user=root&executable=hacc_io_write_posix_fpp&tasks=16"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="how often each is measured (7)")
    rounds = parser.parse_args().rounds
    if reason := problem("slurm"):
        sys.exit(f"submission.py: Slurm cannot run here: {reason}")
    allow("slurm", "serving")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="submission-")))
        folder.chmod(0o755)
        token, service = started(folder, stack)
        ill = stack.enter_context(stand_in(folder / "ill.sock"))
        plain = stack.enter_context(cluster(folder / "plain"))
        plugin = stack.enter_context(with_plugin(folder / "plugin"))
        address = f"unix:{service.decisions}"
        asked = {"address": address, "token": token}
        scripts = {"65,000 bytes 0xff": NO_TEXT, "4,000 commands": COMMANDS}
        cases: dict[str, tuple[str, dict[str, str | int]]] = {
            "plugin off": ("", {"address": address, "mode": "off"}),
            "service": ("", {"address": address}),
            "service, with the job script": ("", asked),
            **dict.fromkeys(scripts, ("", asked)),
            "down": ("", {"address": f"unix:{folder}/nobody.sock"}),
            "hung": ("hung", {"address": ill.address}),
            "slow": ("slow", {"address": ill.address}),
            "trickling": ("trickling", {"address": ill.address}),
            "500": ("500", {"address": ill.address}),
            "hung, asked each time": ("hung", {"address": ill.address, "failures": 10**6}),
        }
        seconds: dict[str, list[float]] = {"no plugin": []} | {name: [] for name in cases}
        bare: dict[bytes, list[float]] = {SCRIPT: seconds["no plugin"], NO_TEXT: [], COMMANDS: []}
        waited_ms: dict[str, list[float]] = {}
        for number in range(rounds):
            print(f"submission.py: round {number + 1} of {rounds}", file=sys.stderr)
            for script, took in bare.items():
                took.append(submit_all(plain, script))
            for name, (behaviour, settings) in cases.items():
                ill.behaviour = behaviour or ill.behaviour
                script = scripts.get(name, SCRIPT)
                waited = one(plugin, settings, script, seconds[name])
                waited_ms.setdefault(name, []).extend(waited)
    print(machine())
    report(seconds, {name: bare[scripts.get(name, SCRIPT)] for name in seconds}, waited_ms)


def started(folder: Path, stack: ExitStack) -> tuple[str, Served]:
    """Start the service with the demonstration's history; return its token and it."""
    database = str(folder / "demo.sqlite")
    fill(database)
    with opened_database(database) as opened, transaction(opened, write=True) as connection:
        token = add_token(connection, "slurm", "scheduler")
    service = stack.enter_context(running(folder, "--db", database))
    wait_for(lambda: service.ask(QUESTION).json["source"] == "history", "prepared answer")
    return token, service


def with_plugin(root: Path) -> AbstractContextManager[Cluster]:
    files = {name: (LUA / name).read_text() for name in ("job_submit.lua", "ioncast.lua")}
    files["ioncast_settings.lua"] = 'return { mode = "off" }'
    return cluster(root, files=files, lines=["JobSubmitPlugins=lua"])


def one(
    found: Cluster, settings: dict[str, str | int], script: bytes, seconds: list[float]
) -> list[float]:
    """Measure a case; return the milliseconds that slurmctld waited for each answer."""
    given = {"system": "testbed", "mode": "on", "pool": 8, **settings}
    texts = (f"{key} = {value!r}," for key, value in given.items())
    (found.folder / "ioncast_settings.lua").write_text(f"return {{ {' '.join(texts)} }}")
    # slurmctld loads the script again if it is newer in whole seconds.
    changed = int(time.time()) + 1
    os.utime(found.folder / "job_submit.lua", (changed, changed))
    time.sleep(changed + 0.1 - time.time())
    before = len(found.controller_log())
    seconds.append(submit_all(found, script))
    lines = found.controller_log()[before:]
    return [float(ms) for ms in re.findall(r"ioncast: .* ms=([\d.]+)", lines)]


def submit_all(found: Cluster, script: bytes) -> float:
    """Seconds until all of the simultaneous submissions are accepted."""
    (found.folder / "job.sh").write_bytes(script)
    began = time.perf_counter()
    with ThreadPoolExecutor(SUBMISSIONS) as pool:
        list(pool.map(lambda _: found.run("sbatch", *JOB, "job.sh"), range(SUBMISSIONS)))
    took = time.perf_counter() - began
    found.run("scancel", "--state=PENDING", "--user=root")
    return took


def report(
    seconds: dict[str, list[float]],
    bare: dict[str, list[float]],
    waited_ms: dict[str, list[float]],
) -> None:
    heads = ("s, median", "longest", "ratio", "a question, ms: p50", "p99")
    print(f"\n| {SUBMISSIONS} sbatch at once | {' | '.join(heads)} |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, took in seconds.items():
        ratios = [one / without for one, without in zip(took, bare[name], strict=True)]
        row = f"{statistics.median(took):.2f} | {max(took):.2f} | {statistics.median(ratios):.1f}"
        ms = waited_ms.get(name, [])
        quantiles = statistics.quantiles(ms, n=100) if len(ms) > 1 else None
        told = f"{quantiles[49]:.1f} | {quantiles[98]:.1f}" if quantiles else "– | –"
        print(f"| {name} | {row} | {told} |")
    hung = statistics.median(seconds["hung"])
    claim = f"{SUBMISSIONS} sbatch at once with a service that hangs in less than {CLAIM_S:g} s"
    print(f"\n{Claim(claim, f'{hung:.2f} s', hung < CLAIM_S)}")


if __name__ == "__main__":
    main()
