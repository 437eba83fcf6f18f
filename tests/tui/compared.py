"""Two executions of a hand-made suite that differ in every way a comparison knows: no agent is called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.grade import grade
from agenteval_tui.grading.remote_requests import Reply
from agenteval_tui.grading.sentences import verdict_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import spec_to_dict
from agenteval_tui.runs.task_payload import threshold_task
from agenteval_tui.transcripts.model import Message, RunError, ToolCall, Transcript, Usage

OLD, NEW = "01KB0000000000000000000OLD", "01KB1000000000000000000NEW"
NOON = 1_763_550_000_000  # 2025-11-19
DAY = 86_400_000

SUITE = """\
name: Support
agent: shop/support
agents: {shop/support: {kind: demo}}
tests:
  - id: refund-policy
    name: Refunds
    prompt: When do I get my money back?
    criteria:
      - name: cites the policy
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: "30 days"}]}
      - name: looks it up
        prototype_class: ToolResponse
        config_uxon: {metrics: [{type: ToolCheck, tools: [{name: search_docs}]}]}
  - id: customers-germany
    name: Customers in Germany
    prompt: All customers in Germany.
    criteria:
      - name: right filter
        weight: 2   # matters most
        prototype_class: TextResponse
        config_uxon: |
          {
            // either way of writing it
            "metrics": [{"type": "TextMatch", "contains_any": ["5000", "5.000"]}]
          }
"""


def text(*texts: str, **more: Any) -> CriterionSpec:
    """`contains` of one text, `contains_any` of several."""
    wanted: dict[str, Any] = {"contains": texts[0]} if len(texts) == 1 else {"contains_any": list(texts)}
    return CriterionSpec(
        more.pop("name", "answer"), "TextResponse", {"metrics": [{"type": "TextMatch", **wanted}]}, **more
    )


LOOKS_UP = CriterionSpec(
    "looks it up", "ToolResponse", {"metrics": [{"type": "ToolCheck", "tools": [{"name": "search_docs"}]}]}
)
POLICY = text("30 days", name="cites the policy")
FILTER_OLD, FILTER_NEW = (
    text("5000", name="right filter", weight=2.0),
    text("5000", "5.000", name="right filter", weight=2.0),
)
POLITE = CriterionSpec(
    "polite", "TextResponse", {"metrics": [{"type": "Judge", "criteria": "Is it polite?", "scale": "pass_fail"}]}
)
WORDS = CriterionSpec(
    "keywords", "TextResponse", {"metrics": [{"type": "Keywords", "keywords": ["a", "b", "c"], "min_fraction": 0.5}]}
)


def answered(said: str, *calls: tuple[str, Any], error: str = "") -> Transcript:
    """A transcript with these calls and that answer."""
    made = tuple(ToolCall(f"c{n}", name, arguments, "ok", message=1) for n, (name, arguments) in enumerate(calls))
    messages = (
        Message("user", "please"),
        Message("assistant", "", tool_calls=tuple(range(len(calls)))),
        Message("assistant", said),
    )
    failed = RunError("connection", error) if error else None
    return Transcript(messages, made, usage=Usage(100, 20, cost=0.002), final_output=said, error=failed)


class Planned(Struct, frozen=True):
    """Repetitions of a test: what the agent did in each, the criteria, and what a judge said of each ("": nothing)."""

    test: str
    transcripts: Sequence[Transcript]
    specs: Sequence[CriterionSpec]
    judged: Sequence[str] = ()
    variation: str = ""
    agent: str = "shop/support"
    row: int = 0
    variables: tuple[tuple[str, Any], ...] = ()
    threshold: float | None = None
    """The test's."""


LOOKED, AT_ONCE = answered("Within 30 days.", ("search_docs", {"query": "refund"})), answered("Soon.")
DOTTED, PLAIN = answered("WHERE revenue > 5.000"), answered("WHERE revenue > 5000")
NICE = answered("You are welcome.")
YES, NO = '{"score": true, "reasoning": "kind"}', '{"score": false, "reasoning": "cold"}'

