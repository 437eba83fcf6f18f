"""How a call differs from what is expected of it, argument by argument: the facts, and the words for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from agenteval_tui.grading.metrics.matchers import is_matcher, same_json, type_of
from agenteval_tui.grading.metrics.tool_scoring import Expected, Tool, arguments_of
from agenteval_tui.grading.nearest import text_difference, would_match
from agenteval_tui.grading.words import count, shown
from agenteval_tui.text.quick_dataclass import dataclass
from agenteval_tui.transcripts.model import ToolCall

Path = tuple[str | int, ...]
Leaf = tuple[Path, Any, Any]
Kind = Literal["differs", "missing", "extra", "unreadable"]

_SHORT = 12
"""Characters up to which a person sees at once where two texts part."""
_COMPARED = 2_000


@dataclass(frozen=True, slots=True)
class ArgumentDifference:
    """One argument that is not as expected. `path` leads to it ("filter.country", "" for the arguments as a whole).

    `expected` is in words. `at` is the first character that differs, where a text is compared with a text. `mend`
    says what would make it match ("ignoring case"), "" when nothing little does. `cost` is 0..1: how far it is off.
    """

    kind: Kind
    name: str
    path: str
    expected: str = ""
    got: Any = None
    at: int | None = None
    mend: str = ""
    cost: float = 1.0
    elsewhere: str = ""

    @property
    def said(self) -> str:
        """The difference in words, with the argument's path."""
        if self.kind == "unreadable":
            return self.expected
        if self.kind == "extra":
            return f"{self.path} = {shown(self.got, 40)} is not expected"
        if self.kind == "missing":
            hint = f", perhaps it is {self.elsewhere} = {shown(self.got, 40)}" if self.elsewhere else ""
            return f"{self.path} is missing (expected {self.expected}){hint}"
        return f"{self.path}: {self.expected_got}"

    @property
    def expected_got(self) -> str:
        """Of an argument that differs: `expected ..., got ...`, and the little that would make it match."""
        text = f"expected {self.expected}, got {shown(self.got)}"
        return f"{text} ({self.mend})" if self.mend else text


def differences(tool: Tool, call: ToolCall) -> tuple[ArgumentDifference, ...]:
    """What keeps the call's arguments from being right: wrong ones, then missing, then additional ones; () if right."""
    expected = tool.expected
    if expected is None:
        return ()
    given = arguments_of(call)
    if given is None:
        if not expected and tool.additional:
            return ()
        what = "are not valid JSON" if call.malformed else f"are no object but {type_of(call.arguments)}"
        return (ArgumentDifference("unreadable", "", "", f"{what}: {shown(call.arguments)}"),)
    additional = [] if tool.additional else tool.additional_names(given)
    found = [_differs(one, given[one.name]) for one in expected if one.name in given and not one.holds(given[one.name])]
    found += [_missing(one, given, tool.additional_names(given)) for one in expected if one.name not in given]
    found += [ArgumentDifference("extra", name, name, got=given[name], cost=0.5) for name in additional]
    return tuple(found)


def in_words(said: str, found: tuple[ArgumentDifference, ...]) -> str:
    """The differences of a call as one line; `said` names the call."""
    if len(found) == 1 and found[0].kind == "unreadable":
        return f"the arguments of {said} {found[0].expected}"
    if len(found) == 1:
        one = found[0]
        if one.kind == "differs":
            return f"{said} differs only in {one.path}: {one.expected_got}"
        return f"{said} differs only in its arguments: {one.said}"
    return f"{said} differs in {count(len(found), 'argument')}: {'; '.join(one.said for one in found)}"


def distance(tool: Tool, call: ToolCall) -> float:
    """How far the call's arguments are from the expected ones: 0 (right) to 1."""
    if tool.expected is None:
        return 0.0
    found = differences(tool, call)
    if not found:
        return 0.0
    given = arguments_of(call)
    if given is None:
        return 1.0
    names = {one.name for one in tool.expected}
    if not tool.additional:
        names.update(given)
    return min(1.0, sum(one.cost for one in found) / max(len(names), 1))


