"""Runs that go out in every format and come back: equal in all that the format's list of losses does not name."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agenteval_tui.cli.main import main
from agenteval_tui.formats.exporters.export import exporters, stored_runs
from agenteval_tui.formats.import_file import import_file
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.grade import foreign_result, verdict_of
from agenteval_tui.grading.results import CriterionResult, Evidence, MetricResult, Outcome, Span
from agenteval_tui.grading.sentences import verdict_sentence
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded, RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.codec import from_openai_messages
from agenteval_tui.transcripts.model import Note, RunError, Step, Timing, Transcript, Usage

PICTURE = "https://example.com/cat.png"
DATA = {"url": "data:image/png;base64,iVBORw0KGgo="}
HUGE = "Zeile – 行 🚀\n" * 30_000
ASKED: list[dict[str, Any]] = [{"role": "user", "content": "Wo ist 12345? 🚀"}]
SAID = [*ASKED, {"role": "assistant", "content": "In Oslo."}]
TURNS: list[dict[str, Any]] = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "One?", "name": "kim"},
    {"role": "assistant", "content": "", "reasoning": "Hm.", "tool_calls": [
        {"id": "c1", "function": {"name": "look", "arguments": {"a": [1, {"ü": None}]}}},
        {"id": "c2", "function": {"name": "book", "arguments": "{broken"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "no", "is_error": True},
    {"role": "tool", "tool_call_id": "c2", "content": "yes"},
    {"role": "assistant", "content": "One."},
    {"role": "user", "content": "Two?"},
    {"role": "assistant", "content": "Two.", "reasoning": "Easy."},
]  # fmt: skip


def criterion(outcome: Outcome, score: float | None, **more: Any) -> CriterionResult:
    passed = {Outcome.PASSED: True, Outcome.FAILED: False}.get(outcome)
    evidence = Evidence("contains", passed, expected="Oslo", found="Bergen", spans=(Span("message", 1, 0, 2),),
                        code=Code.MESSAGE, message="so it is")  # fmt: skip
    metric = MetricResult("text", "TextMatch", outcome, score, evidence=(evidence,))
    given = {"metrics": (metric,), "prototype_class": "TextResponse", "criterion_hash": "abc", **more}
    return CriterionResult(given.pop("name", f"c {outcome}"), outcome, score, **given)


PASS, FAIL = criterion(Outcome.PASSED, 1.0), criterion(Outcome.FAILED, 0.25)
WARNING = criterion(Outcome.FAILED, 0.0, name="soft", severity="warning", weight=0.0)
INFO = criterion(Outcome.FAILED, 0.0, name="said", severity="info", weight=2.5)
NEGATED = criterion(Outcome.PASSED, 1.0, name="not", negate=True, weight=3.0)
THRESHOLD = criterion(
    Outcome.FAILED, 0.5, name="least", code=Code.THRESHOLD,
    fields={"of": "criterion", "score": 0.5, "threshold": 0.75, "reached": False},
)  # fmt: skip
BROKEN = criterion(Outcome.ERROR, None, name="broken")
WAITS = criterion(Outcome.NEEDS_REVIEW, None, name="human")
NEUTRAL = criterion(Outcome.PASSED, None, name="nothing")
SKIPPED = criterion(Outcome.SKIPPED, None, name="skipped", metrics=())
FOREIGN = foreign_result("inspect match", score=0.5, passed=False, source="inspect", reason="theirs")


def chat(messages: list[dict[str, Any]], **more: Any) -> Transcript:
    return replace(from_openai_messages(messages), **more)


MEASURED = chat(
    TURNS, model="m-1", finish_reason="stop", usage=Usage(30, 4, 2, 1, 0.25), log="on stderr",
    notes=(Note("left_out", "an image"),),
    timing=Timing(12.5, 900.0, (Step("chat", 0.0, 400.0), Step("look", 5.0, 6.0))),
)  # fmt: skip
MEASURED = replace(
    MEASURED,
    tool_calls=tuple(replace(one, started_ms=400.0, duration_ms=7.5) for one in MEASURED.tool_calls),
    final_output="One. Two.",
)

LISTED = chat([
    *ASKED,
    {"role": "assistant", "content": "I add.", "tool_calls": [
        {"id": "c1", "function": {"name": "add", "arguments": "[1, {\"a\": null}]"}},
        {"id": "c2", "function": {"name": "wait", "arguments": "5"}}]},
    {"role": "assistant", "content": "Done."},
])  # fmt: skip

# name: (transcript, results, how it ended where the results do not say it, the plan)
RUNS: dict[str, tuple[Transcript, tuple[CriterionResult, ...], dict[str, Any], dict[str, Any]]] = {
    "passed": (chat(SAID), (PASS,), {}, {}),
    "failed": (chat(SAID), (PASS, FAIL), {}, {"variation": "a / b", "agent": "Agent Ü"}),
    "another variation": (chat(SAID), (PASS,), {}, {"test_id": "failed", "variation": "c"}),
    "a failed warning passes": (chat(SAID), (PASS, WARNING, INFO), {}, {}),
    "all warnings failed": (chat(SAID), (WARNING,), {}, {}),
    "negated and weighed": (chat(SAID), (NEGATED, PASS), {}, {}),
    "below a criterion's threshold": (chat(SAID), (THRESHOLD,), {}, {}),
    "below the test's threshold": (chat(SAID), (PASS, WARNING, INFO), {"status": "failed", "why": "score 0.3"}, {}),
    "unknown by the threshold": (chat(SAID), (PASS, replace(WAITS, severity="warning")),
                                 {"status": "needs_review", "score": None}, {}),
    "a check broke": (chat(SAID), (PASS, BROKEN), {}, {}),
    "waits": (chat(SAID), (PASS, WAITS, NEUTRAL), {}, {}),
    "skipped criterion": (chat(SAID), (PASS, SKIPPED), {}, {}),
    "foreign": (chat(SAID), (FOREIGN,), {}, {}),
    "tau's": (chat(SAID), (foreign_result("tau-bench reward", score=0.0, source="tau-bench"),), {}, {}),
    "agent broke": (chat(ASKED, error=RunError("timeout", "no answer in 5 s", "wait longer")), (SKIPPED,),
                    {"status": "error", "score": None, "why": "no answer in 5 s"}, {}),
    "cancelled": (Transcript(), (), {"status": "cancelled", "score": None, "why": "stopped"}, {}),
    "cancelled in its error": (chat(ASKED, error=RunError("cancelled", "stopped")), (),
                               {"status": "cancelled", "score": None}, {}),
    "not graded": (chat(SAID), (), {"status": "skipped", "score": None, "why": "not graded yet"}, {}),
    "no criteria": (chat(SAID), (), {"status": "passed", "score": None}, {}),
    "measured": (MEASURED, (PASS,), {}, {"prompt": "One?", "variables": {"city": "Oslo", "n": [1, {"x": None}]}}),
    "arguments that are no object": (LISTED, (PASS,), {}, {}),
    "huge": (chat([*ASKED, {"role": "assistant", "content": HUGE}]), (PASS,), {}, {}),
    "row 1": (chat(SAID), (PASS,), {}, {"test_id": "rows", "row": 1, "row_key": "oslo", "variables": {"c": "Oslo"}}),
    "row 2": (chat(SAID), (FAIL,), {}, {"test_id": "rows", "row": 2, "row_key": "rome", "variables": {"c": "Rome"}}),
    "row 2 again": (chat(SAID), (PASS,), {}, {"test_id": "rows", "row": 2, "row_key": "rome", "repetition": 2,
                                              "variables": {"c": "Rome"}}),
    "repeated": (chat(SAID), (FAIL,), {}, {"test_id": "passed", "repetition": 7}),
    "a number": (chat(SAID), (PASS,), {}, {"test_id": "17"}),
    "tagged": (chat(SAID), (PASS,), {}, {"tags": ("slow",), "suite_name": "other"}),
    "labelled": (chat(SAID), (PASS,), {}, {}),
}  # fmt: skip


@pytest.fixture
def sent(store: Store) -> list[RunRow]:
    """The constructed runs, in the history."""
    record = ExecutionRecord("01EXECUTION", "all", "run", "s.yaml", ("key",), 1_700_000_000_000)
    runs = []
    for position, (name, (transcript, results, ends, plan)) in enumerate(RUNS.items()):
        uid = f"01RUN{position:021}"
        given: dict[str, Any] = {
            "test_id": name.replace(" ", "-").replace("'", ""), "suite_name": "mine", "agent": "agent",
            "prompt": ASKED[0]["content"], **plan,
        }  # fmt: skip
        planned = PlannedRun(uid, record.id, position, "key", test_name=f"Test {name} ü", **given)
        verdict = verdict_of(results)
        made: dict[str, Any] = {
            "status": str(verdict.outcome), "score": verdict.score, "why": verdict_sentence(verdict),
            "warnings": verdict.warnings,
            **ends,
        }  # fmt: skip
        runs.append((planned, RunEnded(uid, made.pop("status"), made.pop("score"), 1_700_000_000_000 + position,
                                       transcript.timing.total_ms, 1, transcript, results, **made)))  # fmt: skip
    store.import_runs(record, runs)
    rows = store.runs_of_execution(record.id)
    labelled = next(one for one in rows if one.test_id == "labelled")
    store.label(labelled.id, passed=True, comment="fine", who="kim").result()
    return rows


def parts(store: Store, row: RunRow) -> dict[str, Any]:
    """A run as what may get lost of it; the keys are those of the list of losses, and "core" what may never be."""
    transcript = store.transcript(row.id)
    return {
        "core": (
            row.status, row.score, row.why, row.warnings, row.test_id, row.test_name, row.variation, row.row,
            row.row_key, row.repetition, row.agent, dict(row.variables), store.results(row.id),
            [(one.role, one.content, one.tool_calls, one.tool_call) for one in transcript.messages],
            [(one.id, one.name, one.arguments, one.result, one.status) for one in transcript.tool_calls],
            transcript.error, transcript.final_output, transcript.model, transcript.finish_reason, transcript.usage,
            transcript.timing, transcript.log, transcript.notes, row.started_ms,
            [(one.started_ms, one.duration_ms) for one in transcript.tool_calls],
        ),
        "reasoning": [one.reasoning for one in transcript.messages],
        "speaker": [one.name for one in transcript.messages],
        "malformed": [one.malformed for one in transcript.tool_calls],
        "labels": [(one.passed, one.comment) for one in store.labels([row.id])],
        "tags": row.tags,
        "suite": row.suite_name,
    }  # fmt: skip


@pytest.mark.parametrize("name", list(exporters()))
def test_what_goes_out_comes_back_or_is_listed(store: Store, sent: list[RunRow], tmp_path: Path, name: str) -> None:
    path = tmp_path / "out.x"
    path.write_text("".join(exporters()[name].pieces(stored_runs(store, sent))), "utf-8")
    report = import_file(path, store)
    assert (report.added, report.skipped) == (len(RUNS), ())
    told = set(re.findall(r"`([^`]+)`", " ".join(report.notes)))
    assert told <= {
        "labels[].comment", "labels[].who", "resourceSpans[].resource", "resourceSpans[].scopeSpans[].scope"
    }  # fmt: skip
    lost: set[str] = set()
    before = {(one.test_id, one.variation, one.row, one.repetition): parts(store, one) for one in sent}
    for row in store.runs_of_execution(report.execution_id):
        was, now = before.pop((row.test_id, row.variation, row.row, row.repetition)), parts(store, row)
        for field, left in zip(was["core"], now["core"], strict=True):
            assert left == field, row.test_id
        lost |= {key for key in was if was[key] != now[key]}
    assert not before
    # Bytes are in no history: `test_images_and_files_come_back` looks at those.
    assert lost | {"attached_bytes"} == {one.code for one in exporters()[name].losses}


@pytest.mark.parametrize("name", list(exporters()))
def test_images_and_files_come_back(store: Store, tmp_path: Path, name: str) -> None:
    said = chat([
        {"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": DATA}]},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {}}}]},
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "image", "url": PICTURE}]},
        {"role": "assistant", "content": "A cat."},
    ])  # fmt: skip
    assert [len(one.attachments) for one in said.messages] == [1, 0, 1, 0]
    record = ExecutionRecord("01EXECUTION", "all", "run", "s.yaml", ("key",), 1_700_000_000_000)
    planned = PlannedRun(f"01RUN{0:021}", record.id, 0, "key", test_id="t", test_name="T", suite_name="mine", agent="a")
    store.import_runs(record, [(planned, RunEnded(planned.id, "passed", None, 1_700_000_000_000, 5.0, 1, said, ()))])
    path = tmp_path / "out.x"
    path.write_text("".join(exporters()[name].pieces(stored_runs(store, store.runs_of_execution(record.id)))), "utf-8")
    assert "attached_bytes" in path.read_text("utf-8")
    (row,) = store.runs_of_execution(import_file(path, store).execution_id)
    assert store.transcript(row.id).messages == said.messages


def _events(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        event["attributes"]
        for span in document["resourceSpans"][0]["scopeSpans"][0]["spans"]
        for event in span.get("events", ())
    ]


@pytest.mark.parametrize("keep", [(), ("agenteval.evaluation.severity", "agenteval.evaluation.weight")])
def test_a_collector_that_drops_long_attributes_leaves_severities(
    store: Store, sent: list[RunRow], tmp_path: Path, keep: tuple[str, ...]
) -> None:
    """Whatever is left of ours decides as far as it goes: without severities every failed evaluation fails the run."""
    rows = [one for one in sent if one.test_id == "all-warnings-failed"]
    (line,) = exporters()["otel"].pieces(stored_runs(store, rows))
    document = json.loads(line)
    for pairs in _events(document):
        pairs[:] = [one for one in pairs if one["key"].startswith("gen_ai.") or one["key"] in keep]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(document), "utf-8")
    (row,) = store.runs_of_execution(import_file(path, store).execution_id)
    (result,) = store.results(row.id)
    assert (row.status, result.criterion, result.outcome) == ("passed" if keep else "failed", "otel soft", "failed")


STATED: list[tuple[Any, str]] = [
    ({"outcome": "passed"}, "failed"),  # the results say otherwise
    ({"outcome": "great"}, "failed"),
    ({"outcome": "failed", "score": "x", "row": -1, "why": 5, "warnings": "many", "tags": "no", "suite": 3}, "failed"),
    ({"version": 99}, "failed"),
    ({"transcript": 5}, "failed"),
    ({"transcript": {"timing": []}}, "failed"),
    ({"results": 5}, "failed"),
    (5, "failed"),
]


@pytest.mark.parametrize(("change", "status"), STATED)
@pytest.mark.parametrize("name", ["openai", "tau-bench"])
def test_what_others_write_into_it_is_not_believed(
    store: Store, sent: list[RunRow], tmp_path: Path, name: str, change: Any, status: str
) -> None:
    rows = [one for one in sent if one.test_id == "failed" and one.status == "failed"]
    document = json.loads("".join(exporters()[name].pieces(stored_runs(store, rows))))
    holder = document[0]["info"] if name == "tau-bench" else document
    if isinstance(change, dict):
        holder["agenteval"].update(change)
    else:
        holder["agenteval"] = change
    path = tmp_path / "t.json"
    path.write_text(json.dumps(document), "utf-8")
    report = import_file(path, store)
    (row,) = store.runs_of_execution(report.execution_id)
    has_results = bool(store.results(row.id))
    assert row.status == (status if has_results else "skipped") or report.notes


def test_the_export_says_what_it_cannot_keep(
    store: Store,
    sent: list[RunRow],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("AGENTEVAL_DB", str(tmp_path / "h.db"))
    store.flush()
    for name in exporters():
        assert main(["export", "last", str(tmp_path / f"{name}.out"), "--format", name], launch_app=lambda _: 0) == 0
        said = capsys.readouterr().err.splitlines()
        assert [line.removeprefix("note: ") for line in said] == [
            f"not kept: {one.description} (1 run)" for one in exporters()[name].losses if one.code != "attached_bytes"
        ]
        written = (tmp_path / f"{name}.out").read_text("utf-8")
        assert written.count("not_kept") == 1
    assert main(["export", "--help"], launch_app=lambda _: 0) == 0
    help_text = capsys.readouterr().out
    page = (Path(__file__).parents[2] / "docs" / "exchange.md").read_text("utf-8")
    for name, exporter in exporters().items():
        for one in exporter.losses:
            assert f"{name}: " in help_text
            assert one.description in " ".join(help_text.split())
            assert one.description in " ".join(page.split())


@pytest.mark.sweep
@pytest.mark.parametrize("names", [list(exporters()), list(reversed(exporters()))])
def test_what_came_back_from_one_format_goes_through_the_next(
    store: Store, sent: list[RunRow], tmp_path: Path, names: list[str]
) -> None:
    rows = sent
    for name in names:
        path = tmp_path / f"{name}.x"
        path.write_text("".join(exporters()[name].pieces(stored_runs(store, rows))), "utf-8")
        report = import_file(path, store)
        assert (report.added, report.skipped) == (len(RUNS), ())
        rows = store.runs_of_execution(report.execution_id)
    after = {(one.test_id, one.variation, one.row, one.repetition): parts(store, one)["core"] for one in rows}
    before = {(one.test_id, one.variation, one.row, one.repetition): parts(store, one)["core"] for one in sent}
    assert after == before
