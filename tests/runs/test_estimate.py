"""What a plan will take, by what was measured before; and the preview of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from agenteval_tui.core import directories, numbers
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading.remote_requests import RemoteRequest, Reply
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.history.store import Store
from agenteval_tui.runs.estimate import Estimate, Range, ReplyEstimate, Total, estimate
from agenteval_tui.runs.plan.model import Plan
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan, make_untrusted_plan
from agenteval_tui.runs.plan.preview import Preview, preview_plan
from agenteval_tui.suites.agents_file import load_agents
from agenteval_tui.suites.load import LoadedSuite, load_suites
from agenteval_tui.transcripts.model import Transcript, Usage
from agenteval_tui.views.fork import price_text
from agenteval_tui.views.plan import plan_heading

SUITE = """
name: S
agent: bot
agents:
  bot: {kind: scripted}
  slow: {kind: scripted, concurrency: 2}
  new: {kind: scripted}
defaults: {concurrency: 4}
tests:
  - {id: a, prompt: a, repeat: 8, criteria: &plain [{name: c, prototype_class: TextResponse,
     config_uxon: {metrics: [{type: TextMatch, contains: hello}]}}]}
  - {id: b, prompt: b, criteria: *plain, variations: [{name: v, config: {temperature: 1}}]}
  - {id: judged, prompt: c, repeat: 10, criteria: [{name: j, prototype_class: TextResponse,
     config_uxon: {metrics: [{type: Judge, criteria: good}]}}]}