BEFORE = (
    Planned("refund-policy", [LOOKED] * 5, [POLICY, LOOKS_UP]),
    Planned("customers-germany", [PLAIN, DOTTED, DOTTED, PLAIN, DOTTED], [FILTER_OLD]),
    Planned("top-products", [answered("ten")] * 5, [text("ten")]),
    Planned("greeting", [NICE], [POLITE], [YES]),
    Planned("both-ways", [answered("Paris")], [text("Paris")]),
    Planned("keywords", [answered("a b")], [WORDS]),
    Planned("broken", [answered("fine")], [text("fine")]),
    Planned("gone", [answered("old")], [text("old")]),
)
AFTER = (
    Planned("refund-policy", [AT_ONCE, LOOKED, AT_ONCE, LOOKED, AT_ONCE], [POLICY, LOOKS_UP]),
    Planned("customers-germany", [PLAIN, DOTTED, DOTTED, PLAIN, DOTTED], [FILTER_NEW]),
    Planned("top-products", [answered("ten")] * 5, [text("ten")]),
    Planned("greeting", [NICE], [POLITE], [NO]),
    Planned("both-ways", [answered("Rome")], [text("Berlin")]),
    Planned("keywords", [answered("a b c")], [WORDS]),
    Planned("broken", [answered("", error="refused")], [text("fine")]),
    Planned("fresh", [answered("new")], [text("new")]),
)


def write_suite(folder: Path) -> Path:
    """The suite's file as it is now."""
    path = folder / "support.suite.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SUITE, encoding="utf-8")
    return path


def keep(
    store: Store, execution: str, tests: Sequence[Planned], *, suite: str = "/s", at_ms: int = NOON, title: str = ""
) -> None:
    """Store an execution with these runs, graded; run ids are EXECUTION-TEST-NUMBER."""
    replies: list[tuple[str, StoredReply]] = []

    def runs() -> Iterator[tuple[PlannedRun, RunEnded]]:
        position = 0
        for one in tests:
            for number, transcript in enumerate(one.transcripts):
                name = f"{one.test}-{one.variation}" if one.variation else one.test
                name = name if name.isascii() and name.isprintable() else f"attack{position}"  # ids are ours
                run = f"{execution[-3:]}-{name}-{one.row}-{number + 1}"
                known: dict[str, Reply] = {}
                said = one.judged[number] if one.judged else ""
                for spec in one.specs if said else ():
                    for request in compile_criterion(spec).requests(transcript, dict(one.variables), {}):
                        known[request.hash] = Reply(said, at_ms=at_ms + number)
                        replies.append((run, StoredReply(request, "judge", known[request.hash], spec.hash)))
                verdict = grade(transcript, one.specs, dict(one.variables), one.threshold, replies=known)
                yield (
                    PlannedRun(
                        run, execution, position, suite, "Support", one.test, one.test.title(), one.variation, one.row,
                        number + 1, one.agent, "please", variables=dict(one.variables),
                        criteria=tuple(spec.hash for spec in one.specs), specs=tuple(map(spec_to_dict, one.specs)),
                        task=threshold_task(one.threshold),
                    ),
                    RunEnded(
                        run, str(verdict.outcome), verdict.score, at_ms + position, 1_000.0 + at_ms % 1_000, 1,
                        transcript, verdict.results, why=verdict_sentence(verdict),
                    ),
                )  # fmt: skip
                position += 1

    record = ExecutionRecord(execution, title or "smoke", "run", "support", (suite,), started_ms=at_ms)
    store.import_runs(record, runs())
    for run, reply in replies:
        store.keep_replies(run, [reply]).result()


def two_executions(store: Store, suite: str = "/s") -> None:
    """Both executions; the new one a day later."""
    keep(store, OLD, BEFORE, suite=suite)
    keep(store, NEW, AFTER, suite=suite, at_ms=NOON + DAY + 200, title="smoke v2")


def renamed(spec: CriterionSpec, name: str) -> CriterionSpec:
    """The same version under another name."""
    return replace(spec, name=name)
