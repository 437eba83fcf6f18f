"""What providers, frameworks and traces write as usage, in one table. It runs here, and in the child: only the standard
library, of Python 3.8 or later. `agents/usage.py` makes a `Usage` of it.

The dialect is read from the names in the usage itself. They differ in what they count twice: Anthropic's and Bedrock's
input is without what was read from a cache or written to it, OpenAI's and Gemini's is with it; Gemini's and xAI's
output is without the reasoning, OpenAI's is with it. If the usage has a total, the total decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenteval_tui.agents.process.python_message import Figures

MOST_TOKENS = 1_000_000_000_000
MOST_DOLLARS = 1_000_000.0
# Whether a part is counted within the whole, or beside it.
_WITHIN, _BESIDE, _EITHER = "within", "beside", "either"

# Names are in the order in which they count. `a.b` is the field b of the object a; camelCase is read as snake_case.
_INPUT = (
    *("input_tokens", "prompt_tokens", "request_tokens", "total_prompt_tokens", "prompt_token_count"),
    *("input_token_count", "prompt_eval_count", "billed_units.input_tokens", "tokens.input_tokens"),
    *("prompt", "input"),
)
_OUTPUT = (
    *("output_tokens", "completion_tokens", "response_tokens", "total_completion_tokens", "candidates_token_count"),
    *("response_token_count", "generation_token_count", "output_token_count", "eval_count"),
    *("billed_units.output_tokens", "tokens.output_tokens", "completion", "output"),
)
_TOTAL = ("total_tokens", "total_token_count", "total")
_READ = {
    "cached_tokens": _WITHIN,
    "prompt_tokens_details.cached_tokens": _WITHIN,
    "input_tokens_details.cached_tokens": _WITHIN,
    "input_token_details.cached_tokens": _WITHIN,
    "input_token_details.cache_read": _WITHIN,
    "input_token_details.cache_read_tokens": _WITHIN,
    "prompt_cache_hit_tokens": _WITHIN,  # DeepSeek
    "cached_content_token_count": _WITHIN,  # Gemini
    "cached_input_tokens": _WITHIN,  # Codex, the Vercel AI SDK
    "cached_prompt_tokens": _WITHIN,  # CrewAI
    "total_cached_tokens": _WITHIN,  # ATIF
    "num_cached_tokens": _WITHIN,  # Mistral, vLLM
    "cache_read.input_tokens": _WITHIN,  # OpenTelemetry
    "input_tokens.cached": _WITHIN,  # Sentry
    "prompt_details.cache_read": _EITHER,  # OpenInference
    "cache_read_tokens": _EITHER,
    "cache_read": _EITHER,
    "completion_details.cache_read_input_tokens": _EITHER,  # promptfoo
    "prompt_cached_tokens": _EITHER,  # Braintrust
    "details.cached_tokens": _EITHER,
    "details.cache_read_tokens": _EITHER,
    "details.cache_read_input_tokens": _EITHER,
    "cache_read_input_tokens": _BESIDE,  # Anthropic, Bedrock
    "cache_read_input_token_count": _BESIDE,
    "input_tokens_cache_read": _BESIDE,  # Inspect
    "input_cached_tokens": _BESIDE,  # Langfuse
    "input_cache_read": _BESIDE,
    "cached": _WITHIN,  # Gemini CLI; promptfoo means its own cache
}
_WRITTEN = {
    "cache_write_tokens": _EITHER,
    "prompt_tokens_details.cache_write_tokens": _WITHIN,
    "prompt_tokens_details.cache_creation_tokens": _WITHIN,
    "input_tokens_details.cache_write_tokens": _WITHIN,
    "input_token_details.cache_creation": _WITHIN,
    "input_token_details.cache_write_tokens": _WITHIN,
    "cache_creation.input_tokens": _WITHIN,
    "cache_write.input_tokens": _WITHIN,
    "input_tokens.cache_write": _WITHIN,
    "prompt_details.cache_write": _EITHER,
    "cache_creation_tokens": _EITHER,
    "cache_write": _EITHER,
    "completion_details.cache_creation_input_tokens": _EITHER,
    "prompt_cache_creation_tokens": _EITHER,
    "details.cache_write_tokens": _EITHER,
    "details.cache_creation_input_tokens": _EITHER,
    "cache_creation": _EITHER,
    "cache_creation_input_tokens": _BESIDE,
    "cache_write_input_tokens": _BESIDE,
    "cache_write_input_token_count": _BESIDE,
    "input_tokens_cache_write": _BESIDE,
    "input_cache_creation": _BESIDE,
    "input_cache_write": _BESIDE,
}
# How long the cache keeps what was written decides about the price. These are parts of the names above, or in their
# place.
_WRITTEN_5M = {
    "cache_creation.ephemeral_5m_input_tokens": _BESIDE,
    "input_token_details.ephemeral_5m_input_tokens": _WITHIN,
    "cache_details.5m": _BESIDE,
    "input_cache_creation_5m": _BESIDE,
}
_WRITTEN_1H = {
    "cache_write_1h_tokens": _EITHER,
    "cache_creation.ephemeral_1h_input_tokens": _BESIDE,
    "input_token_details.ephemeral_1h_input_tokens": _WITHIN,
    "cache_details.1h": _BESIDE,
    "input_cache_creation_1h": _BESIDE,
}
_REASONING = {
    "reasoning_tokens": _EITHER,
    "completion_tokens_details.reasoning_tokens": _EITHER,  # beside at xAI
    "output_tokens_details.reasoning_tokens": _EITHER,
    "output_tokens_details.thinking_tokens": _EITHER,
    "output_token_details.reasoning_tokens": _EITHER,
    "output_token_details.reasoning": _EITHER,
    "details.reasoning_tokens": _EITHER,
    "completion_reasoning_tokens": _EITHER,
    "reasoning_output_tokens": _EITHER,
    "output_reasoning_tokens": _EITHER,
    "reasoning.output_tokens": _EITHER,
    "output_tokens.reasoning": _EITHER,
    "completion_details.reasoning": _EITHER,
    "thoughts_token_count": _BESIDE,  # Gemini
    "output_reasoning": _BESIDE,  # Langfuse
    "thoughts": _BESIDE,
    "reasoning": _EITHER,
}
_RESULTS_OF_TOOLS = ("tool_use_prompt_token_count", "tool")
"""Gemini's results of its own tools: always beside the input."""
_COST = ("cost", "total_cost", "cost_usd", "total_cost_usd", "cost.total_cost", "cost.total")
_TICKS = "cost_in_usd_ticks"
"""xAI's cost, in units of 1e-10 US dollars."""
_NAMES = frozenset(
    (*_INPUT, *_OUTPUT, *_TOTAL, *_READ, *_WRITTEN, *_WRITTEN_5M, *_WRITTEN_1H, *_REASONING, *_RESULTS_OF_TOOLS)
) | frozenset((*_COST, _TICKS))
_SHORT = frozenset(("prompt", "input", "completion", "output", "total", "cached", "thoughts", "tool", "reasoning"))
"""Other objects have a text or an object under these names, which isn't a figure then."""
_PLAIN = frozenset((*_INPUT, *_OUTPUT, *_TOTAL)) - _SHORT
"""Where an object is neither a figure nor holds any."""
PREFIXES = ("gen_ai.usage.", "gen_ai.aggregated_usage.", "llm.token_count.", "llm.usage.", "ai.usage.")
ATTRIBUTES = {"operation.cost": "cost", "llm.cost.total": "cost"}
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_DECIMAL = re.compile(r"[0-9]{1,13}(\.[0-9]{1,20})?\Z")