"""


def preview(paths: list[Path], options: PlanOptions, store: Store | None = None) -> Preview:
    """What running the suites at these paths would start."""
    agents = load_agents(directories.config_dir())
    return preview_plan(make_untrusted_plan(load_suites(paths), options, user_agents=agents, store=store), store)


class History:
    """A store, and runs that are put into it."""

    def __init__(self, store: Store, suite_key: str) -> None:
        self.store, self.suite_key, self.number = store, suite_key, 0

    def add(self, test: str, count: int = 1, *, agent: str = "bot", variation: str = "", status: str = "passed",
            ms: float | None = 1000.0, tokens: int | None = 100, cost: float | None = 0.01, cached: bool = False,
            judge_tokens: tuple[int, ...] = (), judge_cost: float | None = 0.002) -> None:  # fmt: skip
        """So many ended runs that took this."""
        self.number += 1
        execution = f"E{self.number:04}"
        usage = Usage(tokens, 0 if tokens is not None else None, cost=cost)
        runs = []
        for number in range(count):
            planned = PlannedRun(
                f"{execution}-{number:03}", execution, number, self.suite_key, "S", test, test, variation, agent=agent
            )
            runs.append((planned, RunEnded(planned.id, status, 1.0, 1, ms, 1, Transcript(usage=usage), cached=cached)))
        self.store.import_runs(ExecutionRecord(execution, "t", "run", "s", (self.suite_key,), started_ms=1), runs)
        for number in range(count if judge_tokens else 0):
            replies = [
                StoredReply(
                    RemoteRequest("chat", "judge", {"messages": [], "n": f"{execution}/{number}/{place}"}),
                    "judge",
                    Reply("x", "m", "", used, 0, judge_cost, 1),
                )
                for place, used in enumerate(judge_tokens)
            ]
            self.store.keep_replies(f"{execution}-{number:03}", replies).result()


@pytest.fixture
def loaded(suite: Callable[[str], LoadedSuite]) -> LoadedSuite:
    """The suite above."""
    return suite(SUITE)


@pytest.fixture
def history(store: Store, loaded: LoadedSuite) -> History:
    """An empty history of it."""
    return History(store, loaded.key)


def planned(loaded: LoadedSuite, **options: Any) -> Plan:
    return make_plan([loaded], PlanOptions(**options), user_agents={})


def test_without_a_history_nothing_is_known_and_nothing_is_zero(loaded: LoadedSuite, store: Store) -> None:
    for known in (None, store):
        found = estimate(planned(loaded), known)
        assert (found.runs, found.tests, found.agents) == (20, 3, {"bot": 20})
        assert (found.seconds, found.tokens, found.cost, found.total_cost) == (None, None, None, None)
        assert found.judges.asked == 10
        assert (found.judges.tokens, found.judges.cost) == (None, None)


def test_time_tokens_and_cost_of_a_test_that_ran_before(loaded: LoadedSuite, history: History) -> None:
    history.add("a", 10)
    found = estimate(planned(loaded, tests=("a",)), history.store)
    assert found.tokens is not None
    assert found.cost is not None
    assert found.seconds is not None
    assert (found.tokens.expected, found.tokens.runs, found.tokens.unknown, found.tokens.basis) == (800, 8, 0, 10)
    assert found.cost.expected == pytest.approx(0.08)
    assert found.cost.low == found.cost.high == found.cost.expected  # all the same: no spread
    assert found.seconds.expected == 2  # 8 runs of a second, 4 at once
    assert found.judges.asked == 0
    assert found.judges.cost is None
    assert found.total_tokens == Total(800, True)


def test_the_spread_makes_a_range(loaded: LoadedSuite, history: History) -> None:
    for number in range(12):
        history.add("a", tokens=50 if number % 2 else 150)
    wide = estimate(planned(loaded, tests=("a",), repeat=1), history.store).tokens
    many = estimate(planned(loaded, tests=("a",), repeat=100), history.store).tokens
    assert wide is not None
    assert many is not None
    assert wide.low < 60 < wide.expected == 100 < 150 < wide.high
    assert many.low / many.expected > wide.low / wide.expected > 0.2
    assert wide.expected == float(f"{wide.expected:.2g}")
    assert many.high == float(f"{many.high:.2g}")


def test_a_single_earlier_run_says_little(loaded: LoadedSuite, history: History) -> None:
    history.add("a")
    found = estimate(planned(loaded, tests=("a",)), history.store).cost
    assert found is not None
    assert found.basis == 1
    assert found.low < 0.06
    assert found.high > 0.12


def test_a_variation_counts_by_itself_where_it_ran(loaded: LoadedSuite, history: History) -> None:
    history.add("b", 3, tokens=10)
    history.add("b", 3, tokens=1000, variation="v")
    assert estimate(planned(loaded, tests=("b",)), history.store).tokens.expected == 1000  # type: ignore[union-attr]
    assert estimate(planned(loaded, tests=("b",), variation="v"), history.store).total_tokens == Total(1000, True)
    assert estimate(planned(loaded, tests=("b",), variation="default"), history.store).total_tokens == Total(10, True)


def test_a_test_that_never_ran_is_judged_by_its_agent(loaded: LoadedSuite, history: History) -> None:
    history.add("b", 5, tokens=200)
    found = estimate(planned(loaded, tests=("a",)), history.store).tokens
    assert found is not None
    assert found.expected == 1600
    assert found.low < 1200  # another test: less is known
    assert estimate(planned(loaded, tests=("a",), agent="new"), history.store).tokens is None


def test_what_is_known_in_part_says_so(loaded: LoadedSuite, history: History) -> None:
    history.add("a", 4, cost=None)
    history.add("b", 4, agent="new")
    found = estimate(planned(loaded, tests=("a",), ab=("bot", "new")), history.store)
    assert found.agents == {"bot": 8, "new": 8}
    assert found.cost is not None
    assert (found.cost.runs, found.cost.unknown) == (8, 8)
    assert found.tokens is not None
    assert found.tokens.unknown == 0


@pytest.mark.parametrize("changes", [{"status": "error"}, {"status": "cancelled"}, {"cached": True}])
def test_only_runs_that_were_really_made_count(loaded: LoadedSuite, history: History, changes: dict[str, Any]) -> None:
    history.add("a", 3)
    history.add("a", 30, tokens=5, **changes)
    assert estimate(planned(loaded, tests=("a",)), history.store).total_tokens == Total(800, True)


def test_only_the_newest_runs_count(loaded: LoadedSuite, history: History) -> None:
    history.add("a", 30, tokens=7)
    history.add("a", 20, tokens=100)
    assert estimate(planned(loaded, tests=("a",)), history.store).total_tokens == Total(800, True)


def test_an_agent_with_a_limit_of_its_own_takes_longer(loaded: LoadedSuite, history: History) -> None:
    history.add("a", 5, agent="slow")
    history.add("a", 5, agent="new", ms=9000)
    assert estimate(planned(loaded, tests=("a",), agent="slow"), history.store).seconds.expected == 4  # type: ignore[union-attr]
    # And nothing is done before its longest run is.
    one = estimate(planned(loaded, tests=("a",), agent="new", repeat=1), history.store).seconds
    assert one is not None
    assert one.expected == 9


def test_judges_are_apart(loaded: LoadedSuite, history: History) -> None:
    history.add("judged", 5, judge_tokens=(300, 100))
    history.add("judged", 2)  # these were answered before
    found = estimate(planned(loaded, tests=("judged",)), history.store)
    judges = found.judges
    assert judges.asked == 10
    assert judges.questions is not None
    assert judges.tokens is not None
    assert judges.cost is not None
    assert judges.questions.expected == 20
    assert judges.tokens.expected == 4000
    assert judges.cost.expected == pytest.approx(0.04)
    assert found.total_tokens == Total(1000 + 4000, True)
    assert found.whole_cost == pytest.approx(0.14)


def test_a_judge_without_a_price_has_no_cost(loaded: LoadedSuite, history: History) -> None:
    history.add("judged", 3, judge_tokens=(300,), judge_cost=None)
    judges = estimate(planned(loaded, tests=("judged",)), history.store).judges
    assert judges.cost is None
    assert judges.tokens is not None


def test_a_sum_of_which_a_part_is_not_known_is_no_whole(loaded: LoadedSuite, history: History) -> None:
    history.add("judged", 3, judge_tokens=(300,), judge_cost=None)
    found = estimate(planned(loaded, tests=("judged",)), history.store)
    assert found.total_cost is not None
    assert (found.total_cost.whole, found.whole_cost) == (False, None), "what the judges cost is not known"
    assert found.total_tokens is not None
    assert found.total_tokens.whole
    heading = plan_heading(preview_plan(planned(loaded, tests=("judged",)), history.store))
    assert f"at least about {numbers.dollars(found.total_cost.expected)}" in heading
    assert f"at least about {numbers.dollars(found.total_cost.expected)}" in price_text(found, 3)
    free = Estimate(3, 1, {"a": 3}, None, None, Range(0, 0, 0, 3, 0, 3), found.judges)
    assert "cost not known" in price_text(free, 3), "the agent is free, its judges are not"
    assert "free" in price_text(replace(free, judges=ReplyEstimate(0, None, None, None)), 3)


def test_runs_that_early_stopping_may_save(suite: Callable[[str], LoadedSuite]) -> None:
    found = estimate(planned(suite(SUITE.replace("repeat: 8", "repeat: 8, stop: {}"))), None)
    assert (found.runs, found.may_stop) == (20, 7)


def test_the_estimate_as_json(loaded: LoadedSuite, history: History) -> None:
    history.add("a", 3)
    data = to_builtins(preview_plan(planned(loaded), history.store).estimate)
    assert data["judges"] == {"asked": 10, "questions": None, "tokens": None, "cost": None}
    assert data["tokens"]["runs"] == 20
    assert set(data["cost"]) == {"low", "expected", "high", "runs", "unknown", "basis"}


# The preview


def test_a_preview_says_what_would_start(loaded: LoadedSuite, history: History) -> None:
    history.add("a", 5)
    plan = planned(loaded, tests=("a", "b"), max_cost=0.05, max_tokens=10_000)
    found = preview_plan(plan, history.store)
    assert (found.title, found.suites, found.tests, found.cases, found.runs) == ("S", 1, 2, 2, 10)
    assert [(part.agent, part.variation, part.cases, part.runs) for part in found.parts] == [
        ("bot", "", 2, 9), ("bot", "v", 1, 1)
    ]  # fmt: skip
    assert found.over == ("cost",)
    assert (found.concurrency, found.trusted, found.needs) == (4, True, ())
    data = to_builtins(found)
    assert data["limits"] == {"cost": 0.05, "tokens": 10_000, "seconds": None}
    assert data["parts"][1] == {"agent": "bot", "variation": "v", "tests": 1, "cases": 1, "runs": 1}


def test_a_preview_asks_nobody_and_writes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    path = folder / "p.suite.yaml"
    text = SUITE.replace("bot: {kind: scripted}", "bot: {kind: command, command: [./bot]}")
    path.write_text(text, "utf-8")
    before = sorted(tmp_path.rglob("*"))
    found = preview([folder], PlanOptions(tests=("a",)))
    assert sorted(tmp_path.rglob("*")) == before
    assert not found.trusted
    (need,) = found.needs
    assert (need.folder, need.what) == (str(folder), ("command: ./bot",))
    assert "not trusted yet" in need.reason
    assert preview([path], PlanOptions(tests=("a",), trust=True)).trusted
    for options in (PlanOptions(tests=("nope",)), PlanOptions(failed_from="last")):
        with pytest.raises(AgentevalError):
            preview([path], options)


def test_a_preview_reads_a_history(loaded: LoadedSuite, history: History, tmp_path: Path) -> None:
    path = Path(loaded.path)
    path.write_text(loaded.text, "utf-8")
    history.add("a", 5)
    found = preview([path], PlanOptions(tests=("a",)), history.store)
    assert found.estimate.total_tokens == Total(800, True)


@pytest.mark.parametrize("changes", [{"status": "error"}, {"status": "cancelled"}, {"cached": True}])
def test_only_runs_that_were_really_made_count_for_other_tests(
    loaded: LoadedSuite, history: History, changes: dict[str, Any]
) -> None:
    """What an agent took for other tests stands for one that never ran: not what it took to fail."""
    history.add("b", 3, tokens=200)
    history.add("b", 30, tokens=5, **changes)
    assert estimate(planned(loaded, tests=("a",)), history.store).total_tokens == Total(1600, True)


@pytest.mark.parametrize(
    ("limit", "over"), [(799, ("tokens",)), (800, ("tokens",)), (801, ())], ids=["under", "at", "above"]
)
def test_a_limit_that_is_likely_to_be_reached_is_named(
    loaded: LoadedSuite, history: History, limit: int, over: tuple[str, ...]
) -> None:
    history.add("a", 10)
    plan = planned(loaded, tests=("a",), max_tokens=limit)
    assert preview_plan(plan, history.store).over == over
