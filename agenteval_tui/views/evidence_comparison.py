"""Evidence as a comparison: what was expected above what was found, with the place where they part.

Made of the codes and fields of the evidence alone. Screens and `agenteval why` lay it out; where nothing can be
compared there is no comparison, and a sentence says what there is to say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from unicodedata import category, combining, normalize
from unicodedata import name as unicode_name

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.core.common_prefix import common_end, common_start
from agenteval_tui.core.numbers import count
from agenteval_tui.core.phrasing import cut, listed, nth
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.metrics.matchers import same_json
from agenteval_tui.grading.near_miss import BEFORE
from agenteval_tui.grading.results import FOUND, Evidence, may_be_cut
from agenteval_tui.grading.sentences import LITERAL_NOTE, dotted_path, would_match

MOST = 12
"""Differences of one line of evidence that are shown; the others are counted."""
_SHORT = 24
_MOST_ENTRIES = 50  # of lists in which the same entries are looked for in another order
_PIECE = 4  # characters on a side that are named one by one
_AGAIN = 4  # equal characters behind a difference that end it


class Comparison(Struct, frozen=True):
    """What was expected of `name` (the path of an argument; "" for a text), and what was found.

    Texts are in quotation marks with their own line breaks, other values are JSON; None: there is no such thing to
    show. `at` is the first character of `got` that differs (its length: something is missing at its end; None: no
    place), `note` says in a few words what differs there, and `short` what of it the values alone do not show.
    `where`: the place of what was found ("line 4"). A list or an object has its differing entries in `parts`, and
    `alike` counts those that are equal.
    """

    name: str = ""
    expected: str | None = None
    got: str | None = None
    at: int | None = None
    note: str = ""
    where: str = ""
    parts: tuple[Comparison, ...] = ()
    alike: int = 0
    short: str = ""


_MALFORMED = (LookupError, TypeError, ValueError, AttributeError)
"""What fields that are not ours (a file, a newer history) may make of a comparison."""


def comparisons(evidence: Evidence) -> tuple[Comparison, ...]:
    """What a line of evidence compares; () where a sentence must say it."""
    if evidence.passed is True or evidence.message:
        return ()
    fields = evidence.fields
    try:
        if arguments := _arguments_of(evidence):
            return tuple(map(_argument, arguments[:MOST]))
        if evidence.code == Code.UNREADABLE and "tool" in fields:
            return (_argument(fields),)
        if "near" in fields and (expected := _looked_for(evidence)) is not None:
            compared = _text(expected, fields["near"], evidence.found if expected is evidence.expected else None)
            # The whole text is what there is: no other place in it is meant.
            return (replace(compared, where="") if fields.get("side") == "equals" else compared,)
        if evidence.code == Code.DIFFERS and "path" in fields and "wanted" in fields:
            return (_value(dotted_path(fields["path"]), fields["wanted"], fields["value"]),)
        if evidence.code == Code.DIFFERS and "label" in fields and isinstance(evidence.found, str):
            return (_value("label", fields["label"], evidence.found),)
        if evidence.code == Code.DIFFERS and fields.get("side") == "equals" and isinstance(evidence.expected, str):
            return (_value("", evidence.expected, evidence.found),)
    # A sentence is still there for what can't be compared.
    except _MALFORMED:
        pass
    return ()


def _looked_for(evidence: Evidence) -> str | None:
    """The text that the nearest one is compared with; of several texts the one that it is nearest to."""
    expected = evidence.expected
    if isinstance(expected, list) and "of" in evidence.fields["near"]:
        expected = expected[evidence.fields["near"]["of"]]
    return expected if isinstance(expected, str) else None


def leaves(comparisons: Iterable[Comparison], above: str = "") -> Iterator[Comparison]:
    """The comparisons that have no parts, each with its whole path as its name."""
    for comparison in comparisons:
        name = (
            above + comparison.name
            if comparison.name.startswith("[") or not above or not comparison.name
            else f"{above}.{comparison.name}"
        )
        if comparison.parts:
            yield from leaves(comparison.parts, name)
        else:
            yield replace(comparison, name=name)


def comparison_title(evidence: Evidence) -> tuple[str, str]:
    """The tool that is compared, and how it differs: ("get_order", "1 of 2 arguments differs"); without a tool which
    one of several texts is compared; ("", "") where the name of the condition is all there is to say."""
    fields = evidence.fields
    try:
        if isinstance(evidence.expected, list) and len(evidence.expected) > 1 and "near" in fields:
            return "", f"the nearest of {count(len(evidence.expected), 'text')}"
        if evidence.code == Code.UNREADABLE:
            return str(fields["tool"]), "the arguments can't be read"
        if evidence.code == Code.NEVER_CALLED and "nearest" in fields:
            return str(fields["tool"]), f"was never called; nearest {fields['nearest']['tool']}"
        if "near_call" in fields:
            return str(fields["wanted"]), f"was not called; nearest the {nth(fields['near_call']['call'] + 1)} call"
        if evidence.code != Code.DIFFERS or "arguments" not in fields or "tool" not in fields:
            return "", ""
        which = f" ({nth(fields['position'])} call)" if fields.get("position") else ""
        extra = sum(argument["is"] == "extra" for argument in fields["arguments"])
        wrong, whole = len(fields["arguments"]) - extra, len(evidence.expected or ())
        many = f"{wrong} of {count(whole, 'argument')}" if whole >= wrong else count(wrong, "argument")
        parts = [f"{many} {'differs' if wrong == 1 else 'differ'}"] if wrong else []
        if extra:
            what = f"{extra:,}" if wrong else count(extra, "argument")
            parts.append(f"{what} {'is' if extra == 1 else 'are'} not expected")
        return f"{fields['tool']}{which}", ", ".join(parts)
    except _MALFORMED:
        return "", ""


def hidden_differences(evidence: Evidence) -> int:
    """How many differences `comparisons` leaves out."""
    try:
        return max(len(_arguments_of(evidence)) - MOST, 0)
    except _MALFORMED:
        return 0


def _arguments_of(evidence: Evidence) -> list[Any]:
    """What differs in the arguments of the call that is compared: the one that was made, or the nearest to it."""
    fields = evidence.fields
    compared = fields if evidence.code == Code.DIFFERS and "arguments" in fields else None
    arguments = (compared or fields.get("nearest") or fields.get("near_call") or {}).get("arguments")
    # An unexpected call has its own arguments there, as an object: with them nothing is compared.
    return arguments if isinstance(arguments, list) else []


# An argument of a call


def _argument(argument: Mapping[str, Any]) -> Comparison:
    if argument["is"] == "unreadable":
        if argument.get("malformed"):
            return _malformed(str(argument["found"]))
        value = argument["found"]
        note = "not an object" if may_be_cut(value) else f"{_kind(value)} instead of an object"
        return Comparison("", None, _value_text(value), note=note)
    name = str(argument["path"])
    if argument["is"] == "extra":
        return Comparison(name, None, _value_text(argument["found"]), note="is not expected")
    if argument["is"] == "missing":
        elsewhere = argument.get("elsewhere")
        note = f"perhaps it is {elsewhere} = {cut(_value_text(argument['found']), _SHORT)}" if elsewhere else ""
        expected = _value_text(argument["wanted"]) if "wanted" in argument else str(argument["expected"])
        return Comparison(name, expected, None, note=note, short=note)
    if "absent" in argument:
        return Comparison(name, str(argument["expected"]), None)
    if "wanted" in argument:
        hint = argument.get("hint") or {}
        if may_be_cut(argument["wanted"]) or may_be_cut(argument["found"]):
            return _cut(name, argument["wanted"], argument["found"], hint)
        return _value(name, argument["wanted"], argument["found"], steps=hint.get("steps", ()))
    note = LITERAL_NOTE if "literal" in (argument.get("hint") or {}) else ""
    return Comparison(name, str(argument["expected"]), _value_text(argument["found"]), note=note, short=note)


def _malformed(text: str) -> Comparison:
    """Arguments that are not JSON, as they came."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        if not may_be_cut(text):
            complete = text[error.pos :].strip()
            return Comparison("", None, text, error.pos, "not valid JSON from here on" if complete else _INCOMPLETE)
    except (ValueError, RecursionError):
        pass
    return Comparison("", None, text, note="not valid JSON")


