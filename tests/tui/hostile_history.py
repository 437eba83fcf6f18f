"""A history in which everything was said by somebody else: answers, verdicts, labels, notes, reasons, logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hostile import transcript_of

from agenteval_tui.analysis.causes import execution_scope, group_failures
from agenteval_tui.core.ids import now_ms
from agenteval_tui.grading.grade import foreign_result, grade
from agenteval_tui.grading.remote_requests import RemoteRequest, Reply
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history import baselines, quarantines, triage
from agenteval_tui.history.quarantines import DAY_MS, Quarantine
from agenteval_tui.history.records import ExecutionRecord, FailedAttempt, PlannedRun, RunEnded
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.history.store import Store
from agenteval_tui.history.triage import Decision
from agenteval_tui.runs.criteria import spec_to_dict

HOUR_MS = 3_600_000


def tape_of(text: str) -> tuple[dict[str, Any], ...]:
    """A recording in which a model of this name was asked."""
    asked = {"method": "POST", "path": "openai/v1/chat/completions", "json": {"model": text, "messages": []}}
    return {"agenteval_cassette": 1}, {"request": asked, "answer": {"status": 200, "json": {"model": text}}}


def specs_of(text: str, *, changed: bool) -> list[CriterionSpec]:
    """The criteria of a run; `changed`: a later version, which fails."""
    wanted = [text, "no " + text] if changed else [text]
    config = {"metrics": [{"type": "TextMatch", "contains_all": wanted}]}
    judge = {"metrics": [{"type": "Judge", "criteria": "Is it " + text}]}
    human = {"metrics": [{"type": "Human", "question": "Is it good " + text}]}
    return [
        CriterionSpec("Criterion " + text, "TextResponse", config, expected_value=text),
        CriterionSpec("Judge " + text, "TextResponse", judge),
        *([CriterionSpec("Human " + text, "TextResponse", human)] if changed else []),
    ]


def write_history(db: Path, suite: Path, texts: list[str]) -> None:
    """Two executions of the suite and one that can be resumed; and what people, judges and others said of them."""
    now = now_ms()
    with Store.open(db) as store:
        left = ExecutionRecord(
            "LEFT",
            "left " + texts[0],
            "run",
            "source " + texts[0],
            (str(suite),),
            now - 3 * HOUR_MS,
            options={"max_cost": 1.0},
        )
        store.begin_execution(left, [planned("LEFT", 0, suite, texts[0], [])])
        store.end_execution("LEFT", "stopped", message="message " + texts[0]).result()
        for name, begun, changed in (("BEFORE", now - 2 * HOUR_MS, False), ("AFTER", now - HOUR_MS, True)):
            write_execution(store, name, suite, texts, begun, changed=changed)
        baselines.set_baseline(store, "BEFORE", who="who " + texts[0])
        for number, text in enumerate(texts):
            label = {"comment": "comment " + text, "who": "who " + text}
            for again in (0, 1):
                run = f"AFTER-{number:03}-{again}"
                criterion = store.results(run)[0].criterion
                store.label(run, 1 + again, passed=bool(again), criterion=criterion, **label).result()
                store.label(run, 2, **label).result()
            held = Quarantine(
                str(suite), f"test-{number}", now + 9 * DAY_MS, "Criterion " + text, "reason " + text, "who " + text
            )
            quarantines.put(store, held).result()
        for number, group in enumerate(group_failures(store, execution_scope(store, "AFTER")).groups):
            text = texts[number % len(texts)]
            decided = ("ignore", "fix", "label")[number % 3]
            triage.decide(store, Decision(group.cause.signature, decided, "note " + text, "who " + text, now))


def planned(
    execution: str, number: int, suite: Path, text: str, specs: list[CriterionSpec], again: int = 0
) -> PlannedRun:
    return PlannedRun(
        f"{execution}-{number:03}-{again}",
        execution,
        number * 3 + again,
        str(suite),
        "Suite " + text,
        f"test-{number}",
        "Name " + text,
        "",
        repetition=again + 1,
        agent="agent " + text,
        prompt="prompt " + text,
        tags=("tag " + text,),
        variables={"where": text},
        criteria=tuple(one.hash for one in specs),
        specs=tuple(map(spec_to_dict, specs)),
    )


def write_execution(store: Store, name: str, suite: Path, texts: list[str], begun: int, *, changed: bool) -> None:
    plans: list[PlannedRun] = []
    ends: list[RunEnded] = []
    for number, text in enumerate(texts):
        specs = specs_of(text, changed=changed)
        for again in range(3):
            broken = changed and again == 2
            # In the later execution the first repetition still passes: the test is flaky.
            judged = specs_of(text, changed=changed and again > 0)
            transcript = transcript_of(text, broken=broken)
            found = grade(transcript, judged)
            results = tuple(one for one in found.results if not one.criterion.startswith("Judge"))
            said = foreign_result("Judge " + text, passed=again != 1, source="judge " + text, reason="reason " + text)
            status = "error" if broken else "passed" if not changed or not again else "failed"
            run = planned(name, number, suite, text, specs, again)
            plans.append(run)
            attempt = FailedAttempt(1, "kind " + text, "attempt " + text, 5.0, begun)
            ends.append(
                RunEnded(
                    run.id, status, 0.5, begun + number, 900.0, 2, transcript, () if broken else (*results, said),
                    why="why " + text, failed_attempts=(attempt,), tape=tape_of(text),
                )
            )  # fmt: skip
    title = f"title {name} " + " ".join(texts)
    program = {"program": "program " + texts[0]}
    store.begin_execution(
        ExecutionRecord(name, title, "run", "source " + texts[0], (str(suite),), begun, options=program), plans
    )
    for end, plan, text in zip(ends, plans, [text for text in texts for _ in range(3)], strict=True):
        store.run_ended(end).result()
        request = RemoteRequest("chat", "judge " + text, {"messages": [{"role": "user", "content": "asked " + text}]})
        reply = Reply("said " + text, "model " + text, "error " + text if plan.repetition == 3 else "", at_ms=begun)
        judge = plan.criteria[1]
        store.keep_replies(plan.id, [StoredReply(request, "answerer", reply, judge)]).result()
    store.end_execution(name, "finished", message="message " + texts[0]).result()
