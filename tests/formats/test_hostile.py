"""Real files of other tools, broken and poisoned in many ways: what can be read comes in, and nothing breaks."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.import_file import import_file
from agenteval_tui.history.store import Store

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
FILES = sorted(
    path
    for folder in ("generated", "inspect", "langsmith", "tau_bench", "wire")
    for path in (SHARED / folder).glob("*")
    if path.suffix in (".json", ".jsonl", ".eval") and path.stat().st_size < 60_000
)
# A key that formats have, and what does not belong there.
POISON = [
    ('"content":', "NaN"),
    ('"role":', "7"),
    ('"messages":', "{}"),
    ('"tool_calls":', "5"),
    ('"tool_calls":', "[[]]"),
    ('"arguments":', '"{\\"a\\": NaN}"'),
    ('"score":', "{}"),
    ('"scores":', "[1]"),
    ('"usage":', '"x"'),
    ('"name":', "[]"),
    ('"id":', "{}"),
    ('"traceId":', "[]"),
    ('"attributes":', "{}"),
    ('"value":', "-Infinity"),
    ('"version":', "999"),
    ('"events":', "true"),
    ('"results":', "[[]]"),
    ('"timestamp":', "1e999"),
]
DEPTHS = (100, 10_000)


def deep(levels: int) -> str:
    return '{"a":[' * (levels // 2) + "1" + "]}" * (levels // 2)


def broken(data: bytes, dice: random.Random) -> Iterator[bytes]:
    """Cut off, bytes changed."""
    yield data[: dice.randrange(len(data))]
    spoiled = bytearray(data)
    for _ in range(6):
        spoiled[dice.randrange(len(spoiled))] = dice.randrange(256)
    yield bytes(spoiled)


def poisoned(data: bytes) -> Iterator[bytes]:
    """Other encodings, values of the wrong kind, nesting."""
    text = data.decode("utf-8")
    yield text.encode("utf-16")
    yield text.encode("latin-1", "replace")
    for key, value in POISON:
        if key in text:
            yield text.replace(key, f'{key}{value},"before":').encode()
    for levels in DEPTHS:
        for key in ('"content":', '"arguments":', '"messages":', '"output":'):
            if key in text:
                yield text.replace(key, f'{key}{deep(levels)},"before":', 2).encode()


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded files are not beside the project")
def test_no_file_breaks_the_program(store: Store, tmp_path: Path) -> None:
    dice = random.Random(7)
    tried = came = 0
    refusals: list[str] = []
    for path in FILES:
        data = path.read_bytes()
        if path.suffix == ".eval":
            variants = list(broken(data, dice))
        else:
            variants = [*broken(data, dice), *dice.sample(some := list(poisoned(data)), min(5, len(some)))]
        for variant in variants:
            tried += 1
            target = tmp_path / f"x{path.suffix}"
            target.write_bytes(variant)
            try:
                came += import_file(target, store).added
            except AgentevalError as error:
                refusals.append(str(error))
    assert [one for one in refusals if str(tmp_path) not in one] == [], "a refusal names the file"
    assert tried > 80
    assert came > 50, "most of most files can be read all the same"
    assert store.read(lambda c: c.execute("PRAGMA integrity_check").fetchone()[0]) == "ok"


SAMPLE = (
    '{"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}, "samples": [{"id": 1, "epoch": 1,'
    ' "input": "q", "target": "a", "messages": [{"role": "user", "content": "q"}, {"role": "assistant",'
    ' "content": "a", "tool_calls": %s}], "output": {"model": "m", "choices": []}, "scores": %s}]}'
)


@pytest.mark.parametrize(
    ("calls", "scores"),
    [("5", "{}"), ('"x"', "[]"), ('{"a": 1}', '{"match": 5}'), ("[null, 7, {}]", '{"match": {"value": {}}}')],
)
def test_values_of_the_wrong_kind_in_an_inspect_log(imported, calls: str, scores: str) -> None:
    report, runs = imported(SAMPLE % (calls, scores))
    assert report.read == 1
    assert [transcript.final_output for _, transcript in runs] == ["a"]


@pytest.mark.parametrize("call_id", ["[]", "{}", "7", "null"])
def test_a_call_whose_id_is_no_text_is_read(imported, call_id: str) -> None:
    invocation = f'{{"toolCallId": {call_id}, "toolName": "get", "args": {{}}, "state": "result", "result": "shipped"}}'
    parts = f'[{{"type": "tool-invocation", "toolInvocation": {invocation}}}]'
    answer = f'{{"role": "assistant", "parts": {parts}, "content": "", "toolInvocations": [{invocation}]}}'
    _, runs = imported(f'[{{"role": "user", "content": "q"}}, {answer}]', "x.jsonl")
    (transcript,) = [transcript for _, transcript in runs]
    assert [one.name for one in transcript.tool_calls] == ["get"]


@pytest.mark.parametrize("kind", ["{}", "[]", "[[1]]", "7"])
def test_a_message_whose_type_is_no_text_is_read(imported, kind: str) -> None:
    said = f'[{{"type": {kind}, "role": "user", "content": "q"}}, {{"role": "assistant", "content": "a"}}]'
    _, runs = imported(said, "x.jsonl")
    assert [transcript.final_output for _, transcript in runs] == ["a"]


@pytest.mark.parametrize("value", ["5", '"x"', "true", '{"a": 1}'])
def test_verdicts_of_the_wrong_kind_in_results_of_promptfoo(imported, value: str) -> None:
    graded = f'{{"componentResults": {value}}}'
    row = f'{{"success": true, "prompt": {{"raw": "q"}}, "response": {{"output": "a"}}, "gradingResult": {graded}}}'
    report, _ = imported(f'{{"version": 3, "evalId": "e", "results": {{"version": 3, "results": [{row}]}}}}')
    assert report.read == 1


@pytest.mark.parametrize("levels", DEPTHS)
def test_nesting_costs_the_value_that_has_it(imported, levels: int) -> None:
    """A hundred levels are read; ten thousand are left out with the reason, and what stands beside them is read."""
    good = '[{"role": "user", "content": "q"}, {"role": "assistant", "content": "whole"}]'
    odd = good.replace('"q"', '"q", "metadata": ' + deep(levels))
    report, runs = imported(f"{good}\n{odd}\n{good}\n", "x.jsonl")
    assert report.added == (3 if levels == 100 else 2)
    assert [transcript.final_output for _, transcript in runs] == ["whole"] * report.added
    if levels > 100:
        assert "nested too deep" in report.skipped[0][0]


def test_a_file_of_nothing_but_nesting_takes_no_memory(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 30_000, "utf-8")
    tracemalloc.start()
    try:
        with pytest.raises(AgentevalError):
            import_file(path, store)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
