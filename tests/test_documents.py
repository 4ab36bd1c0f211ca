"""Documents link to what exists, lead from a rule to its code, and use the words of words.md."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

PROJECT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted(
    path
    for pattern in (
        "*.md",
        "docs/*.md",
        "[!.]*/README.md",
        "ioncast/*/README.md",
        "experiments/*/*.md",
    )
    for path in PROJECT.glob(pattern)
)
ROOMS = [path for path in DOCUMENTS if "| to find | look into |" in path.read_text("utf-8")]


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


def where_to_find(room: Path) -> dict[str, str]:
    """The table of a room's README: files by behaviour."""
    table = room.read_text("utf-8").split("| to find | look into |\n", 1)[1].split("\n\n", 1)[0]
    return dict(line.strip("| ").split(" | ") for line in table.splitlines()[1:])


@pytest.mark.parametrize(
    ("behaviour", "file"),
    [
        ("tolerance", "predictor/curve/decision.py"),
        ("fsync", "summario/requests/fsyncs.py"),
        ("release of held jobs", "scheduler_plugin/arbiter/arbitration.py"),
        ("IOR's JSON", "ior_configs/read_json.py"),
        ("whether a token is valid", "ioncast/service/web/http/access.py"),
        ("50 ms", "scheduler_plugin/lua/ioncast.lua"),
        ("calibration of intervals", "predictor/model/fitting.py"),
        ("ranking of causes", "ioncast/insights/checks/stakes.py"),
        ("retention", "ioncast/service/store/expiring.py"),
        ("limits of decompression", "summario/reading/inflate.py"),
        ("I/O nodes of a job", "scheduler_plugin/slurm/licences.py"),
        ("nearest benchmark", "predictor/matching/nearest.py"),
    ],
)
def test_a_behaviour_is_found_in_two_steps_from_the_readme(behaviour: str, file: str) -> None:
    [room] = [room for room in ROOMS if any(behaviour in row for row in where_to_find(room))]
    [row] = [row for row in where_to_find(room) if behaviour in row]
    assert f"({name_of(room)})" in (PROJECT / "README.md").read_text(encoding="utf-8")
    assert (
        f"`{Path(file).relative_to(room.parent.relative_to(PROJECT))}`" in where_to_find(room)[row]
    )


@pytest.mark.parametrize("room", ROOMS, ids=name_of)
def test_the_files_that_a_room_names_exist(room: Path) -> None:
    for names in where_to_find(room).values():
        paths = re.findall(r"`([\w/.*]+[./][\w*/]*)`", names)
        assert paths
        assert [path for path in paths if not list(room.parent.glob(path))] == []


def test_the_tests_and_names_of_the_recipes_exist() -> None:
    recipes = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Recipes\n", 1)[1]
    for recipe in recipes.split("\n### ")[1:]:
        linked = re.findall(r"\]\(([\w./]+\.(?:py|html|toml))\)", recipe)
        text = "".join((PROJECT / path).read_text(encoding="utf-8") for path in linked)
        for path in re.findall(r"`pytest ([^`]*)`", recipe):
            assert all((PROJECT / each).exists() for each in path.split()), path
        names = re.findall(r"`_?(\w+)`", recipe)
        assert [name for name in names if name not in text] == []


# docs/words.md has another word for each of these.
NEVER = re.compile(
    r"(?<![\w/.-])(?:IONs?|forwarders?|IO[ -]nodes?|PFS|throughput|forecasts?|optimum"
    r"|[lL]icenses?|refus(?:e|es|ed|ing|al)|director(?:y|ies)|fallback|strateg(?:y|ies)|watcher"
    r"|iterations?)(?![\w/=-])"
)


# Documents of benchmarks/ and experiments/ quote the output of programs.
@pytest.mark.parametrize(
    "path",
    [path for path in DOCUMENTS if {"benchmarks", "experiments"}.isdisjoint(path.parts)],
    ids=name_of,
)
def test_a_document_uses_the_words_of_the_project(path: Path) -> None:
    if path.name == "words.md":
        return
    # Code, links and quoted words keep their own names.
    text = re.sub(
        r"`[^`\n]*`|\]\([^)]*\)|\"[^\"\n]*\"|<[^>\n]*>", "", without_code(path.read_text("utf-8"))
    )
    assert [line for line in text.splitlines() if NEVER.search(line)] == []


def pages(navigation: object) -> list[str]:
    """The pages of a navigation, whatever its sections."""
    if isinstance(navigation, str):
        return [navigation]
    below = navigation.values() if isinstance(navigation, dict) else navigation
    assert isinstance(below, Iterable)
    return [page for each in below for page in pages(each)]


def test_the_navigation_of_the_site_names_each_document_once() -> None:
    settings = yaml.safe_load((PROJECT / "mkdocs.yml").read_text(encoding="utf-8"))
    testbed = PROJECT / "experiments/data/testbed/README.md"
    # `make docs` makes these.
    made = [f"reference/{name}.md" for name in ("commands", "settings", "http")]
    made += ["gallery/README.md"]
    assert sorted(pages(settings["nav"])) == sorted([*map(name_of, [*DOCUMENTS, testbed]), *made])
