"""Where the code of a run is, and what was seen of it, told while other threads go on."""

import json
import os
import queue
import signal
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest

from agenteval_tui.agents.process import python_effects, python_place

ANSWER_S = 30


@pytest.fixture
def answers() -> Iterator[queue.Queue[str]]:
    before = signal.getsignal(signal.SIGQUIT)
    yield queue.Queue()
    signal.signal(signal.SIGQUIT, before)


def ask(answers: queue.Queue[str]) -> dict[str, Any]:
    os.kill(os.getpid(), signal.SIGQUIT)
    answer = json.loads(answers.get(timeout=ANSWER_S))
    assert isinstance(answer, dict)
    return answer


def test_the_place_comes_with_what_was_seen(answers: queue.Queue[str]) -> None:
    python_place.answer_with(answers.put, lambda: {"files": ["/project/prompt.md"]})
    answer = ask(answers)
    assert answer["place"]
    assert answer["files"] == ["/project/prompt.md"]


def test_what_cannot_be_told_of_a_run_raises_nothing_in_it_and_leaves_the_place(answers: queue.Queue[str]) -> None:
    def seen() -> NoReturn:
        raise RuntimeError("dictionary changed size during iteration")

    python_place.answer_with(answers.put, seen)
    answer = ask(answers)
    assert answer["place"]
    assert answer.keys() == {"id", "place"}


def test_what_was_seen_is_told_while_a_thread_sees_more(monkeypatch: pytest.MonkeyPatch) -> None:
    # Audit hooks can't be removed, so this one has none.
    monkeypatch.delattr(sys, "addaudithook")
    effects = python_effects.Effects()
    numbers = iter(range(1_000))

    def source(module: object) -> None:
        effects._late[f"imported_meanwhile_{next(numbers)}"] = None

    monkeypatch.setattr(python_effects, "_source", source)
    effects._late = {"json": None, "os": None}
    assert effects.late_imports() == ["json", "os"]
