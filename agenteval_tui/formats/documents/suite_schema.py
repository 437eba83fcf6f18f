"""The JSON Schema of a suite file, for editors: `# yaml-language-server: $schema=...`.

It is made from the models of suites, prototype classes, metrics, agents' options and tools, those of installed plug-ins
too. It accepts what `agenteval validate` accepts, and refuses what that refuses as far as JSON Schema has words for it:
it compares no two values, and it does not look inside texts (`config_uxon` as a text, templates, regular expressions).

Draft 7, because editors know no later one well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from agenteval_tui.agents import registry as agents
from agenteval_tui.agents.tools.options import KINDS, MockEntry
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.schema_rules import where
from agenteval_tui.formats.documents.schema import Schema
from agenteval_tui.grading import registry
from agenteval_tui.grading.config.model import TOOL_ARGUMENTS
from agenteval_tui.grading.metrics.matchers import MATCHER_DOCS, NAMES, OPERANDS
from agenteval_tui.suites.model import Suite

DIALECT = "http://json-schema.org/draft-07/schema#"
ADDRESS = "https://json.schemastore.org/agenteval-suite.json"
"""The schema's `$id`, and where it may be found one day. Nothing is read from there."""

_REFERENCE = "#/definitions/"
_ALIASES = "x-aliases"
_FACTS = "facts"
_VARIABLE, _EXPORTED, _TOOL = "variable", "exported", "tool"
_EXPECTED, _EXPECTED_ARGUMENT = "expected", "expected.argument"
_COMMENTS: Schema = {r"^(?://|\*/)": {}}
_SHARED_FROM = 150  # characters
_YES_OR_NO = "^(?:yes|Yes|YES|on|On|ON|no|No|NO|off|Off|OFF)$"
_SHORTENED = r"[\\/.:]"
"""What separates namespaces in the name of a class (`grading.type_names.short_name`)."""
_SUFFIXES = "(?:TestCriterion|TestMetric|Criterion|Metric)?"


def suite_schema() -> Schema:
    """The schema of a suite file; JSON data."""
    schemas = _Definitions()
    whole = schemas.of_model(Suite, "suite.", _Yaml())
    schemas.add(_VARIABLE, _variable())
    schemas.add(_EXPORTED, _exported())
    for name, named in ((_EXPECTED, False), (_EXPECTED_ARGUMENT, True)):
        schemas.add(name, _expected(named))
    schemas.add(_TOOL, _tool(schemas))
    schemas.add("suite.AgentConfig", _agent(schemas))
    whole["properties"]["tests"]["type"] = "array"
    criterion = schemas.definitions["suite.Criterion"]
    criterion["properties"]["prototype_class"] |= _class_name(registry.prototype_names(), registry.prototype)
    criterion["properties"]["config_uxon"] |= {
        "type": ["string", "object"],
        "pattern": r"^[\s\ufeff]*(?:\{(?!\{)|/[/*]|$)",
    }
    criterion["properties"]["config_uxon"].pop("anyOf")
    criterion["allOf"] = list(_configs(schemas))
    schemas.share()
    return {
        "$schema": DIALECT,
        "$id": ADDRESS,
        "title": "agenteval suite",
        **{key: value for key, value in whole.items() if key != "title"},
        "required": ["tests"],
        "definitions": dict(sorted(schemas.definitions.items())),
    }


def criteria_schema() -> Schema:
    """The schema of a file of criteria, as `agenteval grade --criteria` takes it: one, several, or `criteria:`."""
    whole = suite_schema()
    name = "suite.Criterion"
    definitions = {**whole["definitions"]}
    definitions[name] = {**definitions[name], "required": ["prototype_class", "config_uxon"]}
    criterion: Schema = {"$ref": _REFERENCE + name}
    several: Schema = {"type": "array", "items": criterion}
    return {
        "$schema": DIALECT,
        "anyOf": [
            criterion,
            several,
            {"type": "object", "properties": {"criteria": several}, "required": ["criteria"]},
        ],
        "definitions": {name: definitions[name] for name in sorted(_used(criterion, definitions))},
    }


def _used(schema: Any, definitions: dict[str, Schema]) -> set[str]:
    """The definitions that a schema needs, however deep."""
    names: set[str] = set()
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            waiting += part.values()
            name = part.get("$ref")
            if isinstance(name, str) and (name := name.removeprefix(_REFERENCE)) not in names:
                names.add(name)
                waiting.append(definitions[name])
    return names


