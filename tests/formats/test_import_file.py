"""Imports: what gets in, what is left out and why, once and not twice, whole or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.import_file import ImportOptions, ImportReport, import_file
from agenteval_tui.grading.results import Outcome
from agenteval_tui.history.store import Store

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
TAU = SHARED / "data" / "tau_bench" / "gpt-4o-airline-tasks-00-24.json"
shared = [
    pytest.mark.shared,
    pytest.mark.skipif(not SHARED.is_dir(), reason="recordings beside the project are not here"),
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "h.db") as opened:
        yield opened


def chat(question: str, answer: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]


def tau(task: int, trial: int, reward: Any, **more: Any) -> dict[str, Any]:
    info = {"task": {"user_id": "mia", "actions": [{"name": "book", "kwargs": {"n": 1}}], "instruction": "Book."}}
    return {"task_id": task, "trial": trial, "reward": reward, "info": info, "traj": chat("hi", "done"), **more}


def write(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return path


def outcomes(store: Store, report: ImportReport) -> list[tuple[str, int, str]]:
    rows = store.runs_of_execution(report.execution_id)
    return [(row.test_id, row.repetition, row.status) for row in rows]


def test_tau_bench_becomes_tests_with_repetitions_and_foreign_verdicts(store: Store, tmp_path: Path) -> None:
    path = write(tmp_path / "r.json", [tau(3, 0, 1.0), tau(3, 1, 0.0), tau(4, 0, 1)])
    report = import_file(path, store)
    assert (report.format, report.read, report.added, report.skipped) == ("tau-bench", 3, 3, ())
    assert outcomes(store, report) == [("3", 1, "passed"), ("3", 2, "failed"), ("4", 1, "passed")]
    row = store.runs_of_execution(report.execution_id)[1]
    assert row.variables["expected_actions"] == [{"name": "book", "kwargs": {"n": 1}}]
    assert row.suite_key == "import:tau-bench:r.json"
    assert row.prompt_head == "hi"
    (result,) = [one for one in store.results(row.id) if not one.derived]
    assert (result.criterion, result.outcome, result.score) == ("tau-bench reward", Outcome.FAILED, 0.0)
    assert result.source == "tau-bench"
    execution = store.execution("last")
    assert (execution.kind, execution.status, execution.passed, execution.failed) == ("import", "finished", 2, 1)


def test_a_run_that_broke_in_tau_bench_is_an_error_and_no_failure(store: Store, tmp_path: Path) -> None:
    broken = tau(1, 0, 0.0, traj=[], info={"error": "litellm.Timeout", "traceback": "..."})
    report = import_file(write(tmp_path / "r.json", [broken, tau(1, 1, 1.0)]), store)
    assert [status for _, _, status in outcomes(store, report)] == ["error", "passed"]
    assert store.runs_of_execution(report.execution_id)[0].error_message == "litellm.Timeout"


def test_odd_results_are_left_out_with_the_reason(store: Store, tmp_path: Path) -> None:
    odd = [
        tau(1, 0, 1.0),
        {"task_id": None, "traj": []},
        tau(2, 0, 1.0, traj=[]),
        tau(2, 1, 1.0, traj="text"),
        tau(2, 2, 1.0, traj=[{"content": "no role"}]),
        "text",
        tau(5, 0, None),
        tau(6, 0, 0.5),
    ]
    report = import_file(write(tmp_path / "r.json", odd), store)
    assert report.read == 8
    assert report.added == 3
    assert sum(count for _, count in report.skipped) == 5
    assert any("`traj` is empty" in reason for reason, _ in report.skipped)
    assert outcomes(store, report) == [("1", 1, "passed"), ("5", 1, "needs_review"), ("6", 1, "failed")]


def test_trials_that_are_said_twice_are_both_kept(store: Store, tmp_path: Path) -> None:
    report = import_file(write(tmp_path / "r.json", [tau(1, 0, 1.0), tau(1, 0, 0.0), tau(1, "x", 1.0)]), store)
    assert outcomes(store, report) == [("1", 1, "passed"), ("1", 2, "failed"), ("1", 3, "passed")]


def test_the_same_file_twice_adds_nothing(store: Store, tmp_path: Path) -> None:
    path = write(tmp_path / "r.json", [tau(1, 0, 1.0)])
    first = import_file(path, store)
    again = import_file(path, store)
    assert again.already
    assert (again.execution_id, again.added, again.read) == (first.execution_id, 0, 1)
    copy = write(tmp_path / "other-name.json", path.read_text("utf-8"))
    assert import_file(copy, store).already
    assert import_file(path, store, ImportOptions(format="tau-bench")).already
    assert store.counts().runs == 1
    assert store.counts().executions == 1


def test_conversations_of_every_shape(store: Store, tmp_path: Path) -> None:
    one = import_file(write(tmp_path / "a.json", chat("q", "a")), store)
    assert outcomes(store, one) == [("conversation-1", 1, "skipped")]
    several = [
        chat("q1", "a1"),
        {"id": "Refund case/7", "messages": chat("q2", "a2"), "model": "m-1"},
        chat("q3", "a3"),
    ]
    listed = import_file(write(tmp_path / "b.json", several), store)
    assert [test for test, _, _ in outcomes(store, listed)] == ["conversation-1", "Refund-case-7", "conversation-3"]
    lines = "\n".join(json.dumps(one) for one in several)
    by_line = import_file(write(tmp_path / "b.jsonl", lines), store)
    assert outcomes(store, by_line) == outcomes(store, listed)
    row = store.runs_of_execution(by_line.execution_id)[1]
    assert (row.agent, row.test_name, row.prompt_head, row.output_head) == ("m-1", "Refund case/7", "q2", "a2")


def test_the_same_id_again_is_a_repetition(store: Store, tmp_path: Path) -> None:
    value = [{"test_id": "t", "messages": chat("q", "a")}, {"test_id": "t", "messages": chat("q", "b")}]
    assert [r for _, r, _ in outcomes(store, import_file(write(tmp_path / "a.json", value), store))] == [1, 2]


def test_own_transcripts_come_back_as_they_were(store: Store, tmp_path: Path) -> None:
    from agenteval_tui.transcripts.codec import from_json, from_openai_messages, to_json

    calls = [
        {"role": "user", "content": "q"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "r"},
        {"role": "assistant", "content": "done"},
    ]
    own = to_json(from_openai_messages(calls))
    report = import_file(write(tmp_path / "t.json", own), store)
    row = store.runs_of_execution(report.execution_id)[0]
    assert store.transcript(row.id) == from_json(own)


def test_a_cut_off_file_gives_what_is_whole(store: Store, tmp_path: Path) -> None:
    text = json.dumps([tau(1, 0, 1.0), tau(1, 1, 1.0), tau(2, 0, 0.0)])
    report = import_file(write(tmp_path / "r.json", text[:-40]), store)
    assert report.added == 2
    assert report.cut_off
    assert sum(count for _, count in report.skipped) == 1
    assert outcomes(store, report) == [("1", 1, "passed"), ("1", 2, "passed")]


def test_a_conversation_with_a_hole_is_not_judged(store: Store, tmp_path: Path) -> None:
    text = (
        json.dumps(chat("q", "a")) + "\n" + '[{"role": "user", "content": "q"}, {"role": oops}, {"role": "assistant"}]'
    )
    report = import_file(write(tmp_path / "r.jsonl", text), store)
    assert report.added == 1
    ((reason, count),) = report.skipped
    assert count == 1
    assert "a message of it can't be read" in reason


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "nothing in this file"),
        ("# A heading\n", "can be read as JSON (line 1"),
        ('[{"a": 1, "b": 2}]', "the keys 'a', 'b'"),
        ("[1, 2]", "a number"),
        ("[]", "nothing in this file"),
        ('[{"role": "user", "content": "only a question"}]', "nothing in this file can be imported"),
        ("\x00\x01\x02", "JSON"),
    ],
)
def test_other_files_are_refused_in_words(store: Store, tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(AgentevalError) as caught:
        import_file(write(tmp_path / "x.json", text), store)
    assert said in str(caught.value)
    assert str(tmp_path / "x.json") in str(caught.value)
    assert "`messages`" in caught.value.fix
    assert store.counts().executions == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"evalId": "x", "results": {}}', "promptfoo"),
        ('{"simulations": [], "tasks": []}', "tau2-bench"),
        ('{"version": 2, "eval": {"task": "t"}, "samples": []}', "no samples in this log"),
        ('{"resourceSpans": []}', "otel"),
    ],
)
def test_files_of_known_formats_with_nothing_in_them_say_so(store: Store, tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(AgentevalError, match="nothing in this file can be imported") as caught:
        import_file(write(tmp_path / "x.json", text), store)
    assert said in str(caught.value)
    assert store.counts().executions == 0


def test_files_that_are_not_there_or_none(store: Store, tmp_path: Path) -> None:
    with pytest.raises(AgentevalError, match="there is no such file"):
        import_file(tmp_path / "no.json", store)
    with pytest.raises(AgentevalError, match="folder"):
        import_file(tmp_path, store)
    with pytest.raises(AgentevalError, match="no format 'tau'"):
        import_file(write(tmp_path / "a.json", chat("q", "a")), store, ImportOptions(format="tau"))


def test_hostile_text_is_stored_as_it_came(store: Store, tmp_path: Path) -> None:
    answer = "\x1b]0;title\x07\u202eevil\ud800 end"
    path = tmp_path / "a.json"
    path.write_bytes(json.dumps(chat("q", answer)).encode("ascii"))
    report = import_file(path, store)
    row = store.runs_of_execution(report.execution_id)[0]
    assert "\x1b]0;title\x07" in store.transcript(row.id).final_output


def test_progress_is_told(store: Store, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    path = write(tmp_path / "r.json", [tau(n, 0, 1.0) for n in range(1200)])
    import_file(path, store, on_progress=lambda done, size: told.append((done, size)))
    assert len(told) >= 2
    assert told[-1] == (path.stat().st_size, path.stat().st_size)


class TestRealTauBench:
    pytestmark = shared

    def test_every_transcript_is_there_and_whole(self, store: Store) -> None:
        raw = json.loads(TAU.read_text("utf-8"))
        report = import_file(TAU, store)
        assert (report.read, report.added, report.skipped, report.notes) == (100, 100, (), ())
        rows = store.runs_of_execution(report.execution_id)
        for one, row in zip(raw, rows, strict=True):
            assert (row.test_id, row.repetition) == (str(one["task_id"]), one["trial"] + 1)
            assert row.status == ("passed" if one["reward"] == 1.0 else "failed")
            transcript = store.transcript(row.id)
            assert [m.role for m in transcript.messages] == [m["role"] for m in one["traj"]]
            names = [c["function"]["name"] for m in one["traj"] for c in m.get("tool_calls") or ()]
            assert [call.name for call in transcript.tool_calls] == names
            answered = [m["content"] for m in one["traj"] if m["role"] == "tool"]
            assert [call.result for call in transcript.tool_calls if call.result is not None] == answered
            assert row.variables["expected_actions"] == one["info"]["task"]["actions"]

    def test_recorded_openai_conversations(self, store: Store) -> None:
        report = import_file(SHARED / "data" / "wire" / "transcripts-openai-chat.jsonl", store)
        assert report.added > 0
        assert report.read == report.added + sum(count for _, count in report.skipped)
        assert not report.cut_off


def test_large_runs_are_not_gathered_before_they_are_written(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agenteval_tui.history.store._IMPORTED_TEXT", 1_000_000)
    path = tmp_path / "large.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(24):
            file.write(json.dumps({"messages": chat("q", f"{number} " + "word " * 200_000)}) + "\n")
    size = path.stat().st_size
    tracemalloc.start()
    try:
        assert import_file(path, store).added == 24
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 0.75 * size


IMPORTER = """
import sys
from agenteval_tui.formats.import_file import import_file
from agenteval_tui.history.store import Store