_INCOMPLETE = "the JSON is not complete"

# Values


def _value(name: str, expected: object, actual: object, *, steps: Sequence[str] = (), depth: int = 0) -> Comparison:
    """Two JSON values that are not equal."""
    if may_be_cut(expected) or may_be_cut(actual):
        return _cut(name, expected, actual, {})
    if isinstance(expected, str) and isinstance(actual, str):
        at = common_start(expected, actual)
        comparison = Comparison(
            name, _value_text(expected), _value_text(actual), at + 1, parting_note(expected, actual)
        )
        return _of_form(comparison, steps, expected, actual) if steps else comparison
    # Deeper than this nobody reads a tree: the whole is one value then.
    if depth < MOST and isinstance(expected, Mapping) and isinstance(actual, Mapping):
        names = [*expected, *(key for key in actual if key not in expected)]
        return _tree(name, [(str(key), expected.get(key, _NONE), actual.get(key, _NONE)) for key in names], depth)
    if depth < MOST and isinstance(expected, list) and isinstance(actual, list):
        longer = max(len(expected), len(actual))
        if _same_entries(expected, actual):
            note = "the same entries in another order"
            return Comparison(name, _value_text(expected), _value_text(actual), note=note, short=note)
        pairs = [
            (f"[{n}]", *(side[n] if n < len(side) else _NONE for side in (expected, actual))) for n in range(longer)
        ]
        return _tree(name, pairs, depth)  # type: ignore[arg-type]
    note = _type_note(expected, actual)
    return Comparison(name, _value_text(expected), _value_text(actual), 0 if note else None, note)


