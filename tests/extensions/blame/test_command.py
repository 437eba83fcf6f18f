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
    assert "Which step?         not known from the recording; sampling would be free" in free.out
    assert "◇ step 2, get_order" in free.out
    assert '"W1042", which the user said in step 1; expected "#W1042"' in free.out
    document = cli("blame", "order", "--json").json("blame")
    assert (document["decision"], document["decisive"], document["sampled"]) == ("not_known", None, None)
    (suspect,) = document["others"]
    assert (suspect["step"], suspect["clues"][0]["code"], suspect["clues"][0]["reliability"]) == (
        1,
        "wrong_argument",
        None,
    )
    price = {"samples": 8, "continuations": 16, "requests": 24, "cost": 0.0, "refused": ""}
    assert document["sampling_price"] == price
    assert "noticed at step 2: get_order order_id" in cli("why", "order").out
    why = cli("why", "order", "--json").json("why")
    assert (why["decisive"], why["stands_out"]) == (None, suspect)

    assert cli("blame", "order", "--price").out.startswith("at most 16 continuations, about 24 requests")
    sampled = cli("blame", "order", "--samples", 8, "--json").json("blame")
    assert (sampled["decision"], sampled["sampling_price"]) == ("none", None)
    assert sampled["decisive"] is None, "demo-rules makes the same mistake from everywhere"
    assert sampled["sampled"]["answer"] == "none"
    assert sampled["sampled"]["rates"][0]["passed"] == 0
    assert (sampled["runs"], sampled["reproduces"]) == (1, "once"), "forks are not repetitions"
    again = cli("blame", "order", "--samples", 8)
    assert f"{sampled['sampled']['asked']} stored before" in again.out
    assert (sampled["fault"], sampled["free_fault"], document["free_fault"]) == ("unknown", "unknown", "unknown")
    assert "Whose fault?        not known" in again.out


def test_runs_of_another_configuration_do_not_make_a_failure_bad_luck(cli: Any, suite: Path) -> None:
    suite.write_text(SUITE.replace("content: ho}", "content: Good morning}"))
    for _ in range(3):
        assert cli("run", suite, "--test", "polite").code == 0
    suite.write_text(SUITE)
    assert cli("run", suite, "--test", "polite").code == 1
    document = cli("blame", "polite", "--json").json("blame")
    assert (document["reproduces"], document["runs"], document["passed"]) == ("always", 2, 0)
    assert document["could_pass"] == "yes", "it passes in another configuration"


def test_what_is_refused(cli: Any, suite: Path) -> None:
    passed = cli("blame", "passes")
    assert passed.code == 2
    assert "there is nothing to blame: it passed" in passed.err
    polite = cli("blame", "polite")
    assert polite.code == 0, "the free answer needs no agent"
    assert (
        "not known from the recording, and sampling is not possible: this agent can't continue a conversation"
        in " ".join(polite.out.split())
    )
    replay = cli("blame", "polite", "--samples", 4)
    assert replay.code == 2
    assert "Traceback" not in replay.err
    assert "replay" in replay.err
