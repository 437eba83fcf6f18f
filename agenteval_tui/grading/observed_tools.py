"""What is known of an agent from its recordings: tools, their arguments, and what it says.

Plain data: `history.agent_facts` fills it from recordings, the linter and completion read it. It is what
`uxon.name_source.Facts` asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

EXAMPLES = 8
"""Values of one argument that are kept."""


class ArgumentFacts(Struct, frozen=True):
    """One argument of a tool: how many calls had it, with values of which JSON types (type: calls), and examples.

    `declared` are the types that the tool's schema allows (() where it says nothing); `choices` its enum.
    """

    name: str
    calls: int = 0
    types: Mapping[str, int] = field(default_factory=dict)
    examples: tuple[Any, ...] = ()
    declared: tuple[str, ...] = ()
    choices: tuple[Any, ...] = ()
    required: bool = False


class ToolFacts(Struct, frozen=True):
    """One tool: how many calls were seen, and its arguments by name, the most used first.

    `declared`: the agent's configuration names it. `closed`: its schema allows no other arguments than those declared.
    """

    name: str
    calls: int = 0
    arguments: Mapping[str, ArgumentFacts] = field(default_factory=dict)
    declared: bool = False
    closed: bool = False
    description: str = ""


class AgentFacts(Struct, frozen=True):
    """What was seen in `runs` runs: tools by name (the most used first), and final answers, newest first, each once.

    `answers_runs` is the number of runs whose answers were read: not more than the newest few hundred.
    """

    runs: int = 0
    tools_by_name: Mapping[str, ToolFacts] = field(default_factory=dict)
    answers: tuple[str, ...] = ()
    answers_runs: int = 0
    probe_names: tuple[str, ...] = ()
    """The probes of the test whose criteria are written."""
    variable_names: tuple[str, ...] = ()
    """The variables of that test, and of its dataset."""

    def variables(self) -> Sequence[str]:
        """The names that a text may have as `{{name}}`."""
        return self.variable_names

    def probes(self) -> Sequence[str]:
        """The names of the test's probes."""
        return self.probe_names

    def tools(self) -> Sequence[str]:
        """The names of the tools, the most used first."""
        return tuple(self.tools_by_name)

    def arguments(self, tool: str) -> Sequence[str]:
        """The names of the arguments of `tool`, the most used first."""
        tool_facts = self.tools_by_name.get(tool)
        return tuple(tool_facts.arguments) if tool_facts is not None else ()

    def values(self, tool: str, argument: str) -> Sequence[Any]:
        """Values that an argument had or may have."""
        tool_facts = self.tools_by_name.get(tool)
        argument_facts = tool_facts.arguments.get(argument) if tool_facts is not None else None
        if argument_facts is None:
            return ()
        return (
            *argument_facts.examples,
            *(choice for choice in argument_facts.choices if choice not in argument_facts.examples),
        )

    def texts(self) -> Sequence[str]:
        """Lines of answers, the newest first: what a criterion may look for."""
        return _text_pieces(self.answers)


_MOST_PIECES = 60
_LONGEST_PIECE = 120


def _text_pieces(answers: Iterable[str]) -> tuple[str, ...]:
    """Lines of the answers that are short enough to be looked for, each once."""
    pieces: dict[str, None] = {}
    for answer in answers:
        for line in answer[:20_000].splitlines():
            piece = line.strip()
            if 1 < len(piece) <= _LONGEST_PIECE and not piece.startswith("```"):
                pieces[piece] = None
                if len(pieces) >= _MOST_PIECES:
                    return tuple(pieces)
    return tuple(pieces)


def with_declared(facts: AgentFacts, tools: Iterable[Mapping[str, Any]]) -> AgentFacts:
    """The facts with the tools of an agent's configuration: objects with `name`, `description`, `parameters`.

    `parameters` is a JSON Schema of an object; what is odd in it is passed over.
    """
    by_name = dict(facts.tools_by_name)
    for tool in tools:
        name = tool.get("name")
        if not isinstance(name, str) or not name:
            continue
        tool_facts = by_name.get(name, ToolFacts(name))
        # Tools that were written for Anthropic call the schema `input_schema`.
        schema = tool.get("parameters") or tool.get("input_schema")
        schema = schema if isinstance(schema, Mapping) else {}
        properties = schema.get("properties")
        required = schema.get("required")
        arguments = dict(tool_facts.arguments)
        for argument, definition in (properties if isinstance(properties, Mapping) else {}).items():
            inner = definition if isinstance(definition, Mapping) else {}
            arguments[str(argument)] = replace(
                arguments.get(str(argument), ArgumentFacts(str(argument))),
                declared=_types(inner),
                choices=tuple(inner["enum"]) if isinstance(inner.get("enum"), list) else (),
                required=isinstance(required, list) and argument in required,
            )
        by_name[name] = replace(
            tool_facts,
            arguments=arguments,
            declared=True,
            # By JSON Schema other arguments are allowed until it says otherwise; who declares some means those.
            closed=isinstance(properties, Mapping) and schema.get("additionalProperties") is not True,
            description=str(tool.get("description") or ""),
        )
    return replace(facts, tools_by_name=by_name)


_JSON_TYPES = {
    "integer": "number",
    **{name: name for name in ("string", "number", "boolean", "array", "object", "null")},
}


def _types(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The JSON types that a schema allows; () where that is not simply said."""
    declared = schema.get("type")
    listed = declared if isinstance(declared, list) else [declared]
    names = [_JSON_TYPES.get(name) for name in listed if isinstance(name, str)]
    if not names or None in names or len(names) != len(listed):
        return ()
    return tuple(dict.fromkeys(name for name in names if name is not None))
