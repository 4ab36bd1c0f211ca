"""Causes of slow I/O: which findings and advice belong together, their order, and their words."""

from __future__ import annotations

from typing import Any

import pytest

from ioncast.service.pages.causes.ranked_causes import Cause, ranked
from ioncast.service.pages.causes.shown_causes import CauseShown, CausesShown, causes_shown

CURVE = {0: 30.0, 4: 60.0, 8: 50.0}


def finding(code: str, level: str = "HIGH") -> dict[str, Any]:
    usual = {"title": f"title of {code}", "sentence": "it is so", "source": "a paper"}
    empty: dict[str, Any] = {"thresholds": {}, "numbers": {}, "files": [], "ranks": []}
    return {"code": code, "level": level, **usual, **empty, "advice": []}


def prediction(scale: float, decided: int = 4) -> dict[str, Any]:
    curve = [
        {
            "io_nodes": n,
            "bandwidth_mib_s": {
                "mean": scale * mib_s,
                "p10": scale * mib_s - 1,
                "median": scale * mib_s,
                "p90": scale * mib_s + 1,
            },
            "time_s": 600 / mib_s / scale,
            "basis": "measured",
        }
        for n, mib_s in CURVE.items()
    ]
    return {"curve": curve, "decision": {"io_nodes": decided}}


def advice(
    *keys: str, codes: str = "", verdict: str = "faster", saved: float | None = None, **told: Any
) -> dict[str, Any]:
    span = None if saved is None else {"p10": saved - 1, "expected": saved, "p90": saved + 1}
    return {
        "keys": list(keys),
        "name": " + ".join(keys),
        "codes": codes.split(),
        "verdict": verdict,
        "sentence": f"saves {saved} s",
        "matched": None if saved is None else "exact",
        "saved_seconds": span,
        "saved_by_io_nodes": [] if span is None else [{"io_nodes": n, **span} for n in CURVE],
        "then": None if saved is None else prediction(2, decided=8),
        "measure": [],
        **told,
    }


def names(causes: list[Cause]) -> list[str]:
    """Each cause by its advice, or else its finding."""
    return [
        " + ".join(cause.advice["keys"]) if cause.advice else cause.findings[0]["code"]
        for cause in causes
    ]


def shown(
    findings: list[dict[str, Any]] | None,
    advised: list[dict[str, Any]] | str,
    *,
    is_contradiction: bool = False,
) -> CausesShown:
    checks = None if findings is None else {"libraries": ["posix"], "findings": findings}
    own = {"is_contradiction": is_contradiction}
    known = (
        advised
        if isinstance(advised, str)
        else {"today": prediction(1), "own_run": own, "advice": advised}
    )
    return causes_shown(checks, known)


def only(found: CausesShown) -> CauseShown:
    [cause] = found.causes
    return cause


def test_the_largest_expected_gain_is_first_then_levels_then_losses() -> None:
    findings = [
        *(finding(code) for code in ("P06", "P08", "P16")),
        *(finding(code, "WARN") for code in ("D01", "P05")),
    ]
    advised = [
        advice("collective", codes="P16", verdict="slower", saved=-3),
        advice("own_files", verdict="unsure", saved=0.5),
        advice("larger", codes="P06", saved=2),
        advice("collective", "larger", codes="P16 P06", saved=5),
        advice("contiguous", codes="P05", verdict="not known"),
        advice("one_file", verdict="not known"),
    ]
    causes, others = ranked(findings, advised)
    assert names(causes) == [
        *("collective + larger", "larger", "own_files"),
        *("P08", "contiguous", "D01", "one_file"),
        "collective",
    ]
    assert others == []


def test_too_little_io_to_matter_is_first_and_says_so() -> None:
    findings = [finding("P06"), finding("I06", "INFO")]
    causes, _ = ranked(findings, [advice("larger", codes="P06", saved=2)])
    assert names(causes) == ["I06", "larger"]
    found = shown(findings, [advice("larger", codes="P06", saved=2)])
    assert found.conclusion.startswith("This run has so little I/O that nothing below matters")


