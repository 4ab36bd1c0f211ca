"""Finds the programs that a job script launches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, dropwhile, islice, takewhile

from ioncast.service.decide.shell import Piece, Word, Work, simple_commands

MOST_PROGRAMS = 100
_LONGEST_PROGRAM = 1000
# Longer scripts carry data at their end, after the command that launches the program.
_MOST_READ = 64 << 10
# Enough for some hundred lines of commands. It takes 20 ms at worst; a scheduler waits for 50 ms.
_MOST_WORK = 5_000
_WORK_OF_A_COMMAND = 4
_WORK_OF_A_WORD = 2
# The program stands among the first words after a launcher.
_MOST_WORDS = 200
# How deep scripts in scripts are read, such as `srun sh -c "eval ..."`.
_DEEPEST = 3
# Variables that repeat other variables could double a text with each line.
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
# Words that a command can follow, and words that begin no program.
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
    r"""Find the programs that a job script launches, to look them up in the history.

    Parameters
    ----------
    script : str
        A shell script, or any other text: it is read, never run. Only lines in its first 65,536
        characters are read, and at most some hundred lines of commands.

    Returns
    -------
    list of str
        At most 100 different names and paths as the script has them: first programs that
        launchers start, because a job exists for these, then others; each in the script's
        order. A path that begins with an unknown variable is given by its last part.

        After a launcher (``srun``, ``mpiexec`` …) or another program that starts programs
        (``nice``, ``apptainer`` …), every word that is neither an option nor a number is given,
        because the launchers differ in which options have a value. The caller takes the first
        one that the history knows. Of other commands the first word is given, and of
        interpreters also the script that they run.

    Examples
    --------
    >>> programs("./mesh\nAPP=$HOME/bin/solver\nsrun -n 64 --cpu-bind cores $APP in.dat")
    ['cores', 'solver', 'in.dat', './mesh']
    """
    launched: dict[str, None] = {}
    others: dict[str, None] = {}
    for command, is_launched in _commands(_beginning(script), _Variables(), Work(_MOST_WORK)):
        for word, is_after_launcher in _candidates(command):
            if (program := _program(word)) is not None:
                found = launched if is_launched or is_after_launcher else others
                found[program] = None
        if len(launched) >= MOST_PROGRAMS:
            break
    return list(launched | others)[:MOST_PROGRAMS]


def _beginning(script: str) -> str:
    """Keep the whole lines in the first part of a long script."""
    if len(script) <= _MOST_READ:
        return script
    return script[:_MOST_READ].rpartition("\n")[0]


@dataclass
class _Variables:
    """The values of the script's variables, at the line that is being read."""

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
        """Return the value of a piece; of an unknown variable the piece itself."""
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
        """Split a word at blanks in the values of unquoted variables; the result may be empty."""
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
    """Yield commands with the values of their variables, and whether a launcher starts them.

    A launcher also starts the commands in the TEXT of ``srun sh -c TEXT``.
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
    """Return a word without quotes and variables; any other word as an empty text."""
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
        if (match := _INTERPRETER.fullmatch(_name(word))) and match["shell"]
    )
    for place in shells:
        following = command[place + 1 : place + 3]
        if len(following) == 2 and _COMMAND_OPTION.fullmatch(following[0]):
            return following[1]
    return None


def _candidates(command: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield the words that may be programs, and whether each stands after a launcher."""
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
    """Return the program that a word names, or None if it cannot name one."""
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
