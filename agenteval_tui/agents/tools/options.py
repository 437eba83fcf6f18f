"""A tool as people write it: canned answers, a Python function, a command, or an MCP server that brings its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agenteval_tui.agents.network_options import KEY_RULE, KeyVariable, names_a_key
from agenteval_tui.agents.options import option_names, option_problems
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.schema_rules import exactly_one
from agenteval_tui.suites.callable_name import callable_rule, named_callable
from agenteval_tui.suites.command_words import COMMAND_RULE, checked_command

TIMEOUT_S = 30.0
_EXACT = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Named(BaseModel):
    """What every single tool has."""

    model_config = _EXACT

    name: str = Field(min_length=1, description="The tool's name for the model.")
    description: str | None = Field(None, description="The tool's description for the model.")
    parameters: dict[str, Any] | None = Field(None, description="JSON Schema of the arguments.")
    type: str | None = Field(None, description="Accepted as in OpenAI's format, and ignored.")
    strict: bool | None = Field(None, description="Accepted as in OpenAI's format, and ignored.")


class MockEntry(_Named):
    """Canned answers."""

    arguments: Any = Field(None, description="The arguments as Power UI declares them, in place of `parameters`.")
    request_response_pairs: list[Any] | dict[str, Any] | None = Field(
        None,
        description="Canned answers: a list of pairs, or request: response.",
        json_schema_extra={
            "items": {
                "type": "object",
                "anyOf": [{"required": [key]} for key in ("request", "requests", "arguments")],
            }
        },
    )
    sample_response: Any = Field(None, description="The answer to any other call.")


class _Running(_Named):
    timeout: float = Field(TIMEOUT_S, gt=0, description="Seconds that one call may take.")


class PythonEntry(_Running):
    """A function. Without `parameters` its signature says what it takes."""

    model_config = ConfigDict(json_schema_extra={"allOf": [callable_rule("python")]})

    name: str = Field("", min_length=1, description="The tool's name for the model. Default: the function's name.")
    python: str = Field(description="package.module:function or path/to/file.py:function")
    interpreter: str | None = Field(None, description="Another Python than the project's, such as .venv/bin/python.")
    path: list[str] = Field(
        default_factory=list, description="More folders to find modules in, inside the suite's folder."
    )

    @model_validator(mode="after")
    def _right(self) -> Self:
        named_callable(self.python, "python")
        return self


class CommandEntry(_Running):
    """A program: the arguments as JSON on standard input, the result on standard output."""

    model_config = ConfigDict(json_schema_extra={"allOf": [COMMAND_RULE]})

    command: str | list[str] = Field(description="What to run: a list of words, or a text that is split into words.")
    shell: bool = Field(False, description="true: `command` is a text for /bin/sh, with pipes and variables.")
    cwd: str = Field(".", description="The folder to run in, relative to the suite's folder and inside it.")
    env: dict[str, str] = Field(default_factory=dict, description="More environment variables.")

    @model_validator(mode="after")
    def _right(self) -> Self:
        checked_command(self.command, self.shell)
        return self


class McpServerOptions(BaseModel):
    """The server: a program to start, or an address."""

    model_config = ConfigDict(
        **_EXACT,
        json_schema_extra={
            "allOf": [
                exactly_one("command", "url"),
                COMMAND_RULE,
                KEY_RULE,
                {"properties": {"url": {"pattern": "^https?://"}}},
            ]
        },
    )

    command: str | list[str] | None = Field(None, description="A program that speaks MCP on its standard streams.")
    cwd: str = Field(".", description="The folder to run in, relative to the suite's folder and inside it.")
    env: dict[str, str] = Field(default_factory=dict, description="More environment variables.")
    url: str | None = Field(None, description="A server that speaks MCP over HTTP.")
    headers: dict[str, str] = Field(default_factory=dict, description="Additional HTTP headers.")
    api_key_env: KeyVariable
    only: list[str] | None = Field(None, description="The tools to offer. Default: all.")
    prefix: str = Field("", description="A text to put before the tools' names.")
    shared: bool = Field(False, description="true: one server for all runs. Default: one for each run.")
    start_timeout: float = Field(
        TIMEOUT_S, gt=0, description="Seconds within which the server must have listed its tools."
    )

    @model_validator(mode="after")
    def _right(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("an MCP server has either `command` or `url`")
        if self.command is not None:
            checked_command(self.command, shell=False)
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise ValueError(f"`url` must begin with http:// or https://, not {self.url[:60]!r}")
        return self

    _names_a_key = model_validator(mode="after")(names_a_key)


class McpEntry(BaseModel):
    """The tools of an MCP server."""

    model_config = _EXACT

    name: str = Field("", description="The server's name in errors.")
    mcp: McpServerOptions = Field(description="The server: a program to start, or an address.")
    timeout: float = Field(TIMEOUT_S, gt=0, description="Seconds that one call may take.")


Entry = MockEntry | PythonEntry | CommandEntry | McpEntry
KINDS: Mapping[str, type[Entry]] = {"python": PythonEntry, "command": CommandEntry, "mcp": McpEntry}
"""The tools that run something, by the key that says what; every other tool is a mock."""


def read_entry(raw: Mapping[str, Any], *, mock: bool = False) -> Entry:
    """One tool of a list. `mock`: it must be a mock tool. Raises `AgentevalError` that names all that is wrong."""
    name = raw.get("name") or "an MCP server"
    kinds = [key for key in KINDS if key in raw]
    if mock and kinds:
        raise AgentevalError(
            f"tool {name!r} of the testing context has `{kinds[0]}`",
            fix="a context has mock tools only; put the tool into the agent's `tools`",
        )
    if len(kinds) > 1:
        raise AgentevalError(f"tool {name!r} has {' and '.join(f'`{kind}`' for kind in kinds)}", fix="keep only one")
    model = KINDS[kinds[0]] if kinds else MockEntry
    problems = option_problems(model, raw)
    if problems:
        message = "; ".join(message for _, message in problems)
        options = ", ".join(sorted((option_names(model) | {*model.model_fields}) - {"type", "strict"}))
        raise AgentevalError(f"tool {name!r}: {message}", fix=f"options of such a tool: {options}")
    return model.model_validate(dict(raw))
