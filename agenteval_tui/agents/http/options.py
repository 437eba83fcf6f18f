"""The options of the kind `http`."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, model_validator

from agenteval_tui.agents.http.proxies import is_local
from agenteval_tui.agents.network_options import (
    KEY_RULE,
    Headers,
    KeyVariable,
    Patience,
    Query,
    ReplyLimit,
    names_a_key,
)
from agenteval_tui.agents.options import AgentOptions, OptionGroup
from agenteval_tui.agents.recording.options import (
    AUTO,
    CAPTURE_RULE,
    MODEL,
    OWN_CAPTURES,
    Capture,
    CassetteOption,
    checked_capture,
)
from agenteval_tui.core.schema_rules import given, set_to, where
from agenteval_tui.grading.json_paths import PathError, compile_path
from agenteval_tui.suites.templates import template_problems

_LONGEST_PATH = 1_000  # characters of a JMESPath expression
_MARKS = ("{{", "{%", "{#")  # of Jinja
_PATHS = (
    *("answer", "reasoning", "tool_calls", "tool_results", "model", "finish_reason", "error", "session", "delta"),
)

_TOOL_FAILED: str = Field(
    default="error || is_error", description="Whether the tool failed: any value except null, false and empty."
)
# What a template may name.
_KNOWN = (
    *("prompt", "messages", "system", "turn", "run", "test", "repetition", "seed", "context", "variables", "session"),
)


class CallPaths(OptionGroup):
    """Where things are in each object of `tool_calls`, as JMESPath."""

    name: str = Field(default="name || function.name", description="The tool's name.")
    arguments: str = Field(
        default="not_null(arguments, args, input, function.arguments)",
        description="Its arguments: an object or its JSON text.",
    )
    result: str = Field(default="not_null(result, output)", description="What the tool gave.")
    id: str = Field(default="id || call_id", description="The call's id.")
    error: str = _TOOL_FAILED


class ResultPaths(OptionGroup):
    """Where things are in each object of `tool_results`, as JMESPath."""

    id: str = Field(
        default="id || call_id || tool_call_id || tool_use_id",
        description="The id of the call. Without an id: the oldest call of that name, or of any, without a result.",
    )
    name: str = Field(default="name || tool", description="The tool's name.")
    result: str = Field(default="not_null(result, output, content)", description="What the tool gave.")
    error: str = _TOOL_FAILED


class UsagePaths(OptionGroup):
    """Where the figures of `usage` are in the whole reply, as JMESPath."""

    whole: str = Field(
        default="usage || usageMetadata || message.usage || response.usage",
        description="An object with all figures, in the names of any provider. The figures below win over it.",
    )
    input: str | None = Field(default=None, description="Input tokens, cached ones included.")
    output: str | None = Field(default=None, description="Output tokens, those of thinking included.")
    cached: str | None = Field(default=None, description="Input tokens that came from a cache.")
    cache_write: str | None = Field(default=None, description="Input tokens that were written into a cache.")
    cache_write_1h: str | None = Field(
        default=None, description="Tokens of `cache_write` that the cache keeps for an hour."
    )
    reasoning: str | None = Field(default=None, description="Output tokens of thinking.")
    cost: str | None = Field(default=None, description="The cost in US dollars.")


class HttpOptions(AgentOptions):
    """Any endpoint that takes JSON: a request made of templates, and JMESPath to find what is in the reply."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                KEY_RULE,
                # What the validators below check, for editors: they read only the schema.
                {"properties": {name: {"pattern": r"\S"} for name in _PATHS}},
                {"properties": {"url": {"pattern": r"^[hH][tT][tT][pP][sS]?://(?![^/?#]*\{[{%#])[^/?#]"}}},
                where(
                    {"anyOf": [*(set_to("capture", name) for name in OWN_CAPTURES), given("cassette")]},
                    given("capture_port"),
                ),
                CAPTURE_RULE,
                where(given("delta"), {"required": ["stream"], "properties": {"stream": {"not": {"const": "none"}}}}),
            ]
        }
    )

    usual_capture: ClassVar[str] = AUTO
    api_key_env: KeyVariable
    headers: Headers
    query: Query
    timeouts: Patience
    max_reply_mb: ReplyLimit
    url: str = Field(description="The address. Its path and query may contain templates; their values are escaped.")
    method: Literal["POST", "PUT", "PATCH", "GET"] = Field("POST", description="The HTTP method.")
    api_key_header: str = Field("authorization", description="The header that carries the key.")
    api_key_scheme: str | None = Field(
        None, description="The word before the key. Default: Bearer in `authorization`, nothing in other headers."
    )
    body: Any = Field(
        default_factory=lambda: {"prompt": "{{ prompt }}"},
        description="The request's JSON, with templates in its texts; a text that is a single `{{ expression }}` keeps "
        "the value's type. A text instead of an object is sent as plain text. null: no body.",
    )
    answer: str | None = Field(
        None, description="JMESPath of the answer. Without it, the whole text of the reply is the answer."
    )
    reasoning: str | None = Field(None, description="JMESPath of the thinking.")
    tool_calls: str | None = Field(None, description="JMESPath of the list of calls that the endpoint made itself.")
    tool_call: CallPaths = Field(default_factory=CallPaths, description="Where the fields are in each of these calls.")
    tool_results: str | None = Field(
        None,
        description="JMESPath of the list of results, if they come separately from the calls: in separate events "
        "or in a separate list.",
    )
    tool_result: ResultPaths = Field(
        default_factory=ResultPaths, description="Where the fields are in each of these results."
    )
    usage: UsagePaths = Field(default_factory=UsagePaths, description="Where the tokens and the cost are.")
    model: str | None = Field(None, description="JMESPath of the model's name.")
    finish_reason: str | None = Field(None, description="JMESPath of why the answer ended.")
    error: str | None = Field(None, description="JMESPath of an error in a reply with status 200.")
    session: str | None = Field(
        None, description="JMESPath of a value that templates of later turns can use as `session`."
    )
    stream: Literal["none", "sse", "jsonl"] = Field("none", description="Whether the reply comes in pieces, and how.")
    delta: str | None = Field(
        None,
        description="JMESPath of the next text in each streamed event. Without it, events that aren't JSON are text.",
    )
    done: str = Field("[DONE]", description="The data or the name of the event that ends a stream.")
    capture: Capture
    cassette: CassetteOption
    capture_port: int | None = Field(
        None,
        ge=1,
        le=65535,
        description="With `capture` or `cassette`: the proxy's port. Start the server with OPENAI_BASE_URL="
        "http://127.0.0.1:PORT/openai/v1 (or ANTHROPIC_BASE_URL=http://127.0.0.1:PORT/anthropic, "
        "GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:PORT/gemini); its runs are made one at a time. With `capture: otel`: "
        "the receiver's port. Start the server with OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:PORT.",
    )

    _names_a_key = model_validator(mode="after")(names_a_key)

    @property
    def runs_here(self) -> bool:
        """Whether `url` is an address of this machine, so that its server may be a service of the suite."""
        return is_local(urlsplit(self.url).hostname or "")

    @property
    def prefix_problem(self) -> tuple[str, str] | None:
        """Its templates must tell the messages, and no earlier turn may have left anything on the server."""
        # A fork begins in the middle of a conversation; a server that keeps it itself has gone on from there.
        if self.session is not None:
            return (
                "continues a session of its server, which can't go back to an earlier step",
                "send `messages` instead of a session, or record the server's program with `agenteval record`",
            )
        if "messages" in str([self.url, self.query, self.headers, self.body]):
            return None
        return (
            "gets only the last prompt: no template of its request has `messages`",
            'add `messages: "{{ messages }}"` to its `body`',
        )

    @model_validator(mode="after")
    def _captured_where(self) -> Self:
        checked_capture(self.capture, self.cassette)
        if self.capture == AUTO and not self.runs_here:
            raise ValueError("`capture: auto` is for what runs on this machine; another server needs `capture: model`")
        if (self.capture in OWN_CAPTURES or self.cassette) and self.capture_port is None:
            does = "asks its model at" if self.capture in (None, MODEL) else "sends its spans to"
            raise ValueError(f"`capture` of a server needs `capture_port`: the port that the server {does}")
        return self

    @model_validator(mode="after")
    def _right_address(self) -> Self:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"`url` must begin with http:// or https:// and a host, not {self.url[:60]!r}")
        # The key goes where the address leads: a value of a test must not decide that.
        if any(mark in parts.netloc for mark in _MARKS):
            raise ValueError("the host in `url` can't be a template: nothing that is sent may choose where it goes")
        return self

    @model_validator(mode="after")
    def _right_expressions(self) -> Self:
        # Before the first run, and not at the first reply, for which somebody has paid by then.
        for name, text in self.paths().items():
            if len(text) > _LONGEST_PATH:
                raise ValueError(f"`{name}` is longer than {_LONGEST_PATH} characters")
            try:
                compile_path(text)
            except PathError as error:
                raise ValueError(f"`{name}`: {error.message} (character {error.position + 1})") from None
        if self.delta is not None and self.stream == "none":
            raise ValueError("`delta` needs `stream: sse` or `stream: jsonl`")
        return self

    @model_validator(mode="after")
    def _right_templates(self) -> Self:
        for name, text in self.templates():
            problems = template_problems(text, _KNOWN)
            if problems:
                hint = f" ({problems[0].fix})" if problems[0].fix else ""
                raise ValueError(f"`{name}`: {problems[0].message}{hint}")
        return self

    def paths(self) -> dict[str, str]:
        """Every JMESPath expression by its option."""
        paths: dict[str, str | None] = {name: getattr(self, name) for name in _PATHS}
        for group in ("tool_call", "tool_result", "usage"):
            nested: OptionGroup = getattr(self, group)
            paths.update({f"{group}.{name}": getattr(nested, name) for name in type(nested).model_fields})
        return {name: text for name, text in paths.items() if text is not None}

    def templates(self) -> list[tuple[str, str]]:
        """Every text that may be a template, with its option."""
        templates = [("url", self.url)]
        templates += [(f"headers.{name}", text) for name, text in self.headers.items()]
        templates += [(f"query.{name}", text) for name, text in self.query.items()]
        return templates + _texts("body", self.body)


def _texts(place: str, value: object) -> list[tuple[str, str]]:
    if isinstance(value, str):
        return [(place, value)]
    if isinstance(value, dict):
        return [text for key, inner in value.items() for text in _texts(f"{place}.{key}", inner)]
    if isinstance(value, list):
        return [text for number, inner in enumerate(value) for text in _texts(f"{place}.{number}", inner)]
    return []
