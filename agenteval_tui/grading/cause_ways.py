"""What is wrong in a line of evidence, so that the same fault has the same name in every run.

A line says what was missed in one run: with what was found, where, and how near it was. Here its code and fields are
reduced to what it is about (a tool, an argument, a key) and in which way it is missed; no sentence is read. Of metrics
that are not known here, a plug-in's, the condition alone is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.results import Evidence
from agenteval_tui.grading.sentences import dotted
from agenteval_tui.text.fingerprint import cut, fingerprint


class Way(NamedTuple):
    """`condition`: what was asked; `about`: a tool, an argument, a key, a label; `way`: how it was missed."""

    condition: str
    about: str = ""
    way: str = ""


def way_of(metric: str, line: Evidence) -> Way:
    """What a missed line of evidence of a metric type comes down to."""
    known = _WAYS.get(metric)
    try:
        condition, about, way = known(line) if known is not None else Way(line.condition)
    except (LookupError, TypeError, ValueError, AttributeError):
        condition, about, way = Way(line.condition)  # fields that are not ours: of a file, or a newer program
    return Way(cut(condition), cut(about), cut(way))


def extraction_way(line: Evidence) -> str:
    """Why nothing was extracted, as a class."""
    known = _EXTRACTION.get(line.code)
    if known is not None:
        return known
    given = line.message or str(line.fields.get("message") or "")
    return fingerprint(given) if given or line.code in _NO_CLASS else str(line.code)


def error_way(code: str, fields: Mapping[str, Any], message: str) -> Way:
    """Why a check could not be made: its code; of what others say (an exception, a server, a plug-in) also their
    message without what differs from run to run."""
    if code == Code.BROKE:
        return Way(code, "", fingerprint(f"{fields.get('type')}: {fields.get('message')}"))
    if message or code in _NO_CLASS:
        return Way("", "", fingerprint(message or str(fields.get("message") or "")))
    return Way(code, cut(str(fields.get("measure") or "")))


_EXTRACTION: dict[str, str] = {
    Code.EMPTY_ANSWER: "empty answer",
    Code.NO_CODE_BLOCK: "no code block",
    Code.UNCLOSED_CODE_BLOCK: "code block not closed",
    Code.NO_PATTERN_MATCH: "no match",
    Code.NOT_JSON: "no JSON",
    Code.NOTHING_AT_PATH: "nothing at the path",
    Code.NEVER_CALLED: "tool not called",
    Code.NO_LIST: "no list in the result",
}
_NO_CLASS = frozenset(
    {"", Code.MESSAGE, Code.NOTHING_EXTRACTED, Code.BAD_CONFIG, Code.ASKING_FAILED, Code.UNUSABLE_REPLY}
)
"""Codes that say only who speaks: what is wrong stands in the message."""
_INDEX = re.compile(r"\[\d+\]")
_LISTED = re.compile(r"\[\d+\]|(?<=\.)\d+(?=\.|$)")
_KEYS = 6  # of those that are missing together, as many as a cause names


def _base(condition: str) -> str:
    return condition.split("[", 1)[0]


def _tool_check(line: Evidence) -> Way:
    """Usage, arguments, forbidden tools."""
    fields = line.fields
    tool = str(fields.get("tool") or "")
    if fields.get("forbidden"):
        return Way("forbidden_tools", tool, "called") if tool else Way("tool_call_forbidden", "", "called")
    if line.code in (Code.TOO_FEW, Code.TOO_MANY):
        return Way("usage", tool, "called another number of times")
    if line.code == Code.NEVER_CALLED:
        return Way("arguments" if fields.get("arguments_of") else "usage", tool, "never called")
    if line.code == Code.UNREADABLE:
        return Way("arguments", tool, "unreadable")
    if line.code == Code.MESSAGE:
        return Way(_part(line.condition))  # of a history that had no codes yet
    names, way = _arguments(fields.get("arguments") or ())
    return Way("arguments", f"{tool}({', '.join(names)})" if names else tool, way)


def _part(condition: str) -> str:
    """The part of a ToolCheck that a condition is of: `tools[1].arguments[2]` is of the arguments."""
    return _base(condition.rsplit(".", 1)[-1])


def _arguments(differing: Sequence[Mapping[str, Any]]) -> tuple[list[str], str]:
    """Which arguments are wrong, and whether they are other ones, missing or too many."""
    by_kind: dict[str, list[str]] = {"differs": [], "missing": [], "extra": []}
    for one in differing:
        by_kind.get(one["is"], []).append(one["path"])
    ways = [said for kind, said in _ARGUMENT_WAYS.items() if by_kind[kind]]
    names = sorted({_LISTED.sub("[]", path) for paths in by_kind.values() for path in paths})
    return names, ", ".join(ways) or "other value"


_ARGUMENT_WAYS = {"differs": "other value", "missing": "missing", "extra": "not expected"}


def _trajectory(line: Evidence) -> Way:
    fields = line.fields
    if line.group == "messages":
        return Way("messages")
    if line.code == Code.MESSAGE:
        return Way("calls")
    tool = str(fields.get("tool") or "")
    near = fields.get("near_call") or {}
    if line.code == Code.DIFFERS:
        wrong = [one["argument"] for one in near.get("arguments") or () if one["is"] in ("differs", "extra")]
        names = sorted({_LISTED.sub("[]", name) for name in wrong})
        return Way("calls", f"{tool}({', '.join(names)})" if names else tool, "other arguments")
    return Way("calls", tool, _CALL_WAYS.get(line.code, "never called"))


_CALL_WAYS: dict[str, str] = {
    Code.UNEXPECTED: "not expected",
    Code.CALLED: "called",
    Code.OUT_OF_PLACE: "at another place",
}


def _json(line: Evidence) -> Way:
    base, fields = _base(line.condition), line.fields
    if line.code == Code.NOT_JSON or base == "parses":
        return Way("parses", "", "no JSON")
    if line.code == Code.MESSAGE:
        return Way(base)
    if line.code == Code.MISSING:
        names = [str(key) for key in fields.get("keys") or (fields.get("key"),)]
        return Way(base, ", ".join(names[:_KEYS]), "missing")
    return Way(base, _LISTED.sub("[]", dotted(fields.get("path") or ())), _JSON_WAYS.get(line.code, "another value"))


_JSON_WAYS: dict[str, str] = {
    Code.WRONG_TYPE: "another type",
    Code.NOT_A_CHOICE: "not one of the choices",
    Code.UNEXPECTED: "not expected",
    Code.TOO_FEW: "too few items",
    Code.OUT_OF_BOUNDS: "out of bounds",
}


def _label(line: Evidence) -> Way:
    """A pair of labels is a cause: this one is taken for that one."""
    given = "" if line.found is None else str(line.found).strip()
    if not given:
        return Way(line.condition, str(line.expected), "no label")
    way = f"taken for {given}" if len(given) <= 40 and "\n" not in given else "no label but a text"
    return Way(line.condition, str(line.expected), way)


def _function(line: Evidence) -> Way:
    """What a function itself says of why it is not content; that it returned something says nothing."""
    return Way(line.condition, "", fingerprint(line.message or str(line.fields.get("message") or "")))


def _without_index(line: Evidence) -> Way:
    return Way(_INDEX.sub("", line.condition))


_WAYS: dict[str, Callable[[Evidence], Way]] = {
    "ToolCheck": _tool_check,
    "Trajectory": _trajectory,
    "Json": _json,
    "Classification": _label,
    "Python": _function,
    "Human": _without_index,
}
