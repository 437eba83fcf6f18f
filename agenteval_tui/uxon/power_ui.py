"""What Power UI adds to JSON: comment keys, switched-off parts, and texts exported as a list of lines.

As its sources do it: a property whose name begins with `//` is a comment; one whose name begins with `/*` switches off
itself and all that follow in the object, up to one whose name begins with `*/`; an object that begins with the name
`/*` and ends with `*/` is switched off as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agenteval_tui.text.problems import Fix, TextEdit
from agenteval_tui.uxon.diagnostics import Diagnostic
from agenteval_tui.uxon.mend import remove_member
from agenteval_tui.uxon.strings import quote
from agenteval_tui.uxon.tree import MULTILINE, Member, Node, delimiter_of

Report = Callable[[Diagnostic], None]


def finish_object(text: str, start: int, end: int, members: list[Member], report: Report) -> Node:
    """The node of an object; its comments are marked, names given twice are reported."""
    value: dict[str, Any] = {}
    latest: dict[str, int] = {}
    opened: Member | None = None
    for index, member in enumerate(members):
        key, node = member.key, member.value
        mark = key[:2]
        if mark == "//" or mark == "/*" or mark == "*/":
            member.commented = True
            if mark != "//":
                opened = member if mark == "/*" else None
        elif opened is not None or node.commented:
            member.commented = True
        else:
            if key in latest:
                report(_duplicate(text, start, members, latest[key]))
            latest[key] = index
            if node.kind != "missing":
                value[key] = node.value
            else:
                value.pop(key, None)
    if opened is not None:
        message = 'This switches off all that follows in the object: add "*/": "" where it should end.'
        last = members[-1].end
        whole = members[-1].end < end and members[-1].value.kind != "missing"
        fix = None if not whole else Fix('add "*/" at the end', (TextEdit(last, last, ', "*/": ""'),))
        report(Diagnostic("warning", "open-comment", message, opened.key_start, opened.key_end, fix))
    off = len(members) > 1 and members[0].key == "/*" and members[-1].key == "*/"
    return Node("object", start, end, value, tuple(members), (), off)


def _duplicate(text: str, start: int, members: list[Member], index: int) -> Diagnostic:
    """The earlier member of two with one name has no effect: that is the one to remove."""
    member = members[index]
    fix = remove_member(text, start, members, index, "remove this one")
    name = quote(member.key)
    name = name if len(name) <= 60 else "This name"
    message = f"{name} is given again below, and the last one counts: remove this one."
    return Diagnostic("warning", "duplicate-key", message, member.key_start, member.key_end, fix)


def finish_array(start: int, end: int, items: list[Node], report: Report) -> Node:
    """The node of a list, or of the string that a list of lines stands for."""
    if items and items[0].kind == "string" and not items[0].items and items[0].value.startswith(MULTILINE):
        lines = items[1:]
        wrong = next((line for line in lines if line.kind != "string"), None)
        if wrong is None:
            text = delimiter_of(items[0].value).join([line.value for line in lines])
            return Node("string", start, end, text, (), tuple(items))
        message = "Every line of an exported text is a string: put this one in double quotes."
        report(Diagnostic("error", "wrong-type", message, wrong.start, wrong.end))
    value = [item.value for item in items if item.kind != "missing" and not item.commented]
    return Node("array", start, end, value, (), tuple(items))
