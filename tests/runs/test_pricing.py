"""What tokens cost when the server does not say."""

from __future__ import annotations

from pathlib import Path

from agenteval_tui.runs.pricing import Priced, fresh_prices, price_for
from agenteval_tui.transcripts.model import Usage

USED = Usage(1_000_000, 1_000_000)


def prices(model: str, usage: Usage) -> float | None:
    return {"small": 1.0, "large": 5.0}.get(model)


def test_tokens_are_priced_again_when_the_model_says_its_name() -> None:
    one = Priced(prices)
    assert one.priced(USED).cost is None
    assert one.named("small") == 1.0
    assert one.priced(USED).cost == 1.0  # of the next turn: the name is known
    assert one.named("small") is None
    assert one.priced(USED).cost == 1.0
    assert one.named("large") == 4.0
    assert one.priced(Usage()) == Usage()


def test_an_unknown_name_takes_nothing_away() -> None:
    one = Priced(lambda model, usage: 2.0 if model in ("", "large") else None)
    assert one.priced(USED).cost == 2.0
    assert one.named("unheard of") is None


def test_the_agents_own_price_counts_before_the_lists(tmp_path: Path) -> None:
    fresh_prices(tmp_path)
    own = price_for({"model": "m", "price": {"input": 1.0, "output": 2.0}}, tmp_path)
    assert own("m", USED) == own("", USED) == 3.0
    assert price_for({"model": "nobody-knows-this"}, tmp_path)("nor-this", USED) is None
    (tmp_path / "prices.yaml").write_text("nobody-knows-this: {input: 0.5, output: 1.0}\n", encoding="utf-8")
    fresh_prices(tmp_path)
    assert price_for({"model": "nobody-knows-this"}, tmp_path)("its-alias", USED) == 1.5
    fresh_prices(tmp_path / "elsewhere")


def test_requests_of_several_models_have_no_cost_unless_each_has_one() -> None:
    one = Priced(prices)
    assert (one.priced(USED, "small").cost, one.whole) == (1.0, True)
    assert (one.priced(USED, "nobody-knows-this").cost, one.whole, one.known_cost) == (None, False, 1.0)
    assert one.named("small") is None  # the last answer's name is not that of the others
    other = Priced(prices)
    assert other.priced(Usage(5, 5, cost=0.5)).cost == 0.5
    assert other.priced(USED).cost is None
    assert other.named("large") == 5.5  # all of it: until now the cost was not known
    told = Priced(prices)
    told.priced(USED)
    told.priced(Usage(cost=0.25))
    assert (told.whole, told.known_cost) == (True, 0.25)
    uncounted = Priced(prices)
    uncounted.priced(Usage(), "nobody-knows-this")
    assert not uncounted.whole


def test_the_sum_of_a_known_and_an_unknown_cost_is_not_known() -> None:
    assert Usage(1, 1, cost=0.5) + Usage(2, 2) == Usage(2, 2) + Usage(1, 1, cost=0.5) == Usage(3, 3)
    assert Usage(1) + Usage(None, 1, cost=0.5) == Usage(1, 1, cost=0.5)
    assert Usage(1, 1) + Usage(cost=0.5) == Usage(1, 1, cost=0.5)
    assert Usage(1, 1, cost=0.5) + Usage(0, 0) == Usage(1, 1, cost=0.5)


def test_a_cost_without_tokens_is_that_of_what_was_used_until_now_if_that_was_not_known() -> None:
    unknown = Priced(lambda model, usage: None)
    unknown.priced(Usage(10, 5))
    unknown.priced(Usage(20, 5))
    assert not unknown.whole
    unknown.priced(Usage(cost=0.5))
    assert (unknown.whole, unknown.known_cost) == (True, 0.5)
    # Where every request has its cost already, another one comes on top.
    unknown.priced(Usage(cost=0.25))
    assert (unknown.whole, unknown.known_cost) == (True, 0.75)
    known = Priced(lambda model, usage: 0.125)
    known.priced(Usage(10, 5), "m")
    known.priced(Usage(cost=0.5))
    assert (known.whole, known.known_cost) == (True, 0.625)


def test_a_cost_with_its_tokens_is_that_of_its_own_request() -> None:
    mixed = Priced(lambda model, usage: None)
    mixed.priced(Usage(10, 5))
    mixed.priced(Usage(20, 5, cost=0.5))
    assert (mixed.whole, mixed.known_cost) == (False, 0.5), "the first request is still without a cost"


def test_nothing_is_added_before_the_cost_of_every_request_is_known() -> None:
    names = {"a": 1.0, "b": 2.0}
    priced = Priced(lambda model, usage: names.get(model))
    priced.priced(Usage(10, 5))
    assert priced.named("unknown") is None
    priced.priced(Usage(10, 5))
    assert priced.named("a") is None, "the first one's cost is still not known"
    assert not priced.whole
    fresh = Priced(lambda model, usage: names.get(model))
    fresh.priced(Usage(10, 5))
    assert fresh.named("b") == 2.0
    assert fresh.whole


def test_what_a_request_may_cost_at_most_is_its_input_written_into_a_cache() -> None:
    one = Priced(lambda model, usage: 3.0 if usage.cache_write_tokens else 1.0)
    assert one.at_most == 0.0
    one.priced(Usage(10, 5), "m")
    assert (one.known_cost, one.at_most) == (1.0, 3.0)
    one.priced(Usage(10, 5, cost=2.0))
    assert (one.known_cost, one.at_most) == (3.0, 5.0)


def test_output_tokens_that_come_after_the_input_are_of_the_same_request() -> None:
    one = Priced(lambda model, usage: None if None in (usage.input_tokens, usage.output_tokens) else 1.0)
    one.priced(Usage(10))
    assert one.priced(Usage(None, 5)).cost == 1.0
    assert (one.whole, one.known_cost) == (True, 1.0)
