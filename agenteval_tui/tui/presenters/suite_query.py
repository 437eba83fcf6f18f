"""The filter of the Suites screen: `tag: outcome: agent: suite: flaky: category:` and words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from agenteval_tui.core.did_you_mean import closest
from agenteval_tui.core.display import one_line
from agenteval_tui.tui.presenters.test_status import is_flaky, outcome_of

if TYPE_CHECKING:
    from agenteval_tui.analysis.overview import SuiteOverview
    from agenteval_tui.suites.model import Test

FIELDS = ("tag", "outcome", "agent", "suite", "flaky", "category")
OUTCOMES = ("passed", "failed", "error", "flaky", "review", "new")
CATEGORIES = ("happy_path", "edge_case", "negative")
_YES, _NO = ("yes", "ye", "y"), ("no", "n")  # as far as it is typed
_PART = re.compile(r'([^\s:"]+):("[^"]*"?|\S*)|"([^"]*)"?|(\S+)')


class Query(Struct, frozen=True):
    """Words that must all occur, and fields that must match. `problem`: what of it is not understood, in words.

    What is not understood lets nothing through that the rest does not; it filters nothing by itself.
    """

    words: tuple[str, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()
    problem: str = ""

    @classmethod
    def parse(cls, text: str) -> Query:
        """Read what was typed. A text in quotes is looked for as it is; a field without a value (yet) is nothing."""
        words: list[str] = []
        fields: list[tuple[str, str]] = []
        problems: list[str] = []
        for match in _PART.finditer(text.lower()):
            name, value, quoted, word = match.groups()
            if name is None:
                words.append(quoted if quoted is not None else word)
            elif name not in FIELDS:
                problems.append(_unknown(name, match.group()))
            elif value := value.strip('"'):
                problem = _wrong(name, value)
                problems += [problem] if problem else []
                fields += [] if problem else [(name, value)]
        return cls(tuple(word for word in words if word), tuple(fields), problems[0] if problems else "")

    def __bool__(self) -> bool:
        return bool(self.words or self.fields)

    def accepts(self, suite: SuiteOverview, test: Test) -> bool:
        """Does the test match?"""
        owner = suite.loaded.suite
        text = " ".join(
            [test.id, test.name or "", test.description or "", owner.name if owner else ""]
            + [criterion.name for criterion in test.criteria]
        ).lower()
        if not all(word in text for word in self.words):
            return False
        return all(_matches(name, value, suite, test) for name, value in self.fields)


def _matches(name: str, value: str, suite: SuiteOverview, test: Test) -> bool:
    owner = suite.loaded.suite
    if name == "tag":
        return any(tag.lower() == value for tag in [*test.tags, *(owner.tags if owner else [])])
    if name == "category":
        return (test.category or "").startswith(value)
    if name == "agent":
        return value in ((test.agent or (owner.agent if owner else "")) or "").lower()
    if name == "suite":
        return value in (owner.name if owner else "").lower() or value in suite.loaded.path.name.lower()
    # Each letter filters, so the beginning of a word stands for it.
    summary = suite.summaries.get(test.id)
    if name == "flaky":
        return is_flaky(summary) == (value in _YES)
    state = outcome_of(summary) or "new"
    if state == "flaky" and summary is not None and value and summary.recent[-1].startswith(value):
        return True  # that its runs differ hides nothing of the last one
    return "review".startswith(value) if state == "needs_review" else state.startswith(value)


def _wrong(name: str, value: str) -> str:
    if name == "outcome" and not any(outcome.startswith(value) for outcome in OUTCOMES):
        return f"there is no outcome {one_line(value, 30)}; outcomes: {', '.join(OUTCOMES)}"
    if name == "category" and not any(category.startswith(value) for category in CATEGORIES):
        return f"there is no category {one_line(value, 30)}; categories: {', '.join(CATEGORIES)}"
    if name == "flaky" and value not in (*_YES, *_NO):
        return "flaky: needs yes or no"
    return ""


def _unknown(name: str, whole: str) -> str:
    near = closest(name, FIELDS)
    meant = f"did you mean {near}:?" if near else " ".join(f"{field}:" for field in FIELDS)
    return (
        f'there is no field {one_line(name, 20)}: ({meant}); to search for the text, quote it: "{one_line(whole, 30)}"'
    )