with Store.open(sys.argv[2]) as store:
    import_file(sys.argv[1], store, on_progress=lambda done, size: (print(done, flush=True), sys.stdin.readline()))
"""


def test_an_import_that_was_killed_is_made_again_as_if_it_had_not_been(tmp_path: Path) -> None:
    path = write(tmp_path / "r.json", [tau(task, 0, 1.0) for task in range(1_200)])
    db = tmp_path / "h.db"
    with subprocess.Popen(
        [sys.executable, "-c", IMPORTER, str(path), str(db)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.kill()
    with Store.open(db) as store:
        (half,) = store.executions()
        assert (half.kind, half.status) == ("import", "interrupted")
        report = import_file(path, store)
        assert (report.added, report.already) == (1_200, False)
        (row,) = store.executions()
        assert (row.id, row.status, row.passed) == (report.execution_id, "finished", 1_200)
        assert store.counts().runs == 1_200
        assert import_file(path, store).already


def test_a_pipe_is_refused_at_once_and_places_are_said(store: Store, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    for one in (pipe, Path("/dev/zero")):
        with pytest.raises(AgentevalError, match="no file") as refused:
            import_file(one, store)
        assert refused.value.fix == "write it into a file first"
    said = '{"messages": [{"role": "assistant", "content": "x"}]}'
    path = tmp_path / "broken.jsonl"
    path.write_text("\n".join([said, "{broken", said, said, "{broken", said[:20]]), "utf-8")
    report = import_file(path, store)
    assert (report.added, report.cut_off) == (3, True)
    first, second = report.left_out()
    assert first.startswith("2, the first: line 2: not valid JSON")
    assert second == "1, line 6: the file ends in the middle of it"
