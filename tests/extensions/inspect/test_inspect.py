"""Inspect's logs: what is read of them, which traps they set, and what is said of broken ones."""

from __future__ import annotations

import gc
import io
import json
import sys
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.extensions.inspect import importer as inspect_log
from agenteval_tui.extensions.inspect import zip_file as inspect_zip
from agenteval_tui.extensions.inspect.importer import recordings
from agenteval_tui.formats.import_file import import_file, open_source
from agenteval_tui.formats.importers.recording import Recording, Skipped
from agenteval_tui.formats.stream.source import Source
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.results import Outcome
from agenteval_tui.grading.sentences import criterion_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model import Message, Transcript
from tests.formats.conftest import theirs

if sys.version_info >= (3, 14):
    import zipfile
else:
    from backports.zstd import zipfile

SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "data"
shared = [
    pytest.mark.shared,
    pytest.mark.skipif(not SHARED.is_dir(), reason="recordings beside the project are not here"),
]
ZSTD = 93
EVAL = {
    "task": "weather", "model": "openai/gpt-x", "created": "2026-01-02T03:04:05+00:00",
    "dataset": {"name": "d", "sample_ids": ["b", "a"]}, "config": {"epochs": 2},
    "scorers": [{"name": "inspect_ai/match"}],
}  # fmt: skip


def sample(sample_id: Any = "a", epoch: int = 1, **more: Any) -> dict[str, Any]:
    call = {"id": "c1", "function": "get_weather", "arguments": {"city": "Oslo"}, "type": "function"}
    return {
        "id": sample_id,
        "epoch": epoch,
        "input": "Weather in Oslo?",
        "target": "4 C",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather in Oslo?"},
            {
                "role": "assistant",
                "content": [{"type": "reasoning", "reasoning": "I must look."}, {"type": "text", "text": "I look."}],
                "tool_calls": [call],
            },
            {"role": "tool", "tool_call_id": "c1", "function": "get_weather", "content": "4 C"},
            {"role": "assistant", "content": "It is 4 C."},
        ],
        "output": {
            "model": "gpt-x-2026",
            "choices": [{"message": {"role": "assistant", "content": "It is 4 C."}, "stop_reason": "stop"}],
            "completion": "It is 4 C.",
        },
        "scores": {"match": {"value": "C", "answer": "4 C", "explanation": "found at the end"}},
        "metadata": {"region": "north"},
        "store": {"k": ["v"] * 3},
        "events": [
            {"event": "model", "model": "gpt-x", "timestamp": "2026-01-02T03:04:05+00:00", "working_time": 0.5},
            {
                "event": "tool", "id": "c1", "function": "get_weather", "timestamp": "2026-01-02T03:04:06+00:00",
                "completed": "2026-01-02T03:04:06.250000+00:00",
            },
        ],
        "model_usage": {
            "gpt-x": {"input_tokens": 10, "output_tokens": 5, "input_tokens_cache_read": 4, "total_cost": 0.01},
        },
        "total_time": 1.5,
        **more,
    }  # fmt: skip


def log(*samples: Any, **more: Any) -> dict[str, Any]:
    return {"version": 2, "status": "success", "eval": EVAL, "plan": {}, "samples": list(samples), **more}


def packed(*samples: Any, header: bool = True, start: bool = True, method: int = ZSTD, more: Any = ()) -> bytes:
    file = io.BytesIO()
    about = {key: value for key, value in log().items() if key != "samples"}
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", method) as archive:
        warnings.simplefilter("ignore")  # of names that are written twice
        if start:
            archive.writestr("_journal/start.json", json.dumps(about))
        for one in samples:
            archive.writestr(f"samples/{one.get('id')}_epoch_{one.get('epoch')}.json", json.dumps(one))
        for name, text in more:
            archive.writestr(name, text)
        if header:
            archive.writestr("header.json", json.dumps(about))
    return file.getvalue()


