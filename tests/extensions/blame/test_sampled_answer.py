"""Sampling finds the step where the pass rate falls, says where none does, and pays for nothing twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from agenteval_tui.analysis.blame.free_answer import ReadParts, blame_of
from agenteval_tui.analysis.blame.recorded_facts import known_blame, with_sampling
from agenteval_tui.analysis.blame.sampling import Counts, Search
from agenteval_tui.extensions.blame.sampled_answer import Sampling
from agenteval_tui.history.store import Store
from agenteval_tui.runs.event_loop import run_in_thread, run_to_end
from agenteval_tui.runs.execution_host import Host
from agenteval_tui.runs.fork.oracle import Oracle
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.suites.load import load_suite
from agenteval_tui.views.blame import bars, blame_line, blame_view, fault_text
from agenteval_tui.views.terminal import plain_text
from benchmarks.accuracy.blame_sampling import Agent, Answers, agents, ask_all, search


def test_simulated_agents() -> None:
    tally = ask_all(list(agents(60, 3)), 8, 3)
    decided, right = sum(tally.decided.values()), sum(tally.right.values())
    assert right >= 0.9 * decided
    assert decided >= 0.75 * (60 - tally.agents["never passes"] - tally.agents["no step"])
    none = tally.none["never passes"] + tally.none["no step"]
    assert none >= 0.9 * (tally.agents["never passes"] + tally.agents["no step"])
    assert tally.covered >= 0.95 * tally.intervals
    assert tally.asked <= tally.asked_plainly / 3


def test_it_is_not_decided_with_few_samples_of_noise() -> None:
    agent = Agent("one step, noise", (0.5,) * 6 + (0.25,) * 6, 5)
    look = Search(agent.steps, samples=2, end_fails=False)
    *_, found = search(look, Answers(agent, 4))
    assert (found.answer, found.step) == ("undecided", None)
    assert all(rate.n <= 2 for rate in found.rates)
    assert abs(sum(found.weights) + found.none - 1) < 1e-9


def test_a_budget_and_a_refusal_end_it() -> None:
    agent = Agent("one step", (0.5,) * 40, None)
    look = Search(39, samples=50, budget=7, end_fails=False)
    *_, found = search(look, Answers(agent, 1))
    assert found.asked == 7

    def refuses(prefix: int, count: int) -> Counts:
        return Counts(0, 0)

    (found,) = search(Search(5), refuses)
    assert (found.answer, found.asked) == ("undecided", 0)
    with pytest.raises(ValueError, match="without steps"):
        Search(0)


SUITE = """
name: Shop
agent: shop
agents: {shop: {kind: demo, pace: 0}}
tests:
  - id: shipping
    prompt: Which ways of shipping are there?
    criteria:
      - name: Names both ways
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains_all": ["Standard Shipping", "Express Shipping"]}]}'
  - id: kettle
    prompt: What do customers say about the Aurora Kettle?
    criteria:
      - name: Gives nothing away
        prototype_class: ToolResponse
        config_uxon: '{"metrics": [{"type": "ToolCheck", "forbidden_tools": ["issue_voucher"]}]}'
"""


def test_a_stored_run_is_sampled_and_what_is_known_is_not_asked_again(tmp_path: Path) -> None:
    (tmp_path / "shop.suite.yaml").write_text(SUITE, encoding="utf-8")
    plan = make_plan([load_suite(tmp_path / "shop.suite.yaml")], PlanOptions(repeat=4), user_agents={})
    with Store.open(tmp_path / "history.db") as store:
        run_to_end(Host(plan, store, None).run())
        rows = [row for row in store.runs_of_execution(plan.execution_id) if row.status == "failed"]
        luck = next(row for row in rows if row.test_id == "shipping")
        never = next(row for row in rows if row.test_id == "kettle")

        transcript = store.transcript(luck.id)
        first = Sampling(Oracle(store, luck, purpose="blame"), transcript, 6)
        takes, requests = first.price()
        assert takes.runs == 12
        assert requests >= takes.runs
        sampled = run_in_thread(lambda: first.asking())
        assert sampled.asked > 0
        assert sampled.known == 0
        again = Sampling(Oracle(store, luck, purpose="blame"), transcript, 6)
        repeated = run_in_thread(lambda: again.asking())
        assert replace(repeated, known=0, execution=sampled.execution, cost=sampled.cost) == sampled
        assert (repeated.known, repeated.execution) == (sampled.asked, "")
        known = known_blame(store, luck, ReadParts(transcript)).sampled
        assert known == replace(sampled, known=sampled.asked, cost=None), "whoever looks later sees the same"
        assert known_blame(store, never).sampled is None
        if sampled.answer == "step":
            assert sampled.step == len(transcript.messages) - 1, "the answer's words are chance, the calls are not"

        free = blame_of(store, never)
        assert (free.decision, free.fault) == ("not_known", "unknown")
        first_suspect = free.others[0]
        blame = replace(free, decisive=first_suspect, others=free.others[1:], fault="agent", free_fault="agent")
        assert (blame.runs, blame.passed) == (4, 0), "forks count in nothing"
        asked = run_in_thread(lambda: Sampling(Oracle(store, never), store.transcript(never.id), 8).asking())
        assert (asked.answer, asked.step) == ("none", None)
        assert known_blame(store, never).sampled is None, "a person's forks alone are no sampling"
        told = with_sampling(blame, asked)
        assert (told.decisive, told.fault) == (None, "unknown")
        assert told.free_fault == blame.fault == "agent"
        assert fault_text(told).endswith("less sure, by the transcript alone: the agent's")
        sometimes = replace(asked, rates=tuple(replace(one, passed=1) for one in asked.rates))
        assert (
            fault_text(with_sampling(blame, sometimes)) == "not known; less sure, by the transcript alone: the agent's"
        )
        assert told.others[0] == blame.decisive
        assert "no step is decisive" in plain_text(blame_view(told, store.transcript(never.id)))
        assert max(bar.level for bar in bars(told)) == 4
        found = with_sampling(blame, replace(asked, answer="step", step=0))
        assert "step 1, user: What do" in blame_line(found, store.transcript(never.id))
        assert "from this step on it no longer passes" in blame_line(found, store.transcript(never.id))
