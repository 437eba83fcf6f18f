"""Writes the tables of docs/uxon.md from the parser and the matchers; the text around them is written by hand.

python docs/make_uxon.py

A table stands between `<!-- made: NAME -->` and `<!-- end -->`: what the parser makes of texts, what it says of
mistakes, and which values each matcher accepts.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from agenteval_tui.grading.metrics.matchers import MATCHER_DOCS, NAMES, compile_matcher
from agenteval_tui.uxon.parse import parse

PAGE = Path(__file__).with_name("uxon.md")
_TABLE = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

# What is accepted, in words, and an example.
ACCEPTED = {
    "JSON": '{"equals": "yes", "at": [1, 2.5, true, null]}',
    "a comment to the end of the line": '{"equals": "yes"} // why',
    "a comment between marks": '{/* why */ "equals": "yes"}',
    "a comment as a property": '{"//": "why", "equals": "yes"}',
    "a part that is switched off": '{"equals": "yes", "/*": 0, "contains": "x", "*/": 0}',
    "a list of lines as one text": '{"equals": ["// Multiline text delimited by `, `", "one", "two"]}',
}
# What is an error or a warning: it is read as it was probably meant, and the fix can be applied by a key.
MISTAKES = (
    '{"equals": "yes",}',
    '{equals: "yes"}',
    "{'equals': 'yes'}",
    '{"equals": "yes" "contains": "y"}',
    '{"equals": True}',
    '{"min": .5}',
    '{"equals": {{expected_value}}}',
    '"equals": "yes"',
    '{"equals": "yes"',
)
# For each matcher: how it is written, a value that it accepts, and one that it does not.
MATCHED: dict[str, tuple[Any, Any, Any]] = {
    "$any": ({"$any": True}, 17, ...),
    "$contains": ({"$contains": "W10"}, "#W1042", "#A7"),
    "$ignore_case": ({"$ignore_case": "berlin"}, "Berlin", "Bern"),
    "$regex": ({"$regex": r"^#W\d+$"}, "#W1042", "W1042"),
    "$one_of": ({"$one_of": ["broken", {"$contains": "defect"}]}, "defective", "late"),
    "$optional": ({"$optional": 5}, 5, 6),
    "$gt": ({"$gt": 0}, 1, 0),
    "$gte": ({"$gte": 0}, 0, -1),
    "$lt": ({"$lt": 10}, 9.5, 10),
    "$lte": ({"$gte": 1, "$lte": 10}, 10, 11),
    "$not": ({"$not": "admin"}, "guest", "admin"),
    "$type": ({"$type": "number"}, 3, "3"),
    "$literal": ({"$literal": {"$gte": 5}}, {"$gte": 5}, 5),
}


def page(text: str) -> str:
    """The page with its tables made anew."""
    made = {"accepted": accepted, "mistakes": mistakes, "matchers": matchers}
    return _TABLE.sub(lambda found: f"{found[1]}{made[found[2]]()}{found[3]}", text)


def accepted() -> str:
    """What the parser takes without a complaint. Raises `ValueError` for a text that it complains of."""
    rows = []
    for what, text in ACCEPTED.items():
        document = parse(text)
        if document.diagnostics:
            raise ValueError(f"{text}: {document.diagnostics[0].message}")
        rows.append((what, _code(text), _code(_json(document.value))))
    return _table(("what", "written", "means"), rows)


def mistakes() -> str:
    """What the parser says of texts, and what it reads. Raises `ValueError` for one that it says nothing of."""
    rows = []
    for text in MISTAKES:
        document = parse(text)
        if not document.diagnostics:
            raise ValueError(f"nothing is wrong in {text}")
        one = document.diagnostics[0]
        rows.append((_code(text), one.severity, one.message, one.fix.title if one.fix else ""))
    return _table(("written", "severity", "message", "fix"), rows)


def matchers() -> str:
    """Each matcher with a value that it accepts and one that it does not. Raises `ValueError` where that is not so."""
    rows = []
    for name in NAMES:
        written, right, wrong = MATCHED[name]
        holds = compile_matcher(written, named=True).holds
        if not holds(right) or (wrong is not ... and holds(wrong)):
            raise ValueError(f"{name}: {written} does not tell {right!r} from {wrong!r}")
        other = "(absent)" if wrong is ... else _code(_json(wrong))
        rows.append((f"`{name}`", MATCHER_DOCS[name], _code(_json(written)), _code(_json(right)), other))
    return _table(("matcher", "accepts", "written", "fits", "does not fit"), rows)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join(
        [*lines, *(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows), ""]
    )


def _code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