def test_everything_that_a_sample_says_is_in_the_run(imported, store: Store) -> None:
    report, ((row, transcript),) = imported(packed(sample()), "log.eval")
    assert (report.format, report.read, report.added, report.skipped) == ("inspect", 1, 1, ())
    assert report.notes == (
        "samples/a_epoch_1.json: of `events` only names, times, failures and what models were asked are kept",
        "not kept: `eval.dataset.name`, `eval.scorers[].name`, `eval.task`, `samples[].store`",
    )
    assert store.execution("last").notes == report.notes
    assert (row.test_id, row.repetition, row.agent, row.status, row.score) == ("a", 1, "openai/gpt-x", "passed", 1.0)
    assert row.variables == {"expected_value": "4 C", "metadata": {"region": "north"}}
    assert [message.role for message in transcript.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert (transcript.messages[2].reasoning, transcript.messages[2].content) == ("I must look.", "I look.")
    (call,) = transcript.tool_calls
    assert (call.name, call.arguments, call.result, call.status) == ("get_weather", {"city": "Oslo"}, "4 C", "ok")
    assert (call.started_ms, call.duration_ms) == (1000.0, 250.0)
    assert [step.name for step in transcript.timing.steps] == ["gpt-x", "get_weather"]
    assert transcript.timing.total_ms == 1500.0
    usage = transcript.usage  # Inspect's input has no cached tokens in it, ours has
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cost) == (14, 5, 4, 0.01)
    assert (transcript.model, transcript.finish_reason, transcript.final_output) == ("gpt-x-2026", "stop", "It is 4 C.")
    (result,) = theirs(store, row.id)
    assert (result.criterion, result.outcome, result.source) == ("inspect match", Outcome.PASSED, "inspect")
    assert "found at the end" in criterion_sentence(result)


def test_json_and_zip_and_every_packing_say_the_same(tmp_path: Path) -> None:
    samples = [sample("a", 1), sample("a", 2, scores={"match": {"value": "I"}}), sample("b", 1)]
    (tmp_path / "log.json").write_text(json.dumps(log(*samples)), "utf-8")
    found = []
    for name, data in [
        ("zstd.eval", packed(*samples)),
        ("deflate.eval", packed(*samples, method=8)),
        ("stored.eval", packed(*samples, method=0)),
        ("log.json", None),
    ]:
        if data is not None:
            (tmp_path / name).write_bytes(data)
        with Source(tmp_path / name) as source:
            runs = [one for one in recordings(source) if isinstance(one, Recording)]
            found.append(sorted(runs, key=lambda one: (one.test_id, one.repetition)))
    assert len(found[0]) == 3
    assert found[0] == found[1] == found[2] == found[3]


def test_samples_come_in_the_datasets_order_with_epochs_as_repetitions(imported) -> None:
    _, runs = imported(packed(sample("a", 2), sample("b", 1), sample("a", 1)), "log.eval")
    assert [(row.test_id, row.repetition) for row, _ in runs] == [("b", 1), ("a", 1), ("a", 2)]


@pytest.mark.parametrize("name", ["log.eval", "log.json"])
def test_of_a_sample_that_was_run_again_the_last_entry_wins(imported, name: str) -> None:
    early = sample("a", 1, scores={"match": {"value": "I"}})
    report, ((row, _),) = imported(
        packed(early, sample("a", 1)) if name.endswith("eval") else log(early, sample("a", 1)), name
    )
    assert row.status == "passed"
    assert any("later" in text for text in [*report.notes, *(reason for reason, _ in report.skipped)])


@pytest.mark.parametrize(
    ("value", "outcome", "score"),
    [
        ("C", "passed", 1.0),
        ("I", "failed", 0.0),
        ("P", "failed", 0.5),
        ("N", "failed", 0.0),
        (True, "passed", 1.0),
        ("no", "failed", 0.0),
        ("0.25", "failed", 0.25),
        (float("nan"), "needs_review", None),
        (float("inf"), "needs_review", None),
        (7, "needs_review", None),
        ("maybe", "needs_review", None),
        (None, "needs_review", None),
    ],
)
def test_scores(imported, store: Store, value: Any, outcome: str, score: float | None) -> None:
    _, ((row, _),) = imported(log(sample(scores={"match": {"value": value}})))
    assert (row.status, row.score) == (outcome, score)
    if isinstance(value, float) and value != value:
        assert "unscored" in criterion_sentence(theirs(store, row.id)[0])


def test_scores_with_parts_and_without_names(imported, store: Store) -> None:
    parts = {"safety": 1, "style": {"x": 1}, "tone": 0.5}
    _, ((row, _),) = imported(log(sample(scores={"rubric": {"value": parts}})))
    assert [(one.criterion, one.score) for one in theirs(store, row.id)] == [
        ("inspect rubric/safety", 1.0), ("inspect rubric/style", None), ("inspect rubric/tone", 0.5),
    ]  # fmt: skip
    old = {key: value for key, value in sample().items() if key != "scores"}
    _, ((row, _),) = imported(log({**old, "score": {"value": "C"}}), "old.json")
    assert [one.criterion for one in theirs(store, row.id)] == ["inspect match"]


