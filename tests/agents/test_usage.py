"""The usage of each provider and framework, from its published example, is read by one table."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agenteval_tui.agents.process.python_usage import figures_in
from agenteval_tui.agents.usage import UsageReader, UsageSum, read_usage
from agenteval_tui.transcripts.model import Note, Usage


def used(
    asked: int | None,
    answered: int | None,
    read: int | None = None,
    written: int | None = None,
    hour: int | None = None,
    thought: int | None = None,
    cost: float | None = None,
) -> Usage:
    return Usage(asked, answered, read, thought, cost, written, hour)


OPENAI_CACHE = {
    "prompt_tokens": 2006,
    "completion_tokens": 300,
    "total_tokens": 2306,
    "prompt_tokens_details": {"cached_tokens": 1920},
    "completion_tokens_details": {
        "reasoning_tokens": 0,
        "accepted_prediction_tokens": 0,
        "rejected_prediction_tokens": 0,
    },
}
PUBLISHED: list[tuple[str, Any, Usage]] = [
    # https://platform.openai.com/docs/guides/prompt-caching
    ("OpenAI, Chat Completions", OPENAI_CACHE, used(2006, 300, 1920, thought=0)),
    # https://platform.openai.com/docs/guides/reasoning: the reasoning is within the output
    (
        "OpenAI, Responses",
        {
            "input_tokens": 75,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 1186,
            "output_tokens_details": {"reasoning_tokens": 1024},
            "total_tokens": 1261,
        },
        used(75, 1186, 0, thought=1024),
    ),
    # https://learn.microsoft.com/javascript/api/@azure/ai-projects/responseusageinputtokensdetails
    (
        "Azure, a response that wrote into the cache",
        {
            "input_tokens": 2100,
            "input_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 1900},
            "output_tokens": 12,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 2112,
        },
        used(2100, 12, 100, 1900, thought=0),
    ),
    # https://docs.claude.com/en/docs/build-with-claude/prompt-caching: all input is the sum of the three
    (
        "Anthropic",
        {
            "cache_creation_input_tokens": 188086,
            "cache_read_input_tokens": 0,
            "input_tokens": 21,
            "output_tokens": 393,
        },
        used(188107, 393, 0, 188086),
    ),
    (
        "Anthropic, caches of five minutes and of an hour",
        {
            "input_tokens": 2048,
            "cache_read_input_tokens": 1800,
            "cache_creation_input_tokens": 248,
            "output_tokens": 503,
            "cache_creation": {"ephemeral_5m_input_tokens": 148, "ephemeral_1h_input_tokens": 100},
        },
        used(4096, 503, 1800, 248, 100),
    ),
    # https://ai.google.dev/api/generate-content#UsageMetadata: thoughts are beside the candidates, the cache is within
    # the prompt; a figure that is 0 is left out
    (
        "Gemini, Vertex",
        {
            "promptTokenCount": 1400,
            "cachedContentTokenCount": 1024,
            "candidatesTokenCount": 40,
            "thoughtsTokenCount": 210,
            "toolUsePromptTokenCount": 50,
            "totalTokenCount": 1700,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 1400}],
        },
        used(1450, 250, 1024, thought=210),
    ),
    (
        "Gemini, stopped while it thought",
        {"promptTokenCount": 10, "thoughtsTokenCount": 50, "totalTokenCount": 60},
        used(10, 50, thought=50),
    ),
    # https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/grok/capabilities/reasoning: "separated
    # from the completion_tokens"; https://docs.x.ai/developers/cost-tracking: 1 USD = 10^10 ticks
    (
        "xAI",
        {
            "prompt_tokens": 32,
            "completion_tokens": 9,
            "total_tokens": 135,
            "prompt_tokens_details": {"text_tokens": 32, "audio_tokens": 0, "image_tokens": 0, "cached_tokens": 6},
            "completion_tokens_details": {"reasoning_tokens": 94, "audio_tokens": 0},
            "num_sources_used": 0,
            "cost_in_usd_ticks": 37756000,
        },
        used(32, 103, 6, thought=94, cost=0.0037756),
    ),
    # https://docs.x.ai/developers/advanced-api-usage/prompt-caching/usage-and-pricing
    (
        "xAI, prompt caching",
        {
            "prompt_tokens": 125,
            "completion_tokens": 48,
            "total_tokens": 173,
            "prompt_tokens_details": {"text_tokens": 125, "cached_tokens": 98},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
        used(125, 48, 98, thought=0),
    ),
    # https://api-docs.deepseek.com/guides/kv_cache
    (
        "DeepSeek",
        {
            "prompt_tokens": 100,
            "completion_tokens": 9,
            "total_tokens": 109,
            "prompt_cache_hit_tokens": 64,
            "prompt_cache_miss_tokens": 36,
        },
        used(100, 9, 64),
    ),
    # https://docs.mistral.ai/api/#tag/chat
    ("Mistral", {"prompt_tokens": 16, "completion_tokens": 34, "total_tokens": 50}, used(16, 34)),
    (
        "Mistral, prompt caching",
        {
            "prompt_tokens": 1600,
            "completion_tokens": 34,
            "total_tokens": 1634,
            "num_cached_tokens": 1536,
            "prompt_tokens_details": {"cached_tokens": 1536},
        },
        used(1600, 34, 1536),
    ),
    # https://console.groq.com/docs/prompt-caching
    (
        "Groq",
        {
            "queue_time": 0.026959759,
            "prompt_tokens": 4641,
            "prompt_time": 0.009995497,
            "completion_tokens": 1817,
            "completion_time": 5.57691751,
            "total_tokens": 6458,
            "total_time": 5.586913007,
            "prompt_tokens_details": {"cached_tokens": 4608},
        },
        used(4641, 1817, 4608),
    ),
    # https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_TokenUsage.html, and its prompt caching guide:
    # the input is without the cache
    (
        "Bedrock Converse",
        {
            "inputTokens": 12,
            "outputTokens": 30,
            "totalTokens": 3042,
            "cacheReadInputTokens": 1000,
            "cacheWriteInputTokens": 2000,
            "cacheDetails": [{"ttl": "1h", "inputTokens": 1500}, {"ttl": "5m", "inputTokens": 500}],
        },
        used(3012, 30, 1000, 2000, 1500),
    ),
    (
        "Bedrock's metrics of an invocation",
        {
            "inputTokenCount": 12,
            "outputTokenCount": 30,
            "cacheReadInputTokenCount": 1000,
            "cacheWriteInputTokenCount": 0,
            "invocationLatency": 900,
        },
        used(1012, 30, 1000, 0),
    ),
    # https://docs.cohere.com/reference/chat: prices are for the billed units
    (
        "Cohere",
        {
            "billed_units": {"input_tokens": 5, "output_tokens": 418},
            "tokens": {"input_tokens": 71, "output_tokens": 418},
        },
        used(5, 418),
    ),
    # https://docs.ollama.com/api/chat
    (
        "Ollama",
        {"total_duration": 174560334, "prompt_eval_count": 11, "prompt_eval_duration": 66479, "eval_count": 18},
        used(11, 18),
    ),
    # https://openrouter.ai/docs/use-cases/usage-accounting
    (
        "OpenRouter",
        {
            "completion_tokens": 2,
            "completion_tokens_details": {"reasoning_tokens": 0},
            "cost": 0.95,
            "cost_details": {"upstream_inference_cost": 19},
            "prompt_tokens": 194,
            "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 100, "audio_tokens": 0},
            "total_tokens": 196,
        },
        used(194, 2, 0, 100, thought=0, cost=0.95),
    ),
    # https://docs.litellm.ai/docs/completion/prompt_caching: Anthropic's names, within OpenAI's prompt
    (
        "LiteLLM",
        {
            **OPENAI_CACHE,
            "cache_creation_input_tokens": 40,
            "cache_read_input_tokens": 1920,
            "prompt_tokens_details": {"cached_tokens": 1920, "cache_creation_tokens": 40},
        },
        used(2006, 300, 1920, 40, thought=0),
    ),
    # https://docs.perplexity.ai/api-reference/chat-completions-post
    (
        "Perplexity",
        {"prompt_tokens": 14, "completion_tokens": 60, "total_tokens": 74, "cost": {"total_cost": 0.006}},
        used(14, 60, cost=0.006),
    ),
    # https://reference.langchain.com/python/langchain-core/messages/ai/UsageMetadata: "sum of all input token types"
    (
        "LangChain",
        {
            "input_tokens": 350,
            "output_tokens": 240,
            "total_tokens": 590,
            "input_token_details": {"audio": 10, "cache_creation": 200, "cache_read": 100},
            "output_token_details": {"audio": 10, "reasoning": 200},
        },
        used(350, 240, 100, 200, thought=200),
    ),
    (
        "LangChain, Anthropic's caches of two lengths",
        {
            "input_tokens": 6100,
            "output_tokens": 200,
            "total_tokens": 6300,
            "input_token_details": {
                "cache_read": 5000,
                "cache_creation": 0,
                "ephemeral_5m_input_tokens": 400,
                "ephemeral_1h_input_tokens": 600,
            },
        },
        used(6100, 200, 5000, 1000, 600),
    ),
    # https://ai.pydantic.dev/api/usage: the input is with the cache (pydantic/pydantic-ai, models/anthropic.py)
    (
        "pydantic-ai",
        {"input_tokens": 6100, "cache_write_tokens": 1000, "cache_read_tokens": 5000, "output_tokens": 200},
        used(6100, 200, 5000, 1000),
    ),
    # https://openai.github.io/openai-agents-python/ref/usage
    (
        "openai-agents",
        {
            "input_tokens": 15,
            "output_tokens": 14,
            "cached_input_tokens": 0,
            "cache_write_input_tokens": 5,
            "requests": 2,
        },
        used(15, 14, 0, 5),
    ),
    # https://docs.crewai.com/en/concepts/crews#accessing-crew-usage-metrics
    (
        "CrewAI",
        {"total_tokens": 130, "prompt_tokens": 100, "cached_prompt_tokens": 64, "completion_tokens": 30},
        used(100, 30, 64),
    ),
    # https://ai-sdk.dev/docs/reference/ai-sdk-core/generate-text
    (
        "Vercel AI SDK 5",
        {"inputTokens": 100, "outputTokens": 50, "totalTokens": 150, "reasoningTokens": 20, "cachedInputTokens": 64},
        used(100, 50, 64, thought=20),
    ),
    (
        "Vercel AI SDK 6",
        {
            "inputTokens": 100,
            "inputTokenDetails": {"noCacheTokens": 6, "cacheReadTokens": 64, "cacheWriteTokens": 30},
            "outputTokens": 50,
            "outputTokenDetails": {"textTokens": 30, "reasoningTokens": 20},
            "totalTokens": 150,
        },
        used(100, 50, 64, 30, thought=20),
    ),
    # https://inspect.aisi.org.uk/reference/inspect_ai.model.html#modelusage: the input is without the cache
    (
        "Inspect",
        {
            "input_tokens": 10,
            "output_tokens": 5,
            "total_tokens": 115,
            "input_tokens_cache_write": 40,
            "input_tokens_cache_read": 60,
            "reasoning_tokens": 2,
        },
        used(110, 5, 60, 40, thought=2),
    ),
    # https://github.com/openai/codex, the event token_count
    (
        "Codex",
        {
            "input_tokens": 3120,
            "cached_input_tokens": 2048,
            "output_tokens": 80,
            "reasoning_output_tokens": 64,
            "total_tokens": 3200,
        },
        used(3120, 80, 2048, thought=64),
    ),
    # https://langfuse.com/docs/observability/features/token-and-cost-tracking: a token is in one place only
    (
        "Langfuse",
        {
            "input": 10,
            "input_cached_tokens": 90,
            "input_cache_creation": 25,
            "output": 5,
            "output_reasoning_tokens": 3,
            "total": 133,
        },
        used(125, 8, 90, 25, thought=3),
    ),
    ("Langfuse, without a total", {"input": 10, "output": 5, "input_cached_tokens": 90}, used(100, 5, 90)),
    (
        "Langfuse, of a span of OpenInference",
        {
            "input": 190,
            "prompt_details.cache_read": 128,
            "output": 164,
            "completion_details.reasoning": 100,
            "total": 354,
        },
        used(190, 164, 128, thought=100),
    ),
    # https://github.com/google-gemini/gemini-cli, recorded sessions
    (
        "Gemini CLI",
        {"input": 10, "output": 5, "cached": 3, "thoughts": 7, "tool": 2, "total": 24},
        used(12, 12, 3, thought=7),
    ),
    # https://www.promptfoo.dev/docs/configuration/reference: `cached` is promptfoo's own cache, not the server's
    ("promptfoo", {"prompt": 10, "completion": 5, "cached": 0, "total": 15, "numRequests": 1}, used(10, 5)),
    ("promptfoo, from its own cache", {"total": 15, "cached": 15}, Usage()),
    # https://opentelemetry.io/docs/specs/semconv/registry/attributes/gen-ai: the cache SHOULD be within the input
    (
        "OpenTelemetry",
        {
            "gen_ai.request.model": "claude-sonnet-4-5",
            "gen_ai.usage.input_tokens": 6100,
            "gen_ai.usage.output_tokens": 200,
            "gen_ai.usage.cache_creation.input_tokens": 1000,
            "gen_ai.usage.cache_read.input_tokens": 5000,
        },
        used(6100, 200, 5000, 1000),
    ),
    # https://github.com/traceloop/openllmetry, opentelemetry-semantic-conventions-ai
    (
        "Traceloop",
        {
            "gen_ai.usage.input_tokens": 6100,
            "gen_ai.usage.output_tokens": 200,
            "llm.usage.total_tokens": 6300,
            "gen_ai.usage.cache_creation_input_tokens": 1000,
            "gen_ai.usage.cache_read_input_tokens": 5000,
        },
        used(6100, 200, 5000, 1000),
    ),
    (
        "Traceloop, older, whose exporter writes texts",
        {
            "gen_ai.usage.prompt_tokens": "100",
            "gen_ai.usage.completion_tokens": "20",
            "llm.usage.total_tokens": "120",
            "llm.usage.reasoning_tokens": "7",
        },
        used(100, 20, thought=7),
    ),
    # https://arize-ai.github.io/openinference/spec/semantic_conventions.html
    (
        "OpenInference",
        {
            "llm.token_count.prompt": 6100,
            "llm.token_count.completion": 200,
            "llm.token_count.total": 6300,
            "llm.token_count.prompt_details.cache_read": 5000,
            "llm.token_count.prompt_details.cache_write": 1000,
            "llm.token_count.completion_details.reasoning": 50,
            "llm.cost.total": 0.01,
        },
        used(6100, 200, 5000, 1000, thought=50, cost=0.01),
    ),
    # https://getsentry.github.io/relay/relay_conventions
    (
        "Sentry",
        {
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.input_tokens.cached": 50,
            "gen_ai.usage.input_tokens.cache_write": 25,
            "gen_ai.usage.output_tokens": 10,
            "gen_ai.usage.output_tokens.reasoning": 4,
        },
        used(100, 10, 50, 25, thought=4),
    ),
    # https://logfire.pydantic.dev: the sum of a run of pydantic-ai
    (
        "pydantic-ai's span",
        {
            "gen_ai.aggregated_usage.input_tokens": 100,
            "gen_ai.aggregated_usage.output_tokens": 10,
            "operation.cost": 0.002,
        },
        used(100, 10, cost=0.002),
    ),
    # https://docs.voyageai.com/reference/embeddings-api and OpenAI's embeddings
    ("embeddings", {"prompt_tokens": 8, "total_tokens": 8}, used(8, 0)),
    ("Ours", {"input_tokens": 10, "output_tokens": 5, "cached_tokens": 3, "cost": 0.25}, used(10, 5, 3, cost=0.25)),
]


@pytest.mark.parametrize(("raw", "usage"), [(raw, usage) for _, raw, usage in PUBLISHED], ids=[r[0] for r in PUBLISHED])
def test_published_examples(raw: Any, usage: Usage) -> None:
    reader = UsageReader()
    assert reader.read(raw) == usage
    assert reader.notes == ()


def test_an_object_is_read_as_its_fields_are() -> None:
    details = SimpleNamespace(cached_tokens=1920, audio_tokens=None)
    given_usage = SimpleNamespace(prompt_tokens=2006, completion_tokens=300, prompt_tokens_details=details, cost=None)
    assert read_usage(given_usage) == used(2006, 300, 1920)
    assert read_usage(SimpleNamespace(prompt_token_count=5, candidates_token_count=2, thoughts_token_count=3)) == (
        used(5, 5, thought=3)
    )
    for nothing in (None, "12", 12, [], SimpleNamespace(), SimpleNamespace(input_tokens=lambda: 5)):
        assert read_usage(nothing) == Usage()


@pytest.mark.parametrize(
    ("raw", "usage", "what"),
    [
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 500},
            used(10, 5),
            "a total of 500, with 10 in and 5 out",
        ),
        (
            {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 5, "total_tokens": 7},
            used(100, 5, 90),
            "a total of 7, with 100 in and 5 out",
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 5000}},
            used(None, 5),
            "5000 tokens read from a cache and 0 written, in an input of 10",
        ),
        (  # as OpenRouter sent it: the same tokens in both
            {
                "prompt_tokens": 2168,
                "completion_tokens": 100,
                "total_tokens": 2268,
                "prompt_tokens_details": {"cached_tokens": 2161, "cache_write_tokens": 2161},
            },
            used(2168, 100, 2161, 2161),
            "2161 tokens read from a cache and 2161 written, in an input of 2168",
        ),
    ],
)
def test_what_does_not_add_up_is_noted_with_its_figures(raw: Any, usage: Usage, what: str) -> None:
    reader = UsageReader()
    assert reader.read(raw) == usage
    assert reader.notes == (Note("usage_total", what),)
    assert what in reader.notes[0].description


@pytest.mark.parametrize("wrong", [-1, 3.5, math.nan, math.inf, 10**60, "12", True, [3], {"n": 1}])
@pytest.mark.parametrize(
    ("asked", "answered"), [("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens")]
)
def test_a_side_that_can_not_be_so_is_not_known(asked: str, answered: str, wrong: Any) -> None:
    reader = UsageReader()
    assert reader.read({asked: wrong, answered: 5}) == Usage(None, 5)
    assert [note.code for note in reader.notes] == ["usage"]
    other = UsageReader()
    # Not even with a total: whether the total is right can't be known.
    assert other.read({asked: 5, answered: wrong, "total_tokens": 9}) == Usage(5)
    assert [note.code for note in other.notes] == ["usage"]


@pytest.mark.parametrize("wrong", [-1, math.nan, "12"])
@pytest.mark.parametrize("part", ["cache_read_input_tokens", "cache_creation_input_tokens"])
def test_the_input_is_not_known_if_the_cache_is_not(part: str, wrong: Any) -> None:
    assert read_usage({"input_tokens": 10, "output_tokens": 5, part: wrong}) == Usage(None, 5)
    inside = {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": wrong}}
    assert read_usage(inside) == Usage(None, 5)


def test_one_side_alone_is_not_the_whole() -> None:
    assert read_usage({"prompt_tokens": 10}) == Usage(10)
    assert read_usage({"output_tokens": 10}) == Usage(None, 10)
    assert read_usage({"total_tokens": 10}) == Usage()


COUNTS = st.integers(0, 10_000)


@given(COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
@example(plain=0, read=0, written=1, answered=1, thought=1)
def test_every_dialect_says_the_same(plain: int, read: int, written: int, answered: int, thought: int) -> None:
    whole, out = plain + read + written, answered + thought
    anthropic = {
        "input_tokens": plain,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "output_tokens": out,
    }
    openai = {
        "prompt_tokens": whole,
        "completion_tokens": out,
        "total_tokens": whole + out,
        "prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
        "completion_tokens_details": {"reasoning_tokens": thought},
    }
    xai = {**openai, "completion_tokens": answered}
    bedrock = {
        "inputTokens": plain,
        "outputTokens": out,
        "totalTokens": whole + out,
        "cacheReadInputTokens": read,
        "cacheWriteInputTokens": written,
    }
    langfuse = {
        "input": plain,
        "input_cached_tokens": read,
        "input_cache_creation": written,
        "output": answered,
        "output_reasoning_tokens": thought,
        "total": whole + out,
    }
    for raw in (anthropic, openai, xai, bedrock, langfuse):
        reader = UsageReader()
        usage = reader.read(raw)
        assert (usage.input_tokens, usage.output_tokens) == (whole, out), raw
        assert (usage.cached_tokens or 0, usage.cache_write_tokens or 0) == (read, written)
        assert reader.notes == ()
        # What was read can be read again: the child writes it in our names.
        again, odd, told = figures_in(figures_in(raw)[0])
        assert (Usage(**again), odd, told) == (usage, {}, "")


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "input_tokens",
                "output_tokens",
                "prompt_tokens",
                "total_tokens",
                "cost",
                "cached_tokens",
                "cache_creation",
                "cache_read_input_tokens",
                "completion_tokens",
                "input",
                "output",
                "total",
                "completion_tokens_details",
                "prompt_tokens_details",
                "gen_ai.usage.input_tokens",
            ]
        ),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(st.sampled_from(["cached_tokens", "reasoning_tokens", "x"]), inner, max_size=3)
            ),
        ),
    )
)
def test_nothing_raises_and_nothing_is_absurd(raw: dict[str, Any]) -> None:
    usage = read_usage(raw)
    for count in (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cache_write_tokens):
        assert count is None or count >= 0
    assert usage.cost is None or 0 <= usage.cost < math.inf


def test_sums_say_what_they_lack() -> None:
    whole = UsageSum()
    for usage in (Usage(10, 5, cost=0.5), Usage(20, 6, cost=0.25, cache_write_tokens=4)):
        whole.add(usage)
    assert (whole.total, whole.notes) == (Usage(30, 11, cost=0.75, cache_write_tokens=4), ())
    whole.add(Usage())
    assert (whole.total, whole.notes) == (Usage(cache_write_tokens=4), (Note("partly_counted", "30 in, 11 out"),))
    reader = UsageReader()
    for raw in ({"prompt_tokens": 10, "completion_tokens": 5}, {"prompt_tokens": 3}, None, {}):
        reader.add(raw)
    assert (reader.total, reader.notes) == (Usage(13), (Note("partly_counted", "5 out"),))
