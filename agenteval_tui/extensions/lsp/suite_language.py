"""What an editor of suite files asks: what may be written here, what is this, which fixes are there, where is that
defined. Everything is said in offsets of the file's text (characters, without a byte order mark).

It is all the app's: a suite is one type of `uxon.schema`, made from the models of suites and agents and from those of
the configs, and the tree of the file is printed as JSON for the functions that complete and explain a config. What is
written is written by `suites.editing`, as the app saves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.agents import registry as agents
from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError, Fix, TextEdit
from agenteval_tui.grading import registry
from agenteval_tui.grading.config.completion import complete_config, hover_config
from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.grading.config.schema import config_schema, object_type
from agenteval_tui.grading.type_names import short_name
from agenteval_tui.suites.agents_file import agents_path
from agenteval_tui.suites.config_source import ConfigSource, block_indent, source_of
from agenteval_tui.suites.editing import CriterionEdit, TestEdit, apply_edit
from agenteval_tui.suites.files import decode_utf8, read_bytes
from agenteval_tui.suites.load import LoadedSuite, load_text, tree_of
from agenteval_tui.suites.model import AgentConfig, Suite
from agenteval_tui.suites.unquoted_hash import cut_texts
from agenteval_tui.suites.yaml.edit import own_pairs
from agenteval_tui.suites.yaml.line_index import LineIndex
from agenteval_tui.suites.yaml.tree import Alias, MappingNode, Node, ScalarNode, SequenceNode, compose, resolve
from agenteval_tui.suites.yaml.write import flow, plain
from agenteval_tui.uxon.complete import Completion, Offer, complete
from agenteval_tui.uxon.edit import edits_between
from agenteval_tui.uxon.format import format_text
from agenteval_tui.uxon.hover import Hover, hover
from agenteval_tui.uxon.name_source import NO_FACTS, Facts
from agenteval_tui.uxon.parse import parse
from agenteval_tui.uxon.schema import ArrayType, MapType, ObjectType, Property, ScalarType, Type, UnionType, Variants

Path_ = tuple[str | int, ...]
_MARK = "\ue000here\ue000"
_WORD = re.compile(r"[^\s,\[\]{}:\"'#]*")
_COLON = re.compile(r"[\"']?[ \t]*:")
_Reader = Callable[..., tuple[Any, ...]]
_STYLES_WRITTEN = ("literal", "double", "single")


class Explained(Struct, frozen=True):
    """What the characters `start`..`end` mean: lines of plain text, the first is a title."""

    start: int
    end: int
    lines: tuple[str, ...]


class ConfigFix(Struct, frozen=True):
    """A fix for the problem with this code at `start`..`end`: edits of the file's text."""

    code: str
    start: int
    end: int
    fix: Fix


class Target(NamedTuple):
    """Where something is defined: the characters `start`..`end` of a file's text ("" and 0 for a file as a whole)."""

    path: Path
    text: str = ""
    start: int = 0
    end: int = 0


# Where the cursor is


class _Spot(NamedTuple):
    """The innermost scalar at an offset: the way to it (of a key: to its value), and whether it is a key."""

    path: Path_
    node: ScalarNode
    is_key: bool


def _spot_at(root: Node | None, offset: int) -> _Spot | None:
    path: list[str | int] = []
    node = root
    while node is not None:
        # What is written at an alias stands elsewhere, and means more than this place.
        if isinstance(node, Alias):
            return None
        if isinstance(node, ScalarNode):
            return _Spot(tuple(path), node, False) if node.start <= offset <= node.end else None
        below: Node | None = None
        if isinstance(node, MappingNode):
            for key, value in own_pairs(node):
                if key.start <= offset <= key.end:
                    return _Spot((*path, key.text), key, True)
                if value.start <= offset <= value.end:
                    below, step = value, key.text
                    path.append(step)
                    break
        else:
            for index, item in enumerate(node.items):
                if item.start <= offset <= item.end:
                    below = item
                    path.append(index)
                    break
        node = below
    return None


def _at(root: Node | None, path: Path_) -> Node | None:
    node = root
    for step in path:
        real = resolve(node) if node is not None else None
        if isinstance(real, MappingNode) and isinstance(step, str):
            node = real.get(step)
        elif isinstance(real, SequenceNode) and isinstance(step, int) and step < len(real.items):
            node = real.items[step]
        else:
            return None
    return node