def test_attachments_are_put_back_wherever_they_stand(imported) -> None:
    one = sample()
    one["messages"][1]["content"] = "attachment://abc"
    one["messages"][3]["content"] = [
        {"type": "text", "text": "tc://def"},
        {"type": "image", "image": "attachment://img"},
    ]
    texts = {"abc": "a long question", "def": "a long answer", "img": "data:image/png;base64,AAAA", "unused": "z"}
    _, ((_, after),) = imported(log({**one, "attachments": texts}), "after.json")
    _, ((_, before),) = imported(log({"attachments": texts, **one}), "before.json")
    assert after == before
    assert after.messages[1].content == "a long question"
    assert after.tool_calls[0].result == "a long answer\n[image]"


def test_errors_limits_and_failed_tools(imported) -> None:
    tool = sample()
    tool["messages"][3] |= {"content": "", "error": {"type": "timeout", "message": "took too long"}}
    tool["messages"][2]["tool_calls"][0]["parse_error"] = "no JSON: {"
    rows = imported(
        log(
            sample("broke", error={"message": "boom", "traceback": "..."}),
            sample("limit", limit={"type": "token", "limit": 5}),
            {**tool, "id": "tool"},
        )
    )[1]
    assert [row.status for row, _ in rows] == ["error", "passed", "passed"]
    assert rows[0][0].error_message == "boom"
    assert rows[1][1].finish_reason == "limit: token"
    call = rows[2][1].tool_calls[0]
    assert (call.status, call.result, call.malformed, call.arguments) == ("error", "took too long", True, "no JSON: {")


def test_a_log_without_a_header_is_read_and_said(imported) -> None:
    report, runs = imported(packed(sample(), header=False), "log.eval")
    assert runs[0][0].agent == "openai/gpt-x"
    assert "did not come to its end" in report.notes[0]
    report, runs = imported(packed(sample(), header=False, start=False), "bare.eval")
    assert runs[0][0].status == "passed"
    assert "header can't be read" in report.notes[0]


@pytest.mark.parametrize("method", [ZSTD, 8])
def test_of_a_cut_off_archive_all_that_is_whole_is_read(imported, method: int) -> None:
    samples = [sample(f"s{number}", 1, store={"k": f"{number}" * 9000}) for number in range(6)]
    data = packed(*samples, method=method)
    end = data.index(b"samples/s4_epoch_1.json") + 60
    report, runs = imported(data[:end], "cut.eval")
    assert [row.test_id for row, _ in runs] == ["s0", "s1", "s2", "s3"]
    assert all(row.agent == "openai/gpt-x" for row, _ in runs)
    assert report.cut_off
    assert report.read == 5
    assert any("cut off" in note for note in report.notes)


def test_of_a_cut_off_json_all_that_is_whole_is_read(imported) -> None:
    text = json.dumps(log(sample("a"), sample("b"), sample("c")))
    report, runs = imported(text[: text.rindex('"c"') + 200], "cut.json")
    assert [row.test_id for row, _ in runs] == ["a", "b"]
    assert report.cut_off


def test_one_damaged_sample_costs_only_itself(imported) -> None:
    more = [
        ("samples/x_epoch_1.json", "no JSON"),
        ("samples/y_epoch_1.json", "{}"),
        ("samples/z_epoch_1.json", '{"id": "z", "epoch": 1, "messages": [{"content": "no role"}]}'),
        ("samples/deep_epoch_1.json", '{"id": "deep", "messages": ' + "[" * 5000 + "]" * 5000 + "}"),
    ]
    report, runs = imported(packed(sample(), more=more), "log.eval")
    assert [row.test_id for row, _ in runs] == ["a"]
    assert sum(count for _, count in report.skipped) == 4


def test_newer_versions_are_read_and_said(imported) -> None:
    report, runs = imported(log(sample(), version=9))
    assert len(runs) == 1
    assert "version 9" in report.notes[0]


def test_ids_that_are_paths_name_tests_and_no_files(imported, tmp_path: Path) -> None:
    before = {path for path in tmp_path.parent.rglob("*") if not path.name.startswith("h.db")}
    _, runs = imported(packed(sample("../../etc/passwd"), sample("/a b/ü")), "log.eval")
    assert {row.test_id for row, _ in runs} == {"etc-passwd", "a-b-ü"}
    assert {row.test_name for row, _ in runs} == {"../../etc/passwd", "/a b/ü"}
    after = {path for path in tmp_path.parent.rglob("*") if not path.name.startswith("h.db")}
    assert after - before == {tmp_path / "log.eval"}