def test_findings_that_one_piece_of_advice_answers_are_one_cause() -> None:
    findings = [finding("P05"), finding("P06"), finding("P01", "INFO"), finding("P14", "OK")]
    causes, others = ranked(findings, [advice("larger", codes="P05 P06", saved=2)])
    assert [[each["code"] for each in cause.findings] for cause in causes] == [["P05", "P06"]]
    assert [each["code"] for each in others] == ["P01", "P14"]


def test_a_finding_stays_a_cause_if_only_a_pair_answers_it() -> None:
    """Collective calls alone may change no phase that larger requests together with them do."""
    causes, _ = ranked(
        [finding("P16"), finding("P06")],
        [
            advice("larger", codes="P06", saved=2),
            advice("collective", "larger", codes="P16 P06", saved=1),
        ],
    )
    assert names(causes) == ["larger", "collective + larger", "P16"]


def test_findings_that_were_too_many_to_be_stored_are_left_out() -> None:
    cause = only(shown([], [advice("larger", codes="P06", saved=2)]))
    assert (cause.title, cause.findings, cause.gain) == ("Larger", (), "saves 2 s")


def test_a_cause_with_several_findings_says_each_piece_of_advice_once() -> None:
    once = [{"key": "ours", "sentence": "ask us", "snippets": {}}]
    findings = [finding("P05", "WARN") | {"advice": once}, finding("P06") | {"advice": once}]
    cause = only(shown(findings, [advice("larger", codes="P05 P06", saved=2)]))
    assert [each.record["code"] for each in cause.findings] == ["P06", "P05"]
    assert (cause.title, cause.codes) == ("title of P06, title of P05", "P06, P05")
    assert cause.advice == (("ask us", ()),)
    assert cause.details == ("Source: a paper.",)


def test_two_pieces_of_advice_together_do_not_repeat_their_findings() -> None:
    findings = [finding("P16"), finding("P06")]
    pair = advice("collective", "larger", codes="P16 P06", saved=5)
    cause = shown(findings, [pair]).causes[0]
    assert (cause.title, cause.codes, cause.findings) == ("Collective + larger", "P16, P06", ())
    assert cause.advice == (("Follow both pieces of advice at the same time.", ()),)


def test_a_gain_has_both_curves_as_a_figure_and_as_rows() -> None:
    cause = only(shown([finding("P06")], [advice("larger", codes="P06", saved=2)]))
    assert cause.figure is not None
    lines = {
        each["name"]: each["y"] for each in cause.figure["data"] if each["mode"] == "lines+markers"
    }
    assert lines == {"today": [30, 60, 50], "then": [60, 120, 100]}
    rows = [
        (r.io_nodes, r.today.mean, r.then.mean, r.decides) for r in cause.rows if r.today and r.then
    ]
    assert rows == [(0, 30, 60, ()), (4, 60, 120, ("today",)), (8, 50, 100, ("then",))]
    assert cause.rows[0].saved_seconds == {"io_nodes": 0, "p10": 1, "expected": 2, "p90": 3}


def test_a_prediction_that_the_run_contradicts_is_not_todays() -> None:
    larger = advice("larger", codes="P06", saved=2)
    cause = only(shown([finding("P06")], [larger], is_contradiction=True))
    assert cause.figure is not None
    names = [each["name"] for each in cause.figure["data"] if each["mode"] == "lines+markers"]
    assert names == ["predicted", "then"]
    assert cause.today == "predicted"
    assert {name for row in cause.rows for name in row.decides} == {"predicted", "then"}


