"""Templates of promptfoo, which are Nunjucks', as those of suites, which are Jinja2's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.templates import template_problems

# Nunjucks goes through the keys and values of an object as through a list of pairs.
_PAIRS = re.compile(r"(\{%-?\s*for\s+\w+\s*,\s*\w+\s+in\s+)([\w.]+)(\s*-?%\})")
_OF_PROMPTFOO = ("_conversation",)
"""Variables that promptfoo gives while it runs."""


def as_ours(text: str) -> str:
    """The template with what Jinja2 writes in another way."""
    return _PAIRS.sub(r"\1(\2.items() if \2 is mapping else \2)\3", text)


def without_values(text: str, variables: Mapping[str, Any]) -> dict[str, str]:
    """The variables that a template names and nobody gave: empty, as in promptfoo. Raises `AgentevalError` for one that
    promptfoo gives while it runs, and for a template that Jinja2 can't read."""
    values: dict[str, str] = {}
    for problem in template_problems(text, variables):
        name = text[problem.start : problem.end]
        if problem.code != "unknown-variable" or not name.isidentifier() or name in variables:
            raise AgentevalError(problem.message)
        if name in _OF_PROMPTFOO:
            raise AgentevalError(f"promptfoo gives it `{name}` while it runs")
        values[name] = ""
    return values
