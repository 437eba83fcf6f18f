"""tau2-bench results: `{info, tasks, simulations: [{id, task_id, trial, reward_info: {reward}, messages}]}`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.agenteval_run import KEY, is_ours, restore_or_note, without_own_fields
from agenteval_tui.formats.importers.derived_criteria import criteria_of_actions
from agenteval_tui.formats.importers.format import Format
from agenteval_tui.formats.importers.message_formats import (
    as_object,
    objects_in,
    plain_text,
    transcript_of,
    value_at,
)
from agenteval_tui.formats.importers.recording import Recording, Skipped, as_id, first_user_text
from agenteval_tui.formats.importers.usage_import import moment_ms, number
from agenteval_tui.formats.omitted_texts import texts_of
from agenteval_tui.formats.stream.json_reader import skipped_by
from agenteval_tui.formats.stream.json_stream import NOT_UTF8, UnreadableFile
from agenteval_tui.formats.stream.sniff import sniff
from agenteval_tui.formats.stream.source import Source
from agenteval_tui.grading.grade import foreign_result, unreadable_result
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.transcripts.model import RunError, Timing, Transcript, Usage

NAME = "tau2-bench"
REWARD = "tau2-bench reward"
LARGEST_TASK = 4_000_000

_BROKE = frozenset({"agent_error", "user_error", "infrastructure_error", "unexpected_error"})


SIMULATIONS, RESULTS = "simulations", "results.json"
"""Of results that are a folder: where their simulations are, a file each, and the file that has all else."""


def can_read(value: Any) -> bool:
    """Whether a file's first value is a results file of tau2-bench, the index of a results folder, or a simulation."""
    return isinstance(value, Mapping) and (SIMULATIONS in value or _is_index(value) or _is_simulation(value))


def _is_index(value: Mapping[str, Any]) -> bool:
    return "info" in value and ("tasks" in value or "simulation_index" in value) and SIMULATIONS not in value


def _is_simulation(value: Mapping[str, Any]) -> bool:
    ended = "termination_reason" in value or "reward_info" in value
    return "task_id" in value and ended and ("messages" in value or "ticks" in value)


def index_of(folder: Path) -> Path | None:
    """The `results.json` of a folder of results, which says what is in it, and has `simulations` beside it."""
    index = folder / RESULTS
    return index if index.is_file() and (folder / SIMULATIONS).is_dir() else None


def parts(source: Source) -> list[Path]:
    """The simulations of a results folder, when `source` is its `results.json`."""
    first = next(iter(sniff(source).values), None)
    if not isinstance(first, Mapping) or not _is_index(first):
        return []
    return sorted((source.path.parent / SIMULATIONS).glob("*.json"))


class _ResultsFile(Struct):
    """What a results file says beside its simulations."""

    agent: str = ""
    tasks: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    index: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # by the simulation's id: its reward and ends
    used: set[str] = field(default_factory=set)  # tasks that were simulated

    def unused(self) -> Iterator[Skipped]:
        """What tasks say that no simulation did."""
        fields: Counter[str] = Counter()
        for uid, task in self.tasks.items():
            if uid not in self.used:
                fields.update(path for path, _ in texts_of(task, "tasks[]"))
        if fields:
            yield Skipped("", counts=False, fields=fields)


def recordings(source: Source) -> Iterator[Recording | Skipped]:
    """The simulations: one test a task, its trials as repetitions, the reward as a criterion result."""
    first = next(iter(sniff(source).values), None)
    if isinstance(first, Mapping) and SIMULATIONS not in first:
        yield from _alone(source) if _is_simulation(first) else _folder(source)
        return
    context = _ResultsFile()
    yield from _results(source, context)
    yield from context.unused()


def _results(source: Source, context: _ResultsFile) -> Iterator[Recording | Skipped]:
    """The content of a results file; `context` collects what it says beside its simulations."""
    reader = source.reader()
    try:
        for key in reader.members():
            if key == "info":
                info = reader.bounded()
                context.agent = _agent(info)
                unread = Counter(path for path, text in texts_of(info, "info") if text != context.agent)
                if unread:
                    yield Skipped("", counts=False, fields=unread)
            elif key == "tasks":
                for _ in reader.elements():
                    task = reader.bounded(LARGEST_TASK)
                    if isinstance(task, Mapping):
                        context.tasks[plain_text(task.get("id"))] = task
            # Of a folder of results: what each simulation was of, and its reward.
            elif key == "simulation_index":
                for _ in reader.elements():
                    entry = reader.bounded(LARGEST_TASK)
                    if isinstance(entry, Mapping):
                        context.index[plain_text(entry.get("id"))] = entry
            elif key == SIMULATIONS:
                for _ in reader.elements():
                    line = reader.line
                    try:
                        yield _recording(reader.bounded(), context)
                    except AgentevalError as error:
                        yield Skipped(error.what, line)
    except UnreadableFile as error:
        yield Skipped(f"from here on the file can't be read: {error.reason}", reader.line, error.cut_off)
    yield from skipped_by(reader)


