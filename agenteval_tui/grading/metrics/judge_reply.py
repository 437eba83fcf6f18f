"""What a judge answered, read out of its text.

A guess would be a verdict. Less one code fence or one think block, a reply is one JSON object, or a bare number where
the scale allows that. Around the object there may be sentences if it is the only one, is whole, and isn't in what
the judge was asked (`judge_quotes`). Text that a judge quotes can then never become its verdict.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from msgspec import Struct

from agenteval_tui.core.phrasing import cut
from agenteval_tui.grading.code_fences import whole_block
from agenteval_tui.grading.metrics.judge_claims import claims, parts
from agenteval_tui.grading.metrics.judge_question import ANSWER_TITLE
from agenteval_tui.grading.metrics.judge_quotes import is_quoted
from agenteval_tui.grading.metrics.judge_scale import NoScoreError, Scale, read_verdict

LONGEST = 200_000  # characters of a reply that are read
_BARE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*\.?")
# What stands around an object that is part of a larger JSON value, or of a text in quotation marks.
_INSIDE_BEFORE = ("[", '":', '"', "'", "“", "‘", "«", "„")
_INSIDE_AFTER = ("]", '"', "'", "”", "’", "»")
_FENCE_MARKS = ("```", "~~~")
_THINK = re.compile(r"<(think|thinking|thought|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
THINK_MARK = re.compile(r"</?(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_SCORE = ("score", "overall", "overall_score")
_PASS = ("pass", "passed", "verdict", "outcome")
_BY_DIMENSION = ("dimensions", "scores")
_READ_APART = frozenset((*_SCORE, *_PASS, *_BY_DIMENSION, "reasoning", "reason", "strengths", "weaknesses"))


class UnreadableError(ValueError):
    """The reply holds no judgment: why, in a few words."""


class _NotAloneError(UnreadableError):
    """The reply is not one JSON object, but may have one among sentences."""


class Judgment(Struct, frozen=True):
    """A judge's answer: scores on the scale itself, and its words."""

    score: float
    dimensions: Mapping[str, float]
    reasoning: str = ""
    strengths: tuple[str, ...] = ()
    weaknesses: tuple[str, ...] = ()


def read_judgment(
    text: str,
    scale: Scale,
    dimensions: Sequence[str] = (),
    *,
    threshold: float | None = None,
    question: str | None = None,
    material: str | None = None,
) -> Judgment:
    """The judgment in a reply. Raises `UnreadableError`, and `OffScaleError` for a score that is not on the scale.

    Without an overall score, the mean of the dimensions is it. Each of `dimensions` must have a score. `threshold` is
    the least share 0..1 that passes (default: the scale's own): a reply that also says in words whether the answer
    passes must not contradict its score. `question`: what the judge was asked, with the material. Without it, an object
    with sentences around it is not read. `material`: what of `question` is judged; default: all before its answer form.
    """
    if len(text) > LONGEST:
        raise UnreadableError(f"the reply is longer than {LONGEST} characters")
    least = scale.share(scale.threshold) if threshold is None else threshold
    try:
        try:
            bare_text = unwrapped(text)
            bare = _BARE.fullmatch(bare_text)
            if bare is not None and scale.name == "one_to_five" and not dimensions:
                return Judgment(scale.read(bare[1]), {})
            reply = _object(bare_text)
        except _NotAloneError:
            if question is None:
                raise
            shown_material = question.rpartition(ANSWER_TITLE)[0] if material is None else material
            reply = _only_object(text, question, shown_material)
        return judgment_in(reply, scale, dimensions, least)
    except NoScoreError as problem:
        raise UnreadableError(str(problem)) from None


def _only_object(text: str, question: str, material: str) -> Mapping[str, Any]:
    """The only JSON object of a reply, with sentences around it. Raises `UnreadableError`.

    A brace anywhere else may be the rest of a verdict that is cut off or broken, so the reply isn't read then.
    """
    thought = _THINK.match(text.lstrip("\ufeff \t\r\n"))
    if thought is not None:
        text = text.lstrip("\ufeff \t\r\n")[thought.end() :]
    if THINK_MARK.search(text):
        raise UnreadableError("there is a think tag among the sentences of the reply")
    start = text.find("{")
    if start < 0:
        raise UnreadableError("there is no JSON object in the reply")
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError:
        raise UnreadableError("the JSON object in the reply is not whole") from None
    except RecursionError:
        raise UnreadableError("the JSON is nested too deeply") from None
    # It is a ValueError, too.
    except UnreadableError:
        raise
    except ValueError:
        raise UnreadableError("the JSON has a number that is too long") from None
    before, after = text[:start].rstrip(), text[end:].lstrip()
    if "{" in after or "}" in before + after:
        raise UnreadableError("there is more than one JSON object in the reply")
    if before.endswith(_INSIDE_BEFORE) or after.startswith(_INSIDE_AFTER):
        raise UnreadableError("the JSON object in the reply is part of a list or a quotation")
    if is_quoted(text[start:end], value, question, material):
        raise UnreadableError("the only JSON object in the reply is a quote of what was asked")
    assert isinstance(value, dict)
    return value


def unwrapped(text: str) -> str:
    """The reply without the one fence around it, or the one think block before it. Raises `UnreadableError`."""
    text = text.strip("\ufeff \t\r\n")
    if not text:
        raise UnreadableError("the reply is empty")
    if text.startswith(_FENCE_MARKS):
        fenced = whole_block(text)
        if fenced is None:
            raise _NotAloneError("the reply is not one whole code block")
        text = text[fenced.inner_start : fenced.inner_end].strip()
        if text.startswith(_FENCE_MARKS):
            raise UnreadableError("there is a code block inside the code block")
        return text
    thoughtless = without_thought(text)
    if thoughtless != text and thoughtless.startswith(_FENCE_MARKS):
        raise _NotAloneError("after the think block stands a code block, not the bare JSON object")
    return thoughtless


