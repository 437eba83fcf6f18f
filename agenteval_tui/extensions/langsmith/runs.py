"""LangSmith's runs: batches as its clients send them (`{"post": [...], "patch": [...]}`), and exports of runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.recording.conversation import Asked
from agenteval_tui.agents.recording.imported_requests import asked_in, with_requests
from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers.derived_criteria import criteria_of_target
from agenteval_tui.formats.importers.format import Format
from agenteval_tui.formats.importers.message_formats import (
    as_list,
    as_object,
    first_text,
    is_message,
    plain_text,
    transcript_of,
    value_at,
)
from agenteval_tui.formats.importers.recording import Recording, Skipped, as_id, first_user_text, skipped_element
from agenteval_tui.formats.importers.span_tool_calls import UntoldCall, with_untold_calls
from agenteval_tui.formats.importers.trace_names import with_test_names
from agenteval_tui.formats.importers.traced_requests import as_asked, lived_conversation
from agenteval_tui.formats.importers.usage_import import moment_ms, number, share, with_usage
from agenteval_tui.formats.stream.json_stream import BrokenElement
from agenteval_tui.formats.stream.source import Source
from agenteval_tui.formats.stream.spool import Spool
from agenteval_tui.grading.grade import foreign_result
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.transcripts.model import CallStatus, RunError, Step, Timing, ToolCall, Transcript
from agenteval_tui.transcripts.observed import without_calls

NAME = "langsmith"

_KEPT = (
    "id",
    "name",
    "run_type",
    "inputs",
    "outputs",
    "error",
    "start_time",
    "end_time",
    "parent_run_id",
    "reference_example_id",
    "feedback_stats",
    "prompt_tokens",
    "completion_tokens",
    "total_cost",
)
_TEXTS = ("input", "question", "prompt", "query", "output", "answer", "response", "result", "text", "content")


def can_read(value: Any) -> bool:
    """Whether a file's first value is a batch of runs, or a run."""
    if not isinstance(value, Mapping):
        return False
    batch = isinstance(value.get("post"), list) or isinstance(value.get("patch"), list)
    return (batch and value.keys() <= {"post", "patch"}) or ("run_type" in value and "inputs" in value)


def recordings(source: Source) -> Iterator[Recording | Skipped]:
    """A run for each trace: the conversation of its model's calls, else its input and output."""
    with Spool() as spool:
        for element in source.values():
            if isinstance(element, BrokenElement):
                yield skipped_element(element)
                continue
            if not isinstance(element.value, Mapping):
                yield Skipped("not a run: it is not an object", element.line)
                continue
            value = element.value
            batch = "run_type" not in value and ("post" in value or "patch" in value)
            listed = [*as_list(value.get("post")), *as_list(value.get("patch"))] if batch else [value]
            for run in listed:
                if isinstance(run, Mapping) and run.get("id"):
                    row = {key: run[key] for key in _KEPT if run.get(key) is not None}
                    row["usage"] = _usage_of(run)
                    row["about"] = {key: value for key, value in run.items() if key not in _KEPT}
                    spool.put(plain_text(run.get("trace_id") or run["id"]), row)
        for trace, parts in spool.groups():
            yield _recording(trace, _merged(parts), parts)


def _usage_of(run: Mapping[str, Any]) -> object:
    # Where it is, and what it is called, depends on the client.
    for place in (run.get("outputs"), run.get("extra")):
        if isinstance(place, Mapping):
            usage = place.get("usage_metadata") or value_at(place, "metadata", "usage_metadata")
            if usage or place.get("usage"):
                return usage or place["usage"]
    return run if "prompt_tokens" in run else None


