"""Runs of the history in other tools' formats, written run by run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.agenteval_error import error_beside
from agenteval_tui.formats.agenteval_run import KEY, RUN_FIELDS, beside, stated
from agenteval_tui.formats.exporters.otel import otlp_of
from agenteval_tui.formats.json_sanitize import replace_non_finite
from agenteval_tui.formats.labels import label_data
from agenteval_tui.formats.timestamps import iso
from agenteval_tui.grading.codec import result_to_json
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.transcripts.codec import to_json, to_openai_messages
from agenteval_tui.transcripts.model import Transcript, last_answer

if TYPE_CHECKING:
    from agenteval_tui.suites.model import Test
if TYPE_CHECKING:
    from agenteval_tui.history.labels import Label
    from agenteval_tui.history.records import RunRow
    from agenteval_tui.history.store import Store


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that a format can't keep: its code, what it is in words, and whether a run has it."""

    code: str
    said: str
    of: Callable[[ExportRun], bool]


_LABELS = Loss(
    "labels", "people's labels: the file has them, but an import does not read them", lambda run: bool(run.labels)
)

LOSSES: Mapping[str, tuple[Loss, ...]] = {
    "openai": (_LABELS,),
    "agenteval": (_LABELS,),
    "otel": (_LABELS,),
    "tau-bench": (_LABELS,),
    "tau2-bench": (_LABELS,),
}
"""By the format's name. Everything else comes back as it was: outcomes, scores, criteria with their evidence, rows."""


@dataclass(frozen=True, slots=True)
class SheetLoss:
    """Something of a suite's test that Power UI's data sheets can't keep: its code, in words, whether a test has it."""

    code: str
    said: str
    of: Callable[[Test], bool]


POWER_UI = (
    SheetLoss("repeat", "repetitions", lambda test: (test.repeat or 1) > 1),
    SheetLoss("variations", "variations", lambda test: bool(test.variations)),
    SheetLoss("severity", "severity of criteria", lambda test: any(one.severity != "error" for one in test.criteria)),
    SheetLoss("negate", "negated criteria", lambda test: any(one.negate for one in test.criteria)),
    SheetLoss(
        "pass_threshold",
        "thresholds",
        lambda test: test.pass_threshold is not None or any(one.pass_threshold is not None for one in test.criteria),
    ),
    SheetLoss("tags", "tags", lambda test: bool(test.tags)),
    SheetLoss("category", "categories", lambda test: test.category is not None),
    SheetLoss("agent", "agents", lambda test: test.agent is not None),
    SheetLoss("timeout", "timeouts", lambda test: test.timeout is not None),
    SheetLoss("stop", "early stops", lambda test: test.stop is not None),
)
"""Of a suite. The export names each test that has it; conversations of several turns and datasets are left out."""


def listed() -> str:
    """All losses in words, a line a format: for the help and the page."""
    lines = [f"{name}: {'; '.join(one.said for one in losses)}." for name, losses in LOSSES.items()]
    return "\n".join([*lines, f"power-ui: {', '.join(one.said for one in POWER_UI)}."])


