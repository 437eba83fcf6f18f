"""Compare a config with its schema: names, exact types, required properties, regular expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from agenteval_tui.core.did_you_mean import closest
from agenteval_tui.core.errors import Fix, Severity
from agenteval_tui.core.phrasing import listed
from agenteval_tui.uxon.diagnostics import (
    MOST_DIAGNOSTICS,
    Diagnostic,
    replace_fix,
    surround_fix,
    without_doubtful_fixes,
)
from agenteval_tui.uxon.member_edits import insert_member, remove_member
from agenteval_tui.uxon.php_regex import PatternError, compile_pattern, suspicious_delimiter
from agenteval_tui.uxon.schema import (
    ArrayType,
    MapType,
    ObjectType,
    Property,
    ScalarType,
    Type,
    UnionType,
    Variants,
    expected,
    fits,
    found,
    shown,
)
from agenteval_tui.uxon.serialize import to_text
from agenteval_tui.uxon.strings import quote
from agenteval_tui.uxon.tree import Document, Member, Node

_TEMPLATE = re.compile(r"\{\{.*?\}\}")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?\Z")


def check(document: Document, schema: Type) -> tuple[Diagnostic, ...]:
    """All that is wrong with a config: the document's own diagnostics and what `schema` says, in the order of the text.

    An empty text is checked like `{}`, as far as its own diagnostic does not say it all.
    """
    if document.root is None:
        return document.diagnostics
    checker = _Checker(document, schema)
    checker.value(document.root, schema, "The config")
    diagnostics = sorted([*document.diagnostics, *checker.found], key=lambda d: (d.start, d.end))
    return tuple(without_doubtful_fixes(document.text, diagnostics))


class _Checker:
    def __init__(self, document: Document, schema: Type) -> None:
        self.document = document
        self.text = document.text
        self.schema = schema
        self.found: list[Diagnostic] = []

    def tell(
        self, code: str, message: str, start: int, end: int, fix: Fix | None = None, severity: Severity = "error"
    ) -> None:
        if len(self.found) < MOST_DIAGNOSTICS:
            self.found.append(Diagnostic(severity, code, message, start, end, fix))

    # ------------------------------------------------------------------ values
    def value(
        self, node: Node, kind: Type, name: str, owner: Node | None = None, parent: ObjectType | None = None
    ) -> None:
        """Check one value. `name` is how messages call it; `owner` is the object that holds it, if one does."""
        # The parser has said that a value is missing, and what is commented out may be anything.
        if node.kind == "missing" or node.commented:
            return
        if isinstance(kind, UnionType):
            self.union(node, kind, name, owner, parent)
        elif not fits(node, kind):
            self.wrong_type(node, kind, name, owner, parent)
        elif isinstance(kind, ScalarType):
            self.scalar(node, kind, name)
        elif isinstance(kind, ArrayType):
            for index, item in enumerate(node.items):
                self.value(item, kind.item, f"Item {index + 1} of {name}")
        elif isinstance(kind, MapType):
            for member in node.members:
                if not member.commented:
                    self.value(member.value, kind.value, quote(member.key))
        else:
            self.object(node, kind, name)

    def union(self, node: Node, kind: UnionType, name: str, owner: Node | None, parent: ObjectType | None) -> None:
        # Of the kind of value first: the complaints of an option for lists say nothing of an object.
        options = [option for option in kind.options if fits(node, option)]
        if not options:
            self.wrong_type(node, kind, name, owner, parent)
            return
        # Shown are the complaints of the option that fits best.
        best: list[Diagnostic] | None = None
        for option in options:
            trial = _Checker(self.document, self.schema)
            trial.value(node, option, name, owner, parent)
            if best is None or _weight(trial.found) < _weight(best):
                best = trial.found
            if not best:
                break
        self.found.extend(best or [])

    def scalar(self, node: Node, kind: ScalarType, name: str) -> None:
        value = node.value
        # What a template becomes is known only when the test runs.
        templated = isinstance(value, str) and "{{" in value
        if kind.enum and value not in kind.enum and not templated:
            near = closest(value, [e for e in kind.enum if isinstance(e, str)]) if isinstance(value, str) else None
            hint = f": did you mean {shown(near)}?" if near else f", not {shown(value)}: write one of these."
            fix = replace_fix(f"write {shown(near)}", node.start, node.end, quote(near)) if near else None
            self.tell("wrong-value", f"{name} takes {expected(kind)}{hint}", node.start, node.end, fix)
        elif kind.kind in ("integer", "number") and not isinstance(value, str) and value is not None:
            for bound, wrong, word in (
                (kind.minimum, kind.minimum is not None and value < kind.minimum, "least"),
                (kind.maximum, kind.maximum is not None and value > kind.maximum, "most"),
            ):
                if wrong and bound is not None:
                    right = str(int(bound)) if bound == int(bound) else str(bound)
                    fix = replace_fix(f"write {right}", node.start, node.end, right)
                    message = f"{name} is {shown(value)}, but at {word} {right} makes sense: write {right} or "
                    message += "more." if word == "least" else "less."
                    self.tell("out-of-range", message, node.start, node.end, fix)
        elif kind.kind == "regex":
            self.regex(node)

    def regex(self, node: Node) -> None:
        """The place of the mistake inside the pattern is brought back to the text, through the escapes of JSON."""
        value = str(node.value)
        # As long as it was, so that places in the pattern are those in the text.
        pattern = _TEMPLATE.sub(lambda m: "x" * len(m.group()), value)
        compiled = compile_pattern(pattern)
        if isinstance(compiled, PatternError):
            start = self.document.string_offset(node, compiled.position)
            end = max(self.document.string_offset(node, compiled.position + compiled.length), start + 1)
            fix = replace_fix("remove it", start, end, "") if compiled.remove else None
            self.tell("bad-regex", compiled.message, start, min(end, node.end), fix)
        elif warning := suspicious_delimiter(compiled.parts):
            right = (
                None if node.items else replace_fix("put it between slashes", node.start, node.end, quote(warning[1]))
            )
            self.tell("regex-delimiter", warning[0], node.start, node.end, right, "warning")

    # ------------------------------------------------------------------ objects
    def object(self, node: Node, kind: ObjectType, name: str) -> None:
        variant: ObjectType | None = None
        unsure = False
        if kind.variants is not None:
            variant, unsure = self.variant(node, kind, kind.variants)
        properties = [*kind.properties, *(variant.properties if variant else ())]
        # Reversed, so that of two with one name the first counts.
        by_name = {alias: prop for prop in reversed(properties) for alias in (*prop.aliases, prop.name)}
        member_by_name: dict[str, Member] = {}
        meant: set[str] = set()  # a misspelt name is one mistake, not also a missing property
        for index, member in enumerate(node.members):
            if member.commented:
                continue
            prop = by_name.get(member.key)
            if prop is not None:
                before = member_by_name.get(prop.name)
                if before is not None and before.key != member.key:
                    message = f"{quote(before.key)} and {quote(member.key)} are the same property: remove one."
                    fix = remove_member(self.text, node.start, node.members, index, "remove this one")
                    self.tell("duplicate-key", message, member.key_start, member.key_end, fix)
                member_by_name[prop.name] = member
                self.value(member.value, prop.type, quote(member.key), node, variant or kind)
            elif kind.extra or (variant is not None and variant.extra) or unsure:
                continue
            elif kind.variants is None or member.key != kind.variants.discriminator:
                meant.add(self.unknown(node, member, properties, variant.name if variant else kind.name))
        present = {*member_by_name, *meant, kind.variants.discriminator if kind.variants else ""}
        for prop in properties:
            if prop.required and prop.name not in present:
                self.missing(node, prop, variant.name if variant else name)

    def variant(self, node: Node, kind: ObjectType, variants: Variants) -> tuple[ObjectType | None, bool]:
        """Which variant an object is, and whether that is uncertain (then unknown names say nothing)."""
        key, noun = variants.discriminator, variants.noun
        member = node.member(key)
        if member is None:
            names = {m.key for m in node.members if not m.commented}
            likely = self.likely(names, kind, variants)
            at = (node.start, node.start + 1)
            if len(likely) == 1:
                adding = insert_member(self.text, node, key, quote(likely[0]), f'add "{key}": "{likely[0]}"')
                message = (
                    f'This {noun} needs a "{key}": its properties are those of {likely[0]}. Add "{key}": "{likely[0]}".'
                )
                self.tell("missing-required", message, *at, adding)
                return variants.options[likely[0]], False
            choice = likely if likely else list(variants.options)
            self.tell(
                "missing-required",
                f'This {noun} needs a "{key}": write one of {listed([quote(name) for name in choice], 8, "or")}.',
                *at,
            )
            return None, True
        value = member.value
        if value.kind == "missing":
            return None, True
        if value.kind != "string":
            if kind.property(key) is None:  # else its own type says it
                message = f'"{key}" takes the name of a {noun}, not {found(value)}: write one of'
                self.tell("wrong-type", f"{message} {_names(variants)}.", value.start, value.end)
            return None, True
        name = variants.normalise(value.value)
        if name in variants.options:
            return variants.options[name], False
        if "{{" in value.value:
            return None, True
        near = closest(name, variants.options)
        fix = replace_fix(f"write {near}", value.start, value.end, quote(near)) if near else None
        hint = f"did you mean {near}?" if near else f"write one of {_names(variants)}."
        self.tell(
            "unknown-type", f"There is no {noun} of type {shown(value.value)}: {hint}", value.start, value.end, fix
        )
        return (variants.options[near], False) if near else (None, True)

    def likely(self, names: Iterable[str], kind: ObjectType, variants: Variants) -> list[str]:
        own = [name for name in names if kind.property(name) is None]
        if not own:
            return []
        return [n for n, option in variants.options.items() if all(option.property(name) is not None for name in own)]

    def unknown(self, node: Node, member: Member, properties: list[Property], where: str) -> str:
        """Report a name that is not known here; the name that was probably meant, or ""."""
        used_names = {m.key for m in node.members if not m.commented}
        free = [
            prop.name
            for prop in properties
            if prop.name not in used_names and not used_names.intersection(prop.aliases)
        ]
        near = closest(member.key, [prop.name for prop in properties])
        start, end = member.key_start, member.key_end
        head = f"{where} has no property {shown(member.key)}"
        index = node.members.index(member)
        if near and near not in free:
            fix = remove_member(self.text, node.start, node.members, index)
            message = f"{head}, and {shown(near)} already exists: remove this one."
            self.tell("unknown-property", message, start, end, fix)
            return near
        if near:
            fix = replace_fix(f"rename it to {near}", start, end, quote(near))
            self.tell("unknown-property", f"{head}: did you mean {shown(near)}?", start, end, fix)
            return near
        # Not like any name here: perhaps it is right, and only in the wrong object.
        home = _home(self.schema, member.key)
        fix = remove_member(self.text, node.start, node.members, index)
        if home and home != where:
            self.tell("unknown-property", f"{head}: it belongs to {home}, move it there.", start, end)
        elif free:
            self.tell("unknown-property", f"{head}: remove it, or use {listed(free, 12, 'or')}.", start, end, fix)
        else:
            self.tell("unknown-property", f"{head}: remove it.", start, end, fix)
        return ""

    def missing(self, node: Node, prop: Property, where: str) -> None:
        fix: Fix | None = None
        # Without a default there is nothing to write that would be right.
        if prop.default is not None:
            fix = insert_member(self.text, node, prop.name, to_text(prop.default), f"add {quote(prop.name)}")
        message = f"{where} needs {quote(prop.name)}: add it, as {expected(prop.type)}."
        self.tell("missing-required", message, node.start, node.start + 1, fix)

    # ------------------------------------------------------------------ wrong types
    def wrong_type(self, node: Node, kind: Type, name: str, owner: Node | None, parent: ObjectType | None) -> None:
        remedy = self.remedy(node, kind, owner)
        words = remedy.words
        if remedy.fix is None and owner is not None and parent is not None and (other := _sibling(node, name, parent)):
            words = f"for this use {other}"
        message = f"{name} takes {expected(kind)}, not {found(node)}: {words or f'write {expected(kind)}'}."
        self.tell("wrong-type", message, node.start, node.end, remedy.fix)
        for inner, inner_kind in remedy.inside:  # all that is wrong, in one go
            self.value(inner, inner_kind, name, owner, parent)

    def remedy(self, node: Node, kind: Type, owner: Node | None) -> _Remedy:
        """How to make the value right: in words, as an edit, and what of it then is to be checked as what."""
        options = kind.options if isinstance(kind, UnionType) else (kind,)
        source = self.text[node.start : node.end]
        if node is self.document.root and node.kind == "array" and isinstance(kind, ObjectType):
            wrapped = self.wrap_root(node, kind)
            if wrapped is not None:
                return wrapped
        for option in options:
            if isinstance(option, ArrayType) and fits(node, option.item) and node.value is not None:
                short = f"write [{source}]" if len(source) <= 40 and "\n" not in source else "put [ ] around it"
                fix = surround_fix("make it a list", node.start, node.end, "[", "]")
                return _Remedy(short, fix, ((node, option.item),))
        items = [item for item in node.items if not item.commented] if node.kind == "array" else []
        if len(items) == 1 and fits(items[0], kind) and items[0].kind != "missing":
            inner = self.text[items[0].start : items[0].end]
            short = f"write {inner}" if len(inner) <= 40 and "\n" not in inner else "remove the [ ] around it"
            fix = replace_fix("take it out of the list", node.start, node.end, inner)
            return _Remedy(short, fix, ((items[0], kind),))
        for option in options:
            right = _converted(node, source, option)
            if right is not None:
                return _Remedy(f"write {right}", replace_fix(f"write {right}", node.start, node.end, right))
        for option in options:
            if (
                isinstance(option, ObjectType)
                and node.kind in ("string", "number")
                and (key := _only_need(node, option))
            ):
                before = f"{{{quote(key)}: "
                fix = surround_fix("make it an object", node.start, node.end, before, "}")
                return _Remedy(f"write {before}{shown(node.value)}}}", fix)
        if node.kind == "literal" and node.value is None and owner is not None:
            index = next((i for i, m in enumerate(owner.members) if m.value is node), None)
            if index is not None:
                return _Remedy("remove the property", remove_member(self.text, owner.start, owner.members, index))
        return _Remedy("")

    def wrap_root(self, node: Node, kind: ObjectType) -> _Remedy | None:
        """A list where the whole config should be is most likely the list that one property of it takes."""
        for prop in kind.properties:
            if isinstance(prop.type, ArrayType) and all(fits(item, prop.type.item) for item in node.items):
                before = f"{{{quote(prop.name)}: "
                fix = surround_fix(f"make it {prop.name}", node.start, node.end, before, "}")
                return _Remedy(f"write {before}[...]}}", fix, ((node, prop.type),))
        return None


class _Remedy(NamedTuple):
    words: str
    fix: Fix | None = None
    inside: tuple[tuple[Node, Type], ...] = ()


def _weight(diagnostics: list[Diagnostic]) -> int:
    return sum(10 if d.severity == "error" else 1 for d in diagnostics)


def _names(variants: Variants) -> str:
    return listed([quote(name) for name in variants.options], 8, "or")


def _only_need(node: Node, kind: ObjectType) -> str:
    """The one property that an object needs, if the value fits it: "search" stands for {"name": "search"}."""
    needed = [prop for prop in kind.properties if prop.required]
    return needed[0].name if len(needed) == 1 and not kind.variants and fits(node, needed[0].type) else ""


def _converted(node: Node, source: str, kind: Type) -> str | None:
    """The same thing written as the type wants it: 5 as "5", "5" as 5, 1.0 as 1, "true" as true."""
    if not isinstance(kind, ScalarType):
        return None
    if kind.kind in ("string", "regex") and node.kind in ("number", "literal") and node.value is not None:
        return quote(source) if len(source) <= 60 else None
    # A longer text is no number or truth value in quotes, but a text in the wrong place.
    plain = node.value.strip() if isinstance(node.value, str) and len(node.value) <= 40 else None
    if kind.kind == "boolean":
        if plain is not None and plain.lower() in ("true", "false"):
            return plain.lower()
        if node.kind == "number" and node.value in (0, 1):
            return "true" if node.value else "false"
    if kind.kind == "number" and plain is not None and _NUMBER.match(plain):
        return plain
    if kind.kind == "integer":
        if plain is not None and _NUMBER.match(plain) and "." not in plain:
            return plain
        if isinstance(node.value, float) and node.value == int(node.value) and abs(node.value) < 1e15:
            return str(int(node.value))
    return None


def _sibling(node: Node, name: str, parent: ObjectType) -> str:
    """Other properties of the same family that accept this value: contains_all and contains_any for contains."""
    stem = name.strip('"').split("_")[0]
    others = [p.name for p in parent.properties if p.name.split("_")[0] == stem and fits(node, p.type)]
    return " or ".join(others)


def _home(schema: Type, name: str, visited: set[int] | None = None) -> str | None:
    """The name of the object type in `schema` that has a property of that name."""
    # Types may hold themselves: without this the search would not end.
    visited = set() if visited is None else visited
    if id(schema) in visited:
        return None
    visited.add(id(schema))
    if isinstance(schema, ArrayType):
        return _home(schema.item, name, visited)
    if isinstance(schema, MapType):
        return _home(schema.value, name, visited)
    inner: list[Type] = []
    if isinstance(schema, UnionType):
        inner = list(schema.options)
    elif isinstance(schema, ObjectType):
        if schema.property(name) is not None:
            return schema.name
        inner = [prop.type for prop in schema.properties]
        inner += schema.variants.options.values() if schema.variants else ()
    return next((home for kind in inner if (home := _home(kind, name, visited))), None)