def without_thought(text: str) -> str:
    """A reply that begins with its own words or a think tag, without the think block. Raises `UnreadableError`."""
    if THINK_MARK.match(text) is None:
        return text
    thought = _THINK.match(text)
    if thought is None:
        raise UnreadableError("the think block at the start does not end")
    if len(THINK_MARK.findall(text)) > 2:
        # Which of several ends is the judge's own can't be known: the judged text may hold one.
        raise UnreadableError("there are several think tags in the reply")
    text = text[thought.end() :].strip()
    if not text:
        raise UnreadableError("there is nothing after the think block")
    return text


def _object(text: str) -> Mapping[str, Any]:
    """The one JSON object that a text is. Raises `UnreadableError`."""
    try:
        reply = json.loads(text, object_pairs_hook=_agreeing, parse_constant=_no_constant)
    except json.JSONDecodeError as problem:
        if problem.msg == "Extra data":
            raise _NotAloneError("there is text after the JSON value") from None
        raise _NotAloneError("the reply is not one JSON object") from None
    except RecursionError:
        raise UnreadableError("the JSON is nested too deeply") from None
    # It is a ValueError, too.
    except UnreadableError:
        raise
    except ValueError:  # a whole number with thousands of digits
        raise UnreadableError("the JSON has a number that is too long") from None
    if not isinstance(reply, dict):
        raise UnreadableError("the reply is JSON, but not an object")
    return reply


def _agreeing(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of which no key is given twice with different values."""
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields and not _same(fields[name], value):
            raise UnreadableError(f"the key {_quoted(name)} is given twice, with different values")
        fields[name] = value
    return fields


def _same(value: object, other: object) -> bool:
    return type(value) is type(other) and bool(value == other)


def _no_constant(name: str) -> NoReturn:
    raise UnreadableError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_agreeing, parse_constant=_no_constant)


def judgment_in(reply: Mapping[str, Any], scale: Scale, dimensions: Sequence[str], threshold: float) -> Judgment:
    """The judgment in a reply's fields. Raises `UnreadableError`, `NoScoreError` and `OffScaleError`."""
    scores = _dimensions(reply, scale, dimensions, threshold)
    mean = sum(scores.values()) / len(scores) if scores else None
    score = _stated(reply, scale, threshold, mean, frozenset(dimensions))
    if score is None:
        raise UnreadableError("the JSON object has no `score`")
    apart = [scale.passes(score, threshold) for score in scores.values()] or list(parts(reply, scale, threshold))
    if apart and scale.passes(score, threshold) and not any(apart):
        # The other way round may be right: what the criteria ask for need not be one of the dimensions.
        raise UnreadableError("the score passes, and the score of each dimension fails: they contradict each other")
    return Judgment(
        score,
        scores,
        _text(reply.get("reasoning", reply.get("reason", ""))),
        _texts(reply.get("strengths")),
        _texts(reply.get("weaknesses")),
    )


def _dimensions(reply: Mapping[str, Any], scale: Scale, names: Sequence[str], threshold: float) -> dict[str, float]:
    if not names:
        return {}
    holders = [reply[name] for name in _BY_DIMENSION if isinstance(reply.get(name), Mapping)] or [reply]
    scores: dict[str, float] = {}
    for name in names:
        for holder in holders:
            entry = holder.get(name)
            if isinstance(entry, Mapping):  # {"helpful": {"score": 4, "reasoning": "..."}}
                score = _stated(entry, scale, threshold, None)
            else:
                score = None if entry is None else scale.read(entry)
            if score is not None and scores.setdefault(name, score) != score:
                raise UnreadableError(f"there are two different scores for the dimension {_quoted(name)}")
        if name not in scores:
            raise UnreadableError(f"there is no score for the dimension {_quoted(name)}")
    return scores


def _stated(
    reply: Mapping[str, Any],
    scale: Scale,
    threshold: float,
    otherwise: float | None,
    dimensions: frozenset[str] = frozenset(),
) -> float | None:
    """The score that an object states, else `otherwise`; None: none. Raises when two of its fields contradict.
    `dimensions`: names of fields that have a score of their own."""
    scores: dict[str, float] = {}
    verdicts: dict[str, bool] = {}
    for name, value in reply.items():
        folded = name.strip().lower()  # "Score" beside "score" may contradict it, and is not read alone
        if folded in _SCORE and value is not None:
            scores[name] = scale.read(value)
        elif folded in _PASS and value is not None:
            verdicts[name] = read_verdict(value)
    if len(set(scores.values())) > 1:
        raise UnreadableError(f"{_listed(scores)} contradict each other")
    score = next((scores[name] for name in _SCORE if name in scores), otherwise)
    if score is None and scale.name == "pass_fail":
        score = next((float(verdicts[name]) for name in _PASS if name in verdicts), None)
    if score is None:
        return None
    passed, share = scale.passes(score, threshold), scale.share(score)
    against = [name for name, verdict in verdicts.items() if verdict is not passed]
    beside = claims(reply, scale, threshold, _READ_APART | dimensions)
    against += [claim.name for claim in beside if not claim.agrees(passed, share)]
    if against:
        raise UnreadableError(f"{_listed([*(scores or ['the score']), *against])} contradict each other")
    return score


def _listed(names: Iterable[str]) -> str:
    return " and ".join(name if " " in name else f"`{name}`" for name in names)


def _quoted(name: str) -> str:
    return repr(cut(name, 60))


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,) if value.strip() else ()
    return tuple(_text(text) for text in value) if isinstance(value, list) else ()
