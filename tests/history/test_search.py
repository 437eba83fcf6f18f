"""Search: people type what they like; nothing that they type is an error."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from history_made import ended, planned, record, transcript
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agenteval_tui.history.records import RunFilter
from agenteval_tui.history.search import match_expression
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("search") / "history.db") as store:
        store.begin_execution(record(), [planned(n) for n in range(3)])
        german = Transcript(
            (
                Message("system", "Du hilfst im Laden."),
                Message("user", "Zeige Kunden aus München, die über 5.000 € kaufen"),
                Message("assistant", "Ich sehe nach.", tool_calls=(0, 1)),
                Message("assistant", "Es sind die Gärtnerei Grün und Söhne."),
            ),
            (
                ToolCall("1", "describe_table", {"table": "customers", "limit": 17}),
                ToolCall("2", "query", "SELECT name FROM kunden WHERE land = 'DE' -- broken", malformed=True),
            ),
            final_output="Es sind die Gärtnerei Grün und Söhne.",
        )
        store.run_ended(replace(ended(0), transcript=german))
        store.run_ended(ended(1))
        store.run_ended(replace(ended(2), transcript=replace(transcript("naïve café 東京 заказ"))))
        store.flush()
        yield store


@pytest.mark.parametrize(
    ("text", "positions"),
    [
        ("kunden", [0]),
        ("KUNDEN münchen", [0]),
        ("munchen", [0]),
        ("gart", [0]),  # the last word may be the start of one
        ("gart ", []),  # but not when it is finished by a space
        ("gart grün", []),
        ('"grün und söhne"', [0]),
        ('"söhne und grün"', []),
        ('"grün und', [0]),  # a quote that is still open
        ("söhne grün", [0]),
        ("describe_table", [0]),
        ("customers", [0]),
        ("17", [0]),
        ("limit", [0]),
        ("SELECT name FROM", [0]),
        ("laden", []),  # system prompts are the same in all runs: not searched
        ("#W42", [2, 1]),
        ("order", [2, 1]),
        ("order number", [1]),
        ("cafe", [2]),
        ("東京", [2]),
        ("東", [2]),
        ("ЗАКАЗ", [2]),
        ("", [2, 1, 0]),
        ("   ", [2, 1, 0]),
        ("!!! ???", []),
    ],
)
def test_what_is_found(searched: Store, text: str, positions: list[int]) -> None:
    assert [row.position for row in searched.run_rows(searched.run_ids(RunFilter(text=text)))] == positions


@pytest.mark.parametrize(
    "text",
    [
        '"',
        '""',
        '"""',
        "'",
        "*",
        "a*",
        "^order",
        "order AND",
        "AND",
        "NOT order",
        "order OR",
        "NEAR(order way, 2)",
        "prompt:order",
        "{prompt answer}: order",
        "(order",
        "order)",
        "-order",
        "+order",
        "order + way",
        "order\0way",
        "\ud800",
        "order \udfff",
        "'; DROP TABLE runs; --",
        '" OR 1=1 --',
        "%",
        "_",
        "\\",
        "order" * 5_000,
        "a " * 5_000,
        '"' * 999,
    ],
)
def test_nothing_that_is_typed_is_an_error(searched: Store, text: str) -> None:
    for wanted in (RunFilter(text=text), RunFilter(text=text, agent=text, test_id=text, suite_key=text)):
        searched.run_ids(wanted)
        searched.execution_ids(wanted)
    assert len(searched.run_ids()) == 3


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(exclude_categories=()) | st.sampled_from('"*^:(){}+-'), max_size=30))
def test_any_text_can_be_searched(searched: Store, text: str) -> None:
    found = searched.run_ids(RunFilter(text=text))
    assert len(found) <= 3


def test_words_are_quoted() -> None:
    assert match_expression("two words") == '"two" AND "words" *'
    assert match_expression('"one phrase" NOT') == '"one phrase" AND "NOT" *'
    assert match_expression("x") == '"x"'
    assert match_expression("- *") == ""


def test_all_terms_narrow(searched: Store) -> None:
    assert len(searched.run_ids(RunFilter(text="order", outcomes=("failed",)))) == 0
    assert len(searched.run_ids(RunFilter(text="order", outcomes=("passed",)))) == 2