def _same_entries(expected: list[Any], actual: list[Any]) -> bool:
    if not 1 < len(expected) == len(actual) <= _MOST_ENTRIES:
        return False
    # Entries may be objects, which no set takes: each is looked for among those that are left.
    remaining = list(actual)
    for entry in expected:
        at = next((number for number, other in enumerate(remaining) if same_json(entry, other)), None)
        if at is None:
            return False
        del remaining[at]
    return True


def _cut(name: str, expected: object, actual: object, hint: Mapping[str, Any]) -> Comparison:
    """Two values of which the evidence keeps only the beginning of one or both: no place can be pointed at, and what
    differs is said only where the metric noted it."""
    expected_text, actual_text = (str(side) if may_be_cut(side) else _value_text(side) for side in (expected, actual))
    if hint.get("steps"):
        note = would_match_note(hint["steps"])
    elif "at" in hint and hint.keys() & {"found", "ends_before", "goes_on"}:
        note = f"at character {hint['at'] + 1:,}: {_near_note(hint)}"
    else:
        note = "the difference is after the stored part" if expected_text == actual_text else ""
    if around := hint.get("around"):
        at = common_start(*around) + 1
        return Comparison(
            name, _value_text(around[0]), _value_text(around[1]), at, note, short=note if "steps" in hint else ""
        )
    return Comparison(name, expected_text, actual_text, note=note)


_NONE = object()


def _tree(name: str, entries: Sequence[tuple[str, Any, Any]], depth: int) -> Comparison:
    parts = list(_differing(entries, depth))
    alike = len(entries) - len(parts)
    # An object around a single entry says nothing: its name and the entry's are one path.
    if len(parts) == 1 and not alike:
        only = parts[0]
        return replace(only, name=name + only.name if only.name.startswith("[") or not name else f"{name}.{only.name}")
    note = f"{count(len(parts) - MOST, 'more difference')}" if len(parts) > MOST else ""
    return Comparison(name, parts=tuple(parts[:MOST]), alike=alike, note=note)


def _differing(entries: Sequence[tuple[str, Any, Any]], depth: int) -> Iterator[Comparison]:
    for name, expected, actual in entries:
        if expected is _NONE:
            yield Comparison(name, None, _value_text(actual), note="is not expected")
        elif actual is _NONE:
            yield Comparison(name, _value_text(expected), None)
        elif not same_json(expected, actual):
            yield _value(name, expected, actual, depth=depth + 1)


def _type_note(expected: object, actual: object) -> str:
    ours, theirs = _kind(expected), _kind(actual)
    return f"{theirs} instead of {ours}" if ours != theirs else ""


def _kind(value: object) -> str:
    if value is None:
        return "null"
    kinds = ((bool, "true or false"), (int | float, "a number"), (str, "a text"), (list | tuple, "a list"))
    return next((words for kind, words in kinds if isinstance(value, kind)), "an object")


def _value_text(value: object) -> str:
    """A value as it is read: a text as text in quotation marks, other values as JSON."""
    return f'"{value}"' if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


# Texts


def _text(expected: str, near: Mapping[str, Any], stored: Any) -> Comparison:
    """A text that was looked for, and the nearest one that there is."""
    where = f"line {near['line']}" if near.get("line") else ""
    if near["is"] == "elsewhere":
        before, after = near.get("before") or "", near.get("after") or ""
        parts = [_neighbour_note(text, side) for text, side in ((before, "before"), (after, "after")) if text]
        at, actual = 0 if before else len(expected), before + near.get("text", expected) + after
        return Comparison("", _value_text(expected), _value_text(actual), at + 1, " and ".join(parts), where)
    # The nearest text as a whole, where it was kept; the fields have the part that a sentence can quote.
    actual = stored if isinstance(stored, str) and _holds(stored, near["text"]) else str(near["text"])
    whole = actual is stored or "at" not in near
    form = near["is"] == "form"
    if whole and (form or actual is stored or "column" not in near):
        at = common_start(expected, actual)
        comparison = Comparison(
            "", _value_text(expected), _value_text(actual), at + 1, parting_note(expected, actual), where
        )
        return _of_form(comparison, near["steps"], expected, actual) if form else comparison
    # A part around the place that differs, with the characters before it that a near miss keeps (`near_miss`).
    excerpt = expected if whole else _around(expected, near["at"])
    # The ellipsis that `near_miss` put before the part counts as a character.
    at = BEFORE + 1 if actual.startswith("…") else near.get("at", common_start(expected, actual))
    note = would_match_note(near["steps"]) if form else _near_note(near)
    return Comparison("", _value_text(excerpt), _value_text(actual), at + 1, note, where, short=note if form else "")


