"""Finds phrases that are never right in text for people, with the place of each.

`python -m tests.support.english FOLDER...` prints them.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]

# Wrong anywhere. "There is no token" is right, "it is no token" should be "it is not a token".
PHRASES = re.compile(
    r"\b(?:(?:is|are|was|were) none|yet to be|such a one|is not what it was|what there is"
    r"|its like|there is that|to be had|so (?:is|are|does|do) that(?: one)?)\b"
    r"|(?<![Tt]here )\bis no (?:number|whole|time|date|name|text|line|file|folder|field|setting"
    r"|option|tolerance|bandwidth|address|token|decision|CSV|TOML|JSON|UTF-8|Lua|HTTP|Darshan|IOR|fio)\b"
)
# Wrong at the beginning of a comment, a docstring, a description in it, a paragraph or a cell.
BEGINNINGS = re.compile(
    r"(?:What|Who|Whom|Whose|Which|That of|Those of|None of|One that|Of what|Of which)\b(?!-if)"
)
# The sign that begins a comment, by the end of a file's name; None: between /* and */.
COMMENT_SIGNS = {
    ".lua": "--",
    ".sh": "#",
    ".toml": "#",
    ".cfg": "#",
    ".conf": "#",
    ".service": "#",
    "": "#",
    ".css": None,
    ".js": None,
    ".c": None,
}
ENDINGS = {".py", ".md", ".html", *COMMENT_SIGNS}
# These columns of tables, and the checker with its test, quote wrong phrases.
QUOTING_COLUMNS = ("instead of", "not")
NOT_OURS = {
    "__pycache__",
    "data",
    "fixtures",
    "testbed",
    "words.md",
    "english.py",
    "test_english.py",
}


@dataclass(frozen=True)
class Piece:
    """Text for people.

    Parameters
    ----------
    line
        Its first line in the file.
    text
        With single blanks, whatever the line breaks.
    is_beginning
        Whether its first words are those of a comment, a paragraph or the like.
    """

    line: int
    text: str
    is_beginning: bool


def one_line(text: str) -> str:
    return " ".join(text.split())


def paragraphs(text: str, line: int) -> Iterator[Piece]:
    """Pieces of a docstring: its paragraphs, and the descriptions that are indented in it."""
    block: list[str] = []
    begin = line
    last_indent = 0
    for number, row in enumerate([*text.splitlines(), ""], start=line):
        indent = len(row) - len(row.lstrip())
        if block and (not row.strip() or indent != last_indent):
            yield Piece(begin, one_line(" ".join(block)), is_beginning=True)
            block = []
        if row.strip():
            begin = begin if block else number
            block.append(row)
        last_indent = indent


def comment_blocks(lines: list[tuple[int, str]]) -> Iterator[Piece]:
    """Pieces of comments; those on consecutive lines are one."""
    block: list[str] = []
    begin = last = -1
    for number, text in [*lines, (-1, "")]:
        if block and number != last + 1:
            yield Piece(begin, one_line(" ".join(block)), is_beginning=True)
            block = []
        begin = begin if block else number
        block.append(text)
        last = number


def of_python(text: str) -> Iterator[Piece]:
    tree = ast.parse(text)
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            first = node.body[0] if node.body else None
            if docstring is not None and isinstance(first, ast.Expr):
                docstrings.add(id(first.value))
                yield from paragraphs(docstring, first.lineno)
    for node in ast.walk(tree):
        is_string = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_string and id(node) not in docstrings:
            yield Piece(node.lineno, one_line(node.value), is_beginning=False)
    alone: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if token.line.lstrip().startswith("#"):
                alone.append((token.start[0], token.string.lstrip("#: ")))
            else:
                yield Piece(token.start[0], token.string.lstrip("#: "), is_beginning=True)
    yield from comment_blocks(alone)


def of_markdown(text: str) -> Iterator[Piece]:
    blank = re.sub(r"(?ms)^ *```.*?^ *```", lambda code: "\n" * code[0].count("\n"), text)
    block: list[str] = []
    begin = 1
    header: list[str] = []
    for number, row in enumerate([*blank.splitlines(), ""], start=1):
        stripped = row.strip()
        starts = not stripped or re.match(r"[#|>]|[-*] |\d+\. ", stripped) is not None
        if starts and block:
            yield Piece(begin, one_line(" ".join(block)), is_beginning=True)
            block = []
        if stripped.startswith("|"):
            cells = [one_line(cell) for cell in stripped.strip("|").split("|")]
            header = header or cells
            for name, cell in zip_longest(header, cells, fillvalue=""):
                if name not in QUOTING_COLUMNS:
                    yield Piece(number, cell, is_beginning=True)
            continue
        header = []
        if stripped.startswith("#"):
            # A heading may be a question.
            yield Piece(number, stripped, is_beginning=False)
        elif stripped:
            begin = begin if block else number
            block.append(re.sub(r"^(?:[-*>] |\d+\. )", "", stripped))


def of_html(text: str) -> Iterator[Piece]:
    # Expressions of Jinja, such as "x is none", are code.
    text = re.sub(r"(?s)\{%.*?%\}|\{\{.*?\}\}", lambda code: "\n" * code[0].count("\n"), text)
    for found in re.finditer(r"(?s)\{#(.*?)#\}|<p\b[^>]*>([^<]*)", text):
        line = text.count("\n", 0, found.start()) + 1
        yield Piece(line, one_line(found[1] or found[2] or "").lstrip("- "), is_beginning=True)
    for number, row in enumerate(text.splitlines(), start=1):
        yield Piece(number, one_line(row), is_beginning=False)


def of_comments(text: str, sign: str | None) -> Iterator[Piece]:
    if sign is None:
        for found in re.finditer(r"(?s)/\*(.*?)\*/", text):
            words = one_line(re.sub(r"\n\s*\*", "\n", found[1]))
            yield Piece(text.count("\n", 0, found.start()) + 1, words, is_beginning=True)
        return
    lines = []
    for number, row in enumerate(text.splitlines(), start=1):
        if row.lstrip().startswith(sign):
            lines.append((number, row.lstrip().lstrip(sign).strip()))
        else:
            yield Piece(number, one_line(row), is_beginning=False)
    yield from comment_blocks(lines)


def pieces(name: str, text: str) -> Iterator[Piece]:
    """All text for people in a file of this name."""
    ending = Path(name).suffix
    if ending == ".py":
        yield from of_python(text)
    elif ending == ".md":
        yield from of_markdown(text)
    elif ending == ".html":
        yield from of_html(text)
    else:
        yield from of_comments(text, COMMENT_SIGNS[ending])


def findings(name: str, text: str) -> list[str]:
    """Each phrase that is never right, as "NAME:LINE: PHRASE in: TEXT"."""
    found = set()
    for piece in pieces(name, text):
        matches = [*PHRASES.finditer(piece.text)]
        if piece.is_beginning and (beginning := BEGINNINGS.match(piece.text)):
            matches.append(beginning)
        for match in matches:
            around = piece.text[max(0, match.start() - 40) : match.end() + 40]
            found.add((piece.line, f'"{match[0]}" in: {around}'))
    return [f"{name}:{line}: {words}" for line, words in sorted(found)]


def files(place: str) -> Iterator[Path]:
    """The files with text for people in a folder and below; or the one file that is named."""
    path = PROJECT / place
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        is_text = file.is_file() and file.suffix in ENDINGS
        if is_text and not NOT_OURS & {*file.relative_to(PROJECT).parts}:
            yield file


def findings_in(place: str) -> list[str]:
    """The findings of all files of a folder, or of one file."""
    return [
        finding
        for file in files(place)
        for finding in findings(
            file.relative_to(PROJECT).as_posix(), file.read_text(encoding="utf-8")
        )
    ]


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(*findings_in(argument.rstrip("/")), sep="\n")
