"""What may relax a TextMatch: each failing condition with the changes that could make it hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agenteval_tui.core.phrasing import quoted
from agenteval_tui.grading.relax.changes import Change, ConfigEdit, Path, entry_removal, missed_properties
from agenteval_tui.grading.results import Evidence, MetricResult

_ANY = {"contains": "contains_any", "starts_with": "starts_with_any", "ends_with": "ends_with_any"}
_LONGEST_WHOLE = 500
"""Characters of an answer that may become the expectation as a whole."""
_SHORTEST_PIECE = 4
_ALIKE = 70.0


def text_changes(at: Path, raw: Mapping[str, Any], result: MetricResult, text: str) -> Iterator[tuple[str, Change]]:
    """For each failing condition (a key) the changes that could fix it. `raw` is the metric as it is written."""
    for line, name, index in missed_properties(raw, result):
        for change in _of(at, raw, name, index, line, text):
            yield f"{at}{line.condition}", change


def _of(
    at: Path, raw: Mapping[str, Any], name: str, index: int | None, evidence: Evidence, text: str
) -> Iterator[Change]:
    path = (*at, name)
    if name == "not_contains_any" and index is not None:
        yield _without(raw, at, name=name, index=index, evidence=evidence, cost=11.0, verb="allow")
        return
    if name == "contains_all" and index is not None:
        yield from _of_all(at, raw, index, evidence, text)
        return
    if name in ("contains_any", "starts_with_any", "ends_with_any"):
        yield from _variants(path, raw[name], evidence, name, text)
    elif name in ("equals", "equals_ignore_case"):
        yield from _of_equals(at, raw, name, evidence, text)
    else:
        yield from _of_one(at, raw, name, evidence, text)
    yield Change(f"drop `{name}`", (ConfigEdit("remove", path),), 3.0)


def _of_one(at: Path, raw: Mapping[str, Any], name: str, evidence: Evidence, text: str) -> Iterator[Change]:
    """`contains`, `contains_ignore_case`, `starts_with`, `ends_with`."""
    path, written = (*at, name), raw[name]
    needle = str(evidence.expected)
    if name == "contains":
        yield from _renamed(raw, path, "ignore case", "contains_ignore_case", 1.1)
    many = _ANY.get(name.removesuffix("_ignore_case"), "")
    for variant in _found(evidence):
        if many not in raw:
            ops = (ConfigEdit("set", path, [written, variant]), ConfigEdit("rename", path, many))
            yield Change(f"also accept {quoted(variant, 40)}: `{many}`", ops, 1.4)
    if name in ("starts_with", "ends_with"):
        where = "at the beginning" if name == "starts_with" else "at the end"
        title = f"anywhere, not only {where}"
        yield from _renamed(raw, path, title, "contains", 1.8)
        yield from _renamed(raw, path, f"{title}, in any case", "contains_ignore_case", 1.9)
    if piece := _common(needle, text, name):
        yield Change(
            f"look for less: {quoted(piece, 40)}", (ConfigEdit("set", path, piece),), 2.2 - len(piece) / len(needle)
        )


def _renamed(raw: Mapping[str, Any], path: Path, title: str, name: str, cost: float) -> Iterator[Change]:
    """The same text under the property `name`; nothing where the metric has that one already."""
    if name not in raw:
        yield Change(f"{title}: `{name}`", (ConfigEdit("rename", path, name),), cost)


def _of_equals(at: Path, raw: Mapping[str, Any], name: str, evidence: Evidence, text: str) -> Iterator[Change]:
    path = (*at, name)
    if name == "equals":
        yield from _renamed(raw, path, "ignore case", "equals_ignore_case", 1.1)
    # Every text contains the empty one: that would check nothing.
    if evidence.expected:
        if name == "equals":
            yield from _renamed(raw, path, "anywhere in the text", "contains", 1.8)
        yield from _renamed(raw, path, "anywhere in the text, in any case", "contains_ignore_case", 1.9)
    if len(text) <= _LONGEST_WHOLE and "{{" not in text:
        yield Change(f"expect what was said: {quoted(text, 40)}", (ConfigEdit("set", path, text),), 2.4)


def _of_all(at: Path, raw: Mapping[str, Any], index: int, evidence: Evidence, text: str) -> Iterator[Change]:
    listed = raw["contains_all"]
    path = (*at, "contains_all")
    needle = str(evidence.expected)
    for variant in _found(evidence):
        title = f"write {quoted(variant, 40)} for {quoted(needle, 40)}"
        # Another expectation, not a wider one: what passed until now may fail with it.
        yield Change(title, (ConfigEdit("set", (*path, index), variant),), 2.4)
    if needle.lower() in text.lower():
        gone = entry_removal(at, "contains_all", index, len(listed))
        if "contains_ignore_case" not in raw:
            ops = (ConfigEdit("set", (*at, "contains_ignore_case"), listed[index]), gone)
            yield Change(f"ignore case for {quoted(needle, 40)}: `contains_ignore_case`", ops, 1.3)
        # The property holds one text; a second text needs a separate metric.
        own = {"type": "TextMatch", "contains_ignore_case": listed[index]}
        title = f"ignore case for {quoted(needle, 40)}: a separate TextMatch"
        yield Change(title, (ConfigEdit("append", ("metrics",), own), gone), 1.5)
    if piece := _common(needle, text, "contains"):
        title = f"look for less than {quoted(needle, 40)}: {quoted(piece, 40)}"
        yield Change(title, (ConfigEdit("set", (*path, index), piece),), 2.3 - len(piece) / len(needle))
    yield _without(raw, at, name="contains_all", index=index, evidence=evidence, cost=2.0, verb="no longer require")
    yield Change("drop `contains_all`", (ConfigEdit("remove", path),), 3.5)
    if len([entry for entry in listed if entry]) > 1 and "contains_any" not in raw:
        # One op for all the needles that are missing: the same change fixes each of them.
        title = "one is enough: `contains_any`"
        yield Change(title, (ConfigEdit("rename", path, "contains_any"),), 2.6)
        for variant in _found(evidence):
            ops = (ConfigEdit("append", path, variant), ConfigEdit("rename", path, "contains_any"))
            yield Change(f"one is enough, or {quoted(variant, 40)}: `contains_any`", ops, 2.9)


def _variants(path: Path, listed: Any, evidence: Evidence, name: str, text: str) -> Iterator[Change]:
    for variant in _found(evidence):
        yield Change(f"also accept {quoted(variant, 40)}", (ConfigEdit("append", path, variant),), 1.4)
    if name == "contains_any" and isinstance(evidence.expected, list):
        lowered = text.lower()
        for needle in evidence.expected[:20]:
            place = lowered.find(needle.lower())
            if place >= 0 and len(lowered) == len(text):
                variant = text[place : place + len(needle)]
                if variant not in listed and "{{" not in variant:
                    title = f"also accept {quoted(variant, 40)}, as it is written in the answer"
                    yield Change(title, (ConfigEdit("append", path, variant),), 1.2)
                return


def _found(evidence: Evidence) -> Iterator[str]:
    """The piece of the text that came nearest, as another text to accept; nothing that is quite another text."""
    text = evidence.found
    if not isinstance(text, str) or not text.strip() or text.endswith("…") or "{{" in text:
        return
    from rapidfuzz import fuzz

    needles = evidence.expected if isinstance(evidence.expected, list) else [evidence.expected]
    if max(fuzz.ratio(text.lower(), str(needle).lower()) for needle in needles[:20]) >= _ALIKE:
        yield text


def _without(
    raw: Mapping[str, Any], at: Path, name: str, index: int, evidence: Evidence, cost: float, verb: str
) -> Change:
    removal = entry_removal(at, name, index, len(raw[name]))
    return Change(f"{verb} {quoted(str(evidence.expected), 40)}", (removal,), cost)


def _common(needle: str, text: str, name: str) -> str:
    """The longest piece of the needle that is where it must be, if it is half of the needle, in whole words."""
    text, target = (text.lower(), needle.lower()) if name.endswith("_ignore_case") else (text, needle)
    if len(needle) > 300 or len(target) != len(needle):
        return ""
    words = [match.span() for match in re.finditer(r"\S+", needle)]
    best = ""
    for first in range(len(words)):
        for last in range(len(words) - 1, first - 1, -1):
            start, end = words[first][0], words[last][1]
            if end - start <= max(len(best), _SHORTEST_PIECE - 1, len(needle) // 2 - 1):
                break
            if _fits(target[start:end], text, name):
                best = needle[start:end]
                break
    return "" if best == needle or "{{" in best else best


def _fits(piece: str, text: str, name: str) -> bool:
    if name == "starts_with":
        return text.startswith(piece)
    return text.endswith(piece) if name == "ends_with" else piece in text