def _reference(name: str) -> Schema:
    return {"$ref": _REFERENCE + name}


# From pydantic's schema of a model to ours


class _Generator(GenerateJsonSchema):
    """Notes the other names of a field: pydantic knows the first alone."""

    def model_field_schema(self, schema: core_schema.ModelField) -> Schema:
        field_schema = super().model_field_schema(schema)
        aliases: Any = schema.get("validation_alias")
        if isinstance(aliases, list) and isinstance(aliases[0], list) and len(aliases) > 1:
            return {**field_schema, _ALIASES: [path[0] for path in aliases[1:]]}
        return field_schema


class _Dialect:
    """How the values of a family of models are written. This one: as the model has them, exactly."""

    comments = False
    """Whether keys that begin with // are comments."""

    def optional(self, schema: Schema) -> Schema:
        """The schema of a property that may be left out."""
        return schema

    def value(self, schema: Schema) -> Schema:
        """The schema of any value, its parts done already."""
        return schema


class _Yaml(_Dialect):
    """The suite itself: a text needs no quotes, whatever it looks like, and what is optional may be left empty."""

    def optional(self, schema: Schema) -> Schema:
        if "type" in schema and "enum" not in schema and "const" not in schema:
            return {**schema, "type": [*_types(schema), *(["null"] if "null" not in _types(schema) else [])]}
        if not {"anyOf", "$ref", "enum", "const"} & schema.keys() or _allows_null(schema):
            return schema
        return _any_of([schema, {"type": "null"}])

    def value(self, schema: Schema) -> Schema:
        kind = schema.get("type")
        if "enum" in schema or "const" in schema:
            return {key: value for key, value in schema.items() if key != "type"}
        # YAML reads 5 and true as no texts, and a suite takes them for what is written.
        if kind == "string":
            return {**schema, "type": ["string", "number", "boolean"]}
        if kind == "boolean":
            return {**schema, "type": ["boolean", "string"], "pattern": _YES_OR_NO}
        if kind == "array" and _is_text(schema.get("items")):  # a text that says null is that text
            return {**schema, "items": self.optional(schema["items"])}
        if kind == "object" and _is_text(schema.get("additionalProperties")):
            return {**schema, "additionalProperties": self.optional(schema["additionalProperties"])}
        return schema


class _Options(_Dialect):
    """The options of an agent: a text with `${VAR}` may become any other text."""

    def value(self, schema: Schema) -> Schema:
        if "enum" in schema or "const" in schema:
            return _or_text_with(r"\$\{", schema)
        return schema


class _Config(_Dialect):
    """A `config_uxon`: nothing is null, a text with `{{name}}` may become any other text, and there are comments."""

    comments = True

    def value(self, schema: Schema) -> Schema:
        if isinstance(schema.get("type"), list):
            kinds = [kind for kind in _types(schema) if kind != "null"]
            schema = {**schema, "type": kinds[0] if len(kinds) == 1 else kinds}
        if "anyOf" in schema:
            options = [option for option in schema["anyOf"] if option != {"type": "null"}]
            rest = {key: value for key, value in schema.items() if key != "anyOf"}
            return {**options[0], **rest} if len(options) == 1 else {**rest, "anyOf": options}
        if "enum" in schema or "const" in schema:
            return _or_text_with(r"\{\{", schema)
        # A template is filled later, and may then fit.
        if "pattern" in schema:
            return {**schema, "pattern": rf"{schema['pattern']}|\{{\{{"}
        return schema


def _types(schema: Schema) -> list[str]:
    kind = schema["type"]
    return list(kind) if isinstance(kind, list) else [kind]


def _is_text(schema: Any) -> bool:
    return isinstance(schema, dict) and "string" in _types({"type": schema.get("type", [])}) and "enum" not in schema


def _allows_null(schema: Schema) -> bool:
    return any(option.get("type") == "null" for option in schema.get("anyOf", ()))


_ABOUT = ("title", "description", "markdownDescription", "default", "examples")


def _any_of(options: list[Schema]) -> Schema:
    """Any of the types; the whole has the description of the first."""
    first = options[0]
    about = {key: value for key, value in first.items() if key in _ABOUT}
    return {**about, "anyOf": [{key: value for key, value in first.items() if key not in _ABOUT}, *options[1:]]}


def _or_text_with(pattern: str, schema: Schema) -> Schema:
    return _any_of([schema, {"type": "string", "pattern": pattern}])