def _folder(source: Source) -> Iterator[Recording | Skipped]:
    """The results of a folder, of which `source` is the index."""
    context = _ResultsFile()
    yield from _results(source, context)
    folder = source.path.parent / SIMULATIONS
    if not folder.is_dir():
        yield Skipped(
            f"its simulations are missing: there is no folder `{SIMULATIONS}` beside it", place=source.path.name
        )
        return
    files = parts(source)
    for missing in [uid for uid in context.index if uid not in {file.stem for file in files}]:
        yield Skipped("a simulation of the index has no file", place=f"{SIMULATIONS}/{missing}.json")
    for file in files:
        yield from _file(file, context)
    yield from context.unused()


def _alone(source: Source) -> Iterator[Recording | Skipped]:
    """One simulation of a results folder, with what the index beside it says of its task and agent."""
    context = _ResultsFile()
    for folder in (source.path.parent.parent, source.path.parent):
        index = folder / RESULTS
        if index.is_file():
            with Source(index) as beside:
                first = next(iter(sniff(beside).values), None)
                if isinstance(first, Mapping) and _is_index(first):
                    yield from _results(beside, context)
                    break
    else:
        yield Skipped(
            f"there is no {RESULTS} beside it: its task and the agent's name are not known",
            counts=False,
            place=source.path.name,
        )
    yield from _file(source.path, context)


def _file(path: Path, context: _ResultsFile) -> Iterator[Recording | Skipped]:
    place = f"{SIMULATIONS}/{path.name}"
    try:
        with Source(path) as source:
            reader = source.reader()
            yield _recording(reader.bounded(), context)
            yield from skipped_by(reader, "simulations[].", place)
            if reader.replaced:
                yield Skipped(NOT_UTF8, counts=False, place=place)
    except UnreadableFile as error:
        yield Skipped(f"a simulation can't be read: {error.reason}", cut_off=error.cut_off, place=place)
    except OSError as error:
        yield Skipped(f"a simulation can't be read: {error.strerror or error}", place=place)
    except AgentevalError as error:
        yield Skipped(error.what, place=place)


def _agent(info: Any) -> str:
    about = as_object(value_at(info, "agent_info"))
    return plain_text(about.get("llm") or about.get("implementation"))


def _recording(value: Any, context: _ResultsFile) -> Recording:
    listed = as_object(value).get("messages")
    if isinstance(value, Mapping) and listed is None and isinstance(value.get("ticks"), list):
        listed = _of_ticks(value["ticks"])
    if not isinstance(value, Mapping) or "task_id" not in value or not isinstance(listed, list):
        raise AgentevalError("no simulation: it has no `task_id` and `messages`")
    about = context.index.get(plain_text(value.get("id")), {})
    task_id, trial = plain_text(value["task_id"]), value.get("trial", about.get("trial"))
    agent = context.agent
    about_it = as_object(value.get("info"))
    own = about_it.get(KEY)
    messages = [entry for message in listed for entry in _messages_in(message)]
    notes: list[str] = []
    transcript = transcript_of(messages, notes=notes)
    costs = (("assistant", "agent_cost"), ("user", "user_cost"))
    read = {role: UsageReader() for role, _ in costs}
    for message in messages:
        if isinstance(message, Mapping) and message.get("role") in read:
            read[message["role"]].add(message.get("usage"))
    used = {role: replace(read[role].total, cost=read[role].cost(value, key)) for role, key in costs}
    duration = number(value.get("duration"))
    # Only a model uses tokens.
    if used["user"] != Usage():  # it was a model, and is known as one
        simulated = (
            replace(message, simulated=True) if message.role == "user" else message for message in transcript.messages
        )
        transcript = replace(transcript, messages=tuple(simulated))
    reason = plain_text(value.get("termination_reason"))
    transcript = replace(
        transcript,
        usage=used["assistant"],
        user_usage=used["user"],
        notes=(
            *transcript.notes,
            *dict.fromkeys(note for usage_reader in read.values() for note in usage_reader.notes),
        ),
        model=agent,
        finish_reason=reason,
        timing=Timing(total_ms=None if duration is None else duration * 1000),
        error=RunError.told(NAME, f"the simulation ended with {reason}") if reason in _BROKE else None,
    )
    if not messages and "ticks" in value:
        notes.append("nothing that was said is in it: its `ticks` have no texts")
    # A simulation that broke may have none, and neither may a run of this program.
    elif transcript.error is None and not messages and not is_ours(own):
        raise AgentevalError("`messages` is empty")
    task = context.tasks.get(task_id, {})
    context.used.add(task_id)
    info = without_own_fields(about_it, own)
    recording = Recording(
        test_id=as_id(task_id),
        test_name=f"Task {task_id}",
        transcript=transcript,
        # Trials are counted from 0.
        repetition=trial + 1 if isinstance(trial, int) and not isinstance(trial, bool) and trial >= 0 else None,
        prompt=first_user_text(transcript),
        agent=agent,
        variables=_variables(task),
        expected=_expected(task, value, transcript),
        results=() if transcript.error is not None else _verdicts(value, about),
        variation=plain_text(about_it.get("variation")),
        notes=tuple(notes),
        started_ms=moment_ms(value.get("start_time")) or moment_ms(value.get("timestamp")),
        source=(
            ("simulations[]", without_own_fields({**value, "info": info}, own, "termination_reason")),
            ("tasks[]", task),
        ),
    )
    return restore_or_note(recording, own)


