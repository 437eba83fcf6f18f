"""Secrets are found in the forms in which they travel; everything else stays as it is."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.core.json_values import DEEPEST
from agenteval_tui.core.redaction import Redactor

SECRET = 'p/ä"ss+w\\rd&1?'


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        json.dumps(SECRET),
        json.dumps(SECRET, ensure_ascii=False),
        json.dumps(json.dumps({"key": SECRET})),
        json.dumps(SECRET).replace("/", "\\/"),
        quote(SECRET),
        quote(SECRET, safe=""),
        quote(SECRET, safe="").lower(),
        quote_plus(SECRET),
        f"postgres://u:{quote(SECRET, safe='')}@host/db",
    ],
)
def test_forms(text: str) -> None:
    cleaned = Redactor([SECRET]).text(f"before {text} behind {text}")
    assert cleaned.startswith("before ")
    assert cleaned.count("***") == 2
    assert "rd" not in cleaned.replace("word", "")


@pytest.mark.parametrize("encode", [b64encode, urlsafe_b64encode])
@pytest.mark.parametrize("before", ["", "u", "us", "use", "user:"])
@pytest.mark.parametrize("behind", ["", "!", "!!", " and more"])
def test_base64_of_something_longer(encode: object, before: str, behind: str) -> None:
    secret = "sk-?>~ÿ-0123456789"
    encoded = encode((before + secret + behind).encode()).decode()  # type: ignore[operator]
    cleaned = Redactor([secret]).text(f"Basic {encoded}")
    assert cleaned.startswith("Basic ")
    assert "***" in cleaned
    # What is left of the secret's bytes is at most the two characters that it shares with its neighbours.
    assert len(cleaned) <= len("Basic ***") + (len(before) + len(behind)) * 4 // 3 + 8


def test_what_has_no_secret_is_the_same_object() -> None:
    redactor = Redactor(["sk-0123456789"])
    text, data = "nothing " * 10, {"a": ["x", 5, None], "b": {"c": True}}
    assert redactor.text(text) is text
    assert redactor.data(data) is data
    assert Redactor().data(data) is data


def test_data() -> None:
    secret = "sk-0123456789"
    data = {"a": [f"x {secret}", 5], secret: {"b": None, "c": "y"}}
    assert Redactor([secret]).data(data) == {"a": ["x ***", 5], "***": {"b": None, "c": "y"}}
    deep: object = secret
    harmless: object = "x"
    for _ in range(5_000):
        deep, harmless = [deep], [harmless]
    levels, cleaned = 0, Redactor([secret]).data(deep)
    while isinstance(cleaned, list):
        levels, cleaned = levels + 1, cleaned[0]
    assert (levels, cleaned) == (DEEPEST, "***")
    assert Redactor([secret]).data(harmless) is harmless


def test_the_longest_comes_first() -> None:
    assert Redactor(["sk-01234", "sk-0123456789"]).text("sk-0123456789 sk-01234") == "*** ***"


@given(st.text(min_size=8, max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_no_secret_stays(secret: str, before: str, behind: str) -> None:
    if "*" in secret:
        return
    cleaned = Redactor([secret]).text(before + secret + behind)
    assert secret not in cleaned
    assert secret not in json.loads(Redactor([secret]).text(json.dumps([before + " " + secret + " " + behind])))[0]


def test_the_open_end_of_a_text() -> None:
    redactor = Redactor(["pw-0123456789", "0123-and-more"])
    assert redactor.open_end("say pw-01") == 5
    assert redactor.open_end("say s") == 1
    assert redactor.open_end("pw-0123456789") == 0, "that is all of it: nothing is to come"
    assert redactor.open_end("x pw-01234") == 8, "of two that it may be the longer one"
    assert redactor.open_end("x 0123-") == 5
    assert redactor.open_end("nothing else") == 0
    assert redactor.open_end("") == Redactor().open_end("pw-01") == 0
    assert Redactor(['a"b-0123456789']).open_end('{"x": "a\\"b-01') == 7, "in the form in which JSON has it"
