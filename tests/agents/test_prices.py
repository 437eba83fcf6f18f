"""What tokens cost: whose price counts, and how a model's name is found."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agenteval_tui.agents import prices as prices_module
from agenteval_tui.agents.options import AgentOptions, PriceOption, option_problems
from agenteval_tui.agents.prices import Price, Prices, read_prices
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.transcripts.model import Usage

ROOT = Path(__file__).resolve().parents[2]
LISTED = {
    "GPT-4o": Price(2, 10, 1),
    "gpt-4o-mini": Price(0.2, 0.6),
    "gpt-4o-2024-05-13": Price(5, 15),
    "groq/openai/gpt-oss": Price(0.1, 0.5),
    "x-latest": Price(7, 7),
}


@pytest.mark.parametrize(
    ("model", "listed"),
    [
        ("gpt-4o", "GPT-4o"),
        (" Gpt-4O ", "GPT-4o"),
        ("gpt-4o-2024-08-06", "GPT-4o"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("gpt-4o-20240806", "GPT-4o"),
        ("gpt-4o@20240806", "GPT-4o"),
        ("gpt-4o-0806", "GPT-4o"),
        ("gpt-4o-latest", "GPT-4o"),
        ("openai/gpt-4o", "GPT-4o"),
        ("openrouter/openai/gpt-4o-2024-08-06", "GPT-4o"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("groq/openai/gpt-oss", "groq/openai/gpt-oss"),
        ("x-latest", "x-latest"),
        ("openai/gpt-oss", None),
        ("gpt-4o-audio-preview", None),
        ("gpt-4", None),
        ("gpt-4o-2024-08-06-mine", None),
        ("ollama/gpt-4o", None),
        ("never-heard-of", None),
        ("", None),
    ],
)
def test_names(model: str, listed: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prices_module, "_bundled", dict)  # nothing of the bundled list may answer here
    assert Prices(LISTED).of(model) == (LISTED[listed] if listed else None)


def test_tokens_of_all_kinds() -> None:
    prices = Prices({"m": Price(2, 10, 1, 4)})
    assert prices.cost("m", Usage(1_000_000, 100_000)) == pytest.approx(3)
    assert prices.cost("m", Usage(1_000_000, 0, cached_tokens=400_000)) == pytest.approx(1.6)
    written = Usage(1_000_000, 0, 400_000, cache_write_tokens=100_000)
    assert prices.cost("m", written) == pytest.approx(1.8)
    an_hour = replace(written, cache_write_1h_tokens=40_000)
    assert prices.cost("m", an_hour) == pytest.approx(1.8), "as what is kept for five minutes"
    assert prices.cost("m", an_hour, Price(2, 10, 0.5, 4, 8)) == pytest.approx(1 + 0.2 + 0.24 + 0.32)
    for usage in (
        Usage(100, 0, cached_tokens=500),
        Usage(None, 1_000_000),
        Usage(1_000_000, None),
        Usage(-1, 5),
        Usage(5, -1),
        Usage(100, 5, 60, cache_write_tokens=60),
        Usage(100, 5, cache_write_tokens=10, cache_write_1h_tokens=20),
        Usage(100, 5, cached_tokens=-1),
    ):
        assert prices.cost("m", usage) is None, usage
    assert Prices({"m": Price(2, 10)}).cost("m", Usage(1_000_000, 0, 1_000_000)) == pytest.approx(2)
    assert Prices({"m": Price(0, 0)}).cost("m", Usage(5, 5)) == 0


def test_whose_price_counts() -> None:
    prices = Prices({"gpt-4o": Price(100, 100)})
    usage = Usage(1_000_000, 0)
    assert prices.cost("gpt-4o-2024-05-13", usage) == pytest.approx(100), "the user's wins over the bundled, dated one"
    assert prices.cost("gpt-4o", usage, PriceOption(input=1, output=2)) == pytest.approx(1)
    assert prices.cost("gpt-4o", usage, {"input": 3, "output": 2}) == pytest.approx(3)
    assert prices.cost("gpt-4o", Usage(1_000_000, 0, cost=0.5), {"input": 3, "output": 2}) == 0.5
    assert prices.cost("unheard-of", usage, Price(1, 1)) == pytest.approx(1)
    assert prices.cost("unheard-of", usage) is None
    assert prices.cost("gpt-4o", Usage()) is None


def test_the_bundled_list(tmp_path: Path) -> None:
    prices = Prices.load(tmp_path)
    assert prices.of("openai/gpt-4o-2024-08-06") == Price(2.5, 10, 1.25)
    assert prices.of("gpt-4o-2024-05-13") == Price(5, 15)
    listed = read_prices(ROOT / "agenteval_tui" / "agents" / "prices.yaml")
    assert len(listed) >= 80
    for name, price in listed.items():
        assert 0 < price.input < 1000, name
        assert price.input <= price.output < 1000 or (price.output == 0 and "embed" in name), name
        assert price.cached is None or price.cached <= price.input, name
        assert prices.of(name) == price
    head = (ROOT / "agenteval_tui" / "agents" / "prices.yaml").read_text()
    assert "LiteLLM 1." in head
    assert "check them" in head


def test_the_script_that_makes_the_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def entry(provider: str, price: float, **more: Any) -> dict[str, Any]:
        return {"litellm_provider": provider, "mode": "chat", "input_cost_per_token": price,
                "output_cost_per_token": 2 * price, **more}  # fmt: skip

    data = {
        "sample_spec": {"mode": "chat"},
        "gpt-9": entry("openai", 1e-6, cache_read_input_token_cost=1e-7),
        "gpt-9-2030-01-01": entry("openai", 1e-6, cache_read_input_token_cost=1e-7),
        "gpt-9-2029-01-01": entry("openai", 3e-6),
        "gpt-9-audio": entry("openai", 3e-6),
        "embed": entry("openai", 3e-6) | {"mode": "embedding", "output_cost_per_token": 0},
        "dall-e": entry("openai", 3e-6) | {"mode": "image_generation"},
        "mistral/m-latest": entry("mistral", 2.5e-7),
        "groq/openai/x": entry("groq", 0.0000001),
        "free": entry("openai", 0),
        "azure/gpt-9": entry("azure", 1e-6),
    }
    (tmp_path / "list.json").write_text(json.dumps(data))
    spec = importlib.util.spec_from_file_location("make_prices", ROOT / "docs" / "make_prices.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(str(tmp_path / "list.json"), "1.2.3")
    out = capsys.readouterr().out
    assert "LiteLLM 1.2.3" in out
    (tmp_path / "prices.yaml").write_text(out)
    assert read_prices(tmp_path / "prices.yaml") == {
        "embed": Price(3, 0), "gpt-9": Price(1, 2, 0.1), "gpt-9-2029-01-01": Price(3, 6), "m-latest": Price(0.25, 0.5),
        "groq/openai/x": Price(0.1, 0.2),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("gpt-4o: {input: 1, output: 2, cache: 3}", "1:1", 'a price has no "cache"'),
        ("a: {input: 1, output: 1}\nb: {input: 1}", "2:1", '"b": this price has no "output"'),
        ("models:\n  b: {input: -1, output: 1}", "2:3", "0 or more, not -1"),
        ("b: {input: '1', output: 1}", "1:1", "not '1'"),
        ("b: {input: true, output: 1}", "1:1", "not True"),
        ("b: {input: .inf, output: 1}", "1:1", "not '.inf'"),
        ("b: 5", "1:1", 'the price of "b" must be an object'),
        ("- b", "1:1", "prices must be an object"),
        ("a: {input: 1", "1:4", "not closed"),
        ("a: {input: 1, output: 1}\na: {input: 1, output: 1}", "2:1", "appears twice"),
    ],
)
def test_a_wrong_file_is_said_with_its_place(tmp_path: Path, text: str, place: str, message: str) -> None:
    (tmp_path / "prices.yaml").write_text(text)
    with pytest.raises(AgentevalError) as caught:
        Prices.load(tmp_path)
    assert message in caught.value.what
    assert caught.value.where == f"{tmp_path}/prices.yaml:{place}"


def test_an_empty_file_and_none(tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text("# nothing\n")
    assert Prices.load(tmp_path).of("gpt-4o") == Prices.load(tmp_path / "nowhere").of("gpt-4o") is not None


@pytest.mark.parametrize(
    ("price", "said"),
    [
        ({"input": 1, "output": 2.5, "cached": 0}, []),
        ({"input": 1}, ["option `price.output` is missing"]),
        ({"input": 1, "output": -1}, ["option `price.output` must be greater than or equal to 0, not -1"]),
        ({"input": 1, "output": "2"}, ["option `price.output` must be number, not '2'"]),
        ({"input": 1, "output": 1, "cache": 1}, ["unknown option `price.cache`, did you mean `cached`?"]),
        (5, None),
    ],
)
def test_the_agents_own_price(price: Any, said: list[str] | None) -> None:
    found = [message for _, message in option_problems(AgentOptions, {"kind": "x", "price": price})]
    if said is None:
        assert len(found) == 1
    else:
        assert found == said


@pytest.mark.parametrize(
    "price",
    [
        "{input: -1, output: 1}", "{input: .nan, output: 1}", "{input: .inf, output: 1}", "{input: 1e400, output: 1}",
        "{input: '2', output: 1}", "{input: 2}", "{output: 2}", "{}", "", "3", "free", "{input: null, output: 2}",
        "{input: true, output: 2}", "{input: [1], output: 2}", "{input: 1, output: 2, cached: -1}",
        "{input: 1, output: 2, cache_write_1h: .nan}", "{input: 1, output: 2, per: token}",
    ],
)  # fmt: skip
def test_a_price_that_is_none_is_an_error_with_its_place(price: str, tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text(f"m: {price}\n", "utf-8")
    with pytest.raises(AgentevalError) as raised:
        Prices.load(tmp_path)
    assert "prices.yaml:1:1" in str(raised.value)
    assert raised.value.fix


def test_a_price_of_zero_is_a_price_and_no_price_is_not_zero(tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text("free: {input: 0, output: 0}\n", "utf-8")
    prices = Prices.load(tmp_path)
    assert prices.cost("free", Usage(10, 10)) == 0.0
    assert prices.cost("nobody-knows-this", Usage(10, 10)) is None
    assert prices.cost("free", Usage(10)) is None, "one side is not known"