def tokens_in(value: object) -> int | None:
    """A number of tokens; None for what can't be one: negative, broken, not whole, or larger than any model reads.

    A text isn't a number: see `_of_span`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if not 0 <= value <= MOST_TOKENS or int(value) != value:  # not a number fails the first
        return None
    return int(value)


def dollars_in(value: object) -> float | None:
    """A cost in US dollars; None for what can't be one."""
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value <= MOST_DOLLARS else None


def figures_in(raw: object) -> tuple[Figures, dict[str, object], str]:
    """(the figures of a usage, by our names, as far as they are there; those that can't be so, by their own names; what
    does not add up, in words).

    `raw` is a mapping or an object; attributes of a span are a mapping too. A figure that can't be told from the
    others is not there: if the cached tokens can't be so, the input is not known either."""
    odd: dict[str, object] = {}
    fields, of_span = _fields(raw)
    if not fields:
        return {}, odd, ""
    reader = _Reader(fields, odd)
    figures: Figures = {}
    tokens_in, asked_name = reader.first(_INPUT)
    answered, answered_name = reader.first(_OUTPUT)
    read, read_within = reader.part(_READ)
    written, written_within = reader.part(_WRITTEN)
    short, short_within = reader.part(_WRITTEN_5M)
    long, long_within = reader.part(_WRITTEN_1H)
    reasoned, reasoned_within = reader.part(_REASONING)
    if not written and (short or long):
        written = (short or 0) + (long or 0)  # LangChain has 0 there if it has the parts
        written_within = short_within or long_within
    if long and written and long > written:
        long = written
    tools = reader.first(_RESULTS_OF_TOOLS)[0] if asked_name in ("prompt_token_count", "input") else None
    total = reader.first(_TOTAL)[0]
    # Anthropic's names beside another's: a gateway or a convention counts all of them within its input.
    foreign = of_span or asked_name in ("prompt_tokens", "total_prompt_tokens")
    if foreign:
        read_within = _EITHER if read_within == _BESIDE else read_within
        written_within = _EITHER if written_within == _BESIDE else written_within
    cache = read_within if read is not None else written_within
    if answered_name == "output" and reader.first(_REASONING)[1].startswith("output_reasoning"):
        reasoned_within = _BESIDE  # Langfuse has each token in one place only
    if answered is None and reasoned_within == _BESIDE and reasoned is not None and not reader.bad(_OUTPUT):
        answered = 0  # Gemini leaves out what is 0
    if tokens_in is not None and tools:
        tokens_in += tools
    parts = read or 0, written or 0
    tokens_in, answered, wrong_sum = _whole(tokens_in, answered, parts, reasoned or 0, cache, reasoned_within, total)
    if answered is None and tokens_in is not None and total == tokens_in and not reader.bad(_OUTPUT):
        answered = 0  # of embeddings: nothing else was used
    if tokens_in is None and wrong_sum:
        read = written = long = None
    if reader.bad((*_READ, *_WRITTEN, *_WRITTEN_5M, *_WRITTEN_1H)):
        tokens_in = None  # what a part of it is, or was, is not known
    if reasoned_within == _BESIDE and reader.bad(_REASONING):
        answered = None
    for name, value in (
        *(("input_tokens", tokens_in), ("output_tokens", answered), ("cached_tokens", read)),
        *(("reasoning_tokens", reasoned), ("cache_write_tokens", written), ("cache_write_1h_tokens", long)),
        ("cost", reader.cost()),
    ):
        if value is not None:
            figures[name] = value
    return figures, odd, wrong_sum


