"""The JSON Schema of a suite, for editors: `# yaml-language-server: $schema=...`."""

from __future__ import annotations

from typing import Any

from agenteval_tui.suites.model import Suite

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def suite_schema() -> dict[str, Any]:
    """The schema of a suite file, made from its models; JSON data."""
    schema = Suite.model_json_schema()
    definitions = schema["$defs"]
    test = definitions["Test"]
    asks = [{"required": [key]} for key in ("prompt", "messages", "turns", "dataset")]
    test["allOf"] = [{"anyOf": asks}, {"anyOf": [{"required": ["name"]}, {"required": ["id"]}]}]
    schema["required"] = ["tests"]
    agent = definitions["AgentConfig"]["properties"]
    agent.update(_AGENT_OPTIONS)
    for definition in [schema, *definitions.values()]:
        definition.pop("title", None)
        for key, value in definition.get("properties", {}).items():
            value.pop("title", None)
            definition["properties"][key] = _as_yaml_reads_it(value, key in definition.get("required", ()))
    return {"$schema": DIALECT, "title": "agenteval suite", **schema}


# What most kinds take; every kind says the rest itself (page "agents").
_AGENT_OPTIONS: dict[str, Any] = {
    "model": {"type": "string", "description": "The model's name on the server."},
    "base_url": {"type": "string", "description": "The server's address; ${VAR} comes from the environment."},
    "api_key_env": {"type": "string", "description": "Name of the environment variable that holds the key."},
    "system": {"type": "string", "description": "The system prompt."},
    "temperature": {"type": "number"},
    "max_steps": {"type": "integer", "minimum": 1, "description": "Model calls after which a tool loop ends."},
    "tools": {
        "description": "Tools in place, or the path of a YAML file in the suite's folder.",
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}],
    },
}


def _as_yaml_reads_it(value: dict[str, Any], required: bool) -> dict[str, Any]:
    """A text may be written without quotes even if it looks like a number or a truth value; an optional key may be
    left empty.
    """
    kind = value.get("type")
    if kind == "string" and "enum" not in value:
        value["type"] = ["string", "number", "boolean"] + ([] if required else ["null"])
    elif "anyOf" in value:
        for option in value["anyOf"]:
            if option.get("type") == "string" and "enum" not in option:
                option["type"] = ["string", "number", "boolean"]
    return value
