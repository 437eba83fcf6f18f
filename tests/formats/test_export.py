"""Runs that go out and come back, and the command line around it."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agenteval_tui.cli.main import main
from agenteval_tui.formats.detect import formats
from agenteval_tui.formats.exporters.export import exporters, stored_runs
from agenteval_tui.formats.exporters.exporter import StoredRun
from agenteval_tui.formats.import_file import import_file
from agenteval_tui.grading.grade import foreign_result
from agenteval_tui.grading.results import CriterionResult, Evidence, MetricResult, Outcome, Span
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.codec import from_json, from_openai_messages
from agenteval_tui.transcripts.model import Timing, Transcript

ARGUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=5,
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@st.composite
def transcripts(draw: st.DrawFn) -> Transcript:
    """Conversations as agents have them: calls with ids of their own, each answered once or not at all."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": draw(TEXT)}] if draw(st.booleans()) else []
    number = 0
    for _ in range(draw(st.integers(1, 4))):
        messages.append({"role": "user", "content": draw(TEXT)})
        calls = []
        for _ in range(draw(st.integers(0, 3))):
            number += 1
            arguments = draw(st.dictionaries(TEXT, ARGUMENTS, max_size=3))
            calls.append(
                {"id": f"c{number}", "function": {"name": draw(st.sampled_from("fg")), "arguments": arguments}}
            )
        answer: dict[str, Any] = {"role": "assistant", "content": draw(TEXT), "reasoning": draw(TEXT)}
        messages.append({**answer, "tool_calls": calls} if calls else answer)
        for call in calls:
            if draw(st.booleans()):
                failed = draw(st.booleans())
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": draw(TEXT), "is_error": failed})
    return from_openai_messages(messages)


def row_of(transcript: Transcript) -> RunRow:
    return RunRow(
        rowid=1, id="01RUN", execution_id="01EX", position=0, suite_key="k", suite_name="s", test_id="t", test_name="T",
        variation="", row=0, repetition=2, agent="a", status="passed", score=1.0, started_ms=1_700_000_000_000,
        duration_ms=5.0, attempts=1, input_tokens=None, output_tokens=None, cost=None, prompt_head="p", output_head="o",
        why="", error_kind="", error_message="", variables={},
    )  # fmt: skip


def core(transcript: Transcript) -> Any:
    """What a round trip must keep: messages and tool calls."""
    return transcript.messages, [replace(c, started_ms=None, duration_ms=None) for c in transcript.tool_calls]


def exported(name: str, transcript: Transcript) -> str:
    run = StoredRun(row_of(transcript), transcript, (foreign_result("mine", score=0.5, source="x", reason="so"),))
    return "".join(exporters()[name].pieces([run]))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(transcripts())
def test_own_runs_keep_messages_and_calls_through_openai_and_own_form(transcript: Transcript) -> None:
    from agenteval_tui.formats.importers.conversations import transcript_in

    for name in ("openai", "agenteval"):
        back = transcript_in(json.loads(exported(name, transcript)), [])
        assert core(back) == core(transcript)
        assert back.final_output == transcript.final_output
    assert from_json(json.loads(exported("agenteval", transcript))) == transcript


# Through the history and the command line

CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "Wetter 🚀?"},
    {"role": "assistant", "content": None, "reasoning_content": "Hm.", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": NaN, "b": {"c": [1, "ü"]}}'}},
        {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{broken"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "no", "is_error": True},
    {"role": "assistant", "content": "Kalt.\x1b[31m"},
]  # fmt: skip


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AGENTEVAL_DB", str(tmp_path / "h.db"))

    def run(*arguments: object) -> tuple[int, str, str]:
        code = main([str(one) for one in arguments], launch_app=lambda _: 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.mark.parametrize("name", list(exporters()))
def test_what_is_exported_can_be_imported(store: Store, tmp_path: Path, name: str) -> None:
    one = {"id": "t1", "messages": CHAT, "model": "m", "usage": {"prompt_tokens": 3, "completion_tokens": 4}}
    (tmp_path / "in.jsonl").write_text(json.dumps(one) + "\n" + json.dumps({**one, "repetition": 2}), "utf-8")
    first = import_file(tmp_path / "in.jsonl", store)
    rows = store.runs_of_execution(first.execution_id)
    out = tmp_path / "out.x"
    out.write_text("".join(exporters()[name].pieces(stored_runs(store, rows))), "utf-8")
    report = import_file(out, store)
    assert (report.added, report.skipped) == (2, ())
    for before, after in zip(rows, store.runs_of_execution(report.execution_id), strict=True):
        assert (after.test_id, after.repetition) == (before.test_id, before.repetition)
        back, sent = store.transcript(after.id), store.transcript(before.id)
        assert [(c.name, c.arguments, c.result, c.status) for c in back.tool_calls] == [
            (c.name, c.arguments, c.result, c.status) for c in sent.tool_calls
        ]
        assert [(m.role, m.content) for m in back.messages] == [(m.role, m.content) for m in sent.messages]
        if name not in ("tau-bench", "tau2-bench"):
            assert [m.reasoning for m in back.messages] == [m.reasoning for m in sent.messages]
            assert (back.model, back.usage.input_tokens) == ("m", 3)


KEPT = (
    "test_id",
    "test_name",
    "variation",
    "repetition",
    "agent",
    "status",
    "score",
    "started_ms",
    "duration_ms",
    "variables",
)


def test_our_own_form_keeps_everything_and_believes_nothing(store: Store, tmp_path: Path) -> None:
    chat = from_openai_messages(CHAT)
    chat = replace(chat, timing=Timing(total_ms=5.0), error=None, log="said so")
    spans = (Span("message", 3, 0, 4), Span("message", 99), Span("tool", 1))
    evidence = Evidence("contains", True, "there", "Kalt", "Kalt.", spans)
    metric = MetricResult("text", "TextMatch", Outcome.PASSED, 1.0, evidence=(evidence,))
    result = CriterionResult("Cold", Outcome.PASSED, 1.0, value="Kalt.", metrics=(metric,), criterion_hash="abc")
    row = replace(row_of(chat), variation="v", variables={"city": "Oslo"})
    (line,) = exporters()["agenteval"].pieces([StoredRun(row, chat, (result,))])
    (tmp_path / "own.jsonl").write_text(line, "utf-8")
    (back,) = store.runs_of_execution(import_file(tmp_path / "own.jsonl", store).execution_id)
    assert [getattr(back, name) for name in KEPT] == [getattr(row, name) for name in KEPT]
    transcript = store.transcript(back.id)
    assert core(transcript) == core(replace(chat, tool_calls=transcript.tool_calls))
    (found,) = store.results(back.id)
    # A place that is not in the transcript is no place.
    kept = replace(evidence, spans=(spans[0], spans[2]))
    assert found == replace(result, metrics=(replace(metric, evidence=(kept,)),))
    for number, odd in enumerate((5, [5], [{}], [{"criterion": "x", "outcome": "great"}])):
        (tmp_path / "odd.jsonl").write_text(
            line + json.dumps({**json.loads(line), "results": odd, "n": number}), "utf-8"
        )
        report = import_file(tmp_path / "odd.jsonl", store)
        assert (report.added, report.skipped[0][0]) == (1, "its `results` are none of this program's")
    text = json.dumps(
        {**json.loads(line), "results": [{"criterion": 1, "outcome": "failed", "score": "x", "weight": -1}]}
    )
    (tmp_path / "odd.jsonl").write_text(text, "utf-8")
    (back,) = store.runs_of_execution(import_file(tmp_path / "odd.jsonl", store).execution_id)
    assert (back.status, store.results(back.id)[0].weight) == ("failed", 1.0)


def test_export_asks_before_it_writes_over_a_file(command: Any, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text(json.dumps(CHAT), "utf-8")
    assert command("import", tmp_path / "in.json")[0] == 0
    out = tmp_path / "out.jsonl"
    code, said, _ = command("export", "last", out)
    assert code == 0
    assert "1 run as OpenAI chat messages" in said
    before = out.read_bytes()
    out.write_bytes(b"mine")
    code, _, err = command("export", "last", out)
    assert (code, out.read_bytes()) == (2, b"mine")
    assert "--force" in err
    assert command("export", "last", out, "--force")[0] == 0
    assert out.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".tmp")] == []
    assert stat.S_IMODE(out.stat().st_mode) & 0o200
    code, text, _ = command("export", "last")
    assert text.isascii()
    assert "\x1b" not in text
    assert json.loads(text)["messages"][0]["content"] == "Wetter 🚀?"
    assert json.loads(command("export", "last", "--format", "tau-bench")[1])[0]["traj"]
    assert command("export", "last", "--format", "word")[0] == 2
    assert command("export", "nothing")[0] == 2
    assert command("export", "last", tmp_path / "no" / "folder.json")[0] == 2


def test_folders_dry_runs_and_suites(command: Any, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (folder / "deeper").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    (folder / "a.json").write_text(json.dumps(CHAT), "utf-8")
    (folder / "deeper" / "b.jsonl").write_text(json.dumps({"messages": CHAT}), "utf-8")
    (folder / ".hidden" / "c.json").write_text(json.dumps([CHAT]), "utf-8")
    (folder / "other.json").write_text('{"a": 1}', "utf-8")
    (folder / "notes.txt").write_text("x", "utf-8")
    code, out, _ = command("import", folder, "--dry-run")
    assert code == 0
    assert out.count("would be added") == 2
    assert "other.json: not imported: this format is unknown" in out
    # By itself it says what was looked for, a line a format; what the file says stays in the first line.
    (tmp_path / "alone.json").write_text('{"a\\nagenteval: all is well": 1}', "utf-8")
    code, _, err = command("import", tmp_path / "alone.json")
    lines = err.splitlines()
    assert code == 2
    assert "this format is unknown" in lines[0]
    assert "all is well" in lines[0]
    assert len(lines) == 2 + len(formats())
    assert [line.split()[0] for line in lines[2:]] == list(formats())
    assert json.loads(command("history", "--json")[1]) == []
    code, out, _ = command("import", folder, "--json")
    assert code == 0
    assert [(Path(one["file"]).name, one["added"], one["error"] is None) for one in json.loads(out)] == [
        ("a.json", 1, True), ("other.json", 0, False), ("b.jsonl", 1, True),
    ]  # fmt: skip
    assert command("import", folder)[1].count("nothing was added") == 2
    code, _, err = command("import", folder / "a.json", tmp_path / "no.json")
    assert code == 2
    assert "there is no such file" in err
    (tmp_path / "empty").mkdir()
    assert command("import", tmp_path / "empty")[0] == 2


def test_tests_are_written_once_and_never_over_a_file(command: Any, tmp_path: Path) -> None:
    given = tmp_path / "c.json"
    given.write_text(json.dumps({"cases": [{"inputs": "q", "evaluators": [{"Contains": "a"}]}, {}]}), "utf-8")
    to = tmp_path / "new.suite.yaml"
    assert "nothing was written" in command("import", given, "--to", to, "--dry-run")[1]
    assert not to.exists()
    code, out, _ = command("import", given, "--to", to)
    assert code == 0
    assert "1 test written" in out
    assert "case 2 has no `inputs`" in out
    assert command("validate", to)[0] == 0
    text = to.read_text("utf-8")
    code, _, err = command("import", given, "--to", to)
    assert (code, to.read_text("utf-8")) == (2, text)
    assert "not overwritten" in err
    assert command("import", given, "--to", "-")[1] == text
    code, out, _ = command("export", to, "--format", "power-ui")
    assert code == 0
    assert json.loads(out)[0]["object_alias"] == "axenox.GenAI.AI_TEST_CASE"
    assert command("export", tmp_path / "no.yaml", "--format", "power-ui")[0] == 2
    chat = tmp_path / "m.json"
    chat.write_text(json.dumps(CHAT), "utf-8")
    assert "runs but no tests" in command("import", chat, "--to", to)[2]


def test_imported_runs_are_graded_and_labelled_like_own_ones(command: Any, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text(json.dumps(CHAT), "utf-8")
    command("import", tmp_path / "in.json")
    criteria = tmp_path / "c.yaml"
    criteria.write_text(
        "{name: Kalt, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: Kalt}]}}",
        "utf-8",
    )
    run = json.loads(command("show", "last", "--json")[1])["runs"][0]["run"]
    code, out, _ = command("grade", "--execution", "last", "--criteria", criteria, "--json")
    assert code == 0, out
    assert '"passed"' in out
    assert command("label", run, "5")[0] == 0
    assert command("why", run)[0] == 0
    # Another recording of the same conversations, under the same name: graded as well, the two can be compared.
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "in.json").write_text(json.dumps(CHAT).replace("Kalt", "Warm"), "utf-8")
    kept = []
    for file in (tmp_path / "in.json", tmp_path / "later" / "in.json"):
        imported = json.loads(command("import", file, "--json")[1])[0]["execution"]
        saved = json.loads(command("grade", "--execution", imported, "--criteria", criteria, "--save", "--json")[1])
        kept.append(saved["saved"])
    assert "Kalt  1/1 → 0/1" in command("compare", *kept)[1]