def test_other_archives_and_packings_are_refused_in_words(imported, tmp_path: Path) -> None:
    with pytest.raises(AgentevalError, match="not an Inspect log"):
        imported(packed(header=False, start=False, more=[("word/document.xml", "<a/>")]), "a.docx")
    with pytest.raises(AgentevalError, match="nothing in this file can be imported"):
        imported(b"PK\x03\x04 and then nothing", "b.eval")
    odd = bytearray(packed(sample(), method=8))
    at = odd.index(b"samples/a_epoch_1.json", odd.index(b"PK\x01\x02")) - 46
    odd[at + 10 : at + 12] = (99).to_bytes(2, "little")
    with pytest.raises(AgentevalError, match="method 99"):
        imported(bytes(odd), "c.eval")


def test_a_bomb_is_told_and_costs_no_memory(imported, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect_zip, "LARGEST_MEMBER", 20_000_000)
    bomb = '{"id": "bomb", "store": "' + "0" * 30_000_000 + '"}'
    data = packed(sample(), more=[("samples/bomb_epoch_1.json", bomb)])
    assert len(data) < 100_000
    del bomb
    tracemalloc.start()
    try:
        report, runs = imported(data, "bomb.eval")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [row.test_id for row, _ in runs] == ["a"]
    assert "unpacks to more than" in report.skipped[0][0]
    assert next(report.left_out()).startswith("1, samples/bomb_epoch_1.json: a sample can't be unpacked: unpacks to")
    assert peak < 12_000_000

    # So is what unpacks to very many times its size, and so are many such together; what stands behind them is read.
    monkeypatch.setattr(inspect_zip, "ALWAYS", 100_000)
    monkeypatch.setattr(inspect_zip, "TIMES", 1)
    bombs = [(f"samples/bomb{n}_epoch_1.json", '{"id": "bomb", "store": "' + "0" * 600_000 + '"}') for n in range(9)]
    report, runs = imported(packed(sample(), more=bombs), "bombs.eval")
    assert [row.test_id for row, _ in runs] == ["a"]
    assert sum(count for _, count in report.skipped) == 9
    monkeypatch.setattr(inspect_zip, "TOGETHER", 300_000)
    report, runs = imported(packed(sample(), more=bombs[1:]), "bombs2.eval")
    assert "the archive unpacks to more than 300,000 bytes" in " ".join(report.left_out())


