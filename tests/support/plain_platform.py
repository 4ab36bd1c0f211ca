"""Platforms of one folder, without I/O nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# When this script is ended, it ends its ranks.
_START_RANKS = """
trap 'kill $(jobs -p) 2>/dev/null' TERM
tasks=$1; shift
for rank in $(seq 0 $((tasks - 1))); do IONCAST_RANK=$rank IONCAST_TASKS=$tasks "$@" & done
status=0
for job in $(jobs -p); do wait "$job" || status=$?; done
exit $status
"""


@dataclass(frozen=True)
class PlainPlatform:
    """A platform whose ranks are processes of this machine."""

    scratch: Path

    def rank_command(
        self,
        program: Sequence[str],
        *,
        io_nodes: int,
        tasks: int,
        nodes: int | None = None,
        mpi: bool = False,
    ) -> list[str]:
        if mpi:
            return ["mpiexec", "-n", str(tasks), *program]
        return ["bash", "-c", _START_RANKS, "ranks", str(tasks), *program]


@dataclass(frozen=True)
class OtherProgram:
    """A platform that runs another program once; it gets the command of the rank as arguments."""

    scratch: Path
    instead: tuple[str, ...]

    def rank_command(self, program: Sequence[str], **_: object) -> list[str]:
        return [*self.instead, *program]