@pytest.mark.parametrize(
    ("verdict", "saved", "style", "gain"),
    [
        ("faster", 2.0, "good", "saves 2 s"),
        ("unsure", 2.0, "info", "gain unsure"),
        ("slower", -2.0, "warn", "takes 2 s more"),
        ("not known", None, "info", "gain not known"),
    ],
)
def test_a_tag_tells_the_verdict(verdict: str, saved: float | None, style: str, gain: str) -> None:
    cause = only(shown([], [advice("own_files", verdict=verdict, saved=saved)]))
    assert (cause.style, cause.gain) == (style, gain)
    assert cause.title == "Processes share a file"
    assert bool(cause.sentence) == (saved is not None)


def test_a_gain_that_is_not_known_names_the_benchmarks_to_measure() -> None:
    lines = [{"configuration": f"ior -t {n}m", "tasks": 16, "nodes": n} for n in range(8)]
    one = advice("larger", codes="P06", verdict="not known", measure=lines)
    cause = only(shown([finding("P06")], [one]))
    assert cause.measure[:2] == ("ior -t 0m", "ior -t 1m  # on 1 compute node")
    assert len(cause.measure) == 6
    assert cause.more_to_measure == 2


def test_asynchronous_io_has_no_curve_of_its_own() -> None:
    one = advice("asynchronous", codes="M07", saved=2, matched="log", then=None)
    cause = only(shown([finding("M07", "WARN")], [one | {"saved_by_io_nodes": []}]))
    assert (cause.figure, cause.rows) == (None, ())
    assert "the pauses of this run" in cause.notes[0]


def test_fewer_bytes_save_time_without_a_higher_bandwidth() -> None:
    [basis, fewer] = only(shown([], [advice("once", codes="P09", saved=2)])).notes
    assert "benchmarks with the same I/O" in basis
    assert "moves fewer bytes" in fewer


@pytest.mark.parametrize(
    ("findings", "advised", "conclusion"),
    [
        (
            [finding("P06"), finding("D01", "WARN")],
            [advice("larger", codes="P06", saved=2)],
            "Most would help: larger, which saves 2 s."
            " 1 finding is very likely harmful, 1 may be harmful.",
        ),
        (
            [finding("P06")],
            [advice("larger", codes="P06", verdict="slower", saved=-2)],
            "No advice that could be predicted is sure to save time."
            " 1 finding is very likely harmful.",
        ),
        ([finding("P06")], [], "1 finding is very likely harmful."),
        ([finding("P14", "OK")], [], "No check found anything harmful."),
        (None, [], ""),
        (None, [advice("own_files", saved=2)], "Most would help: own_files, which saves 2 s."),
    ],
)
def test_a_sentence_says_what_would_help_most(
    findings: list[dict[str, Any]] | None, advised: list[dict[str, Any]], conclusion: str
) -> None:
    assert shown(findings, advised).conclusion == conclusion


def test_findings_are_shown_also_if_nothing_is_known_about_their_gain() -> None:
    found = shown([finding("P06"), finding("P14", "OK")], "nothing was measured on 'here'")
    assert found.problem == "nothing was measured on 'here'"
    assert only(found).findings[0].record["code"] == "P06"
    assert [each.record["code"] for each in found.others] == ["P14"]


@pytest.mark.parametrize(
    ("matched", "said"),
    [
        (None, "The gain is not known, because nothing similar was measured."),
        (
            "model",
            "The gain is not known: the model, which extends the benchmarks, is not sure of it.",
        ),
    ],
)
def test_the_reason_of_an_unknown_gain_is_the_true_one(matched: str | None, said: str) -> None:
    missing = {"configuration": "ior -t 4m", "tasks": 16, "nodes": 8}
    one = advice("larger", codes="P06", verdict="not known", matched=matched, measure=[missing])
    assert only(shown([finding("P06")], [one])).unknown == said


@pytest.mark.parametrize(("verdict", "saved", "number"), [("faster", 2, 2), ("slower", -3, 1)])
def test_fewer_bytes_explain_only_a_gain(verdict: str, saved: float, number: int) -> None:
    one = advice("once", codes="P10", verdict=verdict, saved=saved)
    assert len(only(shown([finding("P10")], [one])).notes) == number