def _whole(
    tokens_in: int | None,
    answered: int | None,
    of_cache: tuple[int, int],
    reasoned: int,
    cache: str,
    thinking: str,
    total: int | None,
) -> tuple[int | None, int | None, str]:
    """(the whole input, the whole output, what is told of a total that does not add up or of parts that are more than
    their whole; "")."""
    parts = sum(of_cache)
    usual = cache == _BESIDE, thinking == _BESIDE
    # Of two ways that add up, the one that contradicts no name.
    one_side = [(not usual[0], usual[1]), (usual[0], not usual[1])]
    if thinking == _EITHER and cache != _EITHER:
        one_side.reverse()
    ways = [usual, *one_side, (not usual[0], not usual[1])]

    def sides(way: tuple[bool, bool]) -> tuple[int | None, int | None]:
        return (
            None if tokens_in is None else tokens_in + (parts if way[0] else 0),
            None if answered is None else answered + (reasoned if way[1] else 0),
        )

    def fits(way: tuple[bool, bool]) -> bool:
        return (tokens_in is None or way[0] or parts <= tokens_in) and (
            answered is None or way[1] or reasoned <= answered
        )

    if tokens_in is not None and answered is not None and total is not None:
        for way in ways:
            if fits(way) and sum(filter(None, sides(way))) == total:
                return (*sides(way), "")
    wrong_sum = ""
    if not fits(usual):
        # Only names that are used both ways may mean the other one.
        other = cache == _EITHER and tokens_in is not None and parts > tokens_in, thinking == _EITHER
        bent = (usual[0] or other[0], usual[1] or (other[1] and answered is not None and reasoned > answered))
        if fits(bent):
            usual = bent
        else:
            wrong_sum = "{} tokens read from a cache and {} written, in an input of {}".format(*of_cache, tokens_in)
            # Some gateways count a token as read and as written: the input is known, only its price is not.
            readable = tokens_in is not None and max(of_cache) <= tokens_in
            return sides(usual)[0] if readable else None, sides(usual)[1], wrong_sum
    whole = sides(usual)
    if None not in whole and total is not None and sum(filter(None, whole)) != total:
        wrong_sum = "a total of {}, with {} in and {} out".format(total, *whole)
    return (*whole, wrong_sum)


