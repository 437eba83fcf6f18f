"""What is wrong in a line of evidence, so that the same fault has the same name in every run.

A line says what was missed in words for one run: with what was found, where, and how near it was. Here it is reduced
to what it is about (a tool, an argument, a key) and in which way it is missed. Of metrics that are not known here, a
plug-in's, the condition alone is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from agenteval_tui.grading.results import Evidence

LONGEST = 120
"""Characters of a name or message that a cause keeps."""


class Way(NamedTuple):
    """`condition`: what was asked; `about`: a tool, an argument, a key, a label; `way`: how it was missed."""

    condition: str
    about: str = ""
    way: str = ""


def way_of(metric: str, line: Evidence) -> Way:
    """What a missed line of evidence of a metric type comes down to."""
    known = _WAYS.get(metric)
    condition, about, way = known(line) if known is not None else Way(line.condition)
    return Way(cut(condition), cut(about), cut(way))


def extraction_way(reason: str) -> str:
    """Why nothing was extracted, as a class: what the reason quotes and counts is left out."""
    said = reason.removeprefix("nothing extracted: ")
    return next((way for pattern, way in _EXTRACTION if pattern.search(said)), normalised(said.split("; ")[0]))


def normalised(message: str) -> str:
    """A message without what differs from run to run: numbers, ids, addresses, paths, quoted values; one line.

    An HTTP status stays: it is the class of the error.
    """
    text = " ".join(message.split())[: 8 * LONGEST]
    for pattern, instead in _VARYING:
        text = pattern.sub(instead, text)
    return cut(_NUMBERS.sub(lambda found: found[0] if found[1] else "N", text))


def cut(text: str) -> str:
    """`text` as long as a cause keeps it."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


_VARYING: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>)\]]+"), "URL"),
    (re.compile(r"\"[^\"]*\"|`[^`]*`|“[^”]*”|(?<!\w)'[^']*'(?!\w)"), "…"),
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "ID"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b|\b(?=[a-fA-F]*\d)(?=\d*[a-fA-F])[0-9a-fA-F]{8,}\b"), "ID"),
    (re.compile(r"\b[A-Za-z]+[_-](?=[A-Za-z]*\d)[A-Za-z0-9]{8,}\b"), "ID"),
    (re.compile(r"\b(?=[A-Z]*\d)(?=\d*[A-Z])[0-9A-Z]{16,}\b"), "ID"),
    (re.compile(r"(?<![\w.])(?:~|\.{1,2})?(?:/[\w.@+-]+)+/?"), "PATH"),
)
_NUMBERS = re.compile(
    r"((?:HTTP(?:/[\d.]+)?|status(?: code)?|answered(?: with)?|code) [1-5]\d\d\b)|\d+(?:[.,:]\d+)*", re.IGNORECASE
)
_EXTRACTION: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"^the final answer is empty"), "empty answer"),
    (re.compile(r"^the \S+ .*code block was asked for|^no [^:]*code block in the final"), "no code block"),
    (re.compile(r"^no complete .*code block"), "code block not closed"),
    (re.compile(r"^no match of|^the \S+ match of|takes no part in the match$"), "no match"),
    (re.compile(r"is no JSON"), "no JSON"),
    (re.compile(r"^`.*` (?:finds nothing|is null)"), "nothing at the path"),
    (re.compile(r"called no tool|was never called"), "tool not called"),
    (re.compile(r"^the result of |^no tool returned a list"), "no list in the result"),
)
_CALLED = re.compile(r"\bcalls? of (.+?)(?:, \d| differs | are )")
_MISSING = re.compile(r"(?:: |; |^)(\S+) is missing \(expected ")
_INDEX = re.compile(r"\[\d+\]")
_LISTED = re.compile(r"\[\d+\]|(?<=\.)\d+(?=\.|$)")
_KEYS = re.compile(r"`([^`]*)`")


