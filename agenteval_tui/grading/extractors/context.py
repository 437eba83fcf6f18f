"""`Context`: what a model was asked for one of its answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pydantic import Field

from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.extracted_value import ExtractionError, JsonValue, NothingExtracted, Value
from agenteval_tui.grading.extractors.extractor import Prototype
from agenteval_tui.grading.json_reading import JsonSource, SpanMap
from agenteval_tui.grading.metrics.metric import ConfigWarning, Metric
from agenteval_tui.grading.metrics.run_limits import Tokens
from agenteval_tui.grading.results import Span
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.model_request import ModelRequest, ModelRequests, content_of
from agenteval_tui.transcripts.observed import ObservedKind
from agenteval_tui.transcripts.state import value_text


class Context(Prototype):
    """What the model saw: the request for one of its answers, as text: its system prompt, then a block `role: text`
    for each message, with a blank line between them.

    The metric `Tokens` checks how large a request was: of several requests, the largest one.

    It needs a run whose requests were recorded (`agenteval record`, `capture: model`, or a trace that has them).
    Otherwise the criterion is not checked.
    """

    of: Literal["last", "first", "any"] = Field(
        "last",
        description="last: the last request of the agent that gave the final answer; first: its first one; any: all "
        "requests of all agents, each text once.",
    )
    at: int | None = Field(None, ge=1, description="The request with this number, from 1, in place of `of`.")
    part: Literal["all", "system", "messages", "tools"] = Field(
        "all",
        description="all: system prompt and messages; tools: the tools that the model could call, as a JSON list of "
        "objects with name, description and parameters.",
    )

    @property
    def needs(self) -> frozenset[ObservedKind]:
        return frozenset(("requests",))

    def extract(self, transcript: Transcript) -> Value | None:
        requests = transcript.requests or ModelRequests()
        chosen = self._chosen(requests, transcript)
        unknown = self._unknown(requests, chosen)
        if unknown is not None and self.part != "all":
            raise unknown
        if not chosen:
            return None
        spans = _spans_of(chosen[0].number) if len(chosen) == 1 else None
        value: Value
        if self.part == "tools":
            tools = _once([_tool(tool) for model_request in chosen for tool in model_request.tools])
            value = JsonValue(transcript, tools, None if spans is None else JsonSource(value_text(tools), spans))
        else:
            # The tokens of a request are known also where its text is not: who reads the text learns so.
            value = Value(transcript, lambda: self._text(chosen, unknown), spans)
        value.counted = chosen if self.part == "all" else ()
        return value

    def why_nothing(self, transcript: Transcript) -> NothingExtracted:
        count = 0 if transcript.requests is None else len(transcript.requests.references)
        return NothingExtracted(code=Code.NO_SUCH_REQUEST, fields={"at": self.at, "requests": count})

    def findings(self) -> Iterator[ConfigWarning]:
        """`of` beside `at`."""
        if self.at is not None and "of" in self.model_fields_set:
            yield ConfigWarning("warning", "without-effect", "`of` has no effect beside `at`", ("of",))

    def findings_of(self, metric: Metric) -> Iterator[ConfigWarning]:
        """A limit of tokens for what no server counts."""
        if not isinstance(metric, Tokens) or metric.checks_nothing():
            return
        if self.part != "all":
            text = "a server counts the tokens of a whole request, not of a part: leave out `part`"
            yield ConfigWarning("error", "not-counted", text)
        elif metric.output_max is not None:
            text = "a request has no output: use `max`, or `Tokens` in a criterion of another prototype class"
            yield ConfigWarning("error", "not-counted", text, ("output_max",))

    def _unknown(self, requests: ModelRequests, chosen: Sequence[ModelRequest]) -> ExtractionError | None:
        """Why the text of these requests is not known; None: it is."""
        part = "system" if self.part == "all" else self.part
        if part in requests.unrecorded:
            return ExtractionError(code=Code.REQUEST_PART_UNKNOWN, part=part)
        model_request = next((model_request for model_request in chosen if model_request.previous), None)
        if model_request is not None and self.part in ("all", "messages"):
            return ExtractionError(code=Code.REQUEST_NOT_WHOLE, number=model_request.number)
        return None

    def _text(self, chosen: Sequence[ModelRequest], unknown: ExtractionError | None) -> str:
        if unknown is not None:
            raise unknown
        return "\n\n".join(_once(self._blocks(chosen)))

    def _chosen(self, requests: ModelRequests, transcript: Transcript) -> Sequence[ModelRequest]:
        """The requests that are looked at."""
        if self.at is not None:
            return [requests.request(self.at)] if self.at <= len(requests.references) else []
        if self.of == "any":
            return requests.all
        final = transcript.final_message
        answering = None if final is None else requests.for_answer(final)
        line = answering.line if answering is not None else 1
        own = requests.numbers_of_line(line)
        return [requests.request(own[-1 if self.of == "last" else 0])] if own else []

    def _blocks(self, chosen: Sequence[ModelRequest]) -> Iterator[str]:
        for model_request in chosen:
            if model_request.system and self.part != "messages":
                yield model_request.system if self.part == "system" else f"system: {model_request.system}"
            for message in model_request.messages if self.part != "system" else ():
                yield f"{message.get('role')}: {content_of(message)}"


def last_request(transcript: Transcript) -> str | None:
    """What the model saw when it gave the final answer; None where that is not recorded. Raises `ExtractionError`."""
    extracted = None if transcript.requests is None else Context.model_validate({}).extract(transcript)
    return None if extracted is None else extracted.text


def _tool(tool: Any) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}


def _once(entries: Iterator[str] | Sequence[Any]) -> list[Any]:
    unique: list[Any] = []
    keys: set[str] = set()
    for entry in entries:
        key = entry if isinstance(entry, str) else value_text(entry)
        if key not in keys:
            keys.add(key)
            unique.append(entry)
    return unique


def _spans_of(number: int) -> SpanMap:
    def spans(start: int, end: int) -> tuple[Span, ...]:
        return (Span("request", number, start, end),)

    return spans
