"""A text that is one expression gives its value."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.templates import render_value

KNOWN = {"n": 3, "rows": [{"a": None}], "name": "Ann"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{ n }}", 3),
        (" {{- n + 0.5 -}} ", 3.5),
        ("{{ rows }}", [{"a": None}]),
        ("{{ rows[0].a }}", None),
        ("{{ n > 2 }}", True),
        ("{{ gone | default(none) }}", None),
        ("{{ {'a': n} }}", {"a": 3}),
        ("{{ n }}{{ n }}", "33"),
        ("n is {{ n }}", "n is 3"),
        ('{{ "{{" }}', "{{"),
        ("{% if n %}{{ n }}{% endif %}", "3"),
        ("plain", "plain"),
    ],
)
def test_the_value_keeps_its_type(text: str, value: Any) -> None:
    made = render_value(text, KNOWN)
    assert (made, type(made)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ nam }}", 'the variable "nam" is not known'),
        ("{{ rows[0].b }}", "can't be rendered"),
        ("{{ n.__class__ }}", "can't be rendered|forbids"),
        ("{{ 10 ** 10 ** 8 }}", "makes more than"),
        ("{{ n / 0 }}", "can't be rendered"),
        ("{{ n + }}", "this template has an error"),
    ],
)
def test_what_cannot_be_had_is_said_as_for_any_template(text: str, said: str) -> None:
    with pytest.raises(AgentevalError, match=said):
        render_value(text, KNOWN)
