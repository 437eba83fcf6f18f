"""A terminal for programs that a test writes itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from terminal import Terminal
from textual.css.stylesheet import Stylesheet


@pytest.fixture
def run_in_terminal() -> Callable[..., Terminal]:
    """`run_in_terminal(source, columns=..., rows=...)`: a terminal that runs a piece of Python."""

    def start(source: str, **options: Any) -> Terminal:
        return Terminal([sys.executable, "-c", source], **options)

    return start


@pytest.fixture(scope="session", autouse=True)
def styles_read_once() -> Iterator[None]:
    """The rules of a piece of CSS are read once in a process, and not anew in each app: a tenth of what an app costs.

    Within one app Textual keeps them just so, until its variables change; here these are part of the key.
    """
    known: dict[object, object] = {}
    read = Stylesheet._parse_rules

    def parsed(self: Stylesheet, css: str, read_from: Any, *args: Any, **named: Any) -> Any:
        variables = tuple(sorted(self._variables.items()))
        key = (css, read_from, args, tuple(sorted(named.items())), variables)
        if key not in known:
            known[key] = read(self, css, read_from, *args, **named)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", parsed)
        yield
