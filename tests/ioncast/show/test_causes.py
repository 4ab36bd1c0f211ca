"""Causes of slow I/O: which findings and advice belong together, their order, and their words."""

from __future__ import annotations

from typing import Any

import pytest

from ioncast.show.causes import CauseShown, CausesShown, causes_shown
from ioncast.show.ranked_causes import Cause, ranked
from tests.support.drawn import lines

CURVE = {0: 30.0, 4: 60.0, 8: 50.0}


def finding(
    code: str, importance: str = "major", seconds: float | None = None, level: str = "HIGH"
) -> dict[str, Any]:
    usual = {"title": f"title of {code}", "sentence": "it is so", "source": "a paper"}
    empty: dict[str, Any] = {"thresholds": {}, "numbers": {}, "files": [], "ranks": []}
    stake = {"seconds_at_stake": seconds, "share_of_run": None, "is_estimate": False}
    cause = f"cause of {code}"
    named = {"code": code, "level": level, "importance": importance, "cause": cause}
    return {**named, **stake, **usual, **empty, "advice": []}


def fact(code: str) -> dict[str, Any]:
    return finding(code, "none", level="INFO")


def checked(findings: list[dict[str, Any]]) -> dict[str, Any]:
    """The document of the checks; each finding is a cause of its own."""
    causes = [
        {"cause": each["cause"], "codes": [each["code"]]}
        for each in findings
        if each["importance"] != "none"
    ]
    verdict = {
        **{f"{name}_seconds": 10.0 for name in ("read", "write", "metadata")},
        "io_seconds": 30.0,
        "run_seconds": 100.0,
        "io_share_of_run": 0.3,
        "is_mean": False,
        "bytes": 30 << 20,
        "seconds_at_stake": 20.0,
        "share_of_run": 0.2,
        "major_share": 0.1,
        "minor_share": 0.01,
    }
    return {"libraries": ["posix"], "findings": findings, "causes": causes, "verdict": verdict}


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
    checks = None if findings is None else checked(findings)
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


def test_causes_are_in_the_order_of_the_seconds_that_each_could_save() -> None:
    """Predicted seconds count instead of those that the log tells, which are a bound."""
    findings = [
        finding("P06", seconds=60),
        finding("P08", seconds=7),
        finding("P16", seconds=60),
        finding("D01", "minor", seconds=3),
        finding("I03", "unknown"),
        finding("M07", "negligible", seconds=0.1),
        finding("P05", seconds=4),
    ]
    advised = [
        advice("collective", codes="P16", verdict="slower", saved=-3),
        advice("own_files", verdict="unsure", saved=0.5),
        advice("larger", codes="P06", saved=2),
        advice("collective", "larger", codes="P16 P06", saved=5),
        advice("contiguous", codes="P05", verdict="not known"),
        advice("one_file", verdict="not known"),
    ]
    causes, others = ranked(checked(findings), advised)
    assert names(causes) == [
        *("P08", "collective + larger", "contiguous", "D01", "larger"),
        *("one_file", "I03", "collective", "own_files", "M07"),
    ]
    assert others == []


def test_causes_with_next_to_no_time_at_stake_are_folded() -> None:
    findings = [finding("M07", "negligible", seconds=0.1), finding("D01", "minor", seconds=3)]
    found = shown(findings, [])
    assert [cause.codes for cause in found.causes] == ["D01"]
    assert [cause.codes for cause in found.negligible] == ["M07"]
    # Of 100 s.
    faster = shown(findings, [advice("asynchronous", codes="M07", saved=2)])
    assert not faster.negligible
    little = shown(findings, [advice("once", codes="D01", saved=0.9)])
    assert [cause.codes for cause in little.negligible] == ["D01", "M07"]
    assert little.conclusion == ""


def test_a_cause_without_a_prediction_tells_its_bound() -> None:
    found = only(shown([finding("D01", seconds=30)], []))
    assert (found.title, found.gain, found.style) == ("Cause of D01", "at most 30 s", "info")


def test_advice_that_makes_the_run_slower_is_not_given_for_another_cause() -> None:
    to_do = [{"key": key, "sentence": key, "snippets": {}} for key in ("collective", "larger")]
    findings = [
        finding("P06", seconds=60) | {"advice": to_do},
        finding("P16", seconds=60) | {"advice": to_do[:1]},
    ]
    first, last = shown(
        findings, [advice("collective", codes="P16", verdict="slower", saved=-3)]
    ).causes
    assert first.advice == (("larger", ()),)
    assert last.advice == (("collective", ()),)