def test_a_large_sample_is_read_without_holding_it(tmp_path: Path) -> None:
    """Events and pools are many times as large as the messages, and never in memory together."""
    said = [{"role": "user", "content": "hello " * 200}] * 10
    events = [{"event": "model", "model": "m", "input": said, "output": {}} for _ in range(1500)]
    one = sample(events=events, events_data={"messages": [{"content": "pool " * 2000}] * 500, "calls": []})
    size = len(json.dumps(one))
    assert size > 20_000_000
    path = tmp_path / "large.eval"
    path.write_bytes(packed(one))
    del one, events
    gc.collect()
    with Source(path) as source:
        tracemalloc.start()
        try:
            (found,) = (one for one in recordings(source) if not isinstance(one, Skipped))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert isinstance(found, Recording)
    assert len(found.transcript.messages) == 5
    assert peak < size / 2


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_damaged_archive_never_breaks_the_program(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = bytearray(packed(sample("a"), sample("b"), method=data.draw(st.sampled_from([ZSTD, 8]))))
    for _ in range(data.draw(st.integers(1, 8))):
        whole[data.draw(st.integers(4, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.eval"
    path.write_bytes(bytes(whole[: data.draw(st.integers(4, len(whole)))]))
    with open_source(path) as source:
        try:
            found = list(recordings(source))
        except AgentevalError:
            return
    assert all(isinstance(one, Recording | Skipped) for one in found)


def test_old_samples_keep_events_and_attachments_in_their_transcript(imported) -> None:
    old = sample()
    old["messages"][1]["content"] = "tc://abc"
    old["transcript"] = {"events": old.pop("events"), "content": {"abc": "asked long ago"}}
    del old["total_time"]  # nor do they say how long they took
    _, ((row, transcript),) = imported(log(old))
    assert transcript.messages[1].content == "asked long ago"
    assert transcript.tool_calls[0].duration_ms == 250.0
    assert (row.started_ms, transcript.timing.total_ms) == (1767323045000, 1250.0)


def test_what_is_kept_of_attachments_is_bounded(imported, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect_log, "ATTACHED", 100)
    one = sample()
    one["messages"][1]["content"] = "attachment://big"
    _, ((_, transcript),) = imported(log({"attachments": {"big": "x" * 500}, **one}))
    assert transcript.messages[1].content == "attachment://big"


def test_bytes_that_are_not_utf8_are_said_with_their_sample(imported) -> None:
    file = io.BytesIO(packed(sample("a")))
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr(
            "samples/b_epoch_1.json", json.dumps(sample("b")).encode().replace(b"Be brief", b"Be\xffbrief")
        )
    report, runs = imported(file.getvalue(), "f.eval")
    assert len(runs) == 2
    (note,) = (one for one in report.notes if "not UTF-8" in one)
    assert note.startswith("samples/b_epoch_1.json: ")


class TestRecordedLogs:
    pytestmark = shared

    def test_every_recorded_log_is_read(self, store: Store) -> None:
        counts = {
            "2024-11-05T13-32-37-05-00_input-task_hxs4q9azL3ySGkjJirypKZ.eval": 1,
            "2025-02-11T15-18-04-05-00_popularity_mj7khqpMM4GBCfVQozKgzB.eval": 10,
            "2025-05-12T20-28-13-04-00_popularity.json": 3,
            "2025-05-12T20-28-26-04-00_security-guide.json": 3,
            "log_formats.eval": 1,
            "log_formats.json": 1,
            "log_length_stop_reason.txt": 1,
            "log_message_deduplication.eval": 1,
            "log_read_sample.json": 1,
            "log_streaming.eval": 4,
            "mmlu-summary-choices.eval": 1,
        }
        for name, expected in counts.items():
            path = SHARED / "inspect" / name
            report = import_file(path, store)
            assert (report.added, report.skipped) == (expected, ()), name
            for row in store.runs_of_execution(report.execution_id):
                assert row.status in ("passed", "failed"), name
                assert store.transcript(row.id).messages, name
        for name in ("2025-05-12T20-28-13-04-00_no-samples.json", "log_valid.txt", "log_with_nan.txt"):
            with pytest.raises(AgentevalError, match="no samples in this log"):
                import_file(SHARED / "inspect" / name, store)
        with pytest.raises(AgentevalError):
            import_file(SHARED / "inspect" / "log_invalid.txt", store)

    def test_the_zstd_log_says_what_its_json_says(self) -> None:
        found = []
        for name in ("inspect_aimock.eval", "inspect_aimock.json"):
            with Source(SHARED / "generated" / name) as source:
                runs = [one for one in recordings(source) if isinstance(one, Recording)]
            found.append(sorted(runs, key=lambda one: (one.test_id, one.repetition or 0)))
        assert found[0] == found[1]
        raw = json.loads((SHARED / "generated" / "inspect_aimock.json").read_text("utf-8"))
        assert len(found[0]) == len(raw["samples"]) == 4
        by_id = {(str(one["id"]), one["epoch"]): one for one in raw["samples"]}
        for run in found[0]:
            one = by_id[run.test_id, run.repetition]
            assert [m.role for m in run.transcript.messages] == [m["role"] for m in one["messages"]]
            assert run.results[0].score == (1.0 if one["scores"]["includes"]["value"] == "C" else 0.0)
            assert all(call.duration_ms is not None and call.result for call in run.transcript.tool_calls)


@pytest.mark.parametrize(
    ("scorer", "target", "answer", "passes"),
    [
        ("match", "Yes", "I think yes.", True),
        ("match", "Yes", "Yes, I think so", False),
        ("match", ["A", "B"], "The answer is **B**", True),
        ("includes", ["Oslo", "Bergen"], "in bergen today", True),
        ("exact", ["Oslo", "Bergen"], " bergen\n", True),
        ("exact", ["Oslo", "Bergen"], "in bergen", False),
    ],
)
def test_text_scorers_become_criteria_that_say_the_same(scorer: str, target: Any, answer: str, passes: bool) -> None:
    made = inspect_log._criterion(scorer, target, None, {})
    spec = CriterionSpec(name=made["name"], prototype_class=made["prototype_class"], config=made["config_uxon"])
    transcript = Transcript((Message("user", "q"), Message("assistant", answer)), final_output=answer)
    assert compile_criterion(spec).check(transcript, {}).outcome == ("passed" if passes else "failed")
