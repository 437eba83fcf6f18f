"""What people type to find runs, on the History screen and behind `agenteval history`: fields, and words to search."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agenteval_tui.history.rows import RunFilter

FIELDS = ("outcome", "agent", "test", "suite", "tag", "since", "before", "cause", "kind", "is")
NOT_PASSED = ("failed", "error", "cancelled", "needs_review")
_OUTCOMES = ("passed", "failed", "error", "skipped", "needs_review", "cancelled", "queued", "running")
_SAID = {"review": "needs_review", "errors": "error", "pass": "passed", "fail": "failed"}
_PART = re.compile(r'(\w+):("[^"]*"?|\S*)|("[^"]*"?|\S+)')
_AGE = re.compile(r"(\d{1,5})(min|h|d|w|mo|y)")
_MINUTES = {"min": 1, "h": 60, "d": 1440, "w": 10_080, "mo": 43_200, "y": 525_600}


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """What was typed: words for the full-text search, fields with values, and what is wrong with one of them."""

    words: str = ""
    fields: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> HistoryQuery:
        """Read what was typed. What is no field of ours is words; a field without a value (yet) is nothing."""
        words: list[str] = []
        fields: list[tuple[str, str]] = []
        for found in _PART.finditer(text):
            name, value, _ = found.groups()
            if name is not None and name.lower() in FIELDS:
                value = value.strip('"')
                if value:
                    fields.append((name.lower(), value))
            else:
                words.append(found.group())
        # A space at the end says that the last word is whole.
        return cls(" ".join(words) + (" " if words and text[-1:].isspace() else ""), tuple(fields))

    def __bool__(self) -> bool:
        return bool(self.words.strip() or self.fields)

    @property
    def problem(self) -> str:
        """What can't be understood, in a few words; "" for nothing."""
        for name, value in self.fields:
            if name == "outcome" and not _outcomes(value):
                return f"no outcome is called {value}"
            if name in ("since", "before") and moment(value, 0) is None:
                return f"{name}: takes 24h, 7d, 2w or a day such as 2026-11-01"
            if name == "kind" and value.lower() not in ("run", "import"):
                return "kind: takes run or import"
            if name == "is" and value.lower() not in ("baseline", "labelled", "import"):
                return "is: takes baseline, labelled or import"
        return ""

    def filter(self, now_ms: int, *, execution: str = "", failed_only: bool = False) -> RunFilter:
        """As the history understands it; what can't be understood lets nothing through that it would not."""
        outcomes: tuple[str, ...] = NOT_PASSED if failed_only else ()
        made: dict[str, Any] = {"tags": ()}
        for name, value in self.fields:
            word = value.lower()
            if name == "outcome":
                wanted = _outcomes(value)
                both = tuple(one for one in wanted if one in outcomes) if outcomes else wanted
                outcomes = both or ("none",)
            elif name in ("agent", "test", "suite", "cause"):
                made[f"{name}_part"] = value
            elif name == "tag":
                made["tags"] += (value,)
            elif name in ("since", "before"):
                made[f"{name}_ms"] = moment(value, now_ms)
            elif word in ("run", "import"):
                made["kind"] = word
            elif word in ("baseline", "labelled"):
                made[word] = True
        return RunFilter(text=self.words, execution_id=execution, outcomes=outcomes, **made)


def _outcomes(text: str) -> tuple[str, ...]:
    """The outcomes that one or several words (with commas) are the beginning of."""
    found: list[str] = []
    for word in text.lower().split(","):
        known = _SAID.get(word, word)
        found += [one for one in _OUTCOMES if word and one.startswith(known) and one not in found]
    return tuple(found)


def moment(text: str, now_ms: int) -> int | None:
    """The moment (milliseconds) that an age before now (24h, 7d) or a day stands for; None: neither."""
    found = _AGE.fullmatch(text.lower())
    if found:
        return now_ms - int(found.group(1)) * _MINUTES[found.group(2)] * 60_000
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return None
