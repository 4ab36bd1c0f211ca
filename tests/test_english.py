"""Phrases that are never right stay out of comments, docstrings, messages, pages and documents."""

from __future__ import annotations

import pytest

from tests.support.english import PROJECT, findings, findings_in

# Everything with text for people; each is one test, so that a failure names its room.
PLACES = (
    ".ci",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Makefile",
    "README.md",
    "benchdb",
    "benchmarks",
    "docs",
    "experiments",
    "ioncast",
    "ioncast_base",
    "ior_configs",
    "predictor",
    "pyproject.toml",
    "scheduler_plugin",
    "setup.cfg",
    "summario",
    "tests",
)


@pytest.mark.parametrize("place", PLACES)
def test_no_phrase_that_is_never_right(place: str) -> None:
    assert findings_in(place) == []


@pytest.mark.parametrize(
    ("name", "template"),
    [
        ("a.py", '"""{}"""'),
        ("a.py", "x = 1  # {}"),
        ("a.md", "{}"),
        ("a.md", "| name | {} |"),
        ("a.html", "<p>{}</p>"),
        ("a.lua", "-- {}"),
        ("a.sh", "# {}"),
        ("a.css", "/* {} */"),
    ],
)
@pytest.mark.parametrize("words", ["The log is yet to be read.", "What it costs, roughly."])
def test_a_phrase_is_found_wherever_it_stands(name: str, template: str, words: str) -> None:
    found, *_ = findings(name, template.format(words))
    assert found.startswith(f"{name}:1: ")


@pytest.mark.parametrize("template", ["text = '{}'", "text = f'{{name}} {}'"])
def test_a_phrase_is_found_in_a_message(template: str) -> None:
    assert len(findings("a.py", template.format("4.5 is no whole number."))) == 1


def test_a_phrase_is_found_across_lines() -> None:
    assert len(findings("a.py", "# A token that is\n# none.\n")) == 1
    assert len(findings("a.md", "A token that is\nnone.\n")) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "if value is None:\n    value = what\n"),
        ("a.py", "# The number says\n# what a job gets.\n"),
        ("a.py", "text = 'What it does'"),
        ("a.py", '"""There is no token. It is no longer valid."""'),
        ("a.md", "## What it does\n\nA file. What it costs is known."),
        ("a.md", "```sh\n# What is none\n```"),
        ("a.html", "<h2>What it rests on</h2>"),
        ("a.md", "What-if questions are answered."),
        ("a.md", "| instead of | write |\n| --- | --- |\n| is none | is missing |"),
    ],
)
def test_text_that_may_be_right_is_left_alone(name: str, text: str) -> None:
    assert findings(name, text) == []


def test_every_room_is_looked_at() -> None:
    rooms = {path.parent.name for path in PROJECT.glob("*/__init__.py")}
    documents = {path.name for path in PROJECT.glob("*.md")}
    assert rooms | documents <= set(PLACES)