def _messages_in(message: Any) -> list[Any]:
    """The messages that one message holds: the answers of several tools are in one. What the simulated user does with
    its own tools counts as said by the user, not as calls of the agent."""
    if not isinstance(message, Mapping):
        return [message]
    if isinstance(message.get("tool_messages"), list):
        return [entry for tool_message in message["tool_messages"] for entry in _messages_in(tool_message)]
    role, calls = message.get("role"), message.get("tool_calls")
    if role == "tool" and message.get("requestor") == "user":
        return [{"role": "user", "content": f"[tool] {plain_text(message.get('content'))}"}]
    if role == "user" and isinstance(calls, list) and calls:
        used = [
            f"[tool] {plain_text(call.get('name'))} {plain_text(call.get('arguments'))}" for call in objects_in(calls)
        ]
        parts = [plain_text(message.get("content")), *used]
        return [{"role": "user", "content": "\n".join(text for text in parts if text)}]
    return [message]


def _variables(task: Mapping[str, Any]) -> dict[str, Any]:
    actions = value_at(task, "evaluation_criteria", "actions")
    variables = {"expected_actions": actions, "user_scenario": task.get("user_scenario")}
    return {key: value for key, value in variables.items() if value is not None}


def _expected(task: Mapping[str, Any], simulation: Mapping[str, Any], transcript: Transcript) -> tuple[Any, ...]:
    """What the task's right actions ask of the agent. Where the simulation was evaluated it says which tools write."""
    checks = objects_in(value_at(simulation, "reward_info", "action_checks"))
    kinds = {
        plain_text(check["action"].get("name")): plain_text(check.get("tool_type"))
        for check in checks
        if isinstance(check.get("action"), Mapping)
    }
    actions = value_at(task, "evaluation_criteria", "actions")
    return criteria_of_actions(actions, transcript, tool=NAME, kinds=kinds)


def _of_ticks(ticks: list[Any]) -> list[dict[str, Any]]:
    """What was said and done in a simulation of speech, tick by tick: pieces of one's speech are put together."""
    messages: list[dict[str, Any]] = []
    for tick in objects_in(ticks):
        for who, role in (("agent", "assistant"), ("user", "user")):
            text = _of_chunk(as_object(tick.get(f"{who}_chunk")))
            last = messages[-1] if messages else {}
            # A sentence is spoken over many ticks.
            if text and last.get("role") == role and "tool_calls" not in last:
                last["content"] += text
            elif text:
                messages.append({"role": role, "content": text})
            calls, answers = tick.get(f"{who}_tool_calls"), tick.get(f"{who}_tool_results")
            if isinstance(calls, list) and calls:
                messages.append({"role": role, "content": "", "tool_calls": calls})
            messages += [{"requestor": role, **answer, "role": "tool"} for answer in objects_in(answers)]
    return messages


def _of_chunk(chunk: Mapping[str, Any]) -> str:
    """The text of a piece of speech; where it is audio, what was to be said."""
    content = chunk.get("audio_script_gold") if chunk.get("is_audio") else chunk.get("content")
    return content if isinstance(content, str) else ""


def _verdicts(simulation: Mapping[str, Any], about: Mapping[str, Any]) -> tuple[CriterionResult, ...]:
    """The reward, whatever it is: without one, the run was not evaluated yet. `about`: what the index says."""
    if simulation.get("reward_info") is not None:
        return (_verdict(simulation["reward_info"]),)
    return (_verdict({"reward": about["reward"]}),) if about.get("reward") is not None else ()


def _verdict(info: Any) -> CriterionResult:
    reward = value_at(info, "reward")
    if reward is None:
        return foreign_result(REWARD, source=NAME, reason="the file gives no reward")
    score = None if isinstance(reward, str) else number(reward)
    if score is None:
        return unreadable_result(REWARD, source=NAME, reason=f"the reward can't be read: {plain_text(reward)}")
    parts = as_object(value_at(info, "reward_breakdown"))
    lost = [str(key) for key, points in parts.items() if points == 0]
    reason = f"tau2-bench gave a reward of {score:g}" + (f": nothing for {', '.join(lost)}" if lost else "")
    return foreign_result(REWARD, score=score, passed=abs(score - 1) <= 1e-6, source=NAME, reason=reason)


FORMAT = Format(
    name=NAME,
    title="tau2-bench results",
    looks_like="an object with `simulations`",
    can_read=can_read,
    recordings=recordings,
    parts=parts,
    index_of=index_of,
    rank=30,
)