def _text_at(root: Node | None, path: Path_) -> str:
    node = _at(root, path)
    real = resolve(node) if node is not None else None
    return real.text if isinstance(real, ScalarNode) else ""


def _in_text_config(spot: _Spot | None) -> bool:
    """Whether the spot is a config that is written as a text."""
    return spot is not None and not spot.is_key and _is_config(spot.path)


def _is_config(path: Path_) -> bool:
    return len(path) == 5 and path[0] == "tests" and path[2] == "criteria" and path[4] == "config_uxon"


def _tree(text: str) -> Node | None:
    return tree_of(text, lambda *_: None)[0]


# The type of a suite


class _Kinds(Mapping[str, ObjectType]):
    """The options of each kind of agent. A kind's are loaded when someone asks for them."""

    def __getitem__(self, kind: str) -> ObjectType:
        if kind not in self:
            raise KeyError(kind)
        try:
            model = agents.options_model(kind)
        except AgentevalError as broken:
            return ObjectType(kind, str(broken), extra=True)
        if model is None:
            return ObjectType(kind, extra=True)
        schema = object_type(model)
        return replace(schema, name=kind, properties=_without(schema, "kind"))

    def __contains__(self, kind: object) -> bool:
        return kind in agents.kinds()

    def __iter__(self) -> Iterator[str]:
        return iter(agents.kinds())

    def __len__(self) -> int:
        return len(agents.kinds())


class _Criteria(Mapping[str, ObjectType]):
    """A criterion's `config_uxon` by prototype class."""

    def __getitem__(self, name: str) -> ObjectType:
        if name not in self:
            raise KeyError(name)
        config = config_schema(name)
        doc = " ".join((registry.prototype(name).__doc__ or "").split())
        either = UnionType((config, ScalarType("string")))
        return ObjectType(name, doc, (Property("config_uxon", either, required=True, doc=_CONFIG),))

    def __contains__(self, name: object) -> bool:
        return name in registry.prototype_names()

    def __iter__(self) -> Iterator[str]:
        return iter(registry.prototype_names())

    def __len__(self) -> int:
        return len(registry.prototype_names())


_CONFIG = "The configuration: UXON (JSON with comments) as a text, or the same as YAML."


def _without(kind: ObjectType, *names: str) -> tuple[Property, ...]:
    return tuple(prop for prop in kind.properties if prop.name not in names)


def suite_type(known_agents: Iterable[str] = ()) -> ObjectType:
    """The type of a suite file. `known_agents`: the names that `agent` may have."""
    names = tuple(known_agents)

    def fitted(kind: Type) -> Type:
        if isinstance(kind, ArrayType):
            return ArrayType(fitted(kind.item))
        if isinstance(kind, MapType):
            return MapType(fitted(kind.value))
        if isinstance(kind, UnionType):
            return UnionType(tuple(fitted(option) for option in kind.options))
        if not isinstance(kind, ObjectType):
            return kind
        if kind.name == "AgentConfig":
            return replace(kind, variants=Variants(_Kinds(), "kind", str, "agent"), properties=())
        properties = tuple(
            replace(prop, type=fitted(prop.type), examples=names if prop.name == "agent" else prop.examples)
            for prop in kind.properties
        )
        if kind.name == "Criterion":
            variants = Variants(_Criteria(), "prototype_class", short_name, "criterion")
            rest = tuple(prop for prop in properties if prop.name not in ("prototype_class", "config_uxon"))
            return replace(kind, properties=rest, variants=variants)
        return replace(kind, properties=properties)

    schema = fitted(object_type(Suite))
    assert isinstance(schema, ObjectType)
    return schema


def _printed(root: Node, path: Path_, text: str) -> tuple[str, Path_]:
    """The suite as JSON, of its tests only the one on `path`; and the path in that."""
    if not isinstance(root, MappingNode):
        return source_of(root, text, LineIndex("")).text, path
    pairs: dict[ScalarNode, Node] = {}
    for key, value in root.pairs.items():
        listed = resolve(value)
        if key.text == "tests" and isinstance(listed, SequenceNode):
            on_way = path[:1] == ("tests",) and len(path) > 1
            items = [listed.items[int(path[1])]] if on_way else []
            value = SequenceNode(listed.start, listed.end, listed.flow, items)
        pairs[key] = value
    reduced = MappingNode(root.start, root.end, root.flow, pairs)
    shorter = ("tests", 0, *path[2:]) if path[:1] == ("tests",) and len(path) > 1 else path
    return source_of(reduced, text, LineIndex("")).text, shorter


