"""YAML as a tree that knows where everything stands.

The tree is made from the events of PyYAML's C parser (which is fast), not by its composer: the composer recurses in C
(deep nesting kills the process) and resolves plain scalars by YAML 1.1 (`no`, `1e3`, dates). Here a scalar keeps its
source text, so that whoever reads it decides by the type that is wanted. Offsets count characters of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from msgspec import Struct, field

from agenteval_tui.core.phrasing import cut

# Nodes hold no circles: the garbage collector looks neither at them, 450,000 in a suite of 10,000 tests, nor at a dict
# that holds nothing else.
MAX_DEPTH = 100
MAX_ALIASED = 100_000  # nodes that aliases may add to what is written out


class ScalarNode(Struct, eq=False, gc=False):
    """A text. `style`: "" plain, "'" or '"' quoted, "|" literal, ">" folded."""

    text: str
    start: int
    end: int
    style: str = ""
    tag: str | None = None

    @property
    def plain(self) -> bool:
        """Whether this may be something else than a string (a number, true, null)."""
        return not self.style and self.tag is None


class SequenceNode(Struct, eq=False, gc=False):
    """A list. `end` of a block list may lie behind blank lines and comments that follow it."""

    start: int
    end: int
    flow: bool
    items: list[Node] = field(default_factory=list)


class MappingNode(Struct, eq=False, gc=False):
    """Keys and values in the order of the file; a key that appears twice counts once. Merged (`<<`) pairs are last."""

    start: int
    end: int
    flow: bool
    pairs: dict[ScalarNode, Node] = field(default_factory=dict)

    def get(self, key: str) -> Node | None:
        """The value of `key`."""
        for scalar_node, value in self.pairs.items():
            if scalar_node.text == key:
                return value
        return None

    def key(self, key: str) -> ScalarNode | None:
        """The key itself."""
        return next((node for node in self.pairs if node.text == key), None)


class Alias(Struct, eq=False, gc=False):
    """`*name`: another node, seen from here. `weight`: how many nodes it stands for."""

    target: ScalarNode | SequenceNode | MappingNode
    start: int
    end: int
    weight: int = 1


Node = ScalarNode | SequenceNode | MappingNode | Alias
Report = Callable[[str, int, int, str, str | None], None]  # code, start, end, message, fix


def resolve(node: Node) -> ScalarNode | SequenceNode | MappingNode:
    """The node itself, not an alias of it."""
    return node.target if isinstance(node, Alias) else node


def _weight(node: Node) -> int:
    """How many nodes are written out where this one is."""
    if isinstance(node, Alias):
        return node.weight
    if isinstance(node, MappingNode):
        return 1 + sum(map(_weight, node.pairs.values()))
    return 1 + sum(map(_weight, node.items)) if isinstance(node, SequenceNode) else 1


class _StopReading(Exception):  # noqa: N818  (no error: it ends the reading)
    """Reading ends here; the problem was reported."""


class _Open(Struct, gc=False):
    node: SequenceNode | MappingNode
    anchor: str | None = None
    key: ScalarNode | None = None  # of a mapping: the key whose value comes next
    skip: bool = False  # the key is a second one, or no text: its value is read and forgotten
    braces: bool = False  # a text that was meant to begin with {{
    keys: set[str] = field(default_factory=set)
    merges: tuple[Node, ...] = ()


def compose(text: str, report: Report) -> tuple[Node | None, bool]:
    """The tree of `text`, and whether it is all there.

    After a syntax error the tree holds what was complete before it (of the innermost open nodes only those that are
    lists, or the document's own mapping). None when there is no content. Problems go to `report`.
    """
    if (bad := _forbidden_characters(text, report)) and bad > 0:
        return None, False
    composer = _Composer(text, report)
    try:
        composer.run()
    except _StopReading:
        return composer.rescued(), False
    return composer.root, True


def flawless(text: str) -> Node | None:
    """The tree of a text; None when there is the least wrong with it."""
    problems: list[str] = []
    root, whole = compose(text, lambda code, *_: problems.append(code))
    return root if whole and not problems else None


# What YAML does not allow in a file. (Three sets: one big set takes 8 ms to compile.)
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]|[\ud800-\udfff]|[\ufffe\uffff]")


def _forbidden_characters(text: str, report: Report) -> int:
    count = 0
    for match in _FORBIDDEN.finditer(text):
        count += 1
        if count > 20:
            break
        code = ord(match.group())
        report(
            "bad-character",
            match.start(),
            match.end(),
            f"the character U+{code:04X} is not allowed in a YAML file",
            f'remove it, or write it as "\\x{code:02x}" in double quotes' if code < 0x100 else "remove it",
        )
    return count


class _Composer:
    def __init__(self, text: str, report: Report) -> None:
        self.text = text
        self.report = report
        self.root: Node | None = None
        self.stack: list[_Open] = []
        self.anchors: dict[str, ScalarNode | SequenceNode | MappingNode | None] = {}
        self.aliased = 0
        self.said_until = -1

    def run(self) -> None:
        import yaml

        # CSafeLoader: the C parser; nothing here ever constructs objects from tags.
        loader = yaml.CSafeLoader(self.text)
        try:
            self._read(iter(loader.get_event, None), yaml)
        except yaml.YAMLError as error:
            self._syntax(error)
            raise _StopReading from None
        finally:
            loader.dispose()

    def _read(self, events: Iterator[Any], yaml: Any) -> None:
        documents = 0
        # A suite of 10,000 tests has 570,000 events: names are looked up once, and what is usual calls nothing. What
        # the innermost open node takes next: an item of `items`, the value of `key` for `pairs`, or a key that is none
        # of `keys`. All of them None: `_add` decides.
        stack, add = self.stack, self._add
        items, pairs, keys, key = self._open_for()
        scalar, mapping, mapping_end = yaml.ScalarEvent, yaml.MappingStartEvent, yaml.MappingEndEvent
        sequence, sequence_end = yaml.SequenceStartEvent, yaml.SequenceEndEvent
        for event in events:
            kind = type(event)
            if kind is scalar:
                text = event.value
                node = ScalarNode(text, event.start_mark.index, event.end_mark.index, event.style or "")
                if event.tag is not None:
                    self._tag(event)
                    node.tag = "str"
                if event.anchor is not None:
                    self.anchors[event.anchor] = node
                if items is not None:
                    items.append(node)
                elif key is not None:
                    pairs[key] = node
                    key = None
                elif keys is not None and text not in keys and text != "<<":
                    keys.add(text)
                    key = node
                else:
                    add(node)
                    items, pairs, keys, key = self._open_for()
            elif kind is mapping or kind is sequence:
                if key is not None:
                    stack[-1].key, key = key, None
                opened = MappingNode if kind is mapping else SequenceNode
                inner = opened(event.start_mark.index, event.end_mark.index, bool(event.flow_style))
                if event.tag is None and event.anchor is None and len(stack) < MAX_DEPTH:
                    stack.append(top := _Open(inner))
                else:
                    top = self._push(event, inner)
                if type(inner) is SequenceNode:
                    items, keys = inner.items, None
                elif type(inner) is MappingNode:
                    items, pairs, keys = None, inner.pairs, top.keys
            elif kind is mapping_end or kind is sequence_end:
                done = stack.pop()
                if done.merges or done.braces or done.anchor is not None:
                    self._close(done, event.end_mark.index)
                    items, pairs, keys, key = self._open_for()
                    continue
                inner = done.node
                if (end := event.end_mark.index) > inner.end:
                    inner.end = end
                if stack and type(into := (top := stack[-1]).node) is SequenceNode:
                    items, keys = into.items, None
                    items.append(inner)
                elif stack and type(into) is MappingNode and (of := top.key) is not None and of.text != "<<":
                    items, pairs, keys = None, into.pairs, top.keys
                    pairs[of] = inner
                    top.key = None
                else:
                    add(inner)
                    items, pairs, keys, key = self._open_for()
            elif kind is yaml.AliasEvent:
                if key is not None:
                    stack[-1].key = key
                self._alias(event)
                items, pairs, keys, key = self._open_for()
            elif kind is yaml.DocumentStartEvent:
                documents += 1
                if documents == 2:
                    start = event.start_mark.index
                    self.report(
                        "syntax",
                        start,
                        start + 3,
                        "a second YAML document starts here; a suite file has only one",
                        "put its tests in another file, or remove this line",
                    )
                    raise _StopReading

    def _open_for(
        self,
    ) -> tuple[list[Node] | None, dict[ScalarNode, Node], set[str] | None, ScalarNode | None]:
        """What the innermost open node takes next: its items; or its pairs, its keys, and the key without a value."""
        if not self.stack:
            return None, {}, None, None
        top = self.stack[-1]
        node, key = top.node, top.key
        if type(node) is SequenceNode:
            return node.items, {}, None, None
        if type(node) is not MappingNode or top.skip or (key is not None and key.text == "<<"):
            return None, {}, None, None
        top.key = None
        return None, node.pairs, top.keys, key

    def _syntax(self, error: Any) -> None:
        start, end, message, fix = explain(error, self.text)
        if start <= self.said_until:
            return  # what follows from unquoted braces on this line
        self.report("syntax", start, end, message, fix)

    def _tag(self, event: Any) -> None:
        if event.tag not in ("!", "tag:yaml.org,2002:str"):
            self.report(
                "unsupported",
                event.start_mark.index,
                event.end_mark.index,
                f"the tag {_shown(event.tag)} is not supported",
                "remove it; quote a value to make it a text",
            )

    def _push(self, event: Any, node: SequenceNode | MappingNode) -> _Open:
        if len(self.stack) >= MAX_DEPTH:
            self.report("too-deep", node.start, node.end, f"nested more than {MAX_DEPTH} levels deep", "flatten this")
            raise _StopReading
        if event.tag is not None and event.tag not in ("!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
            self.report(
                "unsupported",
                event.start_mark.index,
                event.end_mark.index,
                f"the tag {_shown(event.tag)} is not supported",
                "remove it",
            )
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        self.stack.append(opened := _Open(node, event.anchor))
        return opened

    def _close(self, done: _Open, end: int) -> None:
        node = done.node
        if end > node.end:
            node.end = end
        if done.braces:
            # Said already; read on as if the quotes were there.
            self._add(ScalarNode(self.text[node.start : node.end], node.start, node.end, '"'))
            return
        if isinstance(node, MappingNode):
            for merged in done.merges:
                self._merge(node, merged, done.keys)
        if done.anchor is not None:
            self.anchors[done.anchor] = node
        self._add(node)

    def _alias(self, event: Any) -> None:
        start, end = event.start_mark.index, event.end_mark.index
        if event.anchor not in self.anchors:
            self.report(
                "unknown-alias",
                start,
                end,
                f"there is no anchor &{cut(event.anchor, 60)} above this alias",
                "write the value out, or define the anchor before",
            )
            self._add(ScalarNode("", start, end, '"'))
            return
        target = self.anchors[event.anchor]
        if target is None:
            self.report(
                "recursive-alias",
                start,
                end,
                f"*{event.anchor} is inside &{event.anchor} itself",
                "write the value out",
            )
            raise _StopReading
        weight = _weight(target)
        self.aliased += weight
        if self.aliased > MAX_ALIASED:
            self.report(
                "too-large",
                start,
                end,
                f"the aliases of this file stand for more than {MAX_ALIASED:,} values",
                "write fewer aliases",
            )
            raise _StopReading
        self._add(Alias(target, start, end, weight))

    def _add(self, node: Node) -> None:
        if not self.stack:
            self.root = node
            return
        top = self.stack[-1]
        into, key = top.node, top.key
        if isinstance(into, SequenceNode):
            into.items.append(node)
        elif key is None and not top.skip:
            if type(node) is ScalarNode and node.text not in top.keys:
                top.keys.add(node.text)
                top.key = node
            else:
                self._key(top, node)
        else:
            if key is not None and key.text == "<<" and key.plain:
                top.merges += (node,)
            elif key is not None:
                into.pairs[key] = node
            top.key, top.skip = None, False

    def _key(self, top: _Open, node: Node) -> None:
        key = resolve(node)
        if not isinstance(key, ScalarNode) and self.text.startswith("{{", top.node.start):
            start, end = top.node.start, node.end + 1
            self.report(
                "wrong-type", start, end, "a text that begins with {{ needs quotes", f'write "{self._line_rest(start)}"'
            )
            self.said_until = max(self.text.find("\n", start), start)
            top.skip = top.braces = True
        elif not isinstance(key, ScalarNode):
            self.report(
                "wrong-type",
                node.start,
                node.end,
                "a key must be a plain text, not a list or an object",
                'quote it if braces or brackets are part of a text: "{{name}}"',
            )
            top.skip = True
        elif key.text in top.keys and not (key.text == "<<" and key.plain):
            self.report(
                "duplicate-key",
                node.start,
                node.end,
                f'the key "{cut(key.text, 60)}" appears twice',
                "remove or rename one of the two",
            )
            top.skip = True
        else:
            top.keys.add(key.text)
            top.key = key if node is key else ScalarNode(key.text, node.start, node.end, '"')

    def _line_rest(self, start: int) -> str:
        rest = self.text[start : start + 100].split("\n")[0].strip()
        return rest if len(rest) <= 60 and '"' not in rest and "}}" in rest and "#" not in rest else "{{...}}"

    def _merge(self, into: MappingNode, source: Node, keys: set[str]) -> None:
        node = resolve(source)
        for item in node.items if isinstance(node, SequenceNode) else [node]:
            merged = resolve(item)
            if not isinstance(merged, MappingNode):
                self.report(
                    "wrong-type", item.start, item.end, "`<<` merges an object", "give it an alias of an object"
                )
                continue
            for key, value in merged.pairs.items():
                if key.text not in keys:
                    keys.add(key.text)
                    into.pairs[key] = value

    def rescued(self) -> Node | None:
        """What was complete when reading stopped: whole items of open lists, whole pairs of the outermost mapping."""
        if self.root is not None or not self.stack:
            return self.root
        outer = self.stack[0]
        if isinstance(outer.node, MappingNode) and len(self.stack) > 1 and outer.key is not None:
            inner = self.stack[1].node
            if isinstance(inner, SequenceNode):
                inner.end = max([inner.end, *(item.end for item in inner.items)])
                outer.node.pairs[outer.key] = inner
        return outer.node


def _shown(tag: str) -> str:
    return cut(tag.replace("tag:yaml.org,2002:", "!!"), 60)


_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\Z")


_NULLS = frozenset(("", "~", "null", "Null", "NULL"))


def is_null(node: Node) -> bool:
    """Whether this is YAML's null, in any spelling, or nothing at all."""
    node = resolve(node)
    return type(node) is ScalarNode and not node.style and node.text in _NULLS and node.plain


def untyped(node: ScalarNode) -> str | int | float | bool | None:
    """The value where any type is allowed: as in JSON. `true`, `null`, `5`, `1e3` are what they look like; the
    surprises of YAML 1.1 (`no`, dates, `012`, `1_000`, `12:30`) stay text.
    """
    text = node.text
    if not node.plain:
        return text
    if text in _NULLS:
        return None
    if text in ("true", "True", "TRUE"):
        return True
    if text in ("false", "False", "FALSE"):
        return False
    if _INT.match(text) and len(text) <= 300:
        return int(text)
    if _FLOAT.match(text):
        number = float(text)
        return number if abs(number) != float("inf") else text
    return text


def plain_data(node: Node) -> Any:
    """Plain Python data of a tree: dicts with text keys, lists, and scalars as `untyped` has them."""
    if type(node) is MappingNode:
        return {
            key.text: value.text if type(value) is ScalarNode and value.style else plain_data(value)
            for key, value in node.pairs.items()
        }
    if type(node) is SequenceNode:
        return [item.text if type(item) is ScalarNode and item.style else plain_data(item) for item in node.items]
    if type(node) is ScalarNode:
        return node.text if node.style else untyped(node)
    return plain_data(resolve(node))


_NEVER_CLOSED = "a quote is opened here and never closed"
_LIKE_A_KEY = re.compile(r"\n[ ]*(?:- |[\w.$-]+:(?:\s|$))")
_MOST_SCANNED = 400_000
"""Characters of a text with an error that are searched for a quote that is not closed."""

_NO_COLON = r"could not find expected ':'"
_NO_QUOTE = r"found unexpected end of stream"
_NO_BRACKET, _NO_BRACE = r"expected ',' or '\]'", r"expected ',' or '\}'"
_WHERE_IT_OPENS = (_NO_COLON, _NO_QUOTE, _NO_BRACKET, _NO_BRACE)

# PyYAML has no codes: its words are all that there is. (pattern on the parser's words, what is said, how to fix it)
_SAYINGS: list[tuple[str, str, str]] = [
    (
        r"mapping values are not allowed",
        "a second colon on this line can't start a value",
        "put quotes around the text with the colon, or start a new line",
    ),
    (r"tab character|found character '\\t'", "a tab can't be used for indentation", "indent with spaces"),
    (_NO_COLON, "a key without a colon", "write `key: value`, or indent this line as part of the text above"),
    (r"found undefined tag handle", "an exclamation mark starts a YAML tag here", "put the text in quotes"),
    (
        r"expected alphabetic or numeric|did not find expected alphabetic",
        "a name must follow here: `*` and `&` start aliases and anchors",
        "put the text in quotes",
    ),
    (_NO_QUOTE, _NEVER_CLOSED, "close it"),
    (
        r"invalid Unicode character escape",
        "this escape is half a character (JSON writes emoji as two)",
        "write the character itself, or \\U with eight digits",
    ),
    (
        r"found unknown escape character",
        "an unknown escape in a text with double quotes",
        "double the backslash, or use single quotes",
    ),
    (_NO_BRACKET, "this list is not closed, or a comma is missing", "add `,` or `]`"),
    (_NO_BRACE, "this object is not closed, or a comma is missing", "add `,` or `}`"),
    (
        r"expected '-' indicator",
        "this line does not belong to the list above",
        "start it with `- `, or indent it like the other lines of the item",
    ),
    (
        r"expected key",
        "the indentation of this line does not match the lines above",
        "indent it exactly like its neighbours, or put the text above in quotes",
    ),
    (
        r"expected the node content|expected node content",
        "a value is missing here",
        "write a value; texts with braces or brackets need quotes",
    ),
    (
        r"expected <document start>|did not find expected <document start>",
        "the document has ended before this line",
        "check the indentation of this line",
    ),
    (r"block sequence entries are not allowed", "a list can't start here", "start the list on a new line"),
    (
        r"expected chomping or indentation|expected a? ?comment or a? ?line break",
        "only a comment may follow `|` or `>` on its line",
        "start the text on the next line",
    ),
    (
        r"wrongly indented line|found a tab",
        "a line of this text is indented less than it should be",
        "indent all lines of the text alike",
    ),
    (r"exceeded maximum", f"nested more than {MAX_DEPTH} levels deep", "flatten this"),
]


def explain(error: Any, text: str) -> tuple[int, int, str, str]:
    """(start, end, message, remedy) of a `yaml.YAMLError`."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        return 0, 0, f"this is not YAML: {_plain(str(error))}", "compare with a sample suite"
    start = min(mark.index, len(text))
    problem = str(getattr(error, "problem", "") or "")
    context = str(getattr(error, "context", "") or "")
    if "cannot start any token" in problem:
        char = text[start : start + 1]
        if char == "\t":
            return start, start + 1, "a tab can't be used for indentation", "indent with spaces"
        return start, start + 1, f"a text can't start with {char}", "put it in quotes"
    quote = _open_quote(text, mark.line)
    if quote is not None:
        return quote, _line_end(text, quote), _NEVER_CLOSED, "close it"
    opened = getattr(error, "context_mark", None)
    for pattern, message, fix in _SAYINGS:
        if re.search(pattern, problem):
            if pattern in _WHERE_IT_OPENS:
                start = _opening(opened, start, len(text))
            return start, _line_end(text, start), message, fix
    words = " ".join(part for part in (context, problem) if part)
    return start, _line_end(text, start), f"this is not YAML: {_plain(words)}", "compare with a sample suite"


def _open_quote(text: str, line: int) -> int | None:
    """The quote that begins a text which ends in this line, but has lines in it that look like keys or items: it is
    not closed where it should be, and the next quote, which opens another text, closes it."""
    import yaml

    position = None
    if len(text) > _MOST_SCANNED:
        return None
    depth = 0
    opening = (yaml.FlowSequenceStartToken, yaml.FlowMappingStartToken)
    closing = (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken)
    with suppress(yaml.YAMLError):
        for token in yaml.scan(text, Loader=yaml.SafeLoader):
            start, end = token.start_mark, token.end_mark
            depth += isinstance(token, opening) - isinstance(token, closing)
            # What the scanner does for a token grows with the brackets around it.
            if start.line > line or depth > MAX_DEPTH:
                break
            quoted = isinstance(token, yaml.ScalarToken) and token.style in ("'", '"')
            if quoted and start.line < end.line == line and _LIKE_A_KEY.search(text, start.index, end.index):
                position = start.index
    return position


def _opening(opened: Any, start: int, length: int) -> int:
    """An unclosed quote or bracket, or a key without a colon, is fixed where it begins, not where the parser notices
    it."""
    return min(opened.index, length) if opened is not None else start


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    return max(min(end, start + 80), start + 1) if start < len(text) else start


def _plain(words: str) -> str:
    return " ".join(words.split())
