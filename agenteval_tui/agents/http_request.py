"""The kind `http`: a request made of templates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from agenteval_tui.agents.conversation import with_system
from agenteval_tui.agents.http_options import HttpOptions
from agenteval_tui.agents.interface import AgentRequest
from agenteval_tui.suites.templates import render, render_value
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.transcripts.codec import to_openai_messages
from agenteval_tui.transcripts.model import Message, Transcript


@dataclass(frozen=True, slots=True)
class MadeRequest:
    """What is sent: the address, the headers, the parameters, and `content` (None: nothing) of type `content_type`.

    `messages`: what the agent got, with the system prompt if the templates use it.
    """

    url: str
    headers: Mapping[str, str]
    query: Mapping[str, str]
    content: bytes | None
    content_type: str
    messages: tuple[Message, ...]


def make_request(options: HttpOptions, request: AgentRequest, session: Any) -> MadeRequest:
    """The request for one turn. Raises `AgentevalError` when a template can't be filled."""
    messages = with_system(request, None)
    variables = _variables(request, messages, session)
    url = _filled("url", options.url, _escaped(variables))
    wanted, made = urlsplit(options.url), urlsplit(url)
    if (made.scheme, made.netloc) != (wanted.scheme, wanted.netloc):
        raise AgentevalError("the template of `url` changes the host", where="url", mend="put templates into its path")
    headers = {name: _filled(f"headers.{name}", text, variables) for name, text in options.headers.items()}
    for name, text in headers.items():
        if "\n" in text or "\r" in text or "\0" in text:
            raise AgentevalError(
                f"the header {name} would have several lines", where=f"headers.{name}", mend="put such text into `body`"
            )
    query = {name: _filled(f"query.{name}", text, variables) for name, text in options.query.items()}
    content, content_type = _content(options, variables)
    return MadeRequest(url, headers, query, content, content_type, messages)


def _variables(request: AgentRequest, messages: tuple[Message, ...], session: Any) -> dict[str, Any]:
    prompt = next((message.content for message in reversed(messages) if message.role == "user"), "")
    system = next((message.content for message in messages if message.role in ("system", "developer")), "")
    return {
        "prompt": prompt,
        "messages": to_openai_messages(Transcript(_with_calls(messages, request), request.tool_calls)),
        "system": system,
        "turn": request.turn,
        "run": request.run,
        "test": request.test_id,
        "repetition": request.repetition,
        "seed": request.seed,
        "context": dict(request.context),
        "variables": dict(request.variables),
        "session": session,
    }


def _with_calls(messages: tuple[Message, ...], request: AgentRequest) -> tuple[Message, ...]:
    """The messages, without numbers of calls that there are not."""
    count = len(request.tool_calls)
    return tuple(
        message
        if all(index < count for index in message.tool_calls) and (message.tool_call or 0) < max(count, 1)
        else Message(message.role, message.content, message.reasoning, name=message.name)
        for message in messages
    )


def _content(options: HttpOptions, variables: Mapping[str, Any]) -> tuple[bytes | None, str]:
    if options.body is None or (options.method == "GET" and "body" not in options.model_fields_set):
        return None, ""
    value = _value("body", options.body, variables)
    if isinstance(value, str):
        return value.encode(), "text/plain; charset=utf-8"
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace"), "application/json"
    except (TypeError, ValueError, RecursionError) as error:
        raise AgentevalError(f"`body` is no JSON: {error}", where="body", mend="check its templates") from None


def _value(place: str, value: Any, variables: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        return _filled(place, value, variables, typed=True)
    if isinstance(value, Mapping):
        return {key: _value(f"{place}.{key}", inner, variables) for key, inner in value.items()}
    if isinstance(value, list):
        return [_value(f"{place}.{number}", inner, variables) for number, inner in enumerate(value)]
    return value


def _filled(place: str, text: str, variables: Mapping[str, Any], *, typed: bool = False) -> Any:
    try:
        return render_value(text, variables) if typed else render(text, variables)
    except AgentevalError as error:
        where = f"{place}, {error.where}" if error.where else place
        raise AgentevalError(f"`{place}`: {error.what}", where=where, mend=error.mend) from None


def _escaped(value: Any) -> Any:
    """The same value with every text in it fit for an address."""
    if isinstance(value, str):
        return quote(value, safe="")
    if isinstance(value, Mapping):
        return {key: _escaped(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_escaped(inner) for inner in value]
    return value
