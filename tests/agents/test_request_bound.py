"""What a request may cost at most, told from its body before it is sent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.agents.prices import Prices
from agenteval_tui.agents.request_bound import ADDED, RequestSize, cost_at_most, size_of
from agenteval_tui.transcripts.model import Usage

PRICE = {"input": 3.0, "output": 15.0, "cached": 0.3, "cache_write": 3.75, "cache_write_1h": 6.0}
SAID = [{"role": "user", "content": "hi"}]


def price(usage: Usage) -> float | None:
    return Prices({}).cost("", usage, PRICE)


@pytest.mark.parametrize(
    ("body", "output"),
    [
        ({"messages": SAID, "max_tokens": 50}, 50),
        ({"messages": SAID, "max_completion_tokens": 60, "n": 3}, 180),
        ({"input": SAID, "max_output_tokens": 70}, 70),
        ({"contents": [], "generationConfig": {"maxOutputTokens": 80, "candidateCount": 2}}, 160),
        ({"messages": SAID, "max_tokens": 50, "tools": [{"type": "function", "function": {"name": "f"}}]}, 50),
        ({"messages": SAID, "max_tokens": 50, "tools": [{"name": "f", "input_schema": {}}]}, 50),
        ({"contents": [], "generationConfig": {"maxOutputTokens": 8}, "tools": [{"functionDeclarations": []}]}, 8),
        ({"messages": SAID}, None),
        ({"messages": SAID, "max_tokens": None}, None),
        ({"messages": SAID, "max_tokens": "50"}, None),
        # What the server adds is not in the body.
        ({"messages": SAID, "max_tokens": 50, "tools": [{"type": "web_search_20250305", "name": "web_search"}]}, None),
        ({"contents": [], "generationConfig": {"maxOutputTokens": 8}, "tools": [{"googleSearch": {}}]}, None),
        ({"input": SAID, "max_output_tokens": 70, "previous_response_id": "r"}, None),
        ({"messages": [{"content": [{"image_url": {"url": "https://x.example/a.png"}}]}], "max_tokens": 5}, None),
        ({"messages": [{"content": [{"source": {"file_id": "f"}}]}], "max_tokens": 5}, None),
    ],
)
def test_the_limit_of_an_answer(body: dict[str, Any], output: int | None) -> None:
    size = size_of(body)
    assert size.output == output
    assert (cost_at_most(price, size) is None) == (output is None)


@given(
    st.integers(0, 10**6),
    st.integers(0, 10**5),
    st.integers(0, 10**6),
    st.integers(0, 10**5),
    st.sampled_from([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 1, 1), (0.5, 0.5, 0.25)]),
)
def test_no_usage_within_the_limits_costs_more(
    size: int, most: int, asked: int, answered: int, parts: tuple[float, float, float]
) -> None:
    asked, answered = min(asked, size + ADDED), min(answered, most)
    read, written, hour = (int(asked * part) for part in parts)
    usage = Usage(asked, answered, cached_tokens=read, cache_write_tokens=written, cache_write_1h_tokens=hour)
    bound, cost = cost_at_most(price, RequestSize(size, most, an_hour=True)), price(usage)
    assert bound is not None
    assert cost is not None
    assert cost <= bound * (1 + 1e-9)


def test_a_request_that_continues_one_has_its_tokens_and_the_bytes_that_are_new() -> None:
    request = RequestSize(12_000, 10)
    alone, after = cost_at_most(price, request), cost_at_most(price, request, (11_000, 2_500))
    assert alone == pytest.approx((13_000 * 3.75 + 10 * 15) / 1e6)
    assert after == pytest.approx((4_500 * 3.75 + 10 * 15) / 1e6)
    assert cost_at_most(price, request, (20_000, 2_500)) == pytest.approx((3_500 * 3.75 + 10 * 15) / 1e6)


def test_without_a_price_there_is_no_bound() -> None:
    assert cost_at_most(lambda usage: None, RequestSize(10, 10)) is None
