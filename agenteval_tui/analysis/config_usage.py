"""Which words the configs of criteria use, and how often: for the order of completions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from agenteval_tui.history import queries
from agenteval_tui.history.store import Store
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.uxon.serialize import to_text
from agenteval_tui.uxon.tokens import tokenize

NEWEST = 500
"""How many of the newest versions of criteria in the history are counted."""
LONGEST = 60
"""Characters: a longer text is not a name."""


def words_used(store: Store, suites: Iterable[LoadedSuite]) -> Counter[str]:
    """How often names and texts occur in the configs of these suites, and in the newest ones of the history.

    Raises HistoryError when the history can't be read.
    """
    words = Counter[str]()
    for loaded in suites:
        for test in loaded.suite.tests if loaded.suite is not None else ():
            for criterion in test.criteria:
                words.update(words_of(criterion.config_uxon))
    for spec in store.read(lambda connection: queries.newest_criteria(connection, NEWEST)):
        words.update(words_of(spec.get("config", "")))
    return words


def words_of(config: Any) -> list[str]:
    """The names and short texts of a config."""
    text = config if isinstance(config, str) else to_text(config)
    words = [text[token.start : token.end].strip("\"'") for token in tokenize(text) if token.kind in ("key", "string")]
    return [word for word in words if len(word) <= LONGEST]
