"""Whatever a transcript or a result holds, the history gives it back equal."""

from __future__ import annotations

import shutil
import zlib
from pathlib import Path
from typing import Any

import pytest
from history_made import ended, planned, record, results, transcript
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from agenteval_tui.core.ids import criterion_names
from agenteval_tui.core.storable import storable
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.results import CriterionResult, Evidence, MetricResult, Outcome, Span
from agenteval_tui.history import blobs
from agenteval_tui.history.blobs import (
    pack_results,
    pack_transcript,
    search_document,
    unpack_results,
    unpack_transcript,
)
from agenteval_tui.history.records import RunFilter
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model import (
    Attachment,
    Message,
    Note,
    RunError,
    Step,
    Timing,
    ToolCall,
    Transcript,
    Usage,
)
from agenteval_tui.transcripts.model_request import ModelRequest, ModelRequests, OfferedTool

# Every code point, also NUL, lone surrogates and what turns text around.
texts = st.text(st.characters(exclude_categories=()), max_size=40)
numbers = st.floats(allow_nan=False) | st.integers(-(2**53), 2**53)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
milliseconds = st.none() | st.floats(0, 1e9)
counts = st.none() | st.integers(0, 10**12)

messages = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool", "developer"]),
    content=texts,
    reasoning=texts,
    tool_calls=st.lists(st.integers(0, 9), max_size=3).map(tuple),
    tool_call=st.none() | st.integers(0, 9),
    tool_call_id=st.none() | texts,
    name=st.none() | texts,
    simulated=st.booleans(),
)
calls = st.builds(
    ToolCall,
    id=texts,
    name=texts,
    arguments=values,
    result=st.none() | texts,
    status=st.sampled_from(["ok", "error", "pending"]),
    started_ms=milliseconds,
    duration_ms=milliseconds,
    message=st.none() | st.integers(0, 9),
    malformed=st.booleans(),
)
requests = st.builds(
    ModelRequest,
    st.just(1),
    st.integers(1, 3),
    texts,
    texts,
    st.lists(st.dictionaries(texts, values, max_size=2), max_size=3).map(tuple),
    st.lists(st.builds(OfferedTool, texts, texts, st.dictionaries(texts, values, max_size=2)), max_size=2).map(tuple),
    st.dictionaries(texts, values, max_size=2),
    texts,
    st.none() | st.integers(0, 99),
    texts,
    st.none() | st.integers(0, 9),
)
usages = st.builds(Usage, counts, counts, counts, counts, st.none() | st.floats(0, 100), counts, counts)
transcripts = st.builds(
    Transcript,
    messages=st.lists(messages, max_size=5).map(tuple),
    tool_calls=st.lists(calls, max_size=4).map(tuple),
    timing=st.builds(
        Timing,
        milliseconds,
        milliseconds,
        st.lists(st.builds(Step, texts, st.floats(0, 1e6), st.floats(0, 1e6), st.booleans()), max_size=3).map(tuple),
    ),
    usage=usages,
    user_usage=usages,
    model=texts,
    finish_reason=texts,
    final_output=texts,
    error=st.none()
    | st.builds(RunError, texts, texts, texts)
    # Fields are a code's.
    | st.builds(RunError, texts, texts, texts, texts.filter(bool), st.dictionaries(texts, texts, max_size=2)),
    log=texts,
    notes=st.lists(st.builds(Note, texts, texts), max_size=2).map(tuple),
    requests=st.none() | st.lists(requests, max_size=3).map(ModelRequests.of),
)
spans = st.lists(
    st.builds(
        Span,
        st.sampled_from(["message", "arguments", "tool", "value"]),
        st.integers(0, 99),
        st.integers(0, 999),
        st.integers(0, 999),
        texts,
    ),
    max_size=2,
).map(tuple)
outcomes = st.sampled_from(Outcome)
scores = st.none() | st.floats(0, 1)
evidence = st.builds(
    Evidence,
    texts,
    st.none() | st.booleans(),
    texts,
    expected=values,
    found=values,
    spans=spans,
    near=spans,
    group=texts,
    code=st.sampled_from(Code) | texts,
    fields=st.dictionaries(texts, values, max_size=3),
)
metrics = st.builds(
    MetricResult,
    texts,
    texts,
    outcomes,
    scores,
    st.floats(0, 10),
    st.booleans(),
    st.lists(evidence, max_size=3).map(tuple),
    texts,
)
criteria = st.builds(
    CriterionResult,
    criterion=texts,
    outcome=outcomes,
    score=scores,
    severity=st.sampled_from(["error", "warning"]),
    weight=st.floats(0, 10),
    negate=st.booleans(),
    prototype_class=texts,
    criterion_hash=texts,
    value=st.none() | texts,
    value_spans=spans,
    metrics=st.lists(metrics, max_size=3).map(tuple),
    message=texts,
    code=texts,
    derived=st.booleans(),
)


