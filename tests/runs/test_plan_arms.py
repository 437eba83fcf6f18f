"""A/B: the same tests, rows, repetitions and seeds under two agents or variations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs.plan.model import Plan, arm_label, arm_of
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.model import AgentConfig

SUITE = """
name: Duel
agent: bot
agents: {bot: {kind: scripted, model: big}, other: {kind: scripted, model: small}}
tests:
  - id: rows
    dataset: {file: rows.jsonl}
    repeat: 2
    criteria: &c
      - {name: c, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: hello}]}}
    context: {sample_system_prompt: base}
    variations:
      - {name: cold, repeat: 1, config: {temperature: 0}, context: {sample_system_prompt: cold}}
      - {name: third, agent: other}
  - {id: plain, prompt: hi, criteria: *c}
"""


@pytest.fixture
def duel(suite: Callable[[str], LoadedSuite], tmp_path: Path) -> Callable[..., Plan]:
    """Plan it with two rows."""

    def made(*names: str, **options: Any) -> Plan:
        (tmp_path / "rows.jsonl").write_text("".join(f'{{"input": "q{n}"}}\n' for n in range(options.pop("rows", 2))))
        agents = {"mine": AgentConfig(kind="scripted")}
        return make_plan([suite(SUITE)], PlanOptions(ab=names, **options), user_agents=agents)

    return made


def test_both_arms_have_the_same_tests_rows_repetitions_and_seeds(duel: Callable[..., Plan]) -> None:
    plan = duel("bot", "mine")
    listed = [(run.ref.test, run.ref.variation, run.ref.row, run.ref.repetition) for run in plan.runs]
    assert listed == [
        ("rows", "A: bot", 1, 1), ("rows", "A: bot", 1, 2), ("rows", "B: mine", 1, 1), ("rows", "B: mine", 1, 2),
        ("rows", "A: bot", 2, 1), ("rows", "A: bot", 2, 2), ("rows", "B: mine", 2, 1), ("rows", "B: mine", 2, 2),
        ("plain", "A: bot", 0, 1), ("plain", "B: mine", 0, 1),
    ]  # fmt: skip
    arms = {arm: [run for run in plan.runs if arm_of(run.ref.variation) == arm] for arm in "AB"}
    assert {run.ref.agent for run in arms["A"]} == {"bot"}
    assert {run.ref.agent for run in arms["B"]} == {"mine"}
    for a, b in zip(arms["A"], arms["B"], strict=True):
        assert (a.seed, a.messages, a.context, a.specs) == (b.seed, b.messages, b.context, b.specs)
    assert plan.title == "Duel: bot against mine"
    assert convert(plan.options, PlanOptions).ab == ("bot", "mine")


def test_an_agent_against_itself_can_be_told_apart(duel: Callable[..., Plan]) -> None:
    refs = [run.ref for run in duel("bot", "bot").runs]
    assert len({(ref.test, ref.variation, ref.row, ref.repetition) for ref in refs}) == len(refs) == 10


def test_arms_of_one_variation(duel: Callable[..., Plan]) -> None:
    runs = duel("bot", "other", variation="cold").runs
    assert {run.ref.test for run in runs} == {"rows"}  # the other test has no such variation
    assert [run.ref.repetition for run in runs] == [1, 1, 1, 1]
    assert [run.agent.config.get("temperature") for run in runs] == [0, 0, 0, 0]
    assert [run.agent.config["model"] for run in runs] == ["big", "small", "big", "small"]
    assert runs[0].context == {"sample_system_prompt": "cold"}


def test_variations_can_be_arms(duel: Callable[..., Plan]) -> None:
    runs = duel("default", "third", tests=("rows",)).runs
    assert [(run.ref.variation, run.ref.agent) for run in runs[::2]] == [
        ("A: default", "bot"),
        ("B: third", "other"),
    ] * 2
    with pytest.raises(AgentevalError, match=r"arm B is 'third', but test 'plain'"):
        duel("default", "third")


def test_an_agent_that_would_replace_nothing_is_refused(duel: Callable[..., Plan]) -> None:
    with pytest.raises(AgentevalError, match="both arms name their agent"):
        duel("bot", "other", agent="mine")
    runs = duel("default", "other", agent="mine").runs
    assert {run.ref.agent for run in runs if run.ref.variation.startswith("A")} == {"mine"}


def test_both_arms_get_the_same_sample(duel: Callable[..., Plan]) -> None:
    plan = duel("bot", "other", sample=5, rows=30, repeat=1)
    drawn = {arm: [(r.ref.test, r.ref.row) for r in plan.runs if arm_of(r.ref.variation) == arm] for arm in "AB"}
    assert drawn["A"] == drawn["B"]
    assert len(drawn["A"]) == 5


def test_labels() -> None:
    assert arm_of(arm_label("A", "x: y")) == "A"
    assert (arm_of("B: z"), arm_of(""), arm_of("A"), arm_of("cold: B")) == ("B", "", "", "")