# Completion


def complete_suite(
    text: str, offset: int, known_agents: Iterable[str] = (), facts: Facts = NO_FACTS
) -> tuple[Offer, ...]:
    """What can be written at `offset` of a suite's text, best first. Never raises; () where nothing is known."""
    spot = _spot_at(root := _tree(text), offset)
    if _in_text_config(spot) and spot is not None:
        return _in_config(text, offset, root, spot, facts)
    return _in_yaml(text, offset, suite_type(known_agents), facts)


def _in_config(text: str, offset: int, root: Node | None, spot: _Spot, facts: Facts) -> tuple[Offer, ...]:
    """In a config that is a text: the app's completion, its edits brought into the file."""
    prototype_class = _text_at(root, (*spot.path[:-1], "prototype_class"))
    source = source_of(spot.node, text, LineIndex(text))
    # A folded or plain scalar has line breaks that an edit can't keep.
    if source.style not in _STYLES_WRITTEN:
        return ()
    completions = complete_config(source.text, source.from_offset(offset), prototype_class, facts)
    write = _writer(spot.node, source, text)
    return tuple(
        Offer(completion.label, completion.kind, completion.detail, tuple(write(edit) for edit in completion.edits))
        for completion in completions
    )


def _writer(node: ScalarNode, source: ConfigSource, text: str) -> Callable[[TextEdit], TextEdit]:
    """What makes an edit of the file of an edit of a config's text."""
    eol = "\r\n" if "\r\n" in text else "\n"
    indent = " " * block_indent(node, text) if source.style == "literal" else ""

    def write(edit: TextEdit) -> TextEdit:
        start, end, new = source.to_offset(edit.start), source.to_offset(edit.end), edit.text
        if source.style == "literal":
            new = new.replace("\n", eol + indent)
            line = text[text.rfind("\n", 0, start) + 1 : start]
            if not line.strip(" "):  # at the beginning of a line, or of an empty block
                new = indent[len(line) :] + new
        elif source.style == "double":
            new = json.dumps(new, ensure_ascii=False)[1:-1]
        else:
            new = new.replace("'", "''").replace("\n", " ")
        return TextEdit(start, end, new)

    return write


def _in_yaml(text: str, offset: int, schema: ObjectType, facts: Facts) -> tuple[Offer, ...]:
    """In YAML: the word at the cursor is replaced by a mark, as a value and as a key, and the suite read with it."""
    start = offset
    while start and _WORD.fullmatch(text[start - 1]):
        start -= 1
    match = _WORD.match(text, offset)
    end = match.end() if match else offset
    line = text[text.rfind("\n", 0, start) + 1 : start]
    if "#" in line and re.search(r"(?:^|\s)#", line):
        return ()  # in a comment
    # A key that is replaced keeps its colon.
    colon = "" if _COLON.match(text, end) else ": "
    alone = bool(colon) and not line.strip(" -")
    offers: dict[str, Offer] = {}
    # First what is more likely here: a word that has the line for itself is mostly a key.
    marked = [(as_key, text[:start] + _MARK + (": " if as_key else "") + text[end:]) for as_key in (alone, not alone)]
    # Reading on behind what is broken takes longer than to read; it is done where nothing is found without.
    readers: Iterator[_Reader] = iter((compose, tree_of))
    for written_text, root, spot in chain.from_iterable(
        _marks(marked, start, read) for read in takewhile(lambda _: not offers, readers)
    ):
        # Of the tests only this one: a suite may have thousands, and this runs at each key.
        printed, _ = _printed(root, spot.path, written_text)
        quoted = json.dumps(_MARK, ensure_ascii=False)
        at = printed.find(quoted)
        if at < 0:
            continue
        without = printed[:at] + '""' + printed[at + len(quoted) :]
        for completion in complete(without, at + 1, schema, facts):
            # An empty object is written by its first key.
            if completion.label == "{}":
                continue
            written = _as_key(completion) + colon if spot.is_key else _as_value(completion, spot.node.style, alone)
            offers.setdefault(
                completion.label,
                Offer(completion.label, completion.kind, completion.detail, (TextEdit(start, end, written),)),
            )
        if offers and not alone:
            break
    return tuple(offers.values())


