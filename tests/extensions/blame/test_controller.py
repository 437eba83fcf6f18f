"""The sheet that blames a step, without an app: what it offers, what a stop keeps, what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from agenteval_tui.analysis.blame.model import SampledAnswer
from agenteval_tui.extensions.blame.controller import BlameController
from agenteval_tui.history.store import Store
from agenteval_tui.runs.event_loop import run_to_end
from agenteval_tui.runs.execution_host import Host
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.suites.load import load_suite

SUITE = """
name: Shop
agent: shop
agents: {shop: {kind: demo, pace: 0}}
tests:
  - id: kettle
    prompt: What do customers say about the Aurora Kettle?
    criteria:
      - name: Gives nothing away
        prototype_class: ToolResponse
        config_uxon: '{"metrics": [{"type": "ToolCheck", "forbidden_tools": ["issue_voucher"]}]}'
  - id: good
    prompt: Which ways of shipping are there?
    criteria:
      - name: Answers
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains_all": ["hipping"]}]}'
"""


class Stopping(BlameController):
    """Somebody stops it behind the first answer."""

    def _note(self, sampled: SampledAnswer) -> None:
        super()._note(sampled)
        self.stop()


def test_sampling_is_offered_stopped_and_taken_up_again(tmp_path: Path) -> None:
    (tmp_path / "shop.suite.yaml").write_text(SUITE, encoding="utf-8")
    plan = make_plan([load_suite(tmp_path / "shop.suite.yaml")], PlanOptions(), user_agents={})
    with Store.open(tmp_path / "history.db") as store:
        run_to_end(Host(plan, store, None).run())
        runs = {row.test_id: row for row in store.runs_of_execution(plan.execution_id)}

        good = opened(BlameController, store, runs["good"].id)
        assert (good.stage, good.blame, good.can_ask) == ("refused", None, False)
        assert good.error is not None

        lost = opened(Stopping, store, runs["kettle"].id)
        assert lost.blame is not None
        assert (lost.stage, lost.can_ask, lost.sampled) == ("ready", True, None)
        lost.begin()
        assert lost.running
        assert not lost.can_ask
        lost.run()
        assert lost.sampled is not None
        assert lost.sampled.stopped
        assert lost.sampled.asked
        assert (lost.stage, lost.can_ask, lost.samples) == ("ready", True, 8), "what is missing can be asked for"

        again = opened(BlameController, store, runs["kettle"].id)
        again.begin()
        again.run()
        assert again.sampled is not None
        assert (again.sampled.answer, again.sampled.stopped) == ("none", "")
        assert again.sampled.known >= lost.sampled.asked, "what was answered before the stop is not asked again"
        assert not again.can_ask


def opened(make: Callable[[Store, str], BlameController], store: Store, run: str) -> BlameController:
    controller = make(store, run)
    controller.read()
    return controller
