"""The simple commands of a shell script, without running anything.

Not a shell: good enough to see which programs a job script names. Whatever the text is, it is
read once, from its beginning on, and no further than it may cost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

# No alternative fails after it has read far, so the time is linear: what does not end, ends
# with the script.
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
    """How much is still read of a script and of the scripts in it.

    Attributes
    ----------
    left : float
        Pieces: each takes about 3 µs.
    """

    left: float

    def spend(self, pieces: float) -> None:
        """Take off what something costs."""
        self.left -= pieces

    @property
    def is_done(self) -> bool:
        """Whether the rest is not read."""
        return self.left <= 0


class Piece(NamedTuple):
    """A part of a word.

    Attributes
    ----------
    text : str
        Without its quotes; of a variable with its ``$``. What a command substitution gives
        is not known and stands as ``$()``.
    is_variable, is_quoted : bool
        A variable without quotes can become several words.
    """

    text: str
    is_variable: bool = False
    is_quoted: bool = False


Word = tuple[Piece, ...]


def simple_commands(script: str, work: Work) -> Iterator[list[Word]]:
    """Take a shell script apart.

    Parameters
    ----------
    script : str
        Any text; wrong syntax is read as well as it can be.
    work : Work
        The most that it may cost. The script ends where that is spent.

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
        found = _LEXEME.match(script, at)
        assert found is not None  # noqa: S101
        at = found.end()
        kind = str(found.lastgroup)
        text = found[kind]
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
    """The command that is being read."""

    work: Work
    words: list[Word] = field(default_factory=list)
    word: list[Piece] = field(default_factory=list)
    # The next word is a redirection's.
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
    # Also where there is nothing between them, there is a word.
    work.spend(1)
    yield Piece("", is_quoted=True)
    for found in _IN_DOUBLE_QUOTES.finditer(text):
        work.spend(1)
        if work.is_done:
            return
        if found.lastgroup is not None:
            yield Piece(found[found.lastgroup], found.lastgroup == "variable", is_quoted=True)
