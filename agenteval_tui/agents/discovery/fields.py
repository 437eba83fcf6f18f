"""The fields of classes that agents take: run contexts, states of graphs, bodies of requests."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from typing import Any

from msgspec import Struct

from agenteval_tui.agents.discovery.python_module import Module, Modules, annotation_of, code_of

MESSAGE_FIELDS = (
    *("message", "prompt", "query", "question", "input", "user_input", "user_message", "text", "content", "task"),
    *("messages", "user_query", "msg", "topic", "request", "input_text", "user_prompt", "instruction"),
)
ANSWER_FIELDS = (
    *("answer", "response", "reply", "output", "result", "message", "content", "text", "final_answer", "final_output"),
    *("generation", "completion", "summary", "report", "final_report", "output_text", "assistant_message"),
)
_NAMES_A_THING = re.compile(
    r"(?:^|_)(?:id|ids|uuid|key|token|url|path|file|filename|folder|dir|directory|email|date|status)$"
)
_DEEPEST = 6
_SIMPLE: dict[str, Any] = {
    "int": 1,
    "float": 1.0,
    "bool": False,
    "dict": {},
    "list": [],
    "Dict": {},
    "List": [],
    "set": [],
}


class ClassField(Struct, frozen=True):
    """A field of a class: its annotation as text, and whether it has a default."""

    name: str
    annotation: ast.expr | None
    has_default: bool


def fields_of(
    modules: Modules, module: Module, node: ast.expr | None, depth: int = 0
) -> tuple[Module, list[ClassField]] | None:
    """The fields of the class that an expression names, those of its bases first; None if it isn't in the project."""
    place = modules.value(module, node)
    # `class Body(Body)` extends a class of another module that has its name: here it seems to be its own base.
    if place is None or not isinstance(place[1], ast.ClassDef) or depth > _DEEPEST:
        return None
    where, cls = place[0], place[1]
    fields: dict[str, ClassField] = {}
    for base in cls.bases:
        inherited = fields_of(modules, where, base, depth + 1)
        if inherited is not None:
            fields.update({field.name: field for field in inherited[1]})
        elif where.qualified(base).rpartition(".")[2] in ("MessagesState", "AgentState", "CopilotKitState"):
            fields["messages"] = ClassField("messages", None, True)
    partial = any(word.arg == "total" for word in cls.keywords)
    for statement in cls.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            if "ClassVar" in code_of(statement.annotation):
                continue
            default = statement.value is not None and not _is_required(statement.value)
            name = statement.target.id
            fields[name] = ClassField(name, statement.annotation, default or partial)
    return where, list(fields.values())


def _is_required(value: ast.expr) -> bool:
    """`Field(...)`, or Field(description=...) and field(metadata=...) without a default."""
    if not isinstance(value, ast.Call) or code_of(value.func).rpartition(".")[2] not in ("Field", "field"):
        return isinstance(value, ast.Constant) and value.value is ...
    first = value.args[0] if value.args else None
    if first is not None:
        return isinstance(first, ast.Constant) and first.value is ...
    return not any(word.arg in ("default", "default_factory", "init") for word in value.keywords)


def names_a_thing(field: str) -> bool:
    """Whether a text with this name names something, and asks nothing: session_id."""
    return bool(_NAMES_A_THING.search(field))


def is_text(annotation: ast.expr) -> bool:
    """Whether a text is declared, or what may be one: `str | None`, `Any`."""
    declared = annotation_of(annotation)
    if declared is None:
        return False
    if isinstance(declared, ast.BinOp):  # str | None
        return is_text(declared.left) or is_text(declared.right)
    name = code_of(declared.value if isinstance(declared, ast.Subscript) else declared).rpartition(".")[2]
    if isinstance(declared, ast.Subscript) and name in ("Annotated", "NotRequired", "Optional", "Required", "Union"):
        parts = declared.slice.elts if isinstance(declared.slice, ast.Tuple) else [declared.slice]
        # What comes after the type of Annotated is about it.
        return any(map(is_text, parts[: 1 if name == "Annotated" else None]))
    return name in ("str", "Any", "object")


def is_number(annotation: ast.expr | None) -> bool:
    """Whether a number or a truth value is declared."""
    return annotation is not None and code_of(annotation) in ("int", "float", "bool")