@settings(deadline=None)
@given(transcripts)
def test_a_transcript_comes_back(one: Transcript) -> None:
    content_hash, data = pack_transcript(one)
    assert unpack_transcript(data) == one
    assert pack_transcript(unpack_transcript(data)) == (content_hash, data)


def test_short_and_long_transcripts_come_back_and_what_was_compressed_before_too() -> None:
    for length in (0, 300, 350, 400, 5_000, 20_000):
        one = Transcript(messages=(Message("user", "word " * (length // 5)),))
        data = pack_transcript(one)[1]
        assert unpack_transcript(data) == one
        plain = data if data.startswith(b"[") else blobs._decompress(data)
        assert unpack_transcript(zlib.compress(plain, 1)) == one
    with pytest.raises(ValueError, match="not a transcript"):
        unpack_transcript(data[:-9])
    with pytest.raises(ValueError):
        unpack_transcript(b"[1,")


def test_results_take_few_bytes() -> None:
    packed = pack_results(results() * 3)
    assert len(packed) < len(zlib.compress(blobs._decompress(packed), 9))


def named(results: tuple[CriterionResult, ...]) -> tuple[CriterionResult, ...]:
    """As they come back: no two of one name, and none without a name."""
    names = criterion_names(one.criterion for one in results)
    return tuple(replace(one, criterion=name) for one, name in zip(results, names, strict=True))


@settings(deadline=None)
@given(st.lists(criteria, max_size=3).map(tuple))
def test_results_come_back(some: tuple[CriterionResult, ...]) -> None:
    back = unpack_results(pack_results(some))
    assert back == named(some)
    assert all(type(result.outcome) is Outcome for result in back)


@settings(deadline=None)
@given(transcripts)
def test_what_is_searched_is_the_same_every_time(one: Transcript) -> None:
    # The index can only forget a run when it is told the very texts again.
    again = unpack_transcript(pack_transcript(one)[1])
    document = search_document(one)
    assert search_document(again) == document
    for text in document:
        text.encode("utf-8")


@settings(deadline=None)
@given(texts)
def test_clean_changes_only_lone_surrogates(text: str) -> None:
    cleaned = storable(text)
    cleaned.encode("utf-8")
    if not any("\ud800" <= char <= "\udfff" for char in text):
        assert cleaned == text


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history with nothing in it, to be copied: to make one anew takes longer than what is asked of it."""
    path = tmp_path_factory.mktemp("empty") / "history.db"
    Store.open(path).close()
    return path


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    one=transcripts,
    some=st.lists(criteria, max_size=2).map(tuple),
    words=texts,
    variables=st.dictionaries(texts, values),
)
@example(
    one=Transcript(()),
    some=(CriterionResult("", Outcome.PASSED, None, criterion_hash="\ud800"),),
    words="",
    variables={},
)
def test_the_store_gives_all_of_it_back(
    tmp_path: Path,
    empty: Path,
    one: Transcript,
    some: tuple[CriterionResult, ...],
    words: str,
    variables: dict[str, Any],
) -> None:
    for file in tmp_path.glob("history.db*"):
        file.unlink()
    with Store.open(shutil.copy(empty, tmp_path / "history.db")) as store:
        plan = planned(0, prompt=words, variables=variables, test_name=words, agent=words, specs=({"name": words},))
        store.begin_execution(record(title=words, source=words), [plan])
        store.run_ended(replace(ended(0), transcript=one, results=some, why=words)).result()
        assert store.transcript(plan.id) == one
        assert store.results(plan.id) == named(some)
        assert store.run(plan.id).variables == variables
        assert store.execution("last").title == storable(words)
        assert store.criterion("hash-a") == {"name": words}
        # Taking it out of the index again must leave the index whole.
        store.run_ended(ended(0)).result()
        assert len(store.run_ids(RunFilter(text="on its way"))) == 1
        store.delete_execution("EXECUTION-1").result()
        assert len(store.run_ids(RunFilter(text="on its way"))) == 0


def test_every_field_of_the_models_is_packed() -> None:
    # A field that is added to a model must be added to the layout in blobs.py as well: a new layout number.
    assert {cls.__name__: [field.name for field in fields(cls)] for cls in (Transcript, Message, ToolCall)} == {
        "Transcript": [
            *("messages", "tool_calls", "timing", "usage", "model", "finish_reason", "final_output", "error"),
            *("log", "notes", "user_usage", "output", "hooks", "workdir", "state", "requests", "outputs"),
        ],
        "Message": [
            *("role", "content", "reasoning", "tool_calls", "tool_call", "tool_call_id", "name", "simulated"),
            "attachments",  # with a layout of their own: older programs refuse those transcripts
        ],
        "ToolCall": [
            *("id", "name", "arguments", "result", "status", "started_ms", "duration_ms", "message", "malformed"),
            "traceback",  # at the end, of those that have one
        ],
    }
    numbers = {cls.__name__: len(fields(cls)) for cls in (Timing, Step, Usage, RunError, Attachment)}
    assert numbers == {"Timing": 3, "Step": 4, "Usage": 7, "RunError": 6, "Attachment": 7}
    numbers = {cls.__name__: len(fields(cls)) for cls in (CriterionResult, MetricResult, Evidence, Span)}
    assert numbers == {"CriterionResult": 16, "MetricResult": 10, "Evidence": 10, "Span": 5}


@pytest.mark.parametrize("more", [{}, {"log": "said"}, {"workdir": "/w"}])
def test_what_an_agent_returned_beside_its_answer_is_packed(more: dict[str, Any]) -> None:
    whole = replace(transcript(), outputs={"answer": "x", "sources": ["a"], "score": 0.5}, **more)
    assert unpack_transcript(pack_transcript(whole)[1]) == whole


def test_a_small_transcript_is_small_and_a_large_one_is_compressed() -> None:
    assert len(pack_transcript(transcript())[1]) < 400
    assert len(pack_transcript(transcript("the same words again " * 10_000))[1]) < 5_000


def test_bytes_that_are_something_else_are_refused() -> None:
    packed = pack_transcript(transcript())[1]
    for data in (b"", b"garbage", packed[:-5], pack_results(results())):
        with pytest.raises(ValueError):
            unpack_transcript(data)
    for data in (b"", b"garbage", packed):
        with pytest.raises(ValueError):
            unpack_results(data)


def test_arguments_nested_deeply_are_stored(path: Path) -> None:
    deep: Any = "bottom"
    for _ in range(400):
        deep = {"a": [deep]}
    one = replace(transcript(), tool_calls=(ToolCall("c", "dig", deep, message=1),))
    with Store.open(path) as store:
        store.begin_execution(record(), [planned(0)])
        store.run_ended(replace(ended(0), transcript=one)).result()
        assert store.transcript("EXECUTION-1-RUN-00000") == one
        assert len(store.run_ids(RunFilter(text="bottom"))) == 1
