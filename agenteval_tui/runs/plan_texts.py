"""Putting variables into one text, for many rows: most texts only name variables, and need no template engine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agenteval_tui.suites.templates import MAX_RENDERED, is_template, render

_NAME = re.compile(r"\{\{ *([A-Za-z_][A-Za-z0-9_]*) *\}\}")
# Names that mean something to Jinja itself, whatever the variables are.
_RESERVED = frozenset(
    ("true", "false", "none", "True", "False", "None", "and", "or", "not", "in", "is", "if", "else", "self", "super")
)


class Text:
    """A text with `{{name}}` in it, taken apart once. Gives what `suites.templates.render` gives."""

    __slots__ = ("_names", "_parts", "constant", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.constant = not is_template(text)
        pieces = _NAME.split(text)
        literals, self._names = pieces[::2], tuple(pieces[1::2])
        plain = "\r" not in text and not any(is_template(one) or "}}" in one for one in literals)
        # A literal that ends with a brace makes `{{{name}}`, which is another template.
        plain = plain and not any(one.endswith("{") for one in literals) and not _RESERVED.intersection(self._names)
        self._parts = tuple(literals) if plain else ()

    def of(self, variables: Mapping[str, Any]) -> str:
        """The text with the variables put in. Raises `AgentevalError` naming the variable that is not known."""
        if self.constant:
            return self.text
        if not self._parts or any(name not in variables for name in self._names):
            return render(self.text, variables)
        made = [self._parts[0]]
        for name, literal in zip(self._names, self._parts[1:], strict=True):
            made += (str(variables[name]), literal)
        text = "".join(made)
        return text if len(text) <= MAX_RENDERED else render(self.text, variables)  # which refuses it