def place_for_prompt(
    modules: Modules, module: Module, fields: list[ClassField], *, computed: Collection[str] = (), depth: int = 0
) -> tuple[str, Any] | None:
    """The field that takes the prompt, and its value; None where none does. A class of the project takes it in one of
    its own fields. `computed`: fields that the agent fills itself."""
    texts = [field.name for field in fields if field.annotation is None or is_text(field.annotation)]
    if (name := next((name for name in MESSAGE_FIELDS if name in texts), None)) is not None:
        return name, "{{prompt}}"
    for field in fields:
        if field.name in computed or names_a_thing(field.name):
            continue
        if field.name in texts:
            return field.name, "{{prompt}}"
        inner = fields_of(modules, module, field.annotation) if depth <= _DEEPEST else None
        if inner is None:
            continue
        can, value = placeholder(modules, module, field.annotation)
        place = place_for_prompt(modules, inner[0], inner[1], depth=depth + 1)
        if can and place is not None:
            return field.name, {**dict(value), place[0]: place[1]}
    return None


def placeholder(modules: Modules, module: Module, annotation: ast.expr | None, depth: int = 0) -> tuple[bool, Any]:
    """(whether a value can be written for this type, the value)."""
    if annotation is None:
        return True, "example"
    annotation = annotation_of(annotation)
    if annotation is None:
        return False, None
    text = code_of(annotation)
    if text == "str":
        return True, "example"
    if text in _SIMPLE:
        return True, _SIMPLE[text]
    if "None" in text or text.startswith(("Optional[", "typing.Optional[")):
        return True, None
    if isinstance(annotation, ast.Subscript):
        outer = code_of(annotation.value).rpartition(".")[2]
        inner = annotation.slice.elts[0] if isinstance(annotation.slice, ast.Tuple) else annotation.slice
        if outer == "Literal":
            return True, inner.value if isinstance(inner, ast.Constant) else None
        if outer == "Annotated":
            return placeholder(modules, module, inner, depth + 1)
        if outer in _SIMPLE:
            return True, _SIMPLE[outer]
        if outer in ("tuple", "Tuple") and isinstance(annotation.slice, ast.Tuple):
            parts = [placeholder(modules, module, part, depth + 1) for part in annotation.slice.elts]
            return all(can for can, _ in parts), [value for _, value in parts]
    fields = fields_of(modules, module, annotation) if depth <= _DEEPEST else None
    if fields is not None:
        values = {}
        for field in fields[1]:
            if not field.has_default:
                can, value = placeholder(modules, fields[0], field.annotation, depth + 1)
                if not can:
                    return False, None
                values[field.name] = value
        return True, values
    return False, None


def context_for(modules: Modules, module: Module, node: ast.expr | None) -> tuple[Any, tuple[str, ...]]:
    """What to write as `context` for an agent that declares this type, and the fields for which nothing can be
    written. None: nothing needs to be."""
    if node is None:
        return None, ()
    name = code_of(node)
    if name in ("None", "type(None)", "Any", "object"):
        return None, ()
    if name in ("str", *_SIMPLE):
        return placeholder(modules, module, node)[1], ()
    fields = fields_of(modules, module, node)
    if fields is None:
        return None, ()
    where, listed = fields
    is_dict = is_typed_dict(modules, module, node)
    written: dict[str, Any] = dict(_used(modules, module, name))
    incomplete = []
    for field in listed:
        if field.has_default or field.name in written or is_dict:
            continue
        can, value = placeholder(modules, where, field.annotation)
        if can and not (
            isinstance(value, dict) and fields_of(modules, where, field.annotation) is not None and not value
        ):
            written[field.name] = value
        elif not can and not _is_empty_class(field.annotation):
            incomplete.append(field.name)
    needed = {field.name for field in listed if not field.has_default}
    return {key: value for key, value in written.items() if key in needed} or None, tuple(incomplete)


def is_typed_dict(modules: Modules, module: Module, node: ast.expr | None, depth: int = 0) -> bool:
    """Whether the class that an expression names says what keys a dict may have."""
    place = modules.value(module, node)
    # As in `fields_of`, a class may seem to be its own base.
    if place is None or not isinstance(place[1], ast.ClassDef) or depth > _DEEPEST:
        return False
    return any(
        "TypedDict" in code_of(base) or is_typed_dict(modules, place[0], base, depth + 1) for base in place[1].bases
    )


def _is_empty_class(annotation: ast.expr | None) -> bool:
    """Classes of well-known packages that are made with nothing (`python_context` does it)."""
    return code_of(annotation).rpartition(".")[2] in ("AsyncClient", "Client", "Session") if annotation else False


def _used(modules: Modules, module: Module, name: str) -> dict[str, Any]:
    """The literals that the module's own code makes it with."""
    for node in module.nodes:
        if isinstance(node, ast.Call) and code_of(node.func) == name:
            values = {word.arg: modules.literal(module, word.value) for word in node.keywords if word.arg}
            plain = {key: value for key, value in values.items() if isinstance(value, str | int | float | list | dict)}
            if plain:
                return plain
    return {}