def _base(condition: str) -> str:
    return condition.split("[", 1)[0]


def _tool_check(line: Evidence) -> Way:
    """Usage, arguments, forbidden tools. The tool's name stands first in what is said of it."""
    condition = line.condition
    if condition == "tool_call_forbidden":
        return Way(condition, "", "called")
    if condition.startswith("forbidden_tools"):
        return Way("forbidden_tools", str(line.expected), "called")
    if condition.endswith(".usage"):
        tool = line.reason.split(" was ", 1)[0]
        if line.found == 0:
            return Way("usage", tool, "never called")
        return Way("usage", tool, "called another number of times")
    names, way = _arguments(line)
    called = _CALLED.search(line.reason)
    tool = called[1] if called else line.reason.split(" was ", 1)[0]
    return Way("arguments", f"{tool}({', '.join(names)})" if names else tool, way)


def _arguments(line: Evidence) -> tuple[list[str], str]:
    """Which arguments are wrong, and whether they are other ones, missing or too many."""
    if "was never called" in line.reason:
        return [], "never called"
    if " are not valid JSON" in line.reason or " are no object" in line.reason:
        return [], "unreadable"
    given = [span.path for span in line.spans if span.kind == "arguments"]
    expected = line.expected if isinstance(line.expected, dict) else {}
    found = line.found if isinstance(line.found, dict) else None
    missing = [name for name in expected if name not in found] if found is not None else _MISSING.findall(line.reason)
    extra = [path for path in given if path.split(".", 1)[0] not in expected]
    other = [path for path in given if path not in extra]
    ways = [word for word, some in (("other value", other), ("missing", missing), ("not expected", extra)) if some]
    names = sorted({_LISTED.sub("[]", name) for name in (*other, *missing, *extra)})
    return names, ", ".join(ways) or "other value"


def _trajectory(line: Evidence) -> Way:
    condition, reason = line.condition, line.reason
    if condition.startswith("messages"):
        return Way("messages")
    if condition.startswith("calls[+"):
        return Way("calls", str(line.found), "not expected")
    if condition == "calls[more]":
        return Way("calls", "", "not expected")
    tool = str(line.expected).split("(", 1)[0] if isinstance(line.expected, str) else ""
    if " must not be called" in reason:
        return Way("calls", tool, "called")
    if condition == "calls":
        return Way("calls", "", "called" if line.group == "none" else "never called")
    if " call differs " in reason:
        names = sorted({_LISTED.sub("[]", span.path) for span in line.near if span.kind == "arguments"})
        return Way("calls", f"{tool}({', '.join(names)})" if names else tool, "other arguments")
    return Way("calls", tool, "at another place" if "; it is the " in reason else "never called")


def _json(line: Evidence) -> Way:
    base, reason = _base(line.condition), line.reason
    if base == "parses":
        return Way("parses", "", "no JSON")
    if base == "required_keys":
        return Way(base, str(line.expected), "missing")
    path = _LISTED.sub("[]", str(line.found or ""))
    if " missing in " in reason:
        keys = ", ".join(_KEYS.findall(reason.split(" missing in ", 1)[0]))
        return Way(base, keys, "missing")
    ways = (
        ("not of type", "another type"),
        ("not one of", "not one of the choices"),
        ("not expected", "not expected"),
        (" items, expected ", "too few items"),
        (" not at ", "out of bounds"),
    )
    way = next((word for part, word in ways if part in reason), "another value")
    return Way(base, path, way)


def _label(line: Evidence) -> Way:
    """A pair of labels is a cause: this one is taken for that one."""
    given = "" if line.found is None else str(line.found).strip()
    if not given:
        return Way(line.condition, str(line.expected), "no label")
    way = f"taken for {given}" if len(given) <= 40 and "\n" not in given else "no label but a text"
    return Way(line.condition, str(line.expected), way)


def _function(line: Evidence) -> Way:
    return Way(line.condition, "", normalised(line.reason))


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
