"""What is contradictory or without effect in the properties of a TextMatch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agenteval_tui.grading.metrics.metric import Finding
from agenteval_tui.grading.placeholders import has_placeholders
from agenteval_tui.grading.words import quoted

if TYPE_CHECKING:
    from agenteval_tui.grading.metrics.text_match import TextMatch

Path = tuple[str | int, ...]

_LISTS = ("contains_all", "contains_any", "not_contains_any", "starts_with_any", "ends_with_any")
_SINGLE = ("contains", "contains_ignore_case", "starts_with", "ends_with")


def findings_of(metric: TextMatch) -> Iterator[Finding]:
    """Checks nothing, contradictory, without effect.

    What holds a placeholder is not known yet: nothing is said of it.
    """
    yield from _empty(metric)
    metric = _without_placeholders(metric)
    yield from _forbidden_and_required(metric)
    yield from _equals_against_the_rest(metric)
    yield from _sides(metric)
    yield from _implied(metric)


def _empty(metric: TextMatch) -> Iterator[Finding]:
    for name in _LISTS:
        needles = getattr(metric, name)
        if needles is None:
            continue
        if not needles:
            yield Finding("warning", "checks-nothing", f"`{name}` is empty: it checks nothing", (name,))
        for number, needle in enumerate(needles):
            if not needle:
                yield Finding("warning", "checks-nothing", "an empty text is ignored here", (name, number))
            elif needle in needles[:number]:
                yield Finding("info", "duplicate", f"{quoted(needle)} is in the list already", (name, number))
    for name in _SINGLE:
        if getattr(metric, name) == "":
            yield Finding("warning", "checks-nothing", f"`{name}` is empty: it is ignored", (name,))
    if metric.checks_nothing():
        yield Finding("warning", "checks-nothing", "this TextMatch has no condition: it checks nothing")


def _without_placeholders(metric: TextMatch) -> TextMatch:
    names = [name for name in metric.model_fields_set if has_placeholders(getattr(metric, name))]
    return metric.model_copy(update=dict.fromkeys(names)) if names else metric


def _required(metric: TextMatch) -> Iterator[tuple[str, Path, bool]]:
    """Texts that must be in the value: the text, where it is written, whether its case does not matter."""
    for name in ("equals", "contains", "starts_with", "ends_with"):
        needle = getattr(metric, name)
        if needle:
            yield needle, (name,), False
    for name in ("equals_ignore_case", "contains_ignore_case"):
        needle = getattr(metric, name)
        if needle:
            yield needle, (name,), True
    for number, needle in enumerate(metric.contains_all or ()):
        if needle:
            yield needle, ("contains_all", number), False
    for name in ("contains_any", "starts_with_any", "ends_with_any"):
        needles = [needle for needle in getattr(metric, name) or () if needle]
        if len(needles) == 1:
            yield needles[0], (name,), False


def _forbidden_and_required(metric: TextMatch) -> Iterator[Finding]:
    required = list(_required(metric))
    for number, forbidden in enumerate(metric.not_contains_any or ()):
        if not forbidden:
            continue
        path: Path = ("not_contains_any", number)
        for needle, where, ignore_case in required:
            # A text in any case contains the forbidden one only perhaps, unless it has no case.
            held = forbidden in needle and (not ignore_case or forbidden.lower() == forbidden.upper())
            if held:
                both = "both required and forbidden" if forbidden == needle else f"forbidden, but part of `{where[0]}`"
                yield Finding("error", "contradictory", f"{quoted(forbidden)} is {both}: this can never pass", path)
                break
        else:
            for name in ("contains_any", "starts_with_any", "ends_with_any"):
                needles = [needle for needle in getattr(metric, name) or () if needle]
                if len(needles) > 1 and all(forbidden in needle for needle in needles):
                    text = f"{quoted(forbidden)} is forbidden, but part of each text in `{name}`: this can never pass"
                    yield Finding("error", "contradictory", text, path)
                    break


def _equals_against_the_rest(metric: TextMatch) -> Iterator[Finding]:
    for name in ("equals", "equals_ignore_case"):
        whole = getattr(metric, name)
        if whole is None:
            continue
        fold = str.lower if name == "equals_ignore_case" else str
        text = fold(whole)
        for other, kind in (("contains", "contains"), ("starts_with", "starts_with"), ("ends_with", "ends_with")):
            needle = getattr(metric, other)
            if needle and not _holds(kind, text, fold(needle)):
                yield _against(name, other, whole)
        for other, kind in (
            ("contains_any", "contains"),
            ("starts_with_any", "starts_with"),
            ("ends_with_any", "ends_with"),
        ):
            needles = [needle for needle in getattr(metric, other) or () if needle]
            if needles and not any(_holds(kind, text, fold(needle)) for needle in needles):
                yield _against(name, other, whole)
        for number, needle in enumerate(metric.contains_all or ()):
            if needle and fold(needle) not in text:
                yield _against(name, "contains_all", whole, number)
        if metric.contains_ignore_case and metric.contains_ignore_case.lower() not in whole.lower():
            yield _against(name, "contains_ignore_case", whole)
    if (
        metric.equals is not None
        and metric.equals_ignore_case is not None
        and metric.equals.lower() != metric.equals_ignore_case.lower()
    ):
        yield _against("equals", "equals_ignore_case", metric.equals)


def _holds(kind: str, text: str, needle: str) -> bool:
    if kind == "contains":
        return needle in text
    return text.startswith(needle) if kind == "starts_with" else text.endswith(needle)


def _against(name: str, other: str, whole: str, *more: int) -> Finding:
    text = f"`{other}` does not hold of the text that `{name}` wants ({quoted(whole, 40)}): this can never pass"
    return Finding("error", "contradictory", text, (other, *more))


def _sides(metric: TextMatch) -> Iterator[Finding]:
    for one, many, kind in (("starts_with", "starts_with_any", "begin"), ("ends_with", "ends_with_any", "end")):
        single = getattr(metric, one)
        needles = [needle for needle in getattr(metric, many) or () if needle]
        if not single or not needles:
            continue
        if kind == "begin":
            fits = any(single.startswith(needle) or needle.startswith(single) for needle in needles)
        else:
            fits = any(single.endswith(needle) or needle.endswith(single) for needle in needles)
        if not fits:
            text = f"no text can {kind} with `{one}` and with one of `{many}`: this can never pass"
            yield Finding("error", "contradictory", text, (many,))


def _implied(metric: TextMatch) -> Iterator[Finding]:
    if metric.equals is None:
        return
    given = {name for name in metric.model_fields_set if getattr(metric, name) is not None}
    given -= {"equals", "name", "weight"}
    if given and not list(_equals_against_the_rest(metric)):
        names = ", ".join(f"`{name}`" for name in type(metric).model_fields if name in given)
        yield Finding("info", "without-effect", f"`equals` says it all: {names} can change nothing", ("equals",))
