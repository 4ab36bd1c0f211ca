"""The programs that a job script launches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, dropwhile, islice, takewhile

from ioncast.service.answering.shell import Piece, Word, Work, simple_commands

MOST_PROGRAMS = 100
_LONGEST_PROGRAM = 1000
# The launcher of a longer script is before its data.
_MOST_READ = 64 << 10
# Some hundred lines of commands, and 20 ms at worst: schedulers wait for 50.
_MOST_WORK = 5_000
_WORK_OF_A_COMMAND = 4
_WORK_OF_A_WORD = 2
# Behind a launcher the program comes sooner.
_MOST_WORDS = 200
# A text in a variable in a text in a command: nobody writes more.
_DEEPEST = 3
# Variables that name variables could double a text at each line.
_MOST_EXPANDED = 64 << 10

_LAUNCHER = re.compile(
    r"(?:mpirun|mpiexec|srun|orterun|prterun|prun|aprun|jsrun|lrun|ibrun|yhrun|ccc_mprun|mpprun"
    r"|runjob|poe)(?:[._-][\w.-]*)?"
)
_PREFIX = re.compile(
    r"apptainer|ch-run|command|env|exec|ionice|nice|nohup|numactl|setsid|shifter|singularity"
    r"|stdbuf|taskset|time|timeout"
)
_INTERPRETER = re.compile(
    r"(?:python|pypy|perl|ruby|lua|php)[\d.]*|R|Rscript|julia|octave|matlab|java"
    r"|(?P<shell>(?:ba|da|k|z)?sh)|t?csh"
)
_COMMAND_OPTION = re.compile(r"-[a-z]*c")
# What a command can follow, and what no command does.
_KEYWORD = re.compile(r"if|then|elif|else|while|until|do|!|\{")
_NO_COMMAND = re.compile(
    r"for|foreach|case|select|function|in|done|fi|esac|end|endif|\}"
    # Builtins of bash and csh, and modules.
    r"|[:.\[]|\[\[|alias|bg|bind|break|builtin|cd|continue|declare|dirs|disown|echo|enable|exit"
    r"|export|false|fc|fg|getopts|hash|help|history|jobs|kill|let|limit|local|logout|mapfile|ml"
    r"|module|popd|printf|pushd|pwd|read|readarray|readonly|return|set|setenv|shift|shopt|sleep"
    r"|source|test|times|trap|true|type|typeset|ulimit|umask|unalias|unlimit|unset|unsetenv|wait"
)
_DECLARING = re.compile("declare|export|local|readonly|typeset")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_BLANKS = re.compile(r"\s+")
_UNSURE = re.compile(r"[$*?(){}%\"'`]")
_REFERENCE = re.compile(r"\$\{?(\w+)(?::?-(.*?))?\}?", re.DOTALL)


def programs(script: str) -> list[str]:
    r"""Find the programs that a job script launches, to be looked up in the history.

    Parameters
    ----------
    script : str
        A shell script, or any other text: it is read, never run. Of a long one the lines in
        its first 65,536 characters count, and no more than some hundred lines of commands.

    Returns
    -------
    list of str
        Names and paths as the script has them, none twice, at most 100: first what launchers
        start, which is what a job is for, then other lines; each in the script's order. A
        path that begins with what the script does not say is given by its last part. Behind
        a launcher (``srun``, ``mpiexec`` …) and what else starts programs (``nice``,
        ``apptainer`` …) each word could be the program that is neither an option nor a
        number, because which options have a value, each launcher decides for itself: the
        first one that the history knows is meant. Of other commands it is their first word,
        and the script that an interpreter is given.

    Examples
    --------
    >>> programs("./mesh\nAPP=$HOME/bin/solver\nsrun -n 64 --cpu-bind cores $APP in.dat")
    ['cores', 'solver', 'in.dat', './mesh']
    """
    launched: dict[str, None] = {}
    others: dict[str, None] = {}
    for command, is_launched in _commands(_beginning(script), _Variables(), Work(_MOST_WORK)):
        for word, is_behind_launcher in _candidates(command):
            if (program := _program(word)) is not None:
                found = launched if is_launched or is_behind_launcher else others
                found[program] = None
        if len(launched) >= MOST_PROGRAMS:
            break
    return list(launched | others)[:MOST_PROGRAMS]


def _beginning(script: str) -> str:
    """What is read of a script: whole lines, where it has any."""
    if len(script) <= _MOST_READ:
        return script
    return script[:_MOST_READ].rpartition("\n")[0]


@dataclass
class _Variables:
    """What the script's variables are worth, as far as it is read."""

    values: dict[str, str] = field(default_factory=dict)
    left: int = _MOST_EXPANDED

    def assign(self, assignment: str) -> None:
        found = _ASSIGNMENT.fullmatch(assignment)
        if found is None:
            return
        name, appends, value = found.groups()
        before = self.values.get(name, "") if appends else ""
        if len(before) <= self.left:
            self.left -= len(before)
            self.values[name] = before + value

    def value(self, piece: Piece) -> str:
        """What a piece stands for; itself where that is not known."""
        found = _REFERENCE.fullmatch(piece.text) if piece.is_variable else None
        if found is None:
            return piece.text
        value = self.values.get(found[1], found[2])
        if value is None or len(value) > self.left:
            return piece.text
        self.left -= len(value)
        return value

    def text(self, word: Word) -> str:
        return "".join(map(self.value, word))

    def words(self, word: Word) -> Iterator[str]:
        """What a word becomes: none, one or more."""
        text = "".join(
            _BLANKS.sub("\0", self.value(piece))
            if piece.is_variable and not piece.is_quoted
            else self.value(piece)
            for piece in word
        )
        return filter(None, text.split("\0"))