def _merged(parts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Runs by id: a patch completes what was posted. An empty value never replaces an existing one."""
    runs: dict[str, dict[str, Any]] = {}
    for part in parts:
        run = runs.setdefault(plain_text(part["id"]), {})
        about = {**run.get("about", {}), **part.get("about", {})}
        run.update({key: value for key, value in part.items() if value or key not in run})
        run["about"] = about
    return list(runs.values())


def _recording(
    trace: str, runs: Sequence[Mapping[str, Any]], parts: Sequence[Mapping[str, Any]]
) -> Recording | Skipped:
    ids = {plain_text(run["id"]) for run in runs}
    # A trace that was exported in parts may have lost its root.
    root = next((run for run in runs if plain_text(run.get("parent_run_id")) not in ids), runs[0])
    notes: list[str] = []
    try:
        transcript = _transcript(root, runs, notes)
    except AgentevalError as error:
        return Skipped(error.what, place=f"trace {trace[:36]}")
    if transcript is None:
        return Skipped("nothing went in or came out of this run", place=f"trace {trace[:36]}")
    named = plain_text(root.get("reference_example_id"))
    name = plain_text(root.get("name")) or "run"
    reference = _reference(root.get("about", {}))
    return Recording(
        test_id=as_id(named or trace),
        test_name=f"{name} {named or trace[:8]}",
        trace_name="" if named else name,
        transcript=transcript,
        prompt=first_user_text(transcript),
        agent=transcript.model or name,
        results=_feedback(root.get("feedback_stats")),
        expected=criteria_of_target(reference),
        variables={} if reference is None else {"expected_value": reference},
        started_ms=_moment(root, "start_time"),
        notes=tuple(notes),
        source=tuple(("", {**run, **run.get("about", {}), "about": None, "usage": None}) for run in parts),
    )


def _reference(about: Mapping[str, Any]) -> object:
    """The reference outputs of the example that was run, where an export of an experiment has them."""
    return (
        about.get("reference_outputs")
        or about.get("reference_output")
        or value_at(about, "reference_example", "outputs")
        or None
    )


def _transcript(root: Mapping[str, Any], runs: Sequence[Mapping[str, Any]], notes: list[str]) -> Transcript | None:
    models = [run for run in runs if run.get("run_type") == "llm"]
    best: list[Any] = []
    for run in models or [root]:
        asked_messages, answer = _asked(run.get("inputs")), _answered(run.get("outputs"))
        if asked_messages and not answer and (text := _text(run.get("outputs"))):
            answer = [{"role": "assistant", "content": text}]
        # Each request repeats the conversation: the longest has all of it, and of two alike the later one.
        if len(asked_messages) + len(answer) >= len(best):
            best = [*asked_messages, *answer]
    if not best:
        question, answered = _text(root.get("inputs")), _text(root.get("outputs"))
        best = [{"role": "user", "content": question}] if question else []
        best += [{"role": "assistant", "content": answered}] if answered else []
    tools = [run for run in runs if run.get("run_type") == "tool"]
    if not best and not tools and not root.get("error"):
        return None
    requests = [_request(number, run) for number, run in enumerate(sorted(models, key=_started))]
    transcript = _timed(lived_conversation(requests) or transcript_of(best, notes=notes), root, runs)
    # There are only texts: nothing says whether tools were called.
    if not tools and not any(_answered(run.get("outputs"), plain=False) for run in models or [root]):
        transcript = without_calls(transcript, NAME)
    transcript = with_requests(transcript, requests)
    used = UsageReader()
    for run in models or [root]:
        used.add(run.get("usage"))
    started, ended = _moment(root, "start_time"), _moment(root, "end_time")
    error = plain_text(root.get("error"))
    return replace(
        with_usage(transcript, used),
        model=transcript.model or next((model for run in reversed(models) if (model := _model(run))), ""),
        finish_reason=transcript.finish_reason or _finish((models or [root])[-1].get("outputs")),
        timing=replace(
            transcript.timing,
            total_ms=None if started is None or ended is None else max(0.0, ended - started),
        ),
        error=RunError.told(NAME, error[:20_000]) if error else None,
    )


def _request(number: int, run: Mapping[str, Any]) -> Asked | None:
    """What a model was asked in its run, where that is recorded as messages."""
    messages, inputs = _asked(run.get("inputs")), run.get("inputs")
    sent = value_at(run, "about", "extra", "invocation_params")
    outputs = run.get("outputs")
    previous = value_at(outputs, "previous_response_id")
    # Without the parameters of the request, nothing says which there were.
    is_whole = isinstance(sent, Mapping) or (isinstance(inputs, Mapping) and "model" in inputs)
    about = {**as_object(inputs), **as_object(sent)}
    if previous:
        about["previous_response_id"] = previous
    return asked_in(
        as_asked(messages),
        as_asked(_answered(outputs)),
        number=number,
        started=_moment(run, "start_time"),
        ended=_moment(run, "end_time"),
        about=about if is_whole else None,
        model=_model(run),
        error=plain_text(run.get("error")),
        usage=run.get("usage"),
    )


def _timed(transcript: Transcript, root: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> Transcript:
    """With the times of models' turns and tools' calls; a tool's run is told by the id of the call, else by its name,
    in their order. A tool that broke has failed. A tool's run without a call is a call of its own."""
    base = _moment(root, "start_time")
    steps, tools = [], []
    for run in sorted(runs, key=_started):
        if run.get("run_type") not in ("llm", "tool"):
            continue
        name = plain_text(run.get("name")) or plain_text(run["run_type"])
        started, ended = _moment(run, "start_time"), _moment(run, "end_time")
        step = None
        if base is not None and started is not None and ended is not None:
            step = Step(name, max(0.0, started - base), max(0.0, ended - started))
            steps.append(step)
        if run["run_type"] == "tool":
            tools.append((_call_of(run), name, step, run))
    calls: list[ToolCall] = []
    remaining = list(range(len(tools)))
    ran_for: dict[int, int] = {}  # the number of a tool's run, and that of its call
    for call in transcript.tool_calls:
        place = next((number for number in remaining if tools[number][0] == call.id), None)
        if place is None:
            place = next(
                (number for number in remaining if not tools[number][0] and tools[number][1] == call.name), None
            )
        if place is not None:
            remaining.remove(place)
            ran_for[place] = len(calls)
            step, run = tools[place][2:]
            status: CallStatus = "error" if run.get("error") else call.status
            call = replace(call, status=status)
            if step is not None:
                call = replace(call, started_ms=step.started_ms, duration_ms=step.duration_ms)
        calls.append(call)
    steps.sort(key=lambda step: step.started_ms)
    timed = replace(transcript, tool_calls=tuple(calls), timing=Timing(steps=tuple(steps)))
    ids = {plain_text(run["id"]): name for _, name, _, run in tools}
    # A tool's run within one of the same name is the same call, told twice.
    untold = [
        _untold(*tools[number], after=1 + max((call for ran, call in ran_for.items() if ran < number), default=-1))
        for number in remaining
        if ids.get(plain_text(tools[number][3].get("parent_run_id"))) != tools[number][1]
    ]
    return with_untold_calls(timed, untold)


def _started(run: Mapping[str, Any]) -> float:
    return _moment(run, "start_time") or 0.0


def _moment(run: Mapping[str, Any], key: str) -> float | None:
    # The API has UTC, without saying so.
    return moment_ms(run.get(key), UTC)


def _untold(call_id: str, name: str, step: Step | None, run: Mapping[str, Any], *, after: int) -> UntoldCall:
    error = plain_text(run.get("error"))
    outputs = run.get("outputs")
    return UntoldCall(
        call_id or f"run_{plain_text(run['id'])}",
        name=name,
        arguments=run.get("inputs"),
        result=error or (None if outputs is None else _text(outputs)),
        failed=bool(error),
        after=after,
        started_ms=None if step is None else step.started_ms,
        duration_ms=None if step is None else step.duration_ms,
    )


def _call_of(run: Mapping[str, Any]) -> str:
    """The id of the call that a tool's run is, where it is said."""
    outputs = as_object(run.get("outputs"))
    inner = outputs["output"] if isinstance(outputs.get("output"), Mapping) else outputs
    return plain_text(inner.get("tool_call_id"))


def _asked(inputs: Any) -> list[Any]:
    messages = as_object(inputs).get("messages")
    if isinstance(messages, list) and messages and isinstance(messages[0], list):
        messages = messages[0]  # LangChain's batches of one
    listed = messages if isinstance(messages, list) else []
    return [*_system(inputs), *listed] if all(is_message(message) for message in listed) and listed else []


def _system(inputs: Any) -> list[dict[str, Any]]:
    system = as_object(inputs).get("system")
    return [{"role": "system", "content": system}] if isinstance(system, str | list) and system else []


def _answered(outputs: Any, *, plain: bool = True) -> list[Any]:
    """The messages of an output. `plain`: a generation without a message is one of its text."""
    if not isinstance(outputs, Mapping):
        return []
    choices, generations = outputs.get("choices"), outputs.get("generations")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        message = choices[0].get("message")
        return [message] if is_message(message) else []
    while isinstance(generations, list) and generations:
        generations = generations[0]
    if isinstance(generations, Mapping):
        message = generations.get("message")
        answer = {"role": "assistant", "content": _text(generations)}
        return [message] if is_message(message) else [answer] if plain else []
    if isinstance(outputs.get("messages"), list):
        return [message for message in outputs["messages"] if is_message(message)]
    for candidate in (outputs.get("message"), outputs.get("output"), outputs):
        if is_message(candidate):
            return [candidate]
    return []


def _text(value: Any) -> str:
    """What an object says: its only value, or that of a telling name; else all of it as JSON."""
    if isinstance(value, Mapping):
        if (text := first_text(value, _TEXTS)) is not None:
            return text
        if len(value) == 1:
            return plain_text(next(iter(value.values())))
        if not value:
            return ""
    return plain_text(value)


def _model(run: Mapping[str, Any]) -> str:
    for place in (run.get("outputs"), run.get("inputs")):
        if isinstance(place, Mapping) and isinstance(place.get("model"), str):
            return str(place["model"])
    return ""


def _finish(outputs: Any) -> str:
    choices = as_list(value_at(outputs, "choices"))
    return plain_text(value_at(choices[0], "finish_reason")) if choices else ""


def _feedback(stats: Any) -> tuple[CriterionResult, ...]:
    """What people or evaluators gave: the mean of each key. Only 0..1 says what is enough."""
    criterion_results = []
    for key, figures in as_object(stats).items():
        mean = number(value_at(figures, "avg"))
        sentence = "LangSmith gave no figure" if mean is None else f"LangSmith gave {mean:g}"
        criterion_results.append(foreign_result(f"{NAME} {key}", score=share(mean), source=NAME, reason=sentence))
    return tuple(criterion_results)


FORMAT = Format(
    name=NAME,
    title="LangSmith runs",
    looks_like='`{"post": [...], "patch": [...]}`, or objects with `run_type` and `inputs`',
    can_read=can_read,
    recordings=with_test_names(recordings),
    gathered=True,
    page="coming-from/langsmith",
    rank=60,
)
