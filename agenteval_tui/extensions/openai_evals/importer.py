"""Logs of OpenAI's evals: a line with `spec`, a line an event (`sampling`, `match`, `metrics`, ...), `final_report`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers.derived_criteria import criteria_of_target
from agenteval_tui.formats.importers.format import Format, by_value
from agenteval_tui.formats.importers.message_formats import as_list, is_message, plain_text
from agenteval_tui.formats.importers.recording import Recording, Skipped, skipped_element
from agenteval_tui.formats.importers.session_log import Session, session_recording
from agenteval_tui.formats.importers.usage_import import number, share
from agenteval_tui.formats.stream.json_stream import BrokenElement, JsonElement
from agenteval_tui.grading.grade import foreign_result
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.transcripts.observed import without_calls

NAME = "openai-evals"


class _Sample(Struct):
    """What was logged of a sample."""

    session: Session
    results: list[CriterionResult] = field(default_factory=list)
    expected: Any = None


def can_read(value: Any) -> bool:
    """Whether a file's first value is a line of such a log."""
    if not isinstance(value, Mapping):
        return False
    spec = value.get("spec")
    if isinstance(spec, Mapping):
        return "eval_name" in spec or "completion_fns" in spec
    return "sample_id" in value and "event_id" in value and isinstance(value.get("data"), Mapping)


def recordings(elements: Iterable[JsonElement | BrokenElement]) -> Iterator[Recording | Skipped]:
    """A run for each sample."""
    samples: dict[str, _Sample] = {}
    about: list[tuple[str, Any]] = []  # of the whole log
    agent = ""
    for element in elements:
        if isinstance(element, BrokenElement):
            yield skipped_element(element)
            continue
        line = element.value
        if not isinstance(line, Mapping):
            yield Skipped("not a line of a log: it is not an object", element.line)
        elif isinstance(line.get("spec"), Mapping):
            about.append(("", line))
            agent = ", ".join(map(plain_text, as_list(line["spec"].get("completion_fns"))))
        elif "sample_id" in line and isinstance(line.get("data"), Mapping):
            name = plain_text(line["sample_id"])
            sample = samples.setdefault(name, _Sample(Session(name, agent=agent)))
            sample.session.source.append((plain_text(line.get("type")), line))
            sample.session.saw(line.get("created_at"))
            _take(sample, plain_text(line.get("type")), line["data"])
        else:
            about.append(("", line))
    for sample in samples.values():
        sample.session.source += about
        about = []
        try:
            recording = session_recording(sample.session)
        except AgentevalError as error:
            yield Skipped(error.what, place=f"sample {sample.session.id[:60]}")
            continue
        recording = replace(
            recording, transcript=without_calls(recording.transcript, NAME)
        )  # what was sampled is texts
        variables = {} if sample.expected is None else {"expected_value": sample.expected}
        yield replace(
            recording,
            test_name=sample.session.id,
            results=tuple(sample.results),
            expected=criteria_of_target(sample.expected),
            variables=variables,
        )


def _take(sample: _Sample, kind: str, data: Mapping[str, Any]) -> None:
    if kind == "sampling":
        prompt, sampled = data.get("prompt"), data.get("sampled")
        messages = [message for message in as_list(prompt) if is_message(message)]
        if isinstance(prompt, str):
            messages = [{"role": "user", "content": prompt}]
        earlier = sample.session.messages
        fresh = messages[len(earlier) :] if messages[: len(earlier)] == earlier else messages
        answers = as_list(sampled) or ([sampled] if sampled else [])
        earlier += [*fresh, *({"role": "assistant", "content": plain_text(answer)} for answer in answers)]
    elif isinstance(data.get("correct"), bool):
        sentence = f"picked {plain_text(data.get('picked'))!r}" if data.get("picked") is not None else ""
        sample.results.append(foreign_result(kind, passed=data["correct"], source=NAME, reason=sentence))
        sample.expected = data.get("expected", sample.expected)
    elif kind == "error":
        sample.session.error = plain_text(data.get("message")) or plain_text(data)
    else:
        for name, value in data.items():
            score = number(value)
            if score is not None and not isinstance(value, str):
                sample.results.append(foreign_result(name, score=share(score), source=NAME, reason=f"{name} {score:g}"))


FORMAT = Format(
    name=NAME,
    title="logs of OpenAI's evals",
    looks_like="lines with `spec`, then with `sample_id`, `type` and `data`",
    can_read=can_read,
    recordings=by_value(recordings),
    rank=66,
)
