"""Replies of judges that are no JSON: a number, yes or no, a line for each score, or what a pattern finds.

Each is read in one way or not at all. A figure that stands among other words is not read if the material has it in the
same words: a judge quotes what it judges (`judge_quotes.figure_is_quoted`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.core.phrasing import SHOWN, on_one_line
from agenteval_tui.grading.metrics.judge_quotes import figure_is_quoted
from agenteval_tui.grading.metrics.judge_reply import (
    LONGEST,
    THINK_MARK,
    Judgment,
    UnreadableError,
    judgment_in,
    unwrapped,
    without_thought,
)
from agenteval_tui.grading.metrics.judge_scale import NoScoreError, Scale
from agenteval_tui.grading.regex_search import Pattern, SlowPatternError, compile_pattern

if TYPE_CHECKING:
    import regex

Kind = Literal["json", "number", "yes_no", "lines", "pattern"]
KINDS: tuple[Kind, ...] = ("json", "number", "yes_no", "lines")
YES, NO = ("yes", "ja"), ("no", "nein")
OVERALL = ("overall score", "overall", "score")
"""What the line of the overall score is called, where the metric names no other."""
_FIGURE = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")
_IN_WORDS = re.compile(r"[0-9]+(?:[.,/:][0-9]+)*")
_WHOLLY_EMPHASISED = re.compile(r"(\*{1,3}|_{1,3})(?=[^\s*_])(.*[^\s*_])\1", re.DOTALL)
_LINE = re.compile(r"(?:[-*•+]\s+|[0-9]+[.)]\s+|#+\s+)?([^:：\n]{1,80}?)\s*(?:\([^()\n]{0,40}\)\s*)?[:：]\s*(.*)")
_SCORED = re.compile(
    r"([+-]?[0-9]+(?:\.[0-9]+)?)\s*(?:\.?$|(?:\s[-–—]+|[–—]+)(?!\s*[-+.]?[0-9])\s*(.*)|\((?![0-9])([^()]*)\)\.?$)"
)
_LABELS = 60  # words before a colon that may be a label
_WORDS_OF_LABEL = 5
_PROBED = ("4", "0.5", "10", "yes", "no", "pass", "fail", "ja", "nein", "true", "false")
_SLOW_S = 0.2
_REPEATED = 40
_ENDS = "\x00 abcdefghijklmnopqrstuvwxyz:./]"  # so that what must come at the end is there
_LITERAL = re.compile(r"[\w :=-]*(?![*+?{])")
_MANY = 50


class PatternReplyError(ValueError):
    """A pattern that can't read a judge's reply: why."""

    code = "judge-reply"
    position: int | None = None


class ReplyForm(Struct, frozen=True):
    """How a judge's reply is read. `words`: those of yes and of no; `overall`: names of the line of the overall score;
    `must_overall`: there must be one."""

    kind: Kind
    yes: tuple[str, ...] = YES
    no: tuple[str, ...] = NO
    overall: tuple[str, ...] = OVERALL
    must_overall: bool = False
    pattern: Pattern | None = None

    def verdict_of(self, word: str) -> bool | None:
        """What a word for yes or no says, whatever its case; None for another word."""
        if word.casefold() in map(str.casefold, self.yes):
            return True
        return False if word.casefold() in map(str.casefold, self.no) else None

    def remedy(self, scale: Scale, dimensions: Sequence[str]) -> str:
        """How the reply must look, for a judge whose reply could not be read."""
        if self.kind == "number":
            return f"as one number and nothing else: {scale.in_words}"
        if self.kind == "yes_no":
            return f"as one word and nothing else: {self.yes[0].upper()} or {self.no[0].upper()}"
        if self.kind == "lines":
            return f"with each score on a separate line, in this form:\n{self.lines_form(scale, dimensions)}"
        return "in the form that was asked for, with each score once"

    def lines_form(self, scale: Scale, dimensions: Sequence[str]) -> str:
        """The lines of a reply, as an example."""
        names = [*dimensions]
        if self.must_overall or not names:
            names.append(self.overall[0].title() if self.overall is OVERALL else self.overall[0])
        return "\n".join(f"{name}: {scale.example} - why" for name in names)

    def asked_for(self, scale: Scale, dimensions: Sequence[str]) -> str:
        """What a prompt says of the form, where it has {{reply_form}}."""
        if self.kind == "lines":
            return (
                f"Answer with one line for each score and nothing else, in this form:\n"
                f"{self.lines_form(scale, dimensions)}\nEach score is {scale.in_words}."
            )
        return f"Answer {self.remedy(scale, dimensions)}."


def read_reply(
    text: str, form: ReplyForm, scale: Scale, dimensions: Sequence[str], *, threshold: float, material: str
) -> Judgment:
    """The judgment in a reply that is no JSON. `threshold`: the least share 0..1 that passes; `material`: what was
    judged. Raises `UnreadableError`, `OffScaleError`, and `SlowPatternError`."""
    if len(text) > LONGEST:
        raise UnreadableError(f"the reply is longer than {LONGEST} characters")
    try:
        if form.kind == "pattern":
            return _by_pattern(
                without_thought(text.strip("\ufeff \t\r\n")), form, scale, dimensions, threshold, material
            )
        whole = unwrapped(text)
        if form.kind == "lines":
            return _by_lines(whole, form, scale, dimensions, threshold, material)
        whole = _without_emphasis(whole)
        return Judgment(_number(whole, scale) if form.kind == "number" else _yes_or_no(whole, form), {})
    except NoScoreError as problem:
        raise UnreadableError(str(problem)) from None


def _without_emphasis(text: str) -> str:
    """A text without the stars around all of it: they say nothing."""
    match = _WHOLLY_EMPHASISED.fullmatch(text)
    return text if match is None or match[1] in match[2] else match[2].strip()


def _number(text: str, scale: Scale) -> float:
    figure = text.removesuffix(".")
    if _FIGURE.fullmatch(figure) is not None:
        return scale.read(figure)
    figures = _IN_WORDS.findall(text)
    if not figures:
        raise UnreadableError(f"the reply is not a number: {_shown(text)}")
    if len(figures) > 1:
        raise UnreadableError(f"the reply has several numbers: {_shown(text)}")
    if figures[0] == figure.lstrip("+-"):
        raise UnreadableError(
            f"{_shown(text)} can be read in more than one way: write one number, like {scale.example}"
        )
    raise UnreadableError(f"the reply is more than a number: {_shown(text)}")


def _yes_or_no(text: str, form: ReplyForm) -> float:
    verdict = form.verdict_of(text.rstrip(".!").strip())
    if verdict is not None:
        return float(verdict)
    raise UnreadableError(f"the reply is neither {form.yes[0].upper()} nor {form.no[0].upper()}: {_shown(text)}")


# A line for each score


def _by_lines(
    text: str, form: ReplyForm, scale: Scale, dimensions: Sequence[str], threshold: float, material: str
) -> Judgment:
    if THINK_MARK.search(text):
        raise UnreadableError("there is a think tag among the lines of the reply")
    names = {_label(name): name for name in dimensions}
    overall = {_label(name) for name in form.overall} - names.keys()
    scores: dict[str, str] = {}
    stated: tuple[str, str] | None = None
    beside: dict[str, Any] = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line.replace("**", "").replace("__", "").strip())
        if match is None:
            continue
        label, value = _label(match[1]), match[2].strip()
        if label in names:
            name = names[label]
            if name in scores:
                raise UnreadableError(f"there are two scores for {_quoted(name)}")
            scores[name] = _figure_of(match[1], value, material)
        elif label in overall:
            if stated is not None:
                raise UnreadableError(f"there are two overall scores: {_quoted(stated[0])} and {_quoted(match[1])}")
            stated = match[1], _figure_of(match[1], value, material)
        elif len(label.split()) <= _WORDS_OF_LABEL and len(beside) < _LABELS:
            # Blanks behind the name keep a line whose label one before it has.
            beside[label + " " * sum(name.rstrip() == label for name in beside)] = value
    missing = [name for name in dimensions if name not in scores]
    if missing:
        raise UnreadableError(f"there is no line {_quoted(f'{missing[0]}: …')} with a score")
    if stated is None and (form.must_overall or not dimensions):
        raise UnreadableError(f"there is no line {_quoted(f'{form.overall[0]}: …')} with a score")
    reply = {**beside, "dimensions": scores, "reasoning": text}
    if stated is not None:
        reply["score"] = stated[1]
    return judgment_in(reply, scale, dimensions, threshold)


def _figure_of(label: str, value: str, material: str) -> str:
    """The score in what follows a label. Raises `UnreadableError`."""
    match = _SCORED.fullmatch(value)
    if match is None:
        raise UnreadableError(
            f"the score of {_quoted(label)} can't be read: {_shown(value) if value else 'there is none'}"
        )
    written = f"{label}: {match[1]}"
    if figure_is_quoted(written, len(written) - len(match[1]), len(written), material):
        raise UnreadableError(f"the line {_quoted(written)} is in what was judged: it may be a quote")
    return match[1]


def _label(text: str) -> str:
    return " ".join(re.sub(r"[*_`]+$|^[*_`]+", "", text.strip()).casefold().split())


# What a pattern finds


def reply_pattern(text: str, dimensions: Sequence[str]) -> Pattern:
    """A pattern that reads replies. Raises `PatternReplyError`, or `PatternError` for one that is none.

    It has a named group `score`, or one for each dimension, and perhaps `reasoning`.
    """
    pattern = compile_pattern(text)
    names = set(pattern.compiled.groupindex)
    if not names:
        raise PatternReplyError(
            f"{text!r} is neither {', '.join(KINDS[:-1])} or {KINDS[-1]}, nor a pattern with a group (?P<score>...)"
        )
    groups = {group_of(name) for name in dimensions}
    unknown = sorted(names - groups - {"score", "reasoning"})
    if unknown:
        listed = ", ".join(["score", "reasoning", *sorted(groups)])
        raise PatternReplyError(f"the group {unknown[0]!r} has no meaning here (known are {listed})")
    missing = sorted(groups - names)
    if missing:
        raise PatternReplyError(f"the pattern has no group for the dimension: write (?P<{missing[0]}>...)")
    if "score" not in names and not dimensions:
        raise PatternReplyError("the pattern has no group (?P<score>...)")
    _probe(pattern)
    return pattern


def group_of(dimension: str) -> str:
    """The name of the group of a dimension: its words, joined by `_`."""
    return re.sub(r"\W+", "_", dimension.strip()).strip("_").casefold()


@lru_cache(maxsize=256)
def _probe(pattern: Pattern) -> None:
    """Raises `PatternReplyError` for a pattern that would find a score in any text, or that can take forever."""
    compiled = pattern.compiled
    try:
        if compiled.search("", timeout=_SLOW_S) is not None:
            raise PatternReplyError("the pattern matches an empty text, so it would find a score in any reply")
        for word in _PROBED:
            if compiled.search(f"in words {word} of words", timeout=_SLOW_S) is not None:
                raise PatternReplyError(
                    f"the pattern finds a score in any text with {word!r}: write the words before the score, "
                    "or ^ and $ around it"
                )
        head = _LITERAL.match(pattern.body)
        begun = "" if head is None else head[0]
        # A repeated part that is repeated again shows on many of one character, with nothing behind them that fits.
        for character in dict.fromkeys([*"4a ", *(char for char in pattern.body if char.isalnum())]):
            for before in dict.fromkeys(("", begun, f"{begun}4 ")):
                compiled.search(f"{before}{character * _REPEATED}\x00", timeout=_SLOW_S)
                compiled.search(f"{before}{character * _REPEATED}{_ENDS}", timeout=_SLOW_S)
    except TimeoutError:
        raise PatternReplyError(
            "the pattern takes too long on a short text, since a repeated part is repeated again: "
            "write it without + or * inside of a group with + or *"
        ) from None


def _by_pattern(
    text: str, form: ReplyForm, scale: Scale, dimensions: Sequence[str], threshold: float, material: str
) -> Judgment:
    assert form.pattern is not None
    pattern = form.pattern
    if THINK_MARK.search(text):
        raise UnreadableError("there is a think tag among the words of the reply")
    groups = {group_of(name): name for name in dimensions}
    match = _only_match(pattern, text, [*groups, "score"])
    figures = {name: _captured(match, name, material) for name in [*groups, "score"] if name in match.groupdict()}
    reply: dict[str, Any] = {"dimensions": {groups[name]: _word(figures[name], form, scale) for name in groups}}
    if "score" in figures:
        reply["score"] = _word(figures["score"], form, scale)
    reply["reasoning"] = match.groupdict().get("reasoning") or text
    return judgment_in(reply, scale, dimensions, threshold)


def _only_match(pattern: Pattern, text: str, groups: Iterable[str]) -> regex.Match[str]:
    """The only match of the pattern. Raises `UnreadableError` for none or several, also where one lies inside the
    other, or before the figure that a greedy one took."""
    match = pattern.search(text)
    if match is None:
        raise UnreadableError("the pattern finds nothing in the reply")
    # Anchored: it can match at no other place.
    if "A" in pattern.flags:
        return match
    named = [name for name in groups if name in match.groupdict()]
    others = pattern.matches(text, 2)[1:]
    try:
        overlapping = pattern.compiled.finditer(text, overlapped=True, timeout=1.0)
        others += [overlap for _, overlap in zip(range(_MANY), overlapping, strict=False)]
        first = min((match.start(name) for name in named if match.start(name) >= 0), default=0)
        others += [earlier for earlier in (pattern.compiled.search(text[:first], timeout=1.0),) if earlier is not None]
    except TimeoutError:
        raise SlowPatternError(pattern.text) from None
    for other in others:
        for name in named:
            (start, end), (left, right) = match.span(name), other.span(name)
            if left >= 0 and not (start <= left and right <= end):
                both = f"{_quoted(match[name] or '')} and {_quoted(other[name])}"
                raise UnreadableError(f"the pattern finds several scores in the reply: {both}")
    return match


def _captured(match: regex.Match[str], name: str, material: str) -> str:
    spans = list(dict.fromkeys(match.spans(name)))
    if not spans:
        raise UnreadableError(f"the pattern finds no {name!r} in the reply")
    if len(spans) > 1:
        raise UnreadableError(f"the pattern finds several figures for {name!r} in the reply")
    start, end = spans[0]
    if _in_quotation(match) or figure_is_quoted(match.string, start, end, material):
        raise UnreadableError(f"{_quoted(match[name])} is in what was judged, in the same words: it may be a quote")
    return str(match[name]).strip()


def _in_quotation(match: regex.Match[str]) -> bool:
    before, after = match.string[: match.start()][-1:], match.string[match.end() :][:1]
    return (before != "" and before in "\"'“‘«„`") or (after != "" and after in "\"'”’»`")


def _word(figure: str, form: ReplyForm, scale: Scale) -> str | bool:
    """A figure as the scale reads it; on pass_fail also the words for yes and no."""
    verdict = form.verdict_of(figure) if scale.name == "pass_fail" else None
    return figure if verdict is None else verdict


def _shown(text: str) -> str:
    return repr(on_one_line(text, SHOWN))


def _quoted(text: str) -> str:
    return repr(on_one_line(text, 60))


def form_of(
    reply: str,
    yes: Sequence[str] | None,
    no: Sequence[str] | None,
    overall: str | None,
    dimensions: Mapping[str, str] | None,
) -> ReplyForm:
    """The form that a metric's properties name. Raises `PatternReplyError` and `PatternError`."""
    kind: Kind = next((form_kind for form_kind in KINDS if form_kind == reply), "pattern")
    form = ReplyForm(kind, tuple(yes or YES), tuple(no or NO))
    if overall is not None:
        form = replace(form, overall=(overall,), must_overall=True)
    return form if kind != "pattern" else replace(form, pattern=reply_pattern(reply, tuple(dimensions or ())))
