"""Finds the programs that a job script launches; nothing of the script is run.

`shlex` splits the lines into words. A program that only a whole shell would find stays unknown.
"""

from __future__ import annotations

import re
import shlex
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile, takewhile

MOST_PROGRAMS = 100
_LONGEST_PROGRAM = 1000
# Longer scripts carry data at their end, after the command that launches the program.
_MOST_READ = 64 << 10
# Characters of commands that are split, enough for some hundred lines. shlex takes up to 1 µs for
# each; a scheduler waits for 50 ms.
_MOST_SPLIT = 10 << 10
# The cost of a line besides its characters, in characters.
_COST_OF_A_LINE = 15
_MOST_COMMANDS = 400
# The program stands among the first words after a launcher.
_MOST_WORDS = 200
# Quotes of one command that go on in another line.
_MOST_QUOTES = 8
# How deep scripts in scripts are read, such as `srun sh -c "eval ..."`.
_DEEPEST = 3
_LONGEST_VALUE = 1000

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
_UNSURE = re.compile(r"[$*?(){}%\"'`]")
_JOINED = re.compile(r"\\\r?\n")
_NOTHING = re.compile(r"(?m)^[^\S\n]*(?:#[^\n]*)?\n")
_COMMENT = re.compile(r"(?:^|(?<=[\s;&|()]))#[^\n]*")
_SUBSTITUTION = re.compile(r"[$<>]\([^()]*\)|\$\(\([^()]*\)\)|`[^`]*`")
_REFERENCE = re.compile(r"\$(\w+)|\$\{(\w+)(?::?-([^}$]*))?\}")
_HERE_DOCUMENT = re.compile(
    r"(?<!<)<<-?[^\S\n]*(?:'([^'\n]*)'|\"([^\"\n]*)\"|\\?([A-Za-z_][^\s;&|()<>]*))"
)
# A value with one of these would be split or joined with other words when it is put into a line.
_UNSAFE_VALUE = re.compile(r"[\"'\\`;&|()<>#\n]")
_QUOTED = re.compile(r"\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_QUOTE = re.compile("['\"]")
_QUOTES = str.maketrans("\"'\\", "   ")


def programs(script: str) -> list[str]:
    r"""Find the programs that a job script launches, to look them up in the history.

    Parameters
    ----------
    script : str
        A shell script, or any other text. Only lines in its first 65,536 characters are read,
        and at most some hundred lines of commands.

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
    for command, is_launched in _Reader().commands(_beginning(script)):
        for word, is_after_launcher in _candidates(command):
            if (program := _program(word)) is not None:
                group = launched if is_launched or is_after_launcher else others
                group[program] = None
        if len(launched) >= MOST_PROGRAMS:
            break
    return list(launched | others)[:MOST_PROGRAMS]


def _beginning(script: str) -> str:
    """Keep the whole lines in the first part of a long script."""
    if len(script) <= _MOST_READ:
        return script
    return script[:_MOST_READ].rpartition("\n")[0]


@dataclass
class _Reader:
    """The variables of a script so far, and the characters that may still be split."""

    values: dict[str, str] = field(default_factory=dict)
    left: int = _MOST_SPLIT
    commands_left: int = _MOST_COMMANDS

    def commands(
        self, script: str, depth: int = 0, is_launched: bool = False
    ) -> Iterator[tuple[list[str], bool]]:
        """Yield commands, and whether a launcher starts them, as in ``srun sh -c TEXT``."""
        text = _NOTHING.sub("", _JOINED.sub("", f"{script}\n"))
        lines = deque(_without_here_documents(text.split("\n")))
        while lines:
            for words in _split_at_ends(self._words(lines.popleft(), lines)):
                self.commands_left -= 1
                if self.commands_left < 0:
                    return
                command = list(dropwhile(_KEYWORD.fullmatch, words[:_MOST_WORDS]))
                assignments = list(takewhile(_ASSIGNMENT.match, command))
                command = command[len(assignments) :]
                if not command or _DECLARING.fullmatch(command[0]):
                    for word in assignments or command[1:]:
                        self._assign(word)
                    continue
                yield command, is_launched
                inner = _inner_script(command)
                if inner is not None and depth < _DEEPEST:
                    launches = is_launched or any(map(_is_launcher, command))
                    yield from self.commands(inner, depth + 1, launches)
            if self.left <= 0:
                return

    def _words(self, line: str, following: deque[str]) -> list[str]:
        """Split a line, with the following ones up to the end of a quote that is open."""
        for _ in range(_MOST_QUOTES):
            for text in (line, _COMMENT.sub("", line)):
                if not _open_quote(text):
                    return self._split(text)
            quote = _open_quote(line)
            count = next((n for n, further in enumerate(following, 1) if quote in further), 0)
            if not count:
                break
            line = "\n".join([line, *(following.popleft() for _ in range(count))])
        return self._split(line)

    def _split(self, line: str) -> list[str]:
        limit = self.left
        text = _SUBSTITUTION.sub("$", _SUBSTITUTION.sub("$", _cut(line, limit)))
        text = _cut(_REFERENCE.sub(self._value, text), limit)
        self.left = limit - len(text) - _COST_OF_A_LINE
        if _open_quote(text):
            text = text.translate(_QUOTES)
        lexer = shlex.shlex(text.rstrip("\\"), posix=True, punctuation_chars=True)
        lexer.whitespace_split, lexer.commenters = True, ""
        return list(takewhile(lambda word: not word.startswith("#"), lexer))

    def _value(self, reference: re.Match[str]) -> str:
        """Return the value of a variable; of an unknown one the reference itself."""
        value = self.values.get(reference[1] or reference[2], reference[3])
        if value is None or len(value) > self.left:
            return reference[0]
        self.left -= len(value)
        return value

    def _assign(self, word: str) -> None:
        assignment = _ASSIGNMENT.fullmatch(word)
        if assignment is None:
            return
        name, appends, value = assignment.groups()
        value = (self.values.get(name, "") if appends else "") + value
        if len(value) <= _LONGEST_VALUE and not _UNSAFE_VALUE.search(value):
            self.values[name] = value
        else:
            self.values.pop(name, None)


def _open_quote(text: str) -> str:
    """Return the quote that a text does not close; else an empty text."""
    mark = _QUOTE.search(_QUOTED.sub("", text))
    return mark[0] if mark else ""


def _cut(line: str, length: int) -> str:
    """Keep the whole words in the first part of a line."""
    return line if len(line) <= length else line[: max(length, 0)].rpartition(" ")[0]


def _without_here_documents(lines: Iterable[str]) -> Iterator[str]:
    """Leave out the lines between ``<<END`` and ``END``."""
    rest = iter(lines)
    for line in rest:
        yield line.rstrip("\r")
        for here in _HERE_DOCUMENT.findall(line) if "<<" in line else ():
            end = "".join(here)
            for inside in rest:
                if inside.lstrip("\t").rstrip("\r") == end:
                    break


def _split_at_ends(words: Sequence[str]) -> Iterator[list[str]]:
    """Split words into commands at ``;``, ``&``, ``|`` and parentheses, without redirections."""
    command: list[str] = []
    is_target = False
    for word in words:
        if word and not word.strip("();<>|&"):
            is_target = not set(word) & set("()") and bool(set(word) & set("<>"))
            if is_target and command and command[-1].isdigit():
                command.pop()
            if not is_target:
                yield command
                command = []
        elif is_target:
            is_target = False
        else:
            command.append(word)
    yield command


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
