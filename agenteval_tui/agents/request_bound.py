"""What one request to a model may use at most, told from its body before it is sent.

A token is at least one byte of UTF-8 in the tokenizers that models have, so an input has no more tokens than its JSON
has bytes, and some that the server adds (the marks around messages, the words around tools). A request whose answer
has no limit, or that refers to content which is not in it, has no bound.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.transcripts.model import Usage

ADDED = 1_000
"""Tokens that a server adds to what a request has."""
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")
_TIMES = ("n", "candidateCount")
_ELSEWHERE = re.compile(
    r'"(?:file_id|fileUri|file_uri|previous_response_id|conversation|cachedContent)":\s*["{]'
    r'|"(?:url|image_url|file_url)":\s*"https?:'
)
_OWN_TOOLS = ("function", "custom", None)


class RequestSize(Struct, frozen=True):
    """`size`: bytes of the request's JSON. `output`: the most tokens of its answer; None: no limit is known, or not
    all of the input is in the request. `an_hour`: the cache may keep its input for an hour."""

    size: int
    output: int | None
    an_hour: bool = False


def size_of(body: Mapping[str, Any]) -> RequestSize:
    """The size of a request with this body."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), default=str)
    limits = [limit for limit in _figures(body, _LIMITS) if limit > 0]
    output = None
    if limits and not _ELSEWHERE.search(text) and not _has_tools_of_the_server(body):
        output = int(max(limits) * max([1.0, *_figures(body, _TIMES)]))
    return RequestSize(len(text.encode("utf-8", "replace")), output, '"ttl":"1h"' in text)


def cost_at_most(
    price: Callable[[Usage], float | None], request: RequestSize, before: tuple[int, int] | None = None
) -> float | None:
    """US dollars that a request may cost; None: it has no bound, or the price is not known. `before`: the (bytes,
    tokens) of the input of a request that this one continues."""
    if request.output is None:
        return None
    tokens_in = request.size + ADDED
    if before is not None:
        tokens_in = min(tokens_in, before[1] + max(0, request.size - before[0]) + ADDED)
    plain = Usage(tokens_in, request.output)
    ways = [plain, replace(plain, cache_write_tokens=tokens_in)]
    if request.an_hour:
        ways.append(replace(plain, cache_write_tokens=tokens_in, cache_write_1h_tokens=tokens_in))
    costs = [price(usage) for usage in ways]
    return max((cost for cost in costs if cost is not None), default=None)


def _figures(body: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[float]:
    inner = body.get("generationConfig")
    for place in (body, inner if isinstance(inner, Mapping) else {}):
        for name in names:
            value = place.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield value


def _has_tools_of_the_server(body: Mapping[str, Any]) -> bool:
    """Whether a tool that the server itself runs may add to the input."""
    tools = body.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, Mapping) or tool.get("type") not in _OWN_TOOLS:
            return True
        if tool.get("type") is None and not {"input_schema", "functionDeclarations", "function_declarations"} & set(
            tool
        ):
            return True
    return False
