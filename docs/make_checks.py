"""Writes the tables of docs/checks.md from the words of the checks, and the sample of settings.

`make tables` runs it. The words are in ioncast/insights/checks/, and those of the settings in the
docstring of `Thresholds`.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

from ioncast.insights.checks.registry import all_advice, own_checks
from ioncast.insights.checks.values import Check, Thresholds

PROJECT = Path(__file__).resolve().parents[1]
PAGE = PROJECT / "docs/checks.md"
SAMPLE = PROJECT / "ioncast/insights/checks/checks.toml"
SAMPLE_HEAD = """\
# The thresholds of `ioncast check`, with their defaults. `ioncast check --settings FILE LOG` reads
# such a file; so does IONCAST_CHECKS=FILE. A key that is left out keeps its default.
"""


def settings_of(check: Check) -> list[str]:
    """The thresholds that a check's condition names."""
    names = [name for _, name, _, _ in Formatter().parse(check.condition) if name]
    return list(dict.fromkeys(names))


def advice_of(check: Check) -> list[str]:
    """The keys of a check's advice, of all variants."""
    return list(dict.fromkeys(one.key for each in check.sentences.values() for one in each.advice))


def check_rows() -> Iterator[str]:
    """The table of the checks."""
    yield "| code | level | title | found if | settings | advice | source |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    defaults = Thresholds()
    for check in own_checks():
        cells = [
            check.code,
            ", ".join(check.levels),
            check.title,
            check.condition_with(defaults),
            ", ".join(f"`{name}`" for name in settings_of(check)),
            ", ".join(f"`{key}`" for key in advice_of(check)),
            check.source,
        ]
        yield f"| {' | '.join(cells)} |"


def advice_rows() -> Iterator[str]:
    """The table of the advice."""
    yield "| key | advice | snippets | only for | only for runs with |"
    yield "| --- | --- | --- | --- | --- |"
    for advice in all_advice().values():
        lists = (", ".join(names) for names in (advice.snippets, advice.only, advice.needs))
        yield f"| `{advice.key}` | {advice.sentence} | {' | '.join(lists)} |"


def sample() -> str:
    """The settings file with all keys, their defaults, and their sentences."""
    entry = re.compile(r"(?m)^(\w+(?:, \w+)*) : \w+\n((?:    .*\n)+)")
    # From Python 3.13 on docstrings have no common indentation.
    sentences = {
        name: text
        for names, text in entry.findall(f"{inspect.getdoc(Thresholds)}\n")
        for name in names.split(", ")
    }
    parts = [SAMPLE_HEAD]
    for name, default in vars(Thresholds()).items():
        comment = textwrap.fill(
            " ".join(sentences[name].split()), 100, initial_indent="# ", subsequent_indent="# "
        )
        value = str(default).lower() if isinstance(default, bool) else default
        parts.append(f"\n{comment}\n{name} = {value}\n")
    return "".join(parts)


def page() -> str:
    """The page with its tables and the sample made again."""
    text = PAGE.read_text(encoding="utf-8")
    parts = {
        "checks": "\n".join([*check_rows(), ""]),
        "advice": "\n".join([*advice_rows(), ""]),
        "settings": f"```toml\n{sample()}```\n",
    }
    for name, part in parts.items():
        begin, end = f"<!-- {name}: made by make tables -->\n", f"<!-- end of {name} -->"
        before, after = text.split(begin)[0], text.split(end)[1]
        text = f"{before}{begin}{part}{end}{after}"
    return text


def main() -> None:
    """Write the files, or check that they are current."""
    made = {PAGE: page(), SAMPLE: sample()}
    for path, text in made.items():
        if sys.argv[1:] != ["--check"]:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path.name} is not current (or has a conflict): run `make tables`")


if __name__ == "__main__":
    main()