def _marks(marked: Iterable[tuple[bool, str]], start: int, read: _Reader) -> Iterator[tuple[str, Node, _Spot]]:
    """The texts in which the mark is a key or a value by itself, with their trees and where it is."""
    for as_key, text in marked:
        root = read(text, lambda *_: None)[0]
        spot = _spot_at(root, start + 1)
        if root is not None and spot is not None and spot.node.text == _MARK and (spot.is_key or not as_key):
            yield text, root, spot


def _as_key(completion: Completion) -> str:
    return plain(completion.label) or json.dumps(completion.label, ensure_ascii=False)


def _as_value(completion: Completion, style: str, alone: bool) -> str:
    """A value as YAML. `style`: of the quotes that are already used; `alone`: it has the line for itself."""
    if style:
        return (
            json.dumps(completion.label, ensure_ascii=False)[1:-1]
            if style == '"'
            else completion.label.replace("'", "''")
        )
    value = parse("".join(edit.text for edit in completion.edits)).value
    if isinstance(value, str):
        return plain(value) or json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict) and len(value) == 1 and alone:
        ((key, inner),) = value.items()
        return f"{key}: {flow(inner)}" if not isinstance(inner, str) else f"{key}: {plain(inner) or flow(inner)}"
    return flow(value, bare_keys=True)


# What is under the cursor


def explain_suite(text: str, offset: int) -> Explained | None:
    """What is known of the key or value at `offset`; None where there is nothing to say. Never raises."""
    root = _tree(text)
    spot = _spot_at(root, offset)
    if root is None or spot is None:
        return None
    if _in_text_config(spot):
        source = source_of(spot.node, text, LineIndex(text))
        prototype_class = _text_at(root, (*spot.path[:-1], "prototype_class"))
        in_config = hover_config(source.text, source.from_offset(offset), prototype_class)
        if in_config is not None:
            return Explained(source.to_offset(in_config.start), source.to_offset(in_config.end), in_config.lines())
        return None
    printed, path = _printed(root, spot.path, text)
    document = parse(printed)
    owner = document.node(path[:-1])
    if not path or owner is None:
        return None
    at: int | None = None
    if spot.is_key:
        member = owner.member(str(path[-1]))
        at = member.key_start if member is not None else None
    else:
        node = document.node(path)
        at = node.start if node is not None else None
    in_suite: Hover | None = hover(printed, at + 1, suite_type()) if at is not None else None
    return Explained(spot.node.start, spot.node.end, in_suite.lines()) if in_suite is not None else None


# Fixes and layout


def config_fixes(loaded: LoadedSuite, start: int, end: int) -> Iterator[ConfigFix]:
    """The fixes for problems that touch the characters `start`..`end` of the file: those that the app has on F4."""
    for cut_text in cut_texts(loaded, loaded.root):
        if cut_text.start <= end and start <= cut_text.end:
            yield ConfigFix("cut-text", cut_text.start, cut_text.end, cut_text.fix)
    for test_id, number, prototype_class in _configs(loaded, start, end):
        source = loaded.config_source(test_id, number)
        for problem in diagnose(source.text, prototype_class):
            first, last = source.to_offset(problem.start), source.to_offset(problem.end)
            if problem.fix is None or last < start or end < first:
                continue
            edits = _edited(loaded, test_id, {number: problem.fix.apply(source.text)})
            if edits:
                yield ConfigFix(problem.code, first, max(first, last), Fix(problem.fix.title, edits))


def format_suite(loaded: LoadedSuite) -> tuple[TextEdit, ...]:
    """The edits that lay out every config that is written as a text; what else the file has stays as it is."""
    text = loaded.text
    for test in loaded.suite.tests if loaded.suite is not None else ():
        new = {}
        for number, criterion in enumerate(test.criteria):
            if isinstance(criterion.config_uxon, str):
                laid_out = format_text(criterion.config_uxon)
                if laid_out != criterion.config_uxon:
                    new[number] = laid_out
        if new:
            # Each test is written into the text with those before it: their places have moved.
            text = _saved(loaded, test.id, new, text) or text
    # Only what differs, so that the cursor and folds of the editor stay.
    return edits_between(loaded.text, text)