class Losses:
    """Counts what a format loses of the runs that pass by on their way out."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._found: Counter[Loss] = Counter()

    def over(self, runs: Iterable[ExportRun]) -> Iterator[ExportRun]:
        """The runs, as they are."""
        for run in runs:
            self._found.update(one for one in LOSSES[self._name] if one.of(run))
            yield run

    def lines(self) -> Iterator[str]:
        """A line for each kind of thing that was lost: `not kept: the test's tags (2 runs)`."""
        for loss in LOSSES[self._name]:
            if count := self._found[loss]:
                yield f"not kept: {loss.said} ({count:,} {'run' if count == 1 else 'runs'})"


def codes_of(name: str, run: ExportRun) -> list[str]:
    """The codes of what the format loses of a run, for its file."""
    return [one.code for one in LOSSES[name] if one.of(run)]


@dataclass(frozen=True, slots=True)
class ExportRun:
    """A run with all that is stored of it."""

    row: RunRow
    transcript: Transcript
    results: tuple[CriterionResult, ...]
    labels: tuple[Label, ...] = ()


@dataclass(frozen=True, slots=True)
class Exporter:
    """A format to write: its name, what a file of it is, and the pieces of its text for runs, one after another.

    What it can't keep of them is in `losses.LOSSES`.
    """

    name: str
    about: str
    pieces: Callable[[Iterable[ExportRun]], Iterator[str]]


def stored_runs(store: Store, rows: Iterable[RunRow]) -> Iterator[ExportRun]:
    """The runs of `rows` that have a transcript."""
    for row in rows:
        yield ExportRun(row, store.transcript(row.id), store.results(row.id), tuple(store.labels([row.id])))


def exporter_named(name: str) -> Exporter:
    """The exporter of that name. Raises `AgentevalError`."""
    if name not in EXPORTERS:
        raise AgentevalError(f"there is no format {name!r} to export", mend=f"formats: {', '.join(EXPORTERS)}")
    return EXPORTERS[name]


def chat_messages(transcript: Transcript) -> list[dict[str, Any]]:
    """OpenAI chat messages with what those have no place for: reasoning, and that a tool failed."""
    messages = to_openai_messages(transcript)
    for message, made in zip(transcript.messages, messages, strict=True):
        if message.reasoning:
            made["reasoning_content"] = message.reasoning
        if message.tool_call is not None and transcript.tool_calls[message.tool_call].status == "error":
            made["is_error"] = True
    return messages


def _about(run: ExportRun) -> dict[str, Any]:
    row = run.row
    about: dict[str, Any] = {"test_id": row.test_id, "name": row.test_name, "repetition": row.repetition}
    for key, value in (("variation", row.variation), ("agent", row.agent)):
        if value:
            about[key] = value
    if row.variables:
        about["variables"] = dict(row.variables)
    if row.started_ms is not None:
        about["started"] = iso(row.started_ms)
    if run.labels:
        about["labels"] = [label_data(one) for one in run.labels]
    return about


def _line(value: Any) -> str:
    text = json.dumps(replace_non_finite(value), ensure_ascii=False)
    # Lone surrogates have no UTF-8; JSON can still say them.
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _openai(runs: Iterable[ExportRun]) -> Iterator[str]:
    for run in runs:
        transcript = run.transcript
        said: dict[str, Any] = {**_about(run), "messages": chat_messages(transcript)}
        for key, value in (("model", transcript.model), ("finish_reason", transcript.finish_reason)):
            if value:
                said[key] = value
        if transcript.final_output != last_answer(transcript.messages):
            said["final_output"] = transcript.final_output
        usage = transcript.usage
        if usage.input_tokens is not None or usage.output_tokens is not None:
            said["usage"] = {
                "prompt_tokens": usage.input_tokens,
                "completion_tokens": usage.output_tokens,
                "total_tokens": usage.total_tokens,
                "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
                "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
                "cost": usage.cost,
            }
        if transcript.error is not None:
            said["error"] = error_beside(transcript.error)
        said |= {"outcome": run.row.status, KEY: _beside(run, "openai")}
        yield _line(said) + "\n"


def _agenteval(runs: Iterable[ExportRun]) -> Iterator[str]:
    for run in runs:
        results = [result_to_json(one) for one in run.results]
        more: dict[str, Any] = {
            "outcome": run.row.status,
            **({"results": results} if results else {}),
            KEY: {**stated(run.row), **_not_kept("agenteval", run)},
        }
        yield _line({**to_json(run.transcript), **_about(run), **more}) + "\n"


def _otel(runs: Iterable[ExportRun]) -> Iterator[str]:
    for run in runs:
        yield _line(otlp_of(run.row, run.transcript, run.results, codes_of("otel", run))) + "\n"


def _tau_bench(runs: Iterable[ExportRun]) -> Iterator[str]:
    yield from _listed(_tau_result(run) for run in runs)
    yield "\n"


def _tau_result(run: ExportRun) -> dict[str, Any]:
    variables = run.row.variables
    task = {
        "user_id": variables.get("user_id"),
        "actions": variables.get("expected_actions") or [],
        "instruction": variables.get("instruction") or run.row.prompt_head,
        "outputs": variables.get("outputs") or [],
    }
    info: dict[str, Any] = {"task": task}
    if run.transcript.error is not None:
        info["error"] = run.transcript.error.message
    if run.row.variation:
        info["variation"] = run.row.variation  # the format has none; without it these would be repetitions
    info[KEY] = _own(run, "tau-bench")
    return {
        "task_id": _task_id(run.row.test_id),
        "trial": run.row.repetition - 1,
        "reward": _reward(run),
        "info": info,
        "traj": chat_messages(run.transcript),
    }


def _tau2_bench(runs: Iterable[ExportRun]) -> Iterator[str]:
    rest = iter(runs)
    first = next(rest, None)
    agent = {"agent_info": {"llm": first.row.agent}} if first is not None and first.row.agent else {}
    yield f'{{"info": {_line(agent)}, "tasks": [], "simulations": '
    yield from _listed(_tau2_simulation(run) for run in chain([] if first is None else [first], rest))
    yield "}\n"


def _tau2_simulation(run: ExportRun) -> dict[str, Any]:
    messages = []
    for message in chat_messages(run.transcript):
        made = {key: value for key, value in message.items() if key not in ("tool_calls", "tool_call_id", "is_error")}
        if "tool_calls" in message:
            made["tool_calls"] = [
                {"id": one["id"], "name": one["function"]["name"], "arguments": _object(one["function"]["arguments"])}
                for one in message["tool_calls"]
            ]
        if message["role"] == "tool":
            made |= {"id": message.get("tool_call_id"), "error": message.get("is_error", False)}
        messages.append(made)
    transcript = run.transcript
    usage = transcript.usage
    if usage.input_tokens is not None or usage.output_tokens is not None:
        # Of the whole run, where readers add up: in the last of the agent's messages.
        last = next((one for one in reversed(messages) if one["role"] == "assistant"), None)
        if last is not None:
            last["usage"] = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
    started = None if run.row.started_ms is None else iso(run.row.started_ms)
    return {
        "id": run.row.id,
        "task_id": run.row.test_id,
        "trial": run.row.repetition - 1,
        "start_time": started,
        "duration": None if transcript.timing.total_ms is None else transcript.timing.total_ms / 1000,
        "termination_reason": "agent_error" if transcript.error is not None else transcript.finish_reason,
        "agent_cost": transcript.usage.cost,
        "info": {**({"variation": run.row.variation} if run.row.variation else {}), KEY: _own(run, "tau2-bench")},
        "reward_info": None if (reward := _reward(run)) is None else {"reward": reward},
        "messages": messages,
    }


def _beside(run: ExportRun, name: str) -> dict[str, Any]:
    return {**beside(run.row, run.transcript, run.results), **_not_kept(name, run)}


def _not_kept(name: str, run: ExportRun) -> dict[str, Any]:
    """What the file itself says of what is missing in it."""
    lost = codes_of(name, run)
    return {"not_kept": lost} if lost else {}


def _own(run: ExportRun, name: str) -> dict[str, Any]:
    """What comes back of a run from formats that have no place for its name, agent, and so on."""
    about = _about(run)
    whole = _beside(run, name) | {key: about[key] for key in RUN_FIELDS if key in about}
    return {**whole, "variables": dict(run.row.variables)}


def _listed(values: Iterable[Any]) -> Iterator[str]:
    before = "[\n"
    for value in values:
        yield before + _line(value)
        before = ",\n"
    yield "[]" if before == "[\n" else "\n]"


def _task_id(test_id: str) -> int | str:
    return int(test_id) if test_id.isascii() and test_id.isdecimal() and len(test_id) < 10 else test_id


def _object(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def _reward(run: ExportRun) -> float | None:
    """The benchmark's own reward where the run came from there; else 1 for a pass, 0 for a failure."""
    foreign = next((one for one in run.results if one.source in ("tau-bench", "tau2-bench")), None)
    if foreign is not None:
        return foreign.score
    if run.row.status in ("passed", "failed"):
        return 1.0 if run.row.status == "passed" else 0.0
    return None


EXPORTERS = {
    one.name: one
    for one in (
        Exporter("openai", "OpenAI chat messages, a conversation a line (JSONL)", _openai),
        Exporter("agenteval", "this program's own transcripts, one a line (JSONL)", _agenteval),
        Exporter("otel", "OpenTelemetry GenAI spans, a trace a line (OTLP JSON)", _otel),
        Exporter("tau-bench", "tau-bench results (a JSON list)", _tau_bench),
        Exporter("tau2-bench", "tau2-bench results (one JSON object)", _tau2_bench),
    )
}
