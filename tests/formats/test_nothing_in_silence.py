"""What other tools' files say is in the runs, or said: folders, packed files, columns, reports, rewards."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.exporters.export import exporters, stored_runs
from agenteval_tui.formats.folder import folder_of
from agenteval_tui.formats.import_file import import_file
from agenteval_tui.grading.sentences import criterion_sentence
from agenteval_tui.history.store import Store

from .conftest import theirs

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
SAID = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]

# promptfoo


def row(prompt: int, label: str, provider: str = "openai:m", success: bool = True, **more: Any) -> dict[str, Any]:
    return {
        "provider": {"id": provider}, "prompt": {"raw": f"{label} Oslo", "label": label}, "promptIdx": prompt,
        "testIdx": 0, "testCase": {"vars": {"q": "Oslo"}, "assert": []}, "vars": {"q": "Oslo"}, "success": success,
        "response": {"output": "x"}, "gradingResult": {"pass": success, "reason": "because"}, **more,
    }  # fmt: skip


def columns(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = {(one["provider"]["id"], one["promptIdx"]): one["prompt"]["label"] for one in rows}
    return [{"provider": provider, "label": label, "raw": label} for (provider, _), label in found.items()]


CASES = {
    "two prompts": (
        [row(0, "Short"), row(1, "Long", success=False)],
        [("openai:m / Short", 1), ("openai:m / Long", 1)],
    ),
    "prompts and providers": (
        [row(0, "Short"), row(1, "Long"), row(2, "Short", "n"), row(3, "Long", "n")],
        [("openai:m / Short", 1), ("openai:m / Long", 1), ("n / Short", 1), ("n / Long", 1)],
    ),
    "equal labels": ([row(0, "P"), row(1, "P")], [("openai:m / P prompt 0", 1), ("openai:m / P prompt 1", 1)]),
    "no labels": ([row(0, ""), row(1, "")], [("openai:m / prompt 0", 1), ("openai:m / prompt 1", 1)]),
    "two providers": ([row(0, "P"), row(1, "P", "n")], [("openai:m", 1), ("n", 1)]),
    "repetitions": ([row(0, "P"), row(0, "P", testIdx=1)], [("", 1), ("", 2)]),
    "both": ([row(0, "A"), row(1, "B"), row(0, "A", testIdx=1)], [
        ("openai:m / A", 1), ("openai:m / B", 1), ("openai:m / A", 2)]),
}  # fmt: skip


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize("form", ["json", "json without columns", "jsonl", "yaml"])
def test_prompts_of_promptfoo_are_variations_and_never_repetitions(imported, name: str, form: str) -> None:
    rows, expected = CASES[name]
    whole = {"evalId": "e", "results": {"version": 3, "prompts": columns(rows), "results": rows}, "config": {}}
    if form == "json without columns":
        del whole["results"]["prompts"]
    given: Any = whole
    if form == "jsonl":
        given = "\n".join(map(json.dumps, rows))
    elif form == "yaml":
        given = yaml.safe_dump(whole)
    report, runs = imported(given, f"r.{form[:5].strip()}" if form != "json without columns" else "r.json")
    assert report.format == "promptfoo"
    assert [(one.variation, one.repetition) for one, _ in runs] == expected
    assert len({one.test_id for one, _ in runs}) == 1


def test_the_headers_of_an_http_provider_are_counted_not_named(imported) -> None:
    """Each row of an HTTP provider has all of its headers, twice: no list of hundreds of fields."""
    names = ("date", "server", "via", *(f"x-header-{number}" for number in range(12)))

    def with_headers(number: int) -> dict[str, Any]:
        headers = {name: f"of {number} {name}" for name in names[: 15 if number % 2 else 14]}
        http = {"status": 200, "statusText": f"fine {number}", "headers": headers}
        response = {"output": "x", "raw": f"raw {number}", "metadata": {"http": http}}
        return row(0, "P", testIdx=number, response=response, metadata={"http": http})

    rows = [with_headers(number) for number in range(40)]
    report, _ = imported({"results": {"version": 3, "prompts": columns(rows), "results": rows}, "config": {}})
    (said,) = (note for note in report.notes if note.startswith("not kept: "))
    assert "response.metadata.http.headers.*` (15 names, 40 rows)" in said
    assert "`results[].metadata.http.headers.*` (15 names, 40 rows)" in said
    assert "response.metadata.http.statusText` (40 times)" in said
    assert "response.raw` (40 times)" in said
    assert "x-header" not in said
    assert len(said) < 500


def test_an_error_of_several_lines_is_kept_whole(imported) -> None:
    broke = row(0, "P", success=False, failureReason=2, error="RateLimit: slow\n  at x.js:1", response=None)
    _, ((run, transcript),) = imported("\n".join(map(json.dumps, [broke])), "r.jsonl")
    assert (run.status, run.error_message) == ("error", "RateLimit: slow")
    assert "at x.js:1" in transcript.log


# tau2's folders


def simulation(uid: str, task: str, trial: int, reward: Any = 1.0, **more: Any) -> dict[str, Any]:
    mine = {"id": "u1", "name": "reboot", "arguments": {}, "requestor": "user"}
    theirs = {"id": "a1", "name": "find_order", "arguments": {"order": 7}, "requestor": "assistant"}
    messages = [
        {"role": "assistant", "content": "Hi!"}, {"role": "user", "content": "My order?"},
        {"role": "assistant", "content": None, "tool_calls": [theirs]},
        {"role": "tool", "id": "a1", "content": "found", "requestor": "assistant", "error": False},
        {"role": "user", "content": None, "tool_calls": [mine]},
        {"role": "tool", "id": "u1", "content": "rebooted", "requestor": "user", "error": False},
        {"role": "assistant", "content": "Done."},
    ]  # fmt: skip
    rewarded = {} if reward is None else {"reward_info": {"reward": reward, "reward_breakdown": {"DB": reward}}}
    return {"id": uid, "task_id": task, "trial": trial, "termination_reason": "user_stop", "duration": 2.5,
            "messages": messages, **rewarded, **more}  # fmt: skip


def results_folder(folder: Path, simulations: list[dict[str, Any]], **more: Any) -> Path:
    (folder / "simulations").mkdir(parents=True)
    tasks = [
        {"id": "7", "user_scenario": {"instructions": "Ask."}, "evaluation_criteria": {"actions": [{"name": "f"}]}}
    ]
    index = {"info": {"agent_info": {"llm": "m-1"}}, "tasks": tasks, "timestamp": "2026-01-01T00:00:00", **more}
    (folder / "results.json").write_text(json.dumps(index), "utf-8")
    for one in simulations:
        (folder / "simulations" / f"{one['id']}.json").write_text(json.dumps(one), "utf-8")
    return folder


@pytest.mark.parametrize("given", ["folder", "results.json"])
def test_a_results_folder_of_tau2_is_one_execution(imported, store: Store, tmp_path: Path, given: str) -> None:
    runs = [simulation("a", "7", 0), simulation("b", "7", 1, 0.0), simulation("c", "8", 0, None)]
    index = [{"id": "c", "task_id": "8", "trial": 0, "reward": 1.0}, {"id": "gone", "task_id": "9", "trial": 0}]
    folder = results_folder(tmp_path / "run", runs, simulation_index=index)
    report, found = imported(folder if given == "folder" else folder / "results.json")
    assert report.format == "tau2-bench"
    assert [(row.test_id, row.repetition, row.status, row.agent) for row, _ in found] == [
        ("7", 1, "passed", "m-1"), ("7", 2, "failed", "m-1"), ("8", 1, "passed", "m-1"),
    ]  # fmt: skip
    assert found[0][0].variables["expected_actions"] == [{"name": "f"}]
    for _, transcript in found:
        assert [call.name for call in transcript.tool_calls] == ["find_order"]
        assert (transcript.timing.total_ms, transcript.finish_reason) == (2500.0, "user_stop")
    assert list(report.left_out()) == ["1, simulations/gone.json: a simulation of the index has no file"]
    assert import_file(folder / "results.json", store).already
    assert [path.name for path in folder_of(tmp_path).files] == ["results.json"]
    (folder / "simulations" / "b.json").write_text(json.dumps(simulation("b", "7", 1, 1.0)), "utf-8")
    assert not import_file(folder, store).already  # something else now


def test_one_simulation_looks_for_its_results(imported, tmp_path: Path) -> None:
    folder = results_folder(tmp_path / "run", [simulation("a", "7", 2, 0.0)])
    _, ((row, transcript),) = imported(folder / "simulations" / "a.json")
    assert (row.test_id, row.repetition, row.status, row.agent) == ("7", 3, "failed", "m-1")
    assert [call.name for call in transcript.tool_calls] == ["find_order"]
    alone = tmp_path / "alone.json"
    alone.write_text(json.dumps(simulation("x", "7", 0)), "utf-8")
    report, ((row, _),) = imported(alone)
    assert row.status == "passed"
    assert "alone.json: there is no results.json beside it: its task and the agent's name are not known" in report.notes


def test_results_without_their_simulations_say_so(store: Store, tmp_path: Path) -> None:
    folder = results_folder(tmp_path / "run", [])
    (folder / "simulations").rmdir()
    with pytest.raises(AgentevalError, match="its simulations are missing: there is no folder `simulations`"):
        import_file(folder / "results.json", store)


def test_speech_is_put_together_from_its_ticks(imported, tmp_path: Path) -> None:
    def tick(**given: Any) -> dict[str, Any]:
        return {"tick_id": 0, **given}

    call = {"id": "c", "name": "find", "arguments": {"n": 1}}
    ticks = [
        tick(agent_chunk={"role": "assistant", "content": "Good "}, user_chunk={"content": ""}),
        tick(agent_chunk={"content": "day."}, user_chunk={"content": None}),
        tick(user_chunk={"content": "UklGRg==", "is_audio": True, "audio_script_gold": "Find it."}),
        tick(agent_tool_calls=[call], agent_tool_results=[{"id": "c", "role": "tool", "content": "7"}]),
        tick(user_tool_calls=[{"id": "u", "name": "look", "arguments": {}}]),
        tick(agent_chunk={"content": "It is 7."}),
    ]
    one = simulation("a", "7", 0, ticks=ticks, mode="full_duplex")
    del one["messages"]
    _, ((_, transcript),) = imported(results_folder(tmp_path / "run", [one]))
    assert [(message.role, message.content) for message in transcript.messages] == [
        ("assistant", "Good day."), ("user", "Find it."), ("assistant", ""), ("tool", "7"),
        ("user", "[tool] look {}"), ("assistant", "It is 7."),
    ]  # fmt: skip
    assert [made.name for made in transcript.tool_calls] == ["find"]


@pytest.mark.shared
@pytest.mark.skipif(not (SHARED / "tau2_dir").is_dir(), reason="recordings beside the project are not here")
def test_a_real_results_folder_of_speech(imported) -> None:
    report, ((row, transcript),) = imported(SHARED / "tau2_dir")
    assert (row.test_id, row.repetition, row.agent) == ("40", 1, "openai:gpt-realtime-2")
    assert transcript.finish_reason == "user_stop"
    assert any("`ticks` have no texts" in note for note in report.notes)


# Rewards and errors


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), float("-inf"), "much", True, [1]])
@pytest.mark.parametrize("tau2", [True, False])
def test_a_reward_that_is_no_number_is_an_error(imported, store: Store, reward: Any, tau2: bool) -> None:
    given: Any = [{"task_id": 1, "trial": 0, "reward": reward, "info": {}, "traj": SAID}]
    if tau2:
        given = {"simulations": [simulation("a", "7", 0, reward)]}
    _, ((row, _),) = imported(given)
    (result,) = theirs(store, row.id)
    assert (row.status, row.score, result.outcome, result.score) == ("error", None, "error", None)
    assert "the reward can't be read" in criterion_sentence(result)


def test_a_tools_error_in_tau_bench_is_an_error_of_the_call(imported) -> None:
    calls = [{"id": f"c{n}", "function": {"name": "f", "arguments": "{}"}} for n in range(2)]
    traj = [
        {"role": "user", "content": "q"}, {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c0", "content": "Error: no such user"},
        {"role": "tool", "tool_call_id": "c1", "content": "no Error: at all"},
        {"role": "assistant", "content": "a"},
    ]  # fmt: skip
    _, ((_, transcript),) = imported([{"task_id": 1, "trial": 0, "reward": 1.0, "info": {}, "traj": traj}])
    assert [(call.status, call.result) for call in transcript.tool_calls] == [
        ("error", "Error: no such user"), ("ok", "no Error: at all"),
    ]  # fmt: skip


# pydantic-evals


def case(name: str, **more: Any) -> dict[str, Any]:
    source = {"name": "X", "arguments": None}
    return {
        "name": name, "inputs": "2+2", "metadata": None, "expected_output": "4", "output": "4", "metrics": {},
        "attributes": {}, "scores": {}, "labels": {}, "task_duration": 0.5, "total_duration": 0.75,
        "assertions": {"Equals": {"name": "Equals", "value": True, "reason": "same", "source": source}},
        "evaluator_failures": [], **more,
    }  # fmt: skip


def test_a_report_of_pydantic_evals_is_runs(imported, store: Store) -> None:
    score = {"name": "Close", "value": 0.4, "reason": "far off", "source": {}}
    broke = {"name": "Judge", "error_message": "no key", "error_stacktrace": "Traceback", "source": {}}
    failed = {"Equals": {"value": False, "reason": "differs"}}
    report, runs = imported({
        "name": "t", "failures": [
            {"name": "c5", "inputs": "x", "error_message": "ValueError: bad", "error_stacktrace": "Traceback: line 3"}],
        "cases": [
            case("c1", scores={"Close": score}, labels={"Kind": {"value": "sum", "reason": None}}),
            case("c2", assertions=failed, output={"sum": 5}),
            case("c3 [1/2]", source_case_name="c3", evaluator_failures=[broke]),
            case("c3 [2/2]", source_case_name="c3", assertions={}, scores={"Close": score}),
        ],
    })  # fmt: skip
    assert report.format == "pydantic-evals"
    found = [(row.test_id, row.repetition, row.status) for row, _ in runs]
    assert found == [
        ("c5", 1, "error"), ("c1", 1, "passed"), ("c2", 1, "failed"), ("c3", 1, "error"), ("c3", 2, "failed"),
    ]  # fmt: skip
    first, transcript = runs[1]
    assert (transcript.final_output, transcript.timing.total_ms) == ("4", 500.0)
    assert first.variables["expected_value"] == "4"
    said = {one.criterion: (one.outcome, one.severity, criterion_sentence(one)) for one in theirs(store, first.id)}
    assert said["pydantic-evals Equals"] == ("passed", "error", "same")
    assert said["pydantic-evals Close"] == ("failed", "info", "gave 0.4: far off")
    assert said["pydantic-evals Kind"][1:] == ("info", "gave sum")
    assert (runs[0][0].error_message, runs[0][1].log) == ("ValueError: bad", "Traceback: line 3")
    assert runs[2][1].final_output == '{"sum": 5}'


def test_a_dataset_of_pydantic_evals_still_asks_for_a_suite(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text(json.dumps({"cases": [{"name": "c", "inputs": "x", "expected_output": "y"}]}), "utf-8")
    with pytest.raises(AgentevalError, match="there are tests in this file") as refused:
        import_file(path, store)
    assert "--to" in refused.value.fix


@pytest.mark.shared
@pytest.mark.skipif(not (SHARED / "shapes").is_dir(), reason="recordings beside the project are not here")
def test_a_real_report_of_pydantic_evals(imported) -> None:
    _, runs = imported(SHARED / "shapes" / "pydantic_evals_report_real.json")
    assert [(row.test_id, row.status, transcript.final_output) for row, transcript in runs] == [
        ("c1", "passed", "4"), ("c2", "failed", "6"),
    ]  # fmt: skip


# Packed files and folders


@pytest.mark.parametrize("name", ["a.json.gz", "a.gz", "a.jsonl"])
def test_gzip_is_unpacked_whatever_it_is_called(imported, store: Store, tmp_path: Path, name: str) -> None:
    data = json.dumps({"id": "t", "messages": SAID}).encode()
    report, ((row, _),) = imported(gzip.compress(data), name)
    assert (report.format, row.test_id) == ("openai", "t")
    plain = tmp_path / "plain.json"
    plain.write_bytes(data)
    assert import_file(plain, store).already  # the same content


def test_gzip_that_is_cut_off_gives_what_is_whole(imported) -> None:
    lines = "\n".join(json.dumps({"id": f"t{n}", "messages": SAID, "x": os.urandom(99).hex()}) for n in range(300))
    report, runs = imported(gzip.compress(lines.encode())[:-3000], "a.jsonl.gz")
    assert 0 < len(runs) < 300
    assert report.cut_off
    assert any("was not unpacked to the end: it is cut off" in note for note in report.notes)


def test_a_gzip_bomb_is_refused(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agenteval_tui.formats.stream.source.ALWAYS", 100_000)
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b" " * 5_000_000))
    with pytest.raises(AgentevalError, match="unpacks to more than"):
        import_file(path, store)


def test_a_folder_says_what_it_passed_over(tmp_path: Path) -> None:
    for name in ("a.json", "b.JSONL", "c.jsonl.gz", "notes.txt", "more.txt", "run.log", "LICENSE", ".hidden.json",
                 "x.tar.gz", "deep/d.eval", ".git/e.json"):  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}", "utf-8")
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "nowhere.json").symlink_to(tmp_path / "gone")
    (tmp_path / "again").symlink_to(tmp_path / "deep", target_is_directory=True)
    found = folder_of(tmp_path)
    assert [str(path.relative_to(tmp_path)) for path in found.files] == [
        "a.json",
        "b.JSONL",
        "c.jsonl.gz",
        "deep/d.eval",
    ]
    assert list(found.skipped_lines()) == [
        "2 hidden: .git and others",
        "1 link to a folder, not followed: again",
        "1 link to nothing: nowhere.json",
        "1 pipe or device: pipe.json",
        "1 with the ending .log: run.log",
        "1 with the ending .tar.gz: x.tar.gz",
        "2 with the ending .txt: more.txt and others",
        "1 without an ending: LICENSE",
    ]
    only = tmp_path / "only"
    only.mkdir()
    (only / "a.txt").write_text("x", "utf-8")
    with pytest.raises(AgentevalError, match=r"passed over: 1 with the ending \.txt: a\.txt"):
        folder_of(only)


# OpenTelemetry


def span(uid: str, name: str, start: int, end: int, attributes: dict[str, Any], parent: str = "") -> dict[str, Any]:
    listed = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
    return {"traceId": "t", "spanId": uid, "parentSpanId": parent, "name": name, "attributes": listed,
            "startTimeUnixNano": str(start * 10**6), "endTimeUnixNano": str(end * 10**6)}  # fmt: skip


def trace(calls: list[str], tools: list[dict[str, Any]], agent: dict[str, Any], **chat: str) -> dict[str, Any]:
    parts = [{"type": "tool_call", "id": f"c{n}", "name": name, "arguments": {}} for n, name in enumerate(calls)]
    answers = [{"type": "tool_call_response", "id": f"c{n}", "response": "r"} for n, _ in enumerate(calls)]
    said = [{"role": "user", "parts": [{"type": "text", "content": "q"}]}, {"role": "assistant", "parts": parts},
            {"role": "tool", "parts": answers}]  # fmt: skip
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": "a"}]}]
    model = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(said),
             "gen_ai.output.messages": json.dumps(answer), **chat}  # fmt: skip
    spans = [
        span("a", "agent run", 1000, 2000, {"gen_ai.operation.name": "invoke_agent", **agent}),
        span("m", "chat m", 1000, 1900, model, "a"),
        *tools,
    ]
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def tool(uid: str, start: int, end: int, attributes: dict[str, Any], name: str = "execute_tool f") -> dict[str, Any]:
    return span(uid, name, start, end, {"gen_ai.operation.name": "execute_tool", **attributes}, "a")


@pytest.mark.parametrize(
    ("tools", "durations"),
    [
        (
            [tool("1", 1100, 1150, {"gen_ai.tool.name": "f"}), tool("2", 1200, 1300, {"gen_ai.tool.name": "f"})],
            [50, 100],
        ),
        ([tool("1", 1100, 1150, {}), tool("2", 1200, 1300, {})], [50, 100]),
        ([tool("1", 1100, 1150, {"gen_ai.tool.call.id": "c1"}), tool("2", 1200, 1300, {})], [100, 50]),
        ([tool("1", 1100, 1150, {"tool.name": "f", "openinference.span.kind": "TOOL"}, "f")], [50, None]),
        ([tool("1", 1100, 1150, {"gen_ai.tool.name": "g"})], [50, None, None]),  # a call that no message has
    ],
)
def test_tools_of_a_trace_have_the_times_of_their_spans(imported, tools: Any, durations: list[Any]) -> None:
    _, ((_, transcript),) = imported(trace(["f", "f"], tools, {}))
    assert [call.duration_ms for call in transcript.tool_calls] == durations


@pytest.mark.parametrize("key", ["agent.name", "gen_ai.agent.name", "agent_name"])
def test_the_agents_name_of_a_trace(imported, key: str) -> None:
    _, ((row, _),) = imported(trace(["f"], [], {key: "helper"}, **{"gen_ai.response.model": "m"}))
    assert row.agent == "helper"


def test_attributes_that_no_run_has_are_said(imported) -> None:
    report, _ = imported(trace(["f"], [], {"http.url": "somewhere", "custom.note": "look here"}, **{"http.body": "q"}))
    (note,) = report.notes
    assert "`attributes.http.url`" in note
    assert "`attributes.custom.note`" in note
    assert "http.body" not in note  # it says what is in the run


# Bytes that are no text


@pytest.mark.parametrize(
    ("format_name", "value", "name"),
    [
        ("otel", trace(["f"], [], {"gen_ai.agent.name": "BYTE"}), "f.json"),
        ("promptfoo", {"evalId": "e", "results": {"results": [row(0, "BYTE")]}}, "f.json"),
        ("promptfoo", {"evalId": "e", "results": {"results": [row(0, "BYTE")]}}, "f.yaml"),
        ("pydantic-evals", {"name": "t", "cases": [case("c1", output="BYTE")]}, "f.json"),
        ("openai", [[{"role": "user", "content": "q"}, {"role": "assistant", "content": "BYTE"}]], "f.json"),
        ("inspect", {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}, "samples": [
            {"id": "BYTE", "epoch": 1, "input": "q", "target": "a", "messages": SAID, "scores": {}}]}, "f.json"),
        ("tau2-bench", {"info": {}, "tasks": [], "simulations": [simulation("BYTE", "7", 0)]}, "f.json"),
    ],
)  # fmt: skip
def test_bytes_that_are_not_utf8_are_said_once(imported, format_name: str, value: Any, name: str) -> None:
    """A bit that turned in a letter makes another name of it, in every format."""
    text = yaml.safe_dump(value, allow_unicode=True) if name.endswith("yaml") else json.dumps(value)
    right, _ = imported(text.encode(), name)
    assert right.format == format_name
    assert "UTF-8" not in " ".join(right.notes)
    told, _ = imported(text.encode().replace(b"BYTE", b"B\xffTE"), name)
    assert sum("not UTF-8" in note for note in told.notes) == 1
    kept, _ = imported(text.replace("BYTE", "B\ufffdTE").encode(), name)
    assert "UTF-8" not in " ".join(kept.notes)


@pytest.mark.parametrize("given", ["simulations/a.json", "results.json"])
def test_bytes_that_are_not_utf8_in_a_results_folder(imported, tmp_path: Path, given: str) -> None:
    folder = results_folder(tmp_path / "run", [simulation("a", "7", 0)], note="Ask.")
    path = folder / given
    marked = b"Done." if given.startswith("sim") else b"Ask."
    path.write_bytes(path.read_bytes().replace(marked, b"\xe9."))
    report, _ = imported(folder)
    assert sum("not UTF-8" in note for note in report.notes) == 1


@pytest.mark.parametrize("format_name", ["tau-bench", "tau2-bench"])
def test_variations_come_back_from_the_formats_of_tau(imported, store: Store, tmp_path: Path, format_name: str) -> None:
    lines = [{"id": "7", "variation": name, "messages": SAID} for name in ("", "mini", "mini")]
    report, _ = imported("\n".join(map(json.dumps, lines)), "a.jsonl")
    path = tmp_path / "out.json"
    path.write_text(
        "".join(exporters()[format_name].pieces(stored_runs(store, store.runs_of_execution(report.execution_id)))),
        "utf-8",
    )
    again, runs = imported(path)
    assert again.format == format_name
    assert [(row.test_id, row.variation, row.repetition) for row, _ in runs] == [
        ("7", "", 1), ("7", "mini", 1), ("7", "mini", 2),
    ]  # fmt: skip
