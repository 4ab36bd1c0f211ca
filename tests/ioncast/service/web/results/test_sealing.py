"""A sealed result comes back whole; everything else that a client sends is one clear error."""

from __future__ import annotations

import base64
import json
import zlib
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from itsdangerous import URLSafeTimedSerializer

from ioncast.service.web.results import result as results
from ioncast.service.web.results.result import VERSION, UploadResult
from ioncast.service.web.results.sealing import LIFE, seal, unseal
from ioncast_base.errors import InputError

KEY = bytes(range(32))
ASKED = {"system": "testbed", "nodes": 8, "ran_with": None, "available": None}
RESULT = UploadResult(
    version=VERSION,
    name="größe </script> \0 \ud800.darshan",
    made_at="2026-11-23T12:00:00.000000+00:00",
    asked=ASKED,
    prediction={"phases": [{"files": ["/scratch/" + "x" * 50]} for _ in range(100)]},
    phases=[],
    insights="no insights were made",
    advice="advice was not predicted",
)
FORGED = "not as this service sent it"


@pytest.fixture(scope="module")
def sealed() -> str:
    return seal(KEY, RESULT)


def now() -> datetime:
    return datetime.now(timezone.utc)


def test_a_sealed_result_comes_back(sealed: str) -> None:
    assert unseal(KEY, sealed, now()).result == RESULT


def test_it_needs_no_escape_in_a_form_and_is_compressed(sealed: str) -> None:
    assert set(sealed) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")
    assert len(sealed) < 1000


def test_each_seal_has_a_secret_of_its_own_with_256_random_bits(sealed: str) -> None:
    secrets = {unseal(KEY, each, now()).secret for each in (sealed, seal(KEY, RESULT))}
    assert len(secrets) == 2
    assert {len(base64.urlsafe_b64decode(secret + "=")) for secret in secrets} == {32}
    # Opening it again gives the same address.
    assert unseal(KEY, sealed, now()).secret == unseal(KEY, sealed, now()).secret


def test_it_can_be_opened_for_a_day(sealed: str) -> None:
    # The seal counts whole seconds.
    made = now()
    late = made + LIFE - timedelta(hours=1)
    assert unseal(KEY, sealed, late).result == RESULT
    with pytest.raises(InputError, match=r"older than 24 hours, .* send the log again"):
        unseal(KEY, sealed, made + LIFE + timedelta(seconds=1))


def test_a_clock_that_was_set_back_does_no_harm(sealed: str) -> None:
    assert unseal(KEY, sealed, now() - timedelta(days=400)).result == RESULT


def test_another_key_does_not_open_it(sealed: str) -> None:
    for key in (bytes(32), KEY[::-1], b""):
        with pytest.raises(InputError, match=FORGED):
            unseal(key, sealed, now())


@given(st.text())
def test_no_text_of_a_client_opens(text: str) -> None:
    with pytest.raises(InputError, match=FORGED):
        unseal(KEY, text, now())


@given(st.text(alphabet="aZ0-_.=A"), st.text(alphabet="aZ0-_.=A"), st.text(alphabet="aZ0-_.=A"))
def test_no_text_of_the_right_form_opens(payload: str, moment: str, signature: str) -> None:
    for text in (f"{payload}.{moment}.{signature}", f".{payload}.{moment}.{signature}"):
        with pytest.raises(InputError, match=FORGED):
            unseal(KEY, text, now())


@given(st.data())
def test_a_seal_that_was_changed_or_cut_does_not_open(sealed: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(sealed) - 1))
    # The last character of base64 has bits that do not count.
    letter = data.draw(st.sampled_from("AQgw-_.é\ud800").filter(lambda each: each != sealed[at]))
    texts = [sealed[:at], sealed[:at] + sealed[at + 1 :]]
    if at < len(sealed) - 1:
        texts.append(sealed[:at] + letter + sealed[at + 1 :])
    for text in texts:
        with pytest.raises(InputError, match=FORGED):
            unseal(KEY, text, now())


def serializer(key: bytes) -> URLSafeTimedSerializer[Any]:
    return URLSafeTimedSerializer(key, salt="ioncast kept result")


@pytest.mark.parametrize("values", [{}, {"secret": "x", "result": {}}, [], None])
def test_a_seal_with_the_defaults_of_the_library_does_not_open(values: Any) -> None:
    with pytest.raises(InputError, match=FORGED):
        unseal(KEY, serializer(KEY).dumps(values), now())


def test_a_small_text_that_would_become_a_huge_one_is_not_inflated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bomb = zlib.compress(bytes(50 << 20), 9)
    payload = "." + base64.urlsafe_b64encode(bomb).decode().rstrip("=")

    def inflate(*_: object) -> bytes:
        raise AssertionError("inflated before the signature was checked")

    signed = serializer(bytes(32)).make_signer().sign(payload).decode()
    monkeypatch.setattr("zlib.decompress", inflate)
    for text in (payload, f"{payload}.aaaa.bbbb", signed):
        with pytest.raises(InputError, match=FORGED):
            unseal(KEY, text, now())


def test_a_result_of_another_version_is_an_error_that_says_so(
    sealed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "VERSION", VERSION + 1)
    with pytest.raises(InputError, match=r"another version of ioncast.*; send the log again"):
        unseal(KEY, sealed, now())


@pytest.mark.parametrize("changed", [{"advice": None}, {"more": 1}])
def test_values_of_a_result_with_other_fields_are_those_of_another_version(
    changed: dict[str, Any],
) -> None:
    values = json.loads(results.to_document(RESULT)) | changed
    values = {name: value for name, value in values.items() if value is not None}
    with pytest.raises(InputError, match="another version of ioncast"):
        results.of_values(values)


def test_a_document_is_a_result() -> None:
    assert results.of_values(json.loads(results.to_document(RESULT))) == RESULT
