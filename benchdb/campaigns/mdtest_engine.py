"""The commands that run mdtest, which measures files instead of bytes."""

from __future__ import annotations

import shlex
from typing import Any

from benchdb.campaigns.engines import ENGINES, FIRST_OF_NODE, BenchmarkJob, Engine
from ior_configs import IorConfig, MdtestConfig

# mdtest shifts the ranks by -N before it stats files, and by twice as much before it reads them. On
# fewer nodes a process would read files that its own node wrote.
_NODES_TO_SHIFT = 3


def engine_for(config: IorConfig | MdtestConfig, engine: str) -> Engine[Any]:
    """The engine of a configuration; `engine` is the name of the one for IOR's."""
    return MDTEST if isinstance(config, MdtestConfig) else ENGINES[engine]


def is_launched(engine: str) -> bool:
    """Whether a launcher starts the processes of an engine."""
    return engine == MDTEST.name or ENGINES[engine].launched


def _measure(job: BenchmarkJob[MdtestConfig]) -> str:
    """Create, stat, read and remove the files; caches of the nodes that wrote them do not help."""
    config = job.config
    if config.nodes >= _NODES_TO_SHIFT:
        per_node = -(-config.tasks // config.nodes)
        return f"set -o pipefail; {_mdtest(job, '-N', str(per_node))} | tee {job.output}"
    return (
        f"set -o pipefail; {_mdtest(job, '-C')} | tee {job.output} && {_drop_from_memory(job)}"
        f" && {_mdtest(job, '-T', '-E', '-r')} | tee -a {job.output}"
    )


def _mdtest(job: BenchmarkJob[MdtestConfig], *options: str) -> str:
    words = [job.program, *job.config.to_args(), *options, "-d", job.test_file]
    return f"{job.launch} {shlex.join(words)}".strip()


def _drop_from_memory(job: BenchmarkJob[MdtestConfig]) -> str:
    """A command that removes the files from each node's page cache, after they are on the disks."""
    find = f"find {shlex.quote(job.test_file)} -type f -exec"
    script = (
        f"{FIRST_OF_NODE if job.launch else ''}{find} sync {{}} +"
        f" && {find} dd if={{}} iflag=nocache count=0 status=none \\;"
    )
    return f"{job.launch} bash -c {shlex.quote(script)}".strip()


def _remove(job: BenchmarkJob[MdtestConfig]) -> list[str]:
    return [f"rm -rf -- {shlex.quote(job.test_file)}"]


MDTEST: Engine[MdtestConfig] = Engine(
    name="mdtest",
    launched=True,
    refusals=lambda _: [],
    prepare=lambda _: [],
    measure=_measure,
    remove=_remove,
    output="output.txt",
)
