"""Splits a shell script into simple commands, without running anything.

This is not a shell, but enough to see which programs a job script names. Any text is read once,
from its beginning, until the permitted amount of work is spent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

# No alternative reads far and then fails, so the time is linear: a quote without an end ends with
# the script.
_LEXEME = re.compile(
    r"""
      (?P<blank>[^\S\n]+)
    | (?P<joined>\\\r?\n)
    | (?P<comment>(?<![^\s;&|()])\#[^\n]*)
    | <<-?[^\S\n]*(?P<here>'[^'\n]*'|"[^"\n]*"|\\?[A-Za-z_][^\s;&|()<>]*)
    | (?P<redirection>\d*(?:<<<|<<-?|&>>?|>>|>\||<>|[<>]&?)(?!\())
    | (?P<opening>\$\(|[<>]\(|\(\()
    | (?P<end>[\n;&|()])
    | \$'(?P<ansi>[^'\\]*(?:\\.[^'\\]*)*)'?
    | '(?P<single>[^']*)'?
    | \$?"(?P<double>[^"\\]*(?:\\.[^"\\]*)*)"?
    | \\(?P<escaped>.?)
    | `(?P<opaque>[^`]*)`?
    | (?P<variable>\$\w+|\$\{[^}\n]*\}?|\$[#?*@!$-])
    | (?P<plain>[^\s\\'"$`;&|()<>]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_IN_DOUBLE_QUOTES = re.compile(
    r"\\\n|(?P<variable>\$\w+|\$\{[^}]*\}?)|\\(?P<escaped>[\\\"$`])|(?P<plain>[^$\\]+|.)", re.DOTALL
)
_SUBSTITUTED = "$()"
_LINES_OF_ONE_PIECE = 5


@dataclass
class Work:
    """The work that may still be spent on a script and on the scripts in it.

    Attributes
    ----------
    left : float
        Number of pieces; each takes about 3 µs.
    """

    left: float

    def spend(self, pieces: float) -> None:
        """Spend some of the work."""
        self.left -= pieces

    @property
    def is_done(self) -> bool:
        """Whether all work is spent, so that the rest of the script is not read."""
        return self.left <= 0


class Piece(NamedTuple):
    """A part of a word.

    Attributes
    ----------
    text : str
        The text without quotes. A variable keeps its ``$``. A command substitution, whose
        value is unknown, is ``$()``.
    """

    text: str
    is_variable: bool = False
    is_quoted: bool = False


Word = tuple[Piece, ...]


def simple_commands(script: str, work: Work) -> Iterator[list[Word]]:
    """Split a shell script into simple commands.

    Parameters
    ----------
    work : Work
        The most that reading may cost. The script ends where this is spent.

    Yields
    ------
    list of tuple of Piece
        The words of each command between newlines, ``;``, ``&``, ``|`` and parentheses; with
        keywords, without redirections, comments and here-documents.
    """
    command = _Command(work)
    depth = 0
    for kind, text in _lexemes(script, work):
        if depth:
            depth += (text.count("(") - text.count(")")) * (kind in ("opening", "end"))
        elif kind == "opening":
            depth = text.count("(")
            command.add(Piece(_SUBSTITUTED))
        elif kind == "end":
            yield from command.ended()
        else:
            command.take(kind, text)
    yield from command.ended()


def _lexemes(script: str, work: Work) -> Iterator[tuple[str, str]]:
    at, here_documents = 0, []
    while at < len(script) and not work.is_done:
        work.spend(1)
        match = _LEXEME.match(script, at)
        assert match is not None  # noqa: S101
        at = match.end()
        kind = str(match.lastgroup)
        text = match[kind]
        if kind == "here":
            here_documents.append(text.strip("'\"\\"))
            continue
        yield kind, text
        if text == "\n" and kind == "end":
            for end in here_documents:
                at = _after_here_document(script, at, end, work)
            here_documents = []


def _after_here_document(script: str, at: int, end: str, work: Work) -> int:
    lines = 0
    while at < len(script) and lines < work.left * _LINES_OF_ONE_PIECE:
        newline = script.find("\n", at)
        newline = len(script) if newline < 0 else newline
        line = script[at:newline]
        at = newline + 1
        lines += 1
        if line.lstrip("\t").rstrip("\r") == end:
            break
    work.spend(lines / _LINES_OF_ONE_PIECE)
    return at


@dataclass
class _Command:
    """The command that is being read, and its words so far."""

    work: Work
    words: list[Word] = field(default_factory=list)
    word: list[Piece] = field(default_factory=list)
    # Whether the next word is the target of a redirection.
    redirects: bool = False

    def take(self, kind: str, text: str) -> None:
        if kind == "blank":
            self.end_word()
        elif kind == "redirection":
            self.end_word()
            self.redirects = True
        elif kind == "double":
            self.word.extend(_in_double_quotes(text, self.work))
        elif kind == "opaque":
            self.add(Piece(_SUBSTITUTED))
        elif kind not in ("comment", "joined"):
            self.add(Piece(text, kind == "variable", kind in ("ansi", "single", "escaped")))

    def add(self, piece: Piece) -> None:
        self.word.append(piece)

    def end_word(self) -> None:
        if not self.word:
            return
        if not self.redirects:
            self.words.append(tuple(self.word))
        self.word, self.redirects = [], False

    def ended(self) -> Iterator[list[Word]]:
        self.end_word()
        if self.words:
            yield self.words
        self.words, self.redirects = [], False


def _in_double_quotes(text: str, work: Work) -> Iterator[Piece]:
    # Even empty quotes are a word.
    work.spend(1)
    yield Piece("", is_quoted=True)
    for found in _IN_DOUBLE_QUOTES.finditer(text):
        work.spend(1)
        if work.is_done:
            return
        if found.lastgroup is not None:
            yield Piece(found[found.lastgroup], found.lastgroup == "variable", is_quoted=True)