def _commands(
    script: str, variables: _Variables, work: Work, depth: int = 0, is_launched: bool = False
) -> Iterator[tuple[list[str], bool]]:
    """The commands with what their variables are worth, and whether a launcher starts them.

    Those of ``srun sh -c TEXT`` it does.
    """
    for words in simple_commands(script, work):
        work.spend(_WORK_OF_A_COMMAND)
        command = list(dropwhile(_is_keyword, words))
        assignments = list(takewhile(_is_assignment, command))
        command = command[len(assignments) :]
        if not command:
            for word in assignments:
                variables.assign(variables.text(word))
            continue
        if _DECLARING.fullmatch(_plain(command[0])):
            for word in command[1:]:
                variables.assign(variables.text(word))
            continue
        expanded = list(islice(chain.from_iterable(map(variables.words, command)), _MOST_WORDS))
        work.spend(_WORK_OF_A_WORD * len(expanded))
        yield expanded, is_launched
        inner = _inner_script(expanded)
        if inner is not None and depth < _DEEPEST:
            launches = is_launched or any(map(_is_launcher, expanded))
            yield from _commands(inner, variables, work, depth + 1, launches)


def _plain(word: Word) -> str:
    """A word that is written as it is; other ones as nothing."""
    return word[0].text if len(word) == 1 and not word[0].is_quoted else ""


def _is_keyword(word: Word) -> bool:
    return _KEYWORD.fullmatch(_plain(word)) is not None


def _is_assignment(word: Word) -> bool:
    return not word[0].is_quoted and _ASSIGNMENT.match(word[0].text) is not None


def _inner_script(command: Sequence[str]) -> str | None:
    if command[:1] == ["eval"]:
        return " ".join(command[1:])
    shells = (
        place
        for place, word in enumerate(command)
        if (found := _INTERPRETER.fullmatch(_name(word))) and found["shell"]
    )
    for place in shells:
        following = command[place + 1 : place + 3]
        if len(following) == 2 and _COMMAND_OPTION.fullmatch(following[0]):
            return following[1]
    return None


def _candidates(command: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """The words that may be programs, with what `_program` leaves out; and those of a launcher."""
    if not command or _NO_COMMAND.fullmatch(command[0]):
        return
    own = list(takewhile(lambda word: not _is_launcher(word), command))
    launched = command[len(own) :]
    name = _name(command[0])
    if not _PREFIX.fullmatch(name):
        more = int(_INTERPRETER.fullmatch(name) is not None)
        own = own[:1] + [word for word in own[1:] if not word.startswith("-")][:more]
    yield from ((word, False) for word in own)
    yield from ((word, True) for word in launched)


def _is_launcher(word: str) -> bool:
    return _LAUNCHER.fullmatch(_name(word)) is not None


def _program(word: str) -> str | None:
    """A word as the program that it may name."""
    name = _name(word)
    is_program = (
        any(map(str.isalpha, name))
        and len(word) <= _LONGEST_PROGRAM
        and word.isprintable()
        and not word.startswith("-")
        and " " not in word
        and not _UNSURE.search(name)
        and not _ASSIGNMENT.match(word)
        and not _PREFIX.fullmatch(name)
        and not _is_launcher(name)
    )
    if not is_program:
        return None
    return name if _UNSURE.search(word) else word


def _name(path: str) -> str:
    return path.rpartition("/")[2]
