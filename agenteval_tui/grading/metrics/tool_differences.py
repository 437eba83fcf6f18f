"""How a call differs from what is expected of it, argument by argument."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, Literal

from agenteval_tui.grading.metrics.matchers import is_matcher, same_json, type_of
from agenteval_tui.grading.metrics.tool_scoring import Expected, Tool, arguments_of
from agenteval_tui.grading.metrics.verdicts import kept_value
from agenteval_tui.grading.nearest import text_difference, would_match
from agenteval_tui.grading.words import shown
from agenteval_tui.text.quick_dataclass import dataclass
from agenteval_tui.transcripts.model import ToolCall

Path = tuple[str | int, ...]
Leaf = tuple[Path, Any, Any]
Kind = Literal["differs", "missing", "extra", "unreadable"]

_SHORT = 12
"""Characters up to which a person sees at once where two texts part."""
_COMPARED = 2_000
_SAID = 40


@dataclass(frozen=True, slots=True)
class ArgumentDifference:
    """One argument that is not as expected. `path` leads to it ("filter.country", "" for the arguments as a whole).

    `expected` is in words. `hint` says what little would make it match (`steps`, `type`), or where two texts part
    (`ends_before`, `goes_on`, `at`); {} when nothing little does. `cost` is 0..1: how far it is off. `elsewhere` is
    the argument that has the value of a missing one. `malformed`: it is no JSON at all. `at` is the first character
    that differs, where a text is compared with a text.
    """

    kind: Kind
    name: str
    path: str
    expected: str = ""
    got: Any = None
    hint: dict[str, Any] = field(default_factory=dict)
    cost: float = 1.0
    elsewhere: str = ""
    malformed: bool = False
    at: int | None = None

    def fields(self) -> dict[str, Any]:
        """As fields of evidence have it (`sentences.of_argument`)."""
        if self.kind == "unreadable":
            return unreadable(self.got, malformed=self.malformed)
        made: dict[str, Any] = {"is": self.kind, "argument": self.name, "path": self.path}
        if self.kind != "extra":
            made["expected"] = self.expected
        if self.kind != "missing" or self.elsewhere:
            made["found"] = kept_value(self.got)
        if self.hint:
            made["hint"] = self.hint
        if self.elsewhere:
            made["elsewhere"] = self.elsewhere
        return made


def unreadable(arguments: Any, *, malformed: bool) -> dict[str, Any]:
    """Arguments that are no JSON object, as fields of evidence have them."""
    found = kept_value(arguments)
    return {"is": "unreadable", "malformed": malformed, "type": type_of(arguments), "found": found}


def differences(tool: Tool, call: ToolCall) -> tuple[ArgumentDifference, ...]:
    """What keeps the call's arguments from being right: wrong ones, then missing, then additional ones; () if right."""
    expected = tool.expected
    if expected is None:
        return ()
    given = arguments_of(call)
    if given is None:
        if not expected and tool.additional:
            return ()
        return (ArgumentDifference("unreadable", "", "", got=call.arguments, malformed=call.malformed),)
    additional = [] if tool.additional else tool.additional_names(given)
    found = [_differs(one, given[one.name]) for one in expected if one.name in given and not one.holds(given[one.name])]
    found += [
        _missing(one, given, tool.additional_names(given))
        for one in expected
        if one.name not in given and not one.optional
    ]
    found += [ArgumentDifference("extra", name, name, got=given[name], cost=0.5) for name in additional]
    return tuple(found)


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
    hint = _other_form(one.holds, got)
    return ArgumentDifference("differs", one.name, one.name, one.said, got, hint, 0.3 if hint else 0.9)


def _leaf(name: str, path: str, expected: Any, got: Any) -> ArgumentDifference:
    """A plain expected value that differs from a plain value."""
    said = shown(expected)
    if not (isinstance(expected, str) and isinstance(got, str)):
        hint = _other_form(lambda value: same_json(expected, value), got)
        return ArgumentDifference("differs", name, path, said, got, hint, 0.3 if hint else 0.9)
    at = text_difference(expected, got)
    steps = would_match(expected, got)
    if steps:
        return ArgumentDifference("differs", name, path, said, got, {"steps": steps}, 0.1, at=at)
    likeness = _likeness(expected, got)
    alike = max(len(expected), len(got)) > _SHORT and likeness > 0.5
    hint = _parting(expected, got, at) if alike else {}
    return ArgumentDifference("differs", name, path, said, got, hint, 0.2 + 0.8 * (1 - likeness), at=at)


def _parting(expected: str, got: str, at: int) -> dict[str, Any]:
    if at == len(got):
        return {"at": at, "ends_before": expected[at : at + _SAID]}
    if at == len(expected):
        return {"at": at, "goes_on": got[at : at + _SAID]}
    return {"at": at, "found": got[at], "expected": expected[at]}


def _likeness(left: str, right: str) -> float:
    from rapidfuzz import fuzz

    return fuzz.ratio(left[:_COMPARED], right[:_COMPARED]) / 100


def _other_form(holds: Any, got: Any) -> dict[str, Any]:
    """What little change of the value would make it right: white space around it, its type."""
    if isinstance(got, str):
        if holds(got.strip()):
            return {"steps": ["strip"]}
        number = _number(got)
        if number is not None and holds(number):
            return {"type": "string"}
    elif isinstance(got, int | float) and not isinstance(got, bool) and holds(str(got)):
        return {"type": "number"}
    return {}


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
