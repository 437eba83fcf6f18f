"""Which living execution is the last: the one that came last, whatever the clocks say."""

from __future__ import annotations

import json
from contextlib import ExitStack

import pytest
from msgspec.structs import replace

from agenteval_tui.runs.client import find, live_executions
from agenteval_tui.runs.live_registry import Live, live_dir, registration, socket_path

NOW = 1_790_000_000_000
YEAR = 365 * 86_400_000


def show(stack: ExitStack, name: str, started_ms: int) -> Live:
    live = Live(name, 1, str(socket_path(live_dir(), name)), name, started_ms)
    stack.enter_context(registration(live))
    return live


@pytest.mark.parametrize(
    "clocks",
    [
        (NOW, NOW - YEAR, NOW - 2 * YEAR),
        (NOW + 80 * YEAR, NOW, NOW),
        (NOW, NOW, NOW),
        (0, NOW, 0),
        (NOW, NOW + 1, NOW - 1),
    ],
)
def test_the_last_is_the_one_that_came_last(clocks: tuple[int, ...]) -> None:
    # Their ids have the clock in them, too.
    names = [f"{number}E" for number in (9, 5, 1)]
    with ExitStack() as stack:
        for name, started_ms in zip(names, clocks, strict=True):
            show(stack, name, started_ms)
            assert find("last").execution == name
        assert [one.execution for one in live_executions()] == names
        with ExitStack() as more:
            show(more, "0E", NOW - 9 * YEAR)
            assert find("LAST").execution == "0E"
        assert find("last").execution == names[-1]
    assert live_executions() == []


def test_one_of_an_older_program_comes_first() -> None:
    with ExitStack() as stack:
        old = show(stack, "A", NOW + YEAR)
        card = live_dir() / "A.json"
        data = json.loads(card.read_text("utf-8"))
        del data["order"]
        card.write_text(json.dumps(data), "utf-8")
        show(stack, "B", NOW)
        assert [one.execution for one in live_executions()] == ["A", "B"]
        assert replace(find("A"), order=0) == old


@pytest.mark.parametrize("content", ["{}", "not JSON", '{"execution": 1}'])
def test_the_card_of_a_living_execution_stays_where_it_cant_be_read(content: str) -> None:
    """A later program may write other cards; what lives stays reachable for it."""
    with ExitStack() as stack:
        show(stack, "A", NOW)
        card = live_dir() / "A.json"
        card.write_text(content, "utf-8")
        assert live_executions() == []
        assert card.exists()
    card.write_text(content, "utf-8")  # as a program leaves it that was killed
    assert live_executions() == []
    assert not card.exists()
