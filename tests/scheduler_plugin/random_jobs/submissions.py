"""Random submissions of jobs, always the same for the same seed and number.

A part of the values is what users write, the others are any bytes. Slurm accepts about half of the
submissions.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

# Partitions by the mode that the plugin has in them. `batch` is Slurm's default partition.
MODES = {"batch": "arbitrate", "direct": "on", "watched": "shadow", "left": "off"}
# QOS with a limit on I/O nodes: above it a job waits for ever, or is rejected.
QOS = {"waiting": "", "refusing": "Flags=DenyOnLimit"}
_MOST_COMPONENTS = 3
# Enough for all components, because they never share a node.
NODES = 4
PROGRAM = b"hacc_io_write_posix_fpp"
# Slurm's longest script, with the zero byte at its end.
_LONGEST_SCRIPT = 4 << 20

_VALUES: dict[bytes, tuple[bytes, ...]] = {
    b"--array": (b"0-3", b"1,3", b"0-5%1", b"0-99999999", b"3-1"),
    b"--begin": (b"now", b"now+1", b"now+1hour", b"2010-01-01", b"tomorrow", b"noonish"),
    b"--licenses": (
        *(b"ionode", b"ionode:2", b"ionode:0", b"ionode:8", b"ionode:9", b"ionode=3"),
        *(b"ionode:1,ionode:2", b"ionode:5,ionode:5", b"ionode:1|ionode:2", b"ionode:1;ionode:1"),
        *(
            b"IONODE:1",
            b" ionode:1",
            b"ionode: \n3",
            b"ionode:-1",
            b"ionode:+2",
            b"ionode:4294967297",
        ),
        *(b"ionode:18446744073709551617", b"ionode:0x2", b"ionode@slurmdb:1", b"ionode:", b":1"),
        *(b"", b",", b"(null)", b"other:1", b"ionode:1,other:1", b"ionode:1," * 600),
    ),
    b"--qos": (b"normal", b"waiting", b"refusing", b"WAITING", b"nothing"),
    b"--partition": (b"direct", b"watched", b"left", b"batch,direct", b"watched,batch", b"nowhere"),
    b"--dependency": (b"singleton", b"afterok:1", b"afterany:1?afternotok:1", b"after:999999"),
    b"--priority": (b"5", b"0", b"TOP"),
    b"--nice": (b"100", b"-100"),
    b"--ntasks": (b"1", b"2", b"3", b"2147483647", b"4294967295", b"0"),
    b"--nodes": (b"1", b"1-2", b"2", b"0", b"5"),
    b"--ntasks-per-node": (b"1", b"2", b"65534"),
    b"--time": (b"1", b"0", b"INFINITE", b"11", b"1-0"),
    b"--deadline": (b"now+1hour", b"2010-01-01"),
    b"--account": (b"everybody", b"nobody", b"root"),
    b"--wckey": (b"*", b"key"),
    b"--export": (b"ALL", b"NONE", b"ION_COUNT=99", b"X=\xff"),
    b"--chdir": (b"/tmp", b"/nowhere"),
    b"--output": (b"/dev/null", b"/nowhere/%s%n%d"),
    b"--job-name": (b"wrap", b'" mode=off x="', b"hacc-io", b"ioncast:04a9:held until:9"),
    b"--comment": (b"ioncast:04a94459990f44be8a32fd781700b04e:held until:9", b"x" * 60_000),
    b"--mail-user": (b"root@localhost",),
    b"--constraint": (b"fast", b"[a*1&b*1]"),
    b"--nodelist": (b"n1", b"n[1-2]"),
    b"--gres": (b"gpu:1", b"ionode:2"),
    b"--reservation": (b"none",),
    b"--cluster-constraint": (b"fast",),
    b"--clusters": (b"elsewhere",),
}
# Texts in which Slurm accepts any bytes.
_FREE_TEXTS = (b"--job-name=", b"--comment=", b"--mail-user=", b"--export=X=")
_FLAGS = (
    *(b"--test-only", b"--hold", b"--requeue", b"--exclusive", b"--oversubscribe"),
    *(b"--kill-on-invalid-dep=yes", b"-I", b"-I3", b"--immediate=1"),
)
_HOLDS = (b"--hold", b"--priority=0", b"--begin")
_IMMEDIATE = (b"-I", b"--immediate")
_TEXTS = (
    b"\xff",
    b"\xc3\xa4\xc3\xb6",
    b"\xed\xa0\x80",
    b"\x01\x1b[2J",
    b"a,b;c|d",
    b"$(id)`id`",
    b"",
)
_LINES = (
    b"srun ./" + PROGRAM + b" in\n",
    b"srun -n 4 ./a$B\n" * 3000,
    b"\xff" * 65_000,
    b"#SBATCH --comment=\xfe\xff\n",
    b"#SBATCH -L ionode:2\n",
    b"#SBATCH hetjob\n#SBATCH --ntasks=1\n",
    b"cat <<'\n$((`\"",
    b"\x00" * 10,
    b"\r\n",
)
_VARIABLES = (
    (b"ION_COUNT", b"99"),
    (b"ION_COUNT", b"\xff\n"),
    (b"SBATCH_COMMENT", b"\xfe"),
    (b"SBATCH_PARTITION", b"direct"),
    (b"LONG", b"x" * 100_000),
    (b"\xff\x01", b"\xfe\x1b"),
    (b"BASH_FUNC_f%%", b"() { :"),
)
_KINDS = (b"after", b"afterany", b"afterok", b"afternotok", b"aftercorr")


@dataclass(frozen=True)
class Submission:
    """A command of Slurm with which a user submits a job.

    Attributes
    ----------
    command : str
        `sbatch`, `srun` or `salloc`.
    parts : tuple
        The options of each component; more than one for a heterogeneous job.
    script : bytes
        The job script of sbatch.
    environment : dict
        Variables beside the usual ones.
    after : tuple of bytes and int, optional
        A kind of dependency and the number of an earlier submission.
    """

    command: str
    parts: tuple[tuple[bytes, ...], ...]
    script: bytes
    environment: Mapping[bytes, bytes]
    after: tuple[bytes, int] | None

    @property
    def is_immediate(self) -> bool:
        """Whether it starts at once or not at all, which depends on the other jobs."""
        return any(option.startswith(_IMMEDIATE) for part in self.parts for option in part)

    @property
    def is_het(self) -> bool:
        """Whether it has several components."""
        return len(self.parts) > 1 or b"#SBATCH hetjob" in self.script

    @property
    def waits_for_its_user(self) -> bool:
        """Whether the user holds it, or chose the time of its start."""
        return any(option.startswith(_HOLDS) for part in self.parts for option in part)

    @property
    def has_limited_qos(self) -> bool:
        limited = {f"--qos={name}".encode() for name in QOS}
        return any(option.lower() in limited for part in self.parts for option in part)

    def arguments(self, ids: Mapping[int, int], program: bytes = PROGRAM) -> list[bytes]:
        """The whole command; `ids` are those of the jobs of earlier submissions.

        `program` is the one that srun and salloc start.
        """
        first, *others = self.parts
        found = [self.command.encode()]
        found += [b"--parsable"] if self.command == "sbatch" else [b"-v"]
        found += [b"--output=/dev/null"] if self.command != "salloc" else []
        found += first
        if self.after and self.after[1] in ids:
            kind, number = self.after
            found.append(b"--dependency=%s:%d" % (kind, ids[number]))
        for other in others:
            found += [b":", *other]
        return found if self.command == "sbatch" else [*found, program, b"in\xff"]

    def __str__(self) -> str:
        """In the form of a report, with the middle of long texts left out."""
        said = [_short(each) for each in self.arguments({})]
        return f"{' '.join(said)} after={self.after} script={_short(self.script)}" + "".join(
            f" {_short(name)}={_short(value)}" for name, value in self.environment.items()
        )


def submission(seed: int, number: int, begun: int) -> Submission:
    """Make up a submission; it may wait for one with a number below `begun`."""
    chance = random.Random(f"{seed}-{number}")
    command = chance.choices(("sbatch", "srun", "salloc"), (8, 1, 1))[0]
    count = chance.choices((1, 2, _MOST_COMPONENTS), (12, 2, 1))[0]
    parts = tuple(_options(chance) for _ in range(count))
    after = None
    if begun and chance.random() < 0.15:
        after = chance.choice(_KINDS), chance.randrange(begun)
    environment = dict(chance.sample(_VARIABLES, chance.choice((0, 0, 0, 1, 2))))
    script = _script(chance) if command == "sbatch" else b""
    return Submission(command, parts, script, environment, after)


def _options(chance: random.Random) -> tuple[bytes, ...]:
    names = chance.sample(sorted(_VALUES), chance.choice((0, 0, 1, 1, 1, 2, 3)))
    options = [name + b"=" + _value(chance, _VALUES[name]) for name in names]
    if chance.random() < 0.2:
        options.append(chance.choice(_FLAGS))
    if chance.random() < 0.3:
        options.append(chance.choice(_FREE_TEXTS) + _any_text(chance))
    if chance.random() < 0.5:
        options.append(b"--partition=" + chance.choice(sorted(MODES)).encode())
    return tuple(options)


def _value(chance: random.Random, plausible: tuple[bytes, ...]) -> bytes:
    return chance.choice(plausible) if chance.random() < 0.75 else _any_text(chance)


def _any_text(chance: random.Random) -> bytes:
    kind = chance.random()
    if kind < 0.4:
        return chance.choice(_TEXTS)
    # A zero byte would end an argument of a program.
    length = 60_000 if kind > 0.95 else chance.randint(1, 60)
    return bytes(chance.choices(range(1, 256), k=length))


def _script(chance: random.Random) -> bytes:
    known = [_LINES[0]] if chance.random() < 0.8 else []
    lines = b"".join(known + chance.choices(_LINES, k=chance.choice((0, 0, 0, 1, 2))))
    script = b"#!/bin/sh\nexit 0\n" + lines
    kind = chance.random()
    if kind < 0.2:
        return script + bytes(chance.choices(range(256), k=chance.randint(0, 300)))
    if kind < 0.3:
        length = chance.choice((1 << 16, 1 << 20, _LONGEST_SCRIPT)) + chance.randint(-2, 2)
        return script + b"#" * (length - len(script))
    return script


def _short(text: bytes, longest: int = 200) -> str:
    shown = text if len(text) <= longest else text[: longest // 2] + b"..." + text[-longest // 2 :]
    return f"{shown!r} ({len(text)} bytes)" if shown != text else repr(text)
