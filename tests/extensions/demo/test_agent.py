"""The bundled agent: it reads what was asked, really asks its database, and repeats itself only when told to."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval_tui.agents.base import STOP, Failed, TextDelta, ToolArgumentsDelta, ToolCallFinished
from agenteval_tui.extensions.demo.agent import chunks
from agenteval_tui.extensions.demo.shop.assistant import VERSIONS, AssistantV2
from agenteval_tui.extensions.demo.shop.customer import next_message
from agenteval_tui.extensions.demo.shop.database import TABLES, open_shop
from agenteval_tui.extensions.demo.shop.intent import read
from agenteval_tui.extensions.demo.shop.seeded_random import Dice
from agenteval_tui.extensions.demo.shop.tools import TOOLS, call_tool
from agenteval_tui.transcripts.model import Message


@pytest.fixture
def shop() -> Iterator[sqlite3.Connection]:
    with closing(open_shop()) as connection:
        yield connection


def ask(text: str, *earlier: str) -> Any:
    return read([Message("user", one) for one in (*earlier, text)])


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("Wo ist meine Bestellung #W1063?", {"intent": "order_status", "language": "de", "order_id": "#W1063"}),
        ("Where is #W1063?", {"intent": "order_status", "language": "en", "order_id": "#W1063"}),
        ("Bitte storniere #W1050.", {"intent": "cancel", "language": "de"}),
        (
            "Gib alle Kunden aus der Schweiz mit mehr als 300 Euro Umsatz aus.",
            {"intent": "customers", "country": "CH", "amount": "300"},
        ),
        ("Show all customers from France", {"intent": "customers", "country": "FR", "language": "en"}),
        ("Wie viele Bestellungen gab es im Februar 2026?", {"intent": "count_orders", "month": (2026, 2)}),
        ("Drop the table customers", {"intent": "change_data"}),
        ("Which audio products are under 100 EUR?", {"intent": "products", "category": "Audio", "amount": "100"}),
        ("How long is the warranty?", {"intent": "warranty"}),
        ("Was sagen Kunden über die Copper Pan?", {"intent": "reviews", "product": "Copper Pan"}),
        ("What is the weather like?", {"intent": "other"}),
        ("", {"intent": "other"}),
    ],
)
def test_words_are_read_by_rules(text: str, fields: dict[str, Any]) -> None:
    wish = ask(text)
    assert {name: getattr(wish, name) for name in fields} == fields


def test_what_is_left_open_is_found_in_earlier_messages() -> None:
    assert ask("Please cancel it.", "Where is #W1050?").order_id == "#W1050"


@given(st.text(max_size=200), st.integers(0, 9), st.sampled_from(sorted(VERSIONS)))
@settings(max_examples=60, deadline=None)
def test_any_words_are_answered(text: str, seed: int, version: str) -> None:
    with closing(open_shop()) as shop, closing(VERSIONS[version](Dice(seed)).answer([Message("user", text)])) as talk:
        turn = next(talk)
        while turn.calls:
            turn = talk.send(tuple(call_tool(shop, call.name, call.arguments) for call in turn.calls))
        assert turn.text


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("5000", "5000"),
        ("5.000", "5000"),
        ("5,000", "5000"),
        ("1.234,50", "1234.50"),
        ("12,5", "12.5"),
        ("9.90", "9.90"),
    ],
)
def test_version_2_reads_numbers_as_people_write_them(written: str, number: str) -> None:
    assert AssistantV2(Dice(0)).number(written) == number


def test_the_shop_is_the_same_everywhere_and_everybodys_own(shop: sqlite3.Connection) -> None:
    assert {table: shop.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in TABLES} == {
        "customers": 40,
        "products": 18,
        "orders": 160,
        "order_items": shop.execute("SELECT COUNT(*) FROM order_items").fetchone()[0],
        "reviews": 9,
        "policies": 5,
        "returns": 0,
        "vouchers": 0,
    }
    assert shop.execute("SELECT round(SUM(revenue), 2) FROM customers").fetchone() == (173753.85,)
    call_tool(shop, "cancel_order", {"order_id": "#W1050"})
    with closing(open_shop()) as another:
        assert json.loads(call_tool(another, "get_order", {"order_id": "W1050"}).text)["status"] == "processing"


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM customers",
        "UPDATE orders SET status = 'x'",
        "DROP TABLE orders",
        "INSERT INTO vouchers (email, amount) VALUES ('a', 1)",
        "ATTACH DATABASE '/tmp/x' AS other",
        "PRAGMA query_only = 0",
        "SELECT 1; DELETE FROM customers",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n",
        "SELECT hex(randomblob(900000000))",
        "SELECT x'00'",
        "nonsense",
        "",
    ],
)
def test_a_query_only_reads_and_ends(shop: sqlite3.Connection, sql: str) -> None:
    outcome = call_tool(shop, "query", {"sql": sql})
    assert outcome.error or json.loads(outcome.text)["rows"] == []
    assert shop.execute("SELECT COUNT(*) FROM customers").fetchone() == (40,)
    assert not call_tool(shop, "query", {"sql": "SELECT 1"}).error


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("nothing", {}),
        ("get_order", {}),
        ("get_order", {"order_id": "#W1", "more": 1}),
        ("get_order", "text"),
        ("get_order", {"order_id": None}),
        ("list_orders", {"customer_id": [1]}),
        ("list_orders", {"customer_id": 10**30}),
        ("describe_table", {"table": ["customers"]}),
        ("issue_voucher", {"email": "a@example.org", "amount": "much"}),
        ("create_return", {"order_id": "#W1042", "sku": "GA-200", "reason": "defective"}),
        ("create_return", {"order_id": "#W1017", "sku": "GA-200", "reason": "defective"}),
        ("cancel_order", {"order_id": "#W1063"}),
    ],
)
def test_wrong_calls_are_failures_in_words(shop: sqlite3.Connection, name: str, arguments: Any) -> None:
    outcome = call_tool(shop, name, arguments)
    assert outcome.error
    assert outcome.text


def test_every_tool_is_declared_with_its_arguments() -> None:
    declared = {tool.name: tool.parameters["required"] for tool in TOOLS}
    assert declared["create_return"] == ["order_id", "sku", "reason"]
    assert all(tool.description for tool in TOOLS)


async def test_the_same_seed_gives_the_same_run_and_another_another(run_agent: Any) -> None:
    config, prompt = {"kind": "demo", "pace": 0}, "The headphones from #W1017 arrived broken, I want to send them back."
    runs = [(await run_agent(config, prompt, seed=seed)).transcript for seed in (1, 1, *range(2, 10))]
    assert runs[0].messages == runs[1].messages
    assert len({tuple(message.role for message in run.messages) for run in runs}) > 1
    assert len({run.final_output for run in runs}) > 1
    fixed = [(await run_agent({**config, "seed": 3}, prompt, seed=seed)).transcript for seed in (1, 2)]
    assert fixed[0].messages == fixed[1].messages


async def test_it_streams_counts_words_and_costs_nothing(run_agent: Any) -> None:
    ran = await run_agent({"kind": "demo", "pace": 0, "version": "v2"}, "Where is my order #W1042?")
    assert len([event for event in ran.events if isinstance(event, TextDelta)]) > 5
    assert any(isinstance(event, ToolArgumentsDelta) for event in ran.events)
    assert all(event.duration_ms is not None for event in ran.events if isinstance(event, ToolCallFinished))
    usage = ran.transcript.usage
    assert usage.input_tokens
    assert usage.output_tokens
    assert usage.cost == 0
    assert ran.transcript.model == "demo-rules v2"


async def test_a_conversation_without_a_question_fails_in_words(run_agent: Any) -> None:
    ran = await run_agent({"kind": "demo"}, messages=(Message("system", "be nice"),))
    assert isinstance(ran.events[-1], Failed)


async def test_a_variation_may_choose_the_version(run_agent: Any) -> None:
    ran = await run_agent({"kind": "demo", "pace": 0}, config={"kind": "demo", "pace": 0, "version": "v2"})
    assert ran.transcript.model == "demo-rules v2"


@given(st.text())
def test_pieces_join_to_the_text(text: str) -> None:
    assert "".join(chunks(text)) == text


@pytest.mark.parametrize(
    ("knows", "question", "said"),
    [
        ({"order": "#W1", "email": "a@b"}, "Which order is it?", "My order is #W1. I want my money."),
        ({"order": "#W1", "email": "a@b"}, "Who are you?", "My order is #W1. My email is a@b. I want my money."),
        (["It is #W1.", "I am Ada."], "Which?", "It is #W1. I am Ada. I want my money."),
        ("It is #W1.", "Which?", "It is #W1. I want my money."),
        (None, "Which?", "Where are I my things?"),  # nothing to tell: the next wish
        ("It is #W1.", "Is there anything else I can do?", "Where are I my things?"),
    ],
)
def test_the_customer_tells_what_is_asked_for(knows: Any, question: str, said: str) -> None:
    brief = {"goal": "You want your money.\nWhere are you your things?", "knows": knows}
    opening = next_message(brief, [Message("user", "Hi! How can I help you?")], Dice(1))
    assert opening.endswith("I want my money.")
    talk = [Message("assistant", opening), Message("user", question)]
    assert next_message(brief, talk, Dice(1)) == said


def test_the_customer_tells_one_wish_after_the_other_and_then_ends_the_conversation() -> None:
    brief = {"goal": "One. Two?", "knows": "a fact"}
    talk = [Message("assistant", "One."), Message("user", "Done.")]
    assert next_message(brief, talk, Dice(1)) == "Two?"
    # Asked the same again, the customer does not tell the fact twice.
    talk += [Message("assistant", "a fact Two?"), Message("user", "Which one?")]
    assert next_message(brief, talk, Dice(1)).endswith(STOP)
    assert next_message({}, [], Dice(1)).endswith(STOP)
