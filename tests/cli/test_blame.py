"""`agenteval blame`: the free answer, sampling with its price, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SUITE = """
name: Shop
agent: shop
agents:
  shop: {kind: demo, pace: 0}
  played: {kind: replay, transcripts: {polite: [{role: user, content: hi}, {role: assistant, content: ho}]}}
tests:
  - id: order
    prompt: "Where is my order #W1042?"
    criteria:
      - name: Asks for the right order
        prototype_class: ToolResponse
        config_uxon: |
          {"metrics": [{"type": "ToolCheck", "tools": [{"name": "get_order", "arguments": {"order_id": "#W1042"}}]}]}
  - id: polite
    agent: played
    prompt: hi
    criteria:
      - name: Says good morning
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "Good morning"}]}'
  - id: passes
    prompt: "Where is my order #W1042?"
    criteria:
      - name: Answers
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "customs"}]}'
"""


@pytest.fixture
def suite(tmp_path: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "shop.suite.yaml"
    path.write_text(SUITE, "utf-8")
    assert cli("run", path).code == 1
    return path


def test_from_the_free_answer_to_sampling(cli: Any, suite: Path) -> None:
    free = cli("blame", "order")
    assert "step 2 of 4, get_order" in free.out
    assert '"W1042", which the user said in step 1; expected "#W1042"' in free.out
    document = cli("blame", "order", "--json").json("blame")
    assert (document["decisive"]["step"], document["sampled"]) == (1, None)
    assert document["decisive"]["clues"][0]["code"] == "wrong_argument"
    assert "went wrong at step 2: get_order order_id" in cli("why", "order").out

    assert cli("blame", "order", "--price").out.startswith("at most 16 continuations, about 24 requests")
    sampled = cli("blame", "order", "--samples", 8, "--json").json("blame")
    assert sampled["decisive"] is None, "demo-rules makes the same mistake from everywhere"
    assert sampled["sampled"]["answer"] == "none"
    assert sampled["sampled"]["rates"][0]["passed"] == 0
    assert (sampled["runs"], sampled["reproduces"]) == (1, "once"), "forks are not repetitions"
    again = cli("blame", "order", "--samples", 8)
    assert f"{sampled['sampled']['asked']} stored before" in again.out
    # It is not one step; what the transcript says is said beside it, as what it is.
    assert (sampled["fault"], sampled["free_fault"], document["free_fault"]) == ("unknown", "agent", "agent")
    said = " ".join(again.out.split())
    assert "not known: the test, the criterion or the agent's ability; less sure, by the transcript alone: the" in said
    assert "less sure" not in free.out


def test_what_is_refused(cli: Any, suite: Path) -> None:
    passed = cli("blame", "passes")
    assert passed.code == 2
    assert "there is nothing to blame: it passed" in passed.err
    assert cli("blame", "polite").code == 0, "the free answer needs no agent"
    replay = cli("blame", "polite", "--samples", 4)
    assert replay.code == 2
    assert "Traceback" not in replay.err
    assert "replay" in replay.err