def _differs(one: Expected, got: Any) -> ArgumentDifference:
    if len(one.values) == 1:
        leaf = only_leaf(one.values[0], got)
        if leaf is not None:
            path, expected, inner = leaf
            return _leaf(one.name, ".".join((one.name, *map(str, path))), expected, inner)
    mend = _other_form(one.holds, got)
    return ArgumentDifference("differs", one.name, one.name, one.said, got, mend=mend, cost=0.3 if mend else 0.9)


def _leaf(name: str, path: str, expected: Any, got: Any) -> ArgumentDifference:
    """A plain expected value that differs from a plain value."""
    said = shown(expected)
    if not (isinstance(expected, str) and isinstance(got, str)):
        mend = _other_form(lambda value: same_json(expected, value), got)
        return ArgumentDifference("differs", name, path, said, got, mend=mend, cost=0.3 if mend else 0.9)
    at = text_difference(expected, got)
    steps = would_match(expected, got)
    likeness = _likeness(expected, got)
    if steps:
        mend = f"would match {steps}"
    elif max(len(expected), len(got)) > _SHORT and likeness > 0.5:
        mend = _parting(expected, got, at)
    else:
        mend = ""
    return ArgumentDifference("differs", name, path, said, got, at, mend, 0.1 if steps else 0.2 + 0.8 * (1 - likeness))


def _parting(expected: str, got: str, at: int) -> str:
    if at == len(got):
        return f"ends before {shown(expected[at:], 20)}"
    if at == len(expected):
        return f"goes on with {shown(got[at:], 20)}"
    return f"differs at character {at + 1}: {shown(got[at])} instead of {shown(expected[at])}"


def _likeness(left: str, right: str) -> float:
    from rapidfuzz import fuzz

    return fuzz.ratio(left[:_COMPARED], right[:_COMPARED]) / 100


def _other_form(holds: Any, got: Any) -> str:
    """What little change of the value would make it right: white space around it, its type."""
    if isinstance(got, str):
        if holds(got.strip()):
            return "would match without the white space around it"
        number = _number(got)
        if number is not None and holds(number):
            return "a string instead of a number"
    elif isinstance(got, int | float) and not isinstance(got, bool) and holds(str(got)):
        return "a number instead of a string"
    return ""


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def only_leaf(expected: Any, got: Any) -> Leaf | None:
    """The one plain value inside of `expected` that differs in `got`, with the path to it; None: not just one."""
    found = list(_leaves(expected, got, ()))
    return found[0] if len(found) == 1 and found[0] is not None else None


def _leaves(expected: Any, got: Any, path: Path) -> Iterator[Leaf | None]:
    """The differing plain values below here; None where the difference is one of shape. At most two."""
    if is_matcher(expected):
        yield None
    elif isinstance(expected, Mapping) and isinstance(got, Mapping) and expected.keys() == got.keys():
        yield from _below([(key, item, got[key]) for key, item in expected.items()], path)
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        pairs = enumerate(zip(expected, got, strict=True))
        yield from _below([(number, item, other) for number, (item, other) in pairs], path)
    elif isinstance(expected, Mapping | list) or isinstance(got, Mapping | list):
        yield None
    elif not same_json(expected, got):
        yield path, expected, got


def _below(pairs: list[tuple[str | int, Any, Any]], path: Path) -> Iterator[Leaf | None]:
    seen = 0
    for key, item, other in pairs:
        for found in _leaves(item, other, (*path, key)):
            yield found
            seen += 1
            if seen > 1:
                return


def _missing(one: Expected, given: Mapping[str, Any], additional: list[str]) -> ArgumentDifference:
    # A name that is written differently: the value is there under another name.
    squeezed = one.name.replace("_", "").replace("-", "").lower()
    for name in additional:
        if name.replace("_", "").replace("-", "").lower() == squeezed or one.holds(given[name]):
            return ArgumentDifference("missing", one.name, one.name, one.said, given[name], cost=0.6, elsewhere=name)
    return ArgumentDifference("missing", one.name, one.name, one.said)