def _around(expected: str, at: int) -> str:
    """As much of a long text as a near miss keeps of the one that was found."""
    start, end = max(at - BEFORE, 0), at + BEFORE + BEFORE
    return "…" * (start > 0) + expected[start:end] + "…" * (end < len(expected))


def _holds(text: str, quoted: str) -> bool:
    return 0 < len(text) < FOUND and not text.endswith("…") and quoted.strip("…") in text


def _near_note(near: Mapping[str, Any]) -> str:
    if "ends_before" in near:
        return f"{_piece_text(near['ends_before'])} is missing at the end"
    if "goes_on" in near:
        return f"continues with {_piece_text(near['goes_on'])}"
    return f"{_piece_text(near['found'])} instead of {_piece_text(near['expected'])}"


def _neighbour_note(text: str, side: str) -> str:
    """The text `before` or `after` a text that should begin or end there."""
    tag = text.strip()
    if side == "before" and tag.isidentifier() and text.endswith("\n"):
        return f"the language tag '{tag}' is before it (`code_language` leaves it out)"
    return f"{_piece_text(text)} is {side} it"


def would_match_note(steps: Sequence[str]) -> str:
    """What would make them equal: "would match ignoring case"."""
    return f"would match {would_match(steps)}"


def _of_form(comparison: Comparison, steps: Sequence[str], expected: str, actual: str) -> Comparison:
    """The comparison with what would make both texts equal. If the difference can't be seen, it is named first."""
    note = would_match_note(steps)
    lost, extra = _first_pieces(expected, actual)
    unseen = not (lost + extra).strip() or normalize("NFC", lost) == normalize("NFC", extra)
    if not unseen and not any(category(char) == "Cf" for char in lost + extra):
        return replace(comparison, note=note, short=note)
    short = _parted(lost, extra)
    return replace(comparison, note=f"{short}; {note}", short=short)


def _first_pieces(expected: str, actual: str) -> tuple[str, str]:
    """The first characters on both sides that are not the same, up to the place where the texts are equal again."""
    at = common_start(expected, actual)
    left, right = expected[at : at + _AGAIN + _PIECE], actual[at : at + _AGAIN + _PIECE]
    # The smallest difference first: of several ways to go on alike it is the one that people see.
    sizes = sorted(
        ((i, j) for i in range(_PIECE + 1) for j in range(_PIECE + 1) if i or j), key=lambda size: (sum(size), size)
    )
    for lost, extra in sizes:
        if left[lost : lost + _AGAIN] == right[extra : extra + _AGAIN]:
            return left[:lost], right[:extra]
    return left, right


def parting_note(expected: str, actual: str) -> str:
    """What differs between two texts, in a few words: "'#' is missing", "'5.' instead of '5'"."""
    start = common_start(expected, actual)
    end = common_end(expected, actual, start)
    return _parted(expected[start : len(expected) - end], actual[start : len(actual) - end])


def _parted(lost: str, extra: str) -> str:
    if not extra:
        return f"{_piece_text(lost)} is missing"
    if not lost:
        return f"{_piece_text(extra)} is extra"
    # Both texts are on the screen: which letter it is can be seen there.
    if lost.casefold() == extra.casefold():
        return "only the case differs"
    return f"{_piece_text(extra)} instead of {_piece_text(lost)}"


_BLANKS = {" ": "a space", "\n": "a line break", "\t": "a tab", "\u00a0": "a no-break space", "\r\n": "a line break"}


def _piece_text(text: str) -> str:
    """A piece of text as a sentence quotes it; characters that can't be seen are named."""
    if text in _BLANKS:
        return _BLANKS[text]
    if text.isspace():
        return f"white space ({count(len(text), 'character')})"
    if len(text) == 1 and not text.isprintable():
        return _name(text)
    if any(combining(char) for char in text) and len(text) <= _PIECE:
        return listed([_name(char) if combining(char) or not char.isprintable() else char for char in text])
    return f"'{cut(text.replace(chr(10), '⏎'), _SHORT)}'"


def _name(char: str) -> str:
    return unicode_name(char, f"U+{ord(char):04X}").lower()