class _Reader:
    """Takes figures out of the fields; what can't be so is put into `odd`."""

    def __init__(self, fields: dict[str, Any], odd: dict[str, object]) -> None:
        self._fields, self._odd = fields, odd

    def first(self, names: Iterable[str]) -> tuple[int | None, str]:
        """(the first figure that is present and not 0, its name); 0 where that is the only one, None for none."""
        best: tuple[int | None, str] = (None, "")
        wrong = {}
        for name in names:
            value = self._fields.get(name)
            if value is None or (isinstance(value, Mapping) and name not in _PLAIN):
                continue
            if name in _SHORT and not isinstance(value, (int, float)) and tokens_in(value) is None:
                continue
            if name == "cached" and "input" not in self._fields:
                continue
            count = tokens_in(value)
            if count:
                return count, name
            if count is None:
                wrong[name] = value
            elif best[0] is None:
                best = count, name
        if best[0] is None:
            self._odd.update(wrong)
        return best

    def part(self, names: Mapping[str, str]) -> tuple[int | None, str]:
        """(the figure, whether it is within the whole)."""
        count, name = self.first(names)
        return count, names.get(name, "")

    def bad(self, names: Iterable[str]) -> bool:
        """Whether one of these is there, but can't be so."""
        return any(name in self._odd for name in names)

    def cost(self) -> float | None:
        """US dollars."""
        for name in _COST:
            value = self._fields.get(name)
            if value is None or (
                isinstance(value, Mapping) and any(field.startswith("cost.") for field in self._fields)
            ):
                continue
            dollars = dollars_in(value)
            if dollars is not None:
                return dollars
            self._odd[name] = value
        ticks = self._fields.get(_TICKS)
        if ticks is None:
            return None
        dollars = dollars_in(ticks / 1e10 if isinstance(ticks, int) and abs(ticks) < 10**30 else None)
        if dollars is None:
            self._odd[_TICKS] = ticks
        return dollars


def _fields(raw: object) -> tuple[dict[str, Any], bool]:
    """(what is known of a usage by name, also of the objects within it; whether it is the attributes of a span)."""
    if not isinstance(raw, Mapping):
        return _of_object(raw), False
    if any(isinstance(key, str) and is_usage_attribute(key) for key in raw):
        return _of_span(raw), True
    fields: dict[str, Any] = {}
    for key, value in raw.items():
        if not isinstance(key, str):
            continue
        name = _snake(key)
        if name in _NAMES or isinstance(value, Mapping):
            fields.setdefault(name, value)
        if isinstance(value, Mapping):
            for inner, figure in value.items():
                path = name + "." + _snake(inner) if isinstance(inner, str) else ""
                if path in _NAMES:
                    fields.setdefault(path, figure)
        elif name == "cache_details" and isinstance(value, (list, tuple)):  # Bedrock
            for figure in value:
                if isinstance(figure, Mapping):
                    fields["cache_details." + str(figure.get("ttl"))] = figure.get(
                        "inputTokens", figure.get("input_tokens")
                    )
    return {name: value for name, value in fields.items() if name in _NAMES}, False


def is_usage_attribute(key: str) -> bool:
    """Whether an attribute of a span tells of the usage."""
    return key.startswith(PREFIXES) or key in ATTRIBUTES


def _of_span(attributes: Mapping[Any, Any]) -> dict[str, object]:
    """The figures in a span's attributes. Here a text of digits is the number that it writes, since some exporters
    write every attribute as a text; servers and programs send numbers."""
    fields: dict[str, Any] = {}
    for prefix in PREFIXES:
        for key, value in attributes.items():
            if isinstance(key, str) and key.startswith(prefix):
                fields.setdefault(_snake(key[len(prefix) :]), value)
    for key, name in ATTRIBUTES.items():
        if attributes.get(key) is not None:
            fields.setdefault(name, attributes[key])
    return {name: _number_in(value) for name, value in fields.items() if name in _NAMES}


def _number_in(value: object) -> object:
    if isinstance(value, str) and _DECIMAL.match(value):
        return float(value) if "." in value else int(value)
    return value


def _of_object(raw: object) -> dict[str, object]:
    """The fields of an object that are numbers. Others may be anything: it need not be a usage at all."""
    fields: dict[str, object] = {}
    if raw is None or isinstance(raw, (str, bytes, bool, int, float, list, tuple)):
        return fields
    for name in _NAMES:
        value = raw
        for step in name.split("."):
            value = value.get(step) if isinstance(value, Mapping) else getattr(value, step, None)
            if value is None:
                break
        if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
            fields[name] = value
    return fields


def _snake(name: str) -> str:
    return _HUMP.sub("_", name).lower() if name != name.lower() else name