class _Definitions:
    """What the schema defines, by name."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}

    def add(self, name: str, schema: Schema) -> Schema:
        """Define it; a reference to it."""
        self.definitions[name] = schema
        return _reference(name)

    def of_model(self, model: type[BaseModel], prefix: str, dialect: _Dialect) -> Schema:
        """The schema of a model. Those that it is made of are defined, with `prefix` before their names."""
        whole = model.model_json_schema(ref_template=f"{_REFERENCE}{prefix}{{model}}", schema_generator=_Generator)
        for name, part in whole.pop("$defs", {}).items():
            self.definitions[prefix + name] = self._model(part, dialect)
        return self._model(whole, dialect)

    def share(self) -> None:
        """Define once what several definitions have as a property, where it is long."""
        first: dict[str, tuple[str, str]] = {}
        places: dict[str, list[tuple[Schema, str]]] = {}
        for owner, schema in self.definitions.items():
            for part in (schema, schema.get("else", {})):
                for name, value in part.get("properties", {}).items():
                    text = json.dumps(value, sort_keys=True)
                    if len(text) >= _SHARED_FROM:
                        first.setdefault(text, (owner, name))
                        places.setdefault(text, []).append((part["properties"], name))
        for text, places_of in places.items():
            if len(places_of) > 1:
                owner, name = first[text]
                reference = self.add(f"{owner}:{name}", json.loads(text))
                for properties, key in places_of:
                    properties[key] = reference

    def _model(self, schema: Schema, dialect: _Dialect) -> Schema:
        """An object with properties, as the dialect writes them."""
        rules = schema.pop("allOf", None)
        body = _object(schema, dialect)
        if rules:
            body["allOf"] = rules
        return body


def _object(schema: Schema, dialect: _Dialect) -> Schema:
    required = schema.get("required", [])
    properties: dict[str, Schema] = {}
    body = {key: value for key, value in schema.items() if key not in ("properties", "title")}
    _describe(body)
    for name, definition in schema.get("properties", {}).items():
        others = definition.pop(_ALIASES, ())
        facts = definition.pop(_FACTS, "")
        value = _value(definition, dialect)
        if facts == TOOL_ARGUMENTS[_FACTS]:
            _expect_arguments(value)
        properties[name] = {"title": name, **(value if name in required else dialect.optional(value))}
        for other in others:
            # Read as the first name is; people who write a suite should see one of them.
            properties[other] = {**properties[name], "doNotSuggest": True}
            # Both at once would leave open which one counts.
            body.setdefault("dependencies", {})[other] = {"not": {"required": [name]}}
            if name in required:
                body["required"] = [required_name for required_name in required if required_name != name]
                body.setdefault("anyOf", [{"required": [key]} for key in (name, *others)])
    if dialect.comments:
        body["patternProperties"] = _COMMENTS
    return {**body, "properties": properties}


def _value(schema: Schema, dialect: _Dialect) -> Schema:
    """The schema of a value, with its parts."""
    plain = {key: value for key, value in schema.items() if key != "title"}
    if plain.get("default", 0) in (None, "", [], {}):
        del plain["default"]  # says nothing
    for key in ("items", "additionalProperties"):
        if isinstance(plain.get(key), dict) and "type" in plain[key] | {"type": 0}:
            plain[key] = _value(plain[key], dialect)
    if "anyOf" in plain:
        plain["anyOf"] = [_value(option, dialect) for option in plain["anyOf"]]
        plain = _or_null(plain)
    _describe(plain)
    plain = dialect.value(plain)
    if dialect.comments and "additionalProperties" in plain:
        plain["patternProperties"] = _COMMENTS
    return plain


def _or_null(schema: Schema) -> Schema:
    """Of a plain type or null: that type or null."""
    first, *others = schema["anyOf"]
    if others != [{"type": "null"}] or "type" not in first or {"enum", "const"} & first.keys():
        return schema
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**first, **rest, "type": [*_types(first), "null"]}


def _describe(schema: Schema) -> None:
    """Descriptions on one line; where code is marked in them, as Markdown too, which editors show."""
    if isinstance(schema.get("description"), str):
        text = " ".join(schema.pop("description").split())
        schema["description"] = text.replace("`", "")
        if "`" in text:
            schema["markdownDescription"] = text


# Configs


def _class_name(names: tuple[str, ...], class_of: Callable[[str], type[BaseModel]]) -> Schema:
    """One of these names, in short or as Power UI writes it."""
    short = {"enum": list(names), "enumDescriptions": [_sentence(name, class_of) for name in names]}
    return {"type": "string", "anyOf": [short, {"pattern": _long_name("|".join(names))}]}


def _sentence(name: str, class_of: Callable[[str], type[BaseModel]]) -> str:
    """The first sentence about a class; "" where it can't be loaded."""
    try:
        text = " ".join((class_of(name).__doc__ or "").split())
    except AgentevalError:
        return ""
    head, stop, _ = text.partition(". ")
    return head + stop.strip()


