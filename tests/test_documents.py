"""Documents link to what exists, lead from a rule to its code, and use the words of words.md."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "benchmarks/*.md", "experiments/**/*.md")
    for path in PROJECT.glob(pattern)
)
DESIGN = (PROJECT / "docs/design.md").read_text(encoding="utf-8")
# How a symbol is defined in Python and in Lua; a setting of the plugin is a field of a table.
DEFINED = (
    r"^(?:class|def|local function) {0}\b|^{0}(?:: [^=]+)? = |^local {0} = |^    {0} = setting\("
)


def name_of(path: Path) -> str:
    return path.relative_to(PROJECT).as_posix()


def without_code(text: str) -> str:
    return re.sub(r"(?ms)^ *```.*?^ *```", "", text)


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"(?m)^#+ (.*)$", without_code(path.read_text(encoding="utf-8")))
    return {
        re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", heading).lower()).replace(" ", "-")
        for heading in headings
    }


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(path.read_text(encoding="utf-8"))):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        found = (path.parent / file).resolve() if file else path
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


def where_to_find() -> dict[str, str]:
    """The rules of docs/design.md, with the cell that names their code."""
    section = DESIGN.split("## Where to find\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")]
    return {row[0]: row[1] for row in rows[2:]}


RULES = where_to_find()


@pytest.mark.parametrize(
    "rule",
    [
        "spatiality threshold",
        "outlier rule",
        "calibration of intervals",
        "drift alarm",
        "tolerance",
        "same application",
        "deadline of the scheduler",
        "damaged logs",
        "choice of an importer",
        "right to write",
        "decisions after a kill",
        "held jobs",
    ],
)
def test_a_rule_is_found_in_two_steps_from_the_readme(rule: str) -> None:
    assert "(docs/design.md#where-to-find)" in (PROJECT / "README.md").read_text(encoding="utf-8")
    assert re.search(r"`\w+`.*? in \[", RULES[rule])


@pytest.mark.parametrize("rule", RULES)
def test_the_code_of_a_rule_is_in_the_file_that_is_named(rule: str) -> None:
    places = re.findall(r"([^\[\]]*?) in \[([\w.]+)\]\(\.\./([\w./]+)\)", RULES[rule])
    assert places
    for words, name, path in places:
        assert Path(path).name == name
        text = (PROJECT / path).read_text(encoding="utf-8")
        symbols = re.findall(r"`(\w+)`", words)
        assert symbols, rule
        for symbol in symbols:
            assert re.search(DEFINED.format(symbol), text, re.MULTILINE), f"{symbol} in {path}"


def test_the_tests_and_names_of_the_recipes_exist() -> None:
    recipes = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Recipes\n", 1)[1]
    for recipe in recipes.split("\n### ")[1:]:
        linked = re.findall(r"\]\(([\w./]+\.(?:py|html|toml))\)", recipe)
        text = "".join((PROJECT / path).read_text(encoding="utf-8") for path in linked)
        for path in re.findall(r"`pytest ([^`]*)`", recipe):
            assert all((PROJECT / each).exists() for each in path.split()), path
        names = re.findall(r"`_?(\w+)`", recipe)
        assert [name for name in names if name not in text] == []


def test_the_map_is_current() -> None:
    program = [sys.executable, PROJECT / "docs/make_map.py", "--check"]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(done.stderr.strip(), pytrace=False)


# docs/words.md has another word for each of these.
NEVER = re.compile(
    r"(?<![\w/.-])(?:IONs?|forwarders?|IO[ -]nodes?|PFS|throughput|forecasts?|optimum"
    r"|[lL]icenses?|refus(?:e|es|ed|ing|al)|director(?:y|ies)|fallback|strateg(?:y|ies)|watcher"
    r"|iterations?)(?![\w/=-])"
)


# Documents of benchmarks/ and experiments/ quote the output of programs.
@pytest.mark.parametrize(
    "path",
    [path for path in DOCUMENTS if path.parent.name in (PROJECT.name, "docs")],
    ids=name_of,
)
def test_a_document_uses_the_words_of_the_project(path: Path) -> None:
    if path.name in ("words.md", "map.md"):
        return
    # Code, links and quoted words keep their own names.
    text = re.sub(
        r"`[^`\n]*`|\]\([^)]*\)|\"[^\"\n]*\"|<[^>\n]*>", "", without_code(path.read_text("utf-8"))
    )
    assert [line for line in text.splitlines() if NEVER.search(line)] == []
