"""`agenteval prices`: what is taken from a list, what stays, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scripted import Answer, Request
from threaded import serving

from agenteval_tui.agents import prices as prices_module
from agenteval_tui.agents.key_destinations import is_secure_or_local
from agenteval_tui.agents.price_update import LARGEST, parse, update_prices
from agenteval_tui.agents.prices import UPDATED, Price, Prices
from agenteval_tui.core.errors import AgentevalError


def entry(provider: str, given: Any, out: Any = 2e-6, **more: Any) -> dict[str, Any]:
    return {
        "litellm_provider": provider, "mode": "chat",
        "input_cost_per_token": given, "output_cost_per_token": out, **more,
    }  # fmt: skip


LITELLM = {
    "sample_spec": {"litellm_provider": "one of", "mode": "one of: chat", "input_cost_per_token": 0.0},
    "gpt-x": entry("openai", 1e-6, cache_read_input_token_cost=1e-7, cache_creation_input_token_cost=1.5e-6),
    "gemini-x": entry("vertex_ai", 9e-6),
    "gemini/gemini-x": entry("gemini", 3e-6),
    "azure/gpt-x": entry("azure", 4e-6),
    "paid-by-the-hour": entry("sagemaker", 0, 0),
    "dall-e": {"litellm_provider": "openai", "mode": "image_generation", "input_cost_per_token": 1e-6},
}
BY_HAND = "# mine\nmodels:\n  GPT-X: {input: 7, output: 8}  # by contract"


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(prices_module, "_bundled", dict)
    path = tmp_path / "list.json"
    path.write_text(json.dumps(LITELLM), "utf-8")
    return path


@pytest.mark.parametrize("out", [None, 0, 0.0])
def test_an_embedding_has_a_price_without_an_output(listed: Path, tmp_path: Path, out: float | None) -> None:
    listed.write_text(json.dumps({"embed-x": entry("openai", 1e-7, out, mode="embedding")}), "utf-8")
    update_prices(tmp_path, str(listed))
    assert Prices.load(tmp_path).of("embed-x") == Price(0.1, 0)


def test_prices_of_litellms_list_come_into_the_file(listed: Path, tmp_path: Path) -> None:
    home = tmp_path / "new" / "config"
    done = update_prices(home, str(listed))
    assert {one.model: one.after for one in done.changes} == {
        "gpt-x": Price(1, 2, 0.1, 1.5), "gemini-x": Price(3, 2), "azure/gpt-x": Price(4, 2)
    }  # fmt: skip
    assert (done.unchanged, done.yours, done.kept, done.left_out) == (0, (), 0, 3)
    prices = Prices.load(home)
    found = prices.find("gemini/gemini-x-2030-01-01")
    assert found is not None
    assert (found.name, found.price.input, found.source) == ("gemini-x", 3, "updated")
    assert prices.of("paid-by-the-hour") is None
    again = update_prices(home, str(listed))
    assert (again.changes, again.unchanged) == ((), 3)


def test_what_was_written_by_hand_stays_and_wins(listed: Path, tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(BY_HAND, "utf-8")
    path.chmod(0o640)
    done = update_prices(tmp_path, str(listed), dry_run=True)
    assert path.read_text("utf-8") == BY_HAND
    assert set(done.yours) == {"gpt-x", "azure/gpt-x"}
    update_prices(tmp_path, str(listed))
    assert path.read_text("utf-8").startswith(f"{BY_HAND}\n{UPDATED}\n{{\n")
    assert path.stat().st_mode & 0o777 == 0o640
    prices = Prices.load(tmp_path)
    for model, price in (("gpt-x-2030-01-01", 7), ("azure/gpt-x", 7), ("gemini-x", 3)):
        found = prices.of(model)
        assert found is not None
        assert found.input == price, model
    # A second list: what it does not have stays; what was added by hand since counts at once.
    path.write_text(path.read_text("utf-8").replace("models:\n", "models:\n  gemini-x: {input: 0.5, output: 1}\n"))
    (tmp_path / "own.yaml").write_text("gemini-x: {input: 5, output: 5}\nother: {input: 1, output: 1}\n")
    second = update_prices(tmp_path, str(tmp_path / "own.yaml"))
    assert ([one.model for one in second.changes], second.yours, second.kept) == (["other"], ("gemini-x",), 2)
    assert Prices.load(tmp_path).of("gemini-x") == Price(0.5, 1)
    assert [(one.name, one.source) for one in Prices.load(tmp_path).every()] == [
        ("azure/gpt-x", "updated"), ("gemini-x", "yours"), ("GPT-X", "yours"), ("other", "updated")
    ]  # fmt: skip


def test_a_mistake_below_the_line_is_said_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(f'mine: {{input: 1, output: 2}}\n{UPDATED}\n{{\n"a": {{"input": 1}}\n}}\n')
    with pytest.raises(AgentevalError, match=r'prices.yaml:4:1: "a": this price has no "output"'):
        Prices.load(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"gpt-x": {"mode": "chat", "litellm', "at:1:28: this JSON is incomplete"),
        (json.dumps({"m": entry("openai", "free")}), '"m": "input" must be US dollars per million tokens'),
        (json.dumps({"m": entry("openai", -1e-6)}), "0 or more, not -1.0"),
        (json.dumps({"m": entry("openai", 10**400)}), "0 or more, not inf"),
        ('{"m": {"mode": "chat", "input_cost_per_token": NaN, "output_cost_per_token": 1}}', "not nan"),
        (json.dumps({"m": entry("openai", 1e-6), "n": 5}), 'the price of "n" must be an object'),
        (json.dumps({"a\u001b[2J": entry("openai", 1e-6)}), "can't be the name of a model"),
        ('{"a":' * 100_000, "this JSON can't be read"),
        ("<!doctype html><title>Sign in</title>", "this is a web page, not a list of prices"),
        ("gpt-x: {input: 1, outp", "at:1:"),
        ("x: {input: 1, output: 2}\n" * 60_000, "has at most 1 MB"),
        ("{}", "there is no price by token in this list"),
        ("", "there is no price by token in this list"),
    ],
)  # fmt: skip
def test_what_is_no_whole_list_is_refused_in_one_sentence(text: str, said: str) -> None:
    with pytest.raises(AgentevalError) as caught:
        parse(text, "at")
    assert said in caught.value.sentence
    assert "\n" not in caught.value.sentence
    assert "\x1b" not in caught.value.sentence


def test_a_refused_list_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text(BY_HAND, "utf-8")
    (tmp_path / "cut.json").write_text(json.dumps(LITELLM)[:-40], "utf-8")
    for source in (tmp_path / "cut.json", tmp_path, tmp_path / "nowhere.json"):
        with pytest.raises(AgentevalError):
            update_prices(tmp_path, str(source))
    assert (tmp_path / "prices.yaml").read_text("utf-8") == BY_HAND
    (tmp_path / "prices.yaml").write_text("broken: {", "utf-8")  # by hand, and not ours to lose
    (tmp_path / "good.json").write_text(json.dumps(LITELLM), "utf-8")
    with pytest.raises(AgentevalError, match=r"prices\.yaml:1:"):
        update_prices(tmp_path, str(tmp_path / "good.json"))
    assert (tmp_path / "prices.yaml").read_text("utf-8") == "broken: {"


@pytest.mark.parametrize(
    ("address", "safe"),
    [
        ("https://a.test/p.json", True), ("http://127.0.0.1:8/p", True), ("http://localhost/p", True),
        ("http://a.test/p.json", False), ("ftp://a.test/p", False), ("file:///etc/passwd", False),
        ("http://127.0.0.1.a.test/", False), ("https://", False),
    ],
)  # fmt: skip
def test_only_addresses_that_nobody_can_read_along(address: str, safe: bool, tmp_path: Path) -> None:
    assert is_secure_or_local(address) is safe
    if not safe:
        with pytest.raises(AgentevalError, match="https:// addresses only"):
            update_prices(tmp_path, address)


def test_a_list_is_fetched_without_anything_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prices_module, "_bundled", dict)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-mine")
    (tmp_path / "netrc").write_text("default login me password of-mine\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    replies = {
        "/list": Answer(body=json.dumps(LITELLM)),
        "/moved": Answer(302, headers={"location": "http://127.0.0.1:1/"}),
        "/gone": Answer(404, '{"error": "no"}'),
        "/closed": Answer(401, '{"error": "no"}'),
        "/large": Answer(pieces=[b"x" * (LARGEST // 8)] * 9),
    }
    seen: list[Request] = []

    def answer(request: Request) -> Answer:
        seen.append(request)
        return replies[request.path]

    with serving(answer) as server:
        root = server.url.removesuffix("/v1")
        assert len(update_prices(tmp_path, f"{root}/list").changes) == 3
        for path, said in (
            ("moved", "redirects to"), ("gone", "404"), ("closed", "needs no key"), ("large", "MB")
        ):  # fmt: skip
            with pytest.raises(AgentevalError) as caught:
                update_prices(tmp_path, f"{root}/{path}")
            assert said in caught.value.sentence
        with pytest.raises(AgentevalError, match="not fetched with a password"):
            update_prices(tmp_path, f"{root}/list".replace("://", "://me:of-mine@"))
    assert len(seen) == 5
    assert "of-mine" not in str([request.headers for request in seen])
    assert not {"authorization", "cookie", "x-api-key"} & {name.lower() for one in seen for name in one.headers}