def _long_name(name: str) -> str:
    """Matches what `short_name` makes this name of."""
    return rf"^\s*(?:[\s\S]*{_SHORTENED})?(?:{name}){_SUFFIXES}{_SHORTENED}*(?:\.[pP][hH][pP])?\s*$"


def _named(key: str, name: str) -> Schema:
    """The object says with `key` that it is a `name`."""
    return {"required": [key], "properties": {key: {"type": "string", "pattern": _long_name(name)}}}


def _configs(schemas: _Definitions) -> Iterator[Schema]:
    """For each prototype class: what its config is made of."""
    metric = schemas.add("metric", _metric(schemas))
    for name in registry.prototype_names():
        try:
            model = registry.prototype(name)
        except AgentevalError:
            continue  # a plug-in that can't be loaded: `validate` says so
        body = schemas.of_model(model, f"{name}.", _Config())
        body["properties"]["metrics"] = {
            "type": "array",
            "description": "How the value is judged: a list of metrics. The score is their weighted mean.",
            "items": metric,
        }
        head = {key: body.pop(key) for key in _ABOUT if key in body}
        config = schemas.add(
            f"config.{name}",
            {"title": name, **head, "if": _reference(_EXPORTED), "else": {**body, "type": ["object", "string"]}},
        )
        yield where(_named("prototype_class", name), {"properties": {"config_uxon": config}})


def _metric(schemas: _Definitions) -> Schema:
    """One metric: its type decides which properties it has."""
    kinds: list[Schema] = []
    names = registry.metric_names()
    for name in names:
        try:
            model = registry.metric(name)
        except AgentevalError:
            continue
        body = schemas.of_model(model, "metric.", _Config())
        body["properties"] = {"type": {"description": "Which metric this is."}, **body["properties"]}
        kinds.append(where(_named("type", name), schemas.add(f"metric.{name}", {"title": name, **body})))
    type_schema = _class_name(names, registry.metric)
    type_schema["anyOf"].append({"pattern": r"\{\{"})
    return {
        "title": "metric",
        "description": "One metric: a check with a score.",
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"title": "type", **type_schema, "description": "Which metric this is."}},
        "allOf": kinds,
    }


def _exported() -> Schema:
    """Somewhere in it is what only an exported config of Power UI has, and what JSON Schema has no words for: keys that
    switch off those between them, or a text as a list of its lines."""
    anywhere = _reference(_EXPORTED)
    return {
        "anyOf": [
            {
                "type": "object",
                "anyOf": [
                    {"not": {"propertyNames": {"not": {"pattern": r"^/\*"}}}},
                    {"not": {"additionalProperties": {"not": anywhere}}},
                ],
            },
            {
                "type": "array",
                "anyOf": [
                    {"contains": {"type": "string", "pattern": "^// Multiline text delimited by"}},
                    {"contains": anywhere},
                ],
            },
        ]
    }


def _expect_arguments(schema: Schema) -> None:
    """Values of arguments are expected values, in an object or in each of a list."""
    for option in (schema, *schema.get("anyOf", ())):
        if option.get("type") == "object":
            option["additionalProperties"] = _reference(_EXPECTED_ARGUMENT)
        elif option.get("type") == "array":
            option["items"] = {**option["items"], "additionalProperties": _reference(_EXPECTED_ARGUMENT)}


def _expected(named: bool) -> Schema:
    """A value that is expected: any JSON, in which an object whose keys begin with $ is a matcher. `named`: it may be
    absent."""
    values, arguments = _reference(_EXPECTED), _reference(_EXPECTED_ARGUMENT)
    operands: Schema = {
        name: {**OPERANDS.get(name, values), "description": MATCHER_DOCS[name]}
        for name in NAMES
        if named or name != "$optional"
    }
    operands["$one_of"] = {**operands["$one_of"], "items": values}
    return where(
        {"type": "object", "minProperties": 1, "propertyNames": {"pattern": r"^(?:\$|//|\*/)"}},
        {"properties": operands, "patternProperties": _COMMENTS, "additionalProperties": False},
        {"patternProperties": _COMMENTS, "additionalProperties": arguments, "items": values},
    )


