"""`{{name}}` in prompts."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites import templates
from agenteval_tui.suites.templates import render, template_problems

VALUES: dict[str, Any] = {"country": "Deutschland", "revenue": 5000, "customer": {"name": "Ä 😀", "tags": ["a", "b"]}}


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("Alle aus {{country}} mit {{ revenue }} €\n", "Alle aus Deutschland mit 5000 €\n"),
        ("{{customer.name}}/{{ customer['tags'][1] }}", "Ä 😀/b"),
        ("{% for tag in customer.tags %}<{{tag}}>{% endfor %}", "<a><b>"),
        ("{{ missing | default('none') }}{% if other is defined %}x{% endif %}", "none"),
        ("{{ country|upper }} {# a note #}!", "DEUTSCHLAND !"),
        ("no braces { here }", "no braces { here }"),
        ("{{ '{{' }}", "{{"),
    ],
)
def test_rendering(text: str, rendered: str) -> None:
    assert render(text, VALUES) == rendered
    assert template_problems(text, VALUES) == []
    assert template_problems(text, list(VALUES)) == []


@pytest.mark.parametrize(
    ("text", "where", "what", "fix"),
    [
        ("a\n {{contry}}", "line 2, column 4 of the text", '"contry" is not known', "did you mean `country`?"),
        ("{{ä😀}}", "line 1, column 1 of the text", "this template has an error", None),
        ("😀 {{ customer.nam }}", "line 1, column 15 of the text", 'customer has no "nam"', "did you mean `name`?"),
        ("x {{ country", "line 1, column 3 of the text", "this template has an error", None),
        ("{{ country | shout }}", "line 1, column 1 of the text", "No filter named 'shout'", None),
        ("{% if country %}", "line 1, column 1 of the text", "this template has an error", None),
    ],
)
def test_mistakes_have_a_place_and_a_remedy(text: str, where: str, what: str, fix: str | None) -> None:
    with pytest.raises(AgentevalError) as caught:
        render(text, VALUES)
    assert what in caught.value.what
    assert caught.value.where == where
    assert fix is None or caught.value.fix == fix


def test_all_unknown_variables_are_found_where_they_stand() -> None:
    text = "{{a}}\r\n{{ b.c }} {{a}} {% set d = 1 %}{{d}} {{ e if e is defined }}"
    found = [(text[one.start : one.end], one.message) for one in template_problems(text, ["x"])]
    assert found == [(name, f'the variable "{name}" is not known') for name in ("a", "b", "a")]


@pytest.mark.parametrize(
    "text",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ country.__init__.__globals__ }}",
        "{{ customer.tags.append(1) }}",
        "{{ 'x' * 10000000000 }}",
        "{{ 10 ** 10 ** 10 }}",
        "{{ lipsum.__globals__ }}",
        "{{ country / 2 }}",
        "{% include 'x' %}",
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    ],
)
def test_the_sandbox_holds_and_says_so_in_one_sentence(text: str) -> None:
    with pytest.raises(AgentevalError):
        render(text, VALUES)


def test_many_characters_are_too_many() -> None:
    with pytest.raises(AgentevalError, match="more than 10,000,000 characters"):
        render("{% for a in x %}{% for b in x %}" + "y" * 1000 + "{% endfor %}{% endfor %}", {"x": list(range(200))})


@given(st.text(st.sampled_from("{}%# abcount.|'\n\r"), max_size=40))
def test_any_text_renders_or_says_why(text: str) -> None:
    for problem in template_problems(text, VALUES):
        assert 0 <= problem.start <= problem.end <= len(text)
    with contextlib.suppress(AgentevalError):
        assert isinstance(render(text, VALUES), str)


_PIECES = [
    "{{",
    "}}",
    "{",
    "}",
    " ",
    "a",
    "if",
    "none",
    "not",
    "_b1",
    ".",
    "|",
    "{{a}}",
    "{{ none }}",
    "{%",
    "{#",
    "#}",
    "\n",
]


@given(st.lists(st.sampled_from(_PIECES), max_size=8).map("".join))
def test_bare_names_that_are_known_are_as_right_as_jinja2_says(text: str) -> None:
    known = ["a", "_b1", "if", "none"]
    found = template_problems(text, known)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(templates, "_all_plain", lambda text, known: False)
        assert template_problems(text, known) == found