def test_a_verdict_stands_before_all_causes() -> None:
    found = shown([finding("D01", seconds=30)], [])
    assert found.verdict == (
        "I/O and metadata take 30 s of 100 s run time (30%) in the slowest process: read 10 s,"
        " write 10 s, metadata 10 s. All processes move 30 MiB, 1 MiB/s in this time. Of it at most"
        " 20 s (20% of the run time) are at stake, as far as the log tells. The benchmarks of this"
        " system tell 60 MiB/s (59 to 61) for the same I/O with 4 I/O nodes, their best number."
    )


def test_findings_that_one_piece_of_advice_answers_are_one_cause() -> None:
    findings = [finding("P05"), finding("P06"), fact("P01"), fact("P14")]
    causes, others = ranked(checked(findings), [advice("larger", codes="P05 P06", saved=2)])
    assert [[each["code"] for each in cause.findings] for cause in causes] == [["P05", "P06"]]
    assert [each["code"] for each in others] == ["P01", "P14"]


def test_a_finding_stays_a_cause_if_only_a_pair_answers_it() -> None:
    """Collective calls alone may change no phase that larger requests together with them do."""
    causes, _ = ranked(
        checked([finding("P16"), finding("P06")]),
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
    findings = [finding("P05", "minor") | {"advice": once}, finding("P06") | {"advice": once}]
    cause = only(shown(findings, [advice("larger", codes="P05 P06", saved=2)]))
    assert [each.record["code"] for each in cause.findings] == ["P06", "P05"]
    assert (cause.title, cause.codes) == ("title of P06, title of P05", "P06, P05")
    assert cause.advice == (("ask us", ()),)
    assert cause.details == ("Published level: HIGH. Source: a paper.",)


def test_two_pieces_of_advice_together_do_not_repeat_their_findings() -> None:
    findings = [finding("P16"), finding("P06")]
    pair = advice("collective", "larger", codes="P16 P06", saved=5)
    cause = shown(findings, [pair]).causes[0]
    assert (cause.title, cause.codes, cause.findings) == ("Collective + larger", "P16, P06", ())
    assert cause.advice == (("Follow both pieces of advice at the same time.", ()),)


def test_a_gain_has_both_curves_as_a_figure_and_as_rows() -> None:
    cause = only(shown([finding("P06")], [advice("larger", codes="P06", saved=2)]))
    assert lines(cause.figure) == {"today": [30, 60, 50], "then": [60, 120, 100]}
    rows = [
        (r.io_nodes, r.today.mean, r.then.mean, r.decides) for r in cause.rows if r.today and r.then
    ]
    assert rows == [(0, 30, 60, ()), (4, 60, 120, ("today",)), (8, 50, 100, ("then",))]
    assert cause.rows[0].saved_seconds == {"io_nodes": 0, "p10": 1, "expected": 2, "p90": 3}


def test_a_prediction_that_the_run_contradicts_is_not_todays() -> None:
    larger = advice("larger", codes="P06", saved=2)
    cause = only(shown([finding("P06")], [larger], is_contradiction=True))
    assert list(lines(cause.figure)) == ["predicted", "then"]
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
    cause = only(shown([finding("M07", "minor")], [one | {"saved_by_io_nodes": []}]))
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
            [finding("P06"), finding("D01", "minor")],
            [advice("larger", codes="P06", saved=2)],
            "Most would help, as far as benchmarks tell: larger, which saves 2 s.",
        ),
        (
            [finding("P06")],
            [advice("larger", codes="P06", verdict="slower", saved=-2)],
            "No advice that could be predicted is sure to save time.",
        ),
        ([finding("P06")], [], ""),
        (None, [], ""),
        (
            None,
            [advice("own_files", saved=2)],
            "Most would help, as far as benchmarks tell: own_files, which saves 2 s.",
        ),
    ],
)
def test_a_sentence_says_what_would_help_most(
    findings: list[dict[str, Any]] | None, advised: list[dict[str, Any]], conclusion: str
) -> None:
    assert shown(findings, advised).conclusion == conclusion


def test_findings_are_shown_also_if_nothing_is_known_about_their_gain() -> None:
    found = shown([finding("P06"), fact("P14")], "nothing was measured on 'here'")
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