# Agents


def _variable() -> Schema:
    """Somewhere in it a text has a `${VAR}`."""
    anywhere = _reference(_VARIABLE)
    return {
        "anyOf": [
            {"type": "string", "pattern": r"\$\{"},
            {"type": "array", "contains": anywhere},
            {
                "type": "object",
                "anyOf": [
                    {"not": {"additionalProperties": {"not": anywhere}}},
                    {"not": {"propertyNames": {"not": {"pattern": r"\$\{"}}}},
                ],
            },
        ]
    }


def _unless_variable(schema: Schema) -> None:
    """The rules over several options: what a `${VAR}` stands for may keep them."""
    if rules := schema.pop("allOf", None):
        schema |= {"if": _reference(_VARIABLE), "else": {"allOf": rules}}


def _agent(schemas: _Definitions) -> Schema:
    """An agent: its kind decides which options it has."""
    kinds: list[Schema] = []
    known: list[str] = []
    for kind in agents.kinds():
        try:
            model = agents.options_model(kind)
        except AgentevalError:
            continue
        known.append(kind)
        if model is None:
            continue
        body = schemas.of_model(model, "agent.", _Options())
        for name in [name for name in schemas.definitions if name.startswith("agent.")]:
            _unless_variable(schemas.definitions[name])
        _unless_variable(body)
        if "tools" in body["properties"]:
            _list_tools(body["properties"]["tools"])
        body["properties"]["kind"] = {"description": body.get("description", "")}
        condition = {"required": ["kind"], "properties": {"kind": {"const": kind}}}
        kinds.append(where(condition, schemas.add(f"kind.{kind}", {"title": kind, **body})))
    known += [kind for kind in agents.embedder_kinds() if kind not in known]
    descriptions = [schemas.definitions.get(f"kind.{kind}", {}).get("description", "") for kind in known]
    return {
        "title": "agent",
        "description": "An agent: its kind, and what that kind takes.",
        "type": "object",
        "required": ["kind"],
        "properties": {
            "kind": {
                "description": "What kind of agent it is; the kind decides which options there are.",
                "title": "kind",
                "anyOf": [
                    {
                        "enum": known,
                        "enumDescriptions": [description.partition(". ")[0] for description in descriptions],
                    },
                    {"type": "string", "pattern": r"\$\{"},
                ],
            },
            "api_key": False,
        },
        "allOf": kinds,
    }


def _list_tools(schema: Schema) -> None:
    for option in schema.get("anyOf", ()):
        if option.get("type") == "array":
            option["items"] = _reference(_TOOL)
        elif option.get("type") == "string":
            option["minLength"] = 1


def _tool(schemas: _Definitions) -> Schema:
    """A tool of a list. OpenAI's form has it below `function`."""
    models = [schemas.of_model(model, "tool.", _Dialect()) for model in (MockEntry, *KINDS.values())]
    for name, model in zip(("mock", *KINDS), models, strict=True):
        schemas.add(f"tool.{name}", {"title": f"{name} tool", **model})
    kinds = [
        where({"required": [key]}, {"allOf": [_reference(f"tool.{key}"), {"not": _any_key(others)}]})
        for key in KINDS
        if (others := [other for other in KINDS if other != key])
    ]
    body: Schema = {
        "type": "object",
        "anyOf": [
            {"required": ["name"], "properties": {"name": {"type": "string", "minLength": 1}}},
            {"required": ["mcp"], "not": {"required": ["name"]}},
            {"required": ["python"], "not": {"required": ["name"]}},
        ],
        "if": _reference(_VARIABLE),
        "else": {"allOf": [*kinds, where(_any_key(list(KINDS)), {}, _reference("tool.mock"))]},
    }
    inner = schemas.add("tool.itself", body)
    return {
        "title": "tool",
        "description": "A tool: canned answers, a Python function, a command, or the tools of an MCP server.",
        "type": "object",
        **where({"required": ["function"]}, {"properties": {"function": inner}}, inner),
    }


def _any_key(keys: list[str]) -> Schema:
    return {"anyOf": [{"required": [key]} for key in keys]}