def _configs(loaded: LoadedSuite, start: int, end: int) -> Iterator[tuple[str, int, str]]:
    """(test, criterion, prototype class) of the configs that touch the characters `start`..`end`."""
    for test in loaded.suite.tests if loaded.suite is not None else ():
        node = loaded.node(test.id)
        if node.start > end or resolve(node).end < start:
            continue
        for number, criterion in enumerate(test.criteria):
            config = loaded.config_node(test.id, number)
            if config.start <= end and start <= resolve(config).end:
                yield test.id, number, criterion.prototype_class


def _edited(loaded: LoadedSuite, test_id: str, configs: Mapping[int, str]) -> tuple[TextEdit, ...]:
    """The edits of the file that give criteria of a test these configs; () where they can't be written."""
    new = _saved(loaded, test_id, configs, loaded.text)
    return edits_between(loaded.text, new) if new is not None else ()


def _saved(loaded: LoadedSuite, test_id: str, configs: Mapping[int, str], text: str) -> str | None:
    """`text` (a suite of the same tests) with these configs, written as the app saves them: those that were YAML stay
    YAML."""
    current = loaded if text == loaded.text else load_text(text, loaded.path)
    test = current.suite.test(test_id) if current.suite is not None else None
    if test is None:
        return None
    edits = []
    for number, criterion in enumerate(test.criteria):
        changes: dict[str, Any] = {}
        if number in configs:
            as_text = isinstance(criterion.config_uxon, str)
            changes["config_uxon"] = configs[number] if as_text else parse(configs[number]).value
        edits.append(CriterionEdit(number, changes))
    try:
        return apply_edit(current, test_id, TestEdit(criteria=edits))
    except AgentevalError:
        return None


# Where things are defined


def definition(loaded: LoadedSuite, offset: int) -> Target | None:
    """Where the agent, judge, dataset or tools file that is named at `offset` is; None where nothing is named."""
    spot = _spot_at(loaded.root, offset)
    if spot is None or spot.is_key:
        return None
    name, last = spot.node.text, spot.path[-1] if spot.path else ""
    if _is_config(spot.path):
        source = source_of(spot.node, loaded.text, loaded.places)
        document = parse(source.text)
        inner = document.path_at(source.from_offset(offset))
        node = document.node(inner)
        if not inner or inner[-1] not in ("judge", "embedder") or node is None or not isinstance(node.value, str):
            return None
        return _agent(loaded, node.value)
    if last in ("agent", "judge", "embedder"):
        return _agent(loaded, name)
    is_file = spot.path[-2:] == ("dataset", "file") or (len(spot.path) == 3 and last == "tools")
    if is_file and name and not name.startswith("builtin:"):
        try:
            path = (loaded.path.parent / name).resolve()
            return Target(path) if path.is_file() else None
        except (OSError, ValueError, RuntimeError):
            return None
    return None


def _agent(loaded: LoadedSuite, name: str) -> Target | None:
    """Where an agent is configured: in the suite, else in the user's agents.yaml."""
    # The suite's own agent counts, not the user's of the same name.
    here = _key(_at(loaded.root, ("agents",)), name)
    if here is not None:
        return Target(loaded.path, loaded.text, here.start, here.end)
    path = agents_path(directories.config_dir())
    try:
        text = decode_utf8(read_bytes(path), path)
    except AgentevalError:
        return None
    root = _tree(text)
    there = _key(_at(root, ("agents",)) or root, name)
    return Target(path, text, there.start, there.end) if there is not None else None


def _key(node: Node | None, name: str) -> ScalarNode | None:
    real = resolve(node) if node is not None else None
    return real.key(name) if isinstance(real, MappingNode) else None


def agent_names(loaded: LoadedSuite, user_agents: Mapping[str, AgentConfig]) -> tuple[str, ...]:
    """The names that `agent` may have in this suite: its own first."""
    own = _at(loaded.root, ("agents",))
    real = resolve(own) if own is not None else None
    names = [key.text for key in real.pairs] if isinstance(real, MappingNode) else []
    return tuple(dict.fromkeys([*names, *user_agents]))


def id_of_test_at(loaded: LoadedSuite, offset: int) -> str:
    """The id of the test around `offset`; "" outside of all."""
    for test_id, node in loaded.test_nodes.items():
        if node.start <= offset <= resolve(node).end:
            return test_id
    return ""
