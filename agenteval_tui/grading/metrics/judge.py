"""`Judge`: another agent says how good the value is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from agenteval_tui.core.schema_rules import Rule, given, set_to, where
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.context import Context
from agenteval_tui.grading.extracted_value import Value
from agenteval_tui.grading.metrics.judge_question import (
    conversation,
    judge_messages,
    prompt_of,
    repair_messages,
    tools_of,
)
from agenteval_tui.grading.metrics.judge_reading import Judgment, UnreadableError, read_judgment
from agenteval_tui.grading.metrics.judge_scale import SCALES, OffScaleError, Scale, ScaleName, median
from agenteval_tui.grading.metrics.metric import ConfigWarning
from agenteval_tui.grading.placeholders import text_of
from agenteval_tui.grading.remote import RemoteMetric, UnusableError, replies_as_evidence
from agenteval_tui.grading.remote_requests import AskKind, RemoteCall, RemoteRequest, Reply
from agenteval_tui.grading.results import Evidence, MetricResult
from agenteval_tui.transcripts.observed import ObservedKind

See = Literal["output", "prompt", "transcript", "tools", "expected"]
_LINE = 300
_DEFAULT_SCALE: ScaleName = "zero_to_one"


def _scale_rule(scale: Scale) -> Rule:
    """The rule of `Judge`'s validator for figures on this scale, as JSON Schema for editors."""
    chosen = {"properties": {"scale": {"const": scale.name}}}
    on_it = {"minimum": scale.low, "maximum": scale.high}
    return where(
        chosen if scale.name == _DEFAULT_SCALE else set_to("scale", scale.name),
        {
            "properties": {
                "pass_threshold": {"maximum": max(1, scale.high)},
                "minimums": {"additionalProperties": on_it},
            }
        },
    )


class Judge(RemoteMetric):
    """Asks another agent, the judge, to score the value by criteria that you write in words.

    The judge gets a fixed prompt in which the material is marked as data. It answers with one JSON object, which has a
    score and its reasons. Sentences before or after the object, a code block around it, and a think block before it are
    allowed. If there are several objects, if the only one is a quote of the material, or if its fields contradict each
    other, the judge is asked once more. If that answer can't be read either, or a score isn't on the scale, the outcome
    is `error`, never a verdict. Servers with structured output (OpenAI, Gemini) are asked for the object's form.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                *(_scale_rule(scale) for scale in SCALES.values()),
                where(
                    {"required": ["minimums"], "properties": {"minimums": {"minProperties": 1}}}, given("dimensions")
                ),
            ]
        }
    )
    asks: ClassVar[AskKind] = "chat"
    given_criteria: ClassVar[str] = ""
    """The criteria of a preset. They come before the criteria of its user."""

    criteria: str = Field("", description="What makes a good answer, in words. The judge scores the value by this.")
    scale: ScaleName = Field(_DEFAULT_SCALE, description="The scale of the judge's score.")
    dimensions: dict[str, str] | None = Field(
        None, description="Aspects with separate scores: names with descriptions."
    )
    pass_threshold: float | None = Field(
        None,
        ge=0,
        le=10,
        description="The lowest score that passes: 0..1, or, above 1, on the scale. Default 0.7 (one_to_five: 3.5).",
    )
    minimums: dict[str, float] | None = Field(
        None,
        description="The lowest score for each dimension, on the scale itself. Each dimension must reach its minimum.",
    )
    reference: str | None = Field(
        None, description="The right answer for the judge to compare with. Default: the criterion's expected value."
    )
    see: Annotated[list[See], Field(min_length=1)] = Field(
        default=["prompt", "output", "expected"],
        description="What the judge sees. `expected` is the reference, if there is one.",
    )
    judge: str = Field(
        "", description='The name of the agent that judges. Default: the agent of --judge, or else the agent "judge".'
    )
    votes: int = Field(1, ge=1, le=25, description="How often to ask the judge; the score is the median.")

    @property
    def needs(self) -> frozenset[ObservedKind]:
        return frozenset(("tool_calls",) if "tools" in self.see else ())

    @model_validator(mode="after")
    def _on_the_scale(self) -> Self:
        scale = self.the_scale
        if self.pass_threshold is not None and self.pass_threshold > max(1.0, scale.high):
            raise ValueError(
                f"`pass_threshold` {self.pass_threshold:g} can't be reached: the scale is {scale.in_words}"
            )
        for name, least in (self.minimums or {}).items():
            if name not in (self.dimensions or {}):
                raise ValueError(f"`minimums` names {name!r}, which is none of the `dimensions`")
            if not scale.low <= least <= scale.high:
                raise ValueError(f"the minimum {least:g} of {name!r} is not on the scale ({scale.in_words})")
        return self

    @property
    def the_scale(self) -> Scale:
        """The scale's figures."""
        return SCALES[self.scale]

    @property
    def target(self) -> str:
        return self.judge

    @property
    def threshold(self) -> float:
        """The least share 0..1 that passes."""
        scale, given = self.the_scale, self.pass_threshold
        if given is not None and given <= 1:
            return given
        return scale.share(scale.threshold if given is None else given)

    def checks_nothing(self) -> bool:
        return not (self.criteria.strip() or self.given_criteria or self.dimensions)

    def findings(self) -> Iterator[ConfigWarning]:
        if self.checks_nothing():
            yield ConfigWarning("warning", "checks-nothing", "the judge has neither `criteria` nor `dimensions`")
        if self.reference is not None and "expected" not in self.see:
            yield ConfigWarning(
                "warning", "without-effect", '`reference` is not shown: `see` has no "expected"', ("reference",)
            )

    def requests(self, value: Value, context: Context) -> tuple[RemoteRequest, ...]:
        criteria = "\n\n".join(part for part in (self.given_criteria, self.criteria.strip()) if part)
        messages = judge_messages(criteria, self.the_scale, self.dimensions or {}, self._material(value, context))
        return tuple(
            RemoteRequest("chat", self.judge, {"messages": messages, "vote": vote}) for vote in range(1, self.votes + 1)
        )

    def follow_up(self, request: RemoteRequest, reply: Reply) -> RemoteRequest | None:
        try:
            self._read(reply, request)
        except UnreadableError as problem:
            messages = repair_messages(request.payload["messages"], reply.raw, str(problem))
            return RemoteRequest("chat", self.judge, {"messages": messages, "vote": request.payload["vote"]})
        except OffScaleError:
            pass
        return None

    def conclude(self, asked: Sequence[RemoteCall], value: Value, context: Context) -> MetricResult:
        judgments: list[Judgment] = []
        for number, one in enumerate(asked, 1):
            try:
                judgments.append(self._read(one.last, one.request))
            except (UnreadableError, OffScaleError) as problem:
                code = Code.OFF_SCALE if isinstance(problem, OffScaleError) else Code.UNREADABLE_REPLY
                fields = {"problem": str(problem), "vote": number, "votes": len(asked)}
                return self.error(evidence=replies_as_evidence(asked), code=code, fields=fields)
        if not judgments:
            raise UnusableError(code=Code.NOT_ASKED, kind=self.asks, target=self.target)
        return self._result(judgments, asked)

    def _read(self, reply: Reply, request: RemoteRequest) -> Judgment:
        asked = next(one["content"] for one in request.payload["messages"] if one["role"] == "user")
        return read_judgment(
            reply.raw, self.the_scale, tuple(self.dimensions or ()), threshold=self.threshold, asked=asked
        )

    def _result(self, judgments: Sequence[Judgment], asked: Sequence[RemoteCall]) -> MetricResult:
        scale = self.the_scale
        raw = median(one.score for one in judgments)
        share = scale.share(raw)
        reached = share >= self.threshold - 1e-9
        least = scale.low + self.threshold * (scale.high - scale.low)
        closest = min(judgments, key=lambda one: abs(one.score - raw))
        measured = {"measure": "score", "scale": [scale.name, scale.low, scale.high]}
        fields: dict[str, Any] = {**measured, "score": raw, "least": least, "reasoning": closest.reasoning[:_LINE]}
        code, expected = Code.WITHIN if reached else Code.TOO_LOW, f">= {scale.written(least)}"
        evidence = [Evidence("score", reached, "", expected, _figure(scale, raw), code=code, fields=fields)]
        low = False
        for name in self.dimensions or ():
            figure = median(one.dimensions[name] for one in judgments)
            minimum = (self.minimums or {}).get(name)
            passed = None if minimum is None else figure >= minimum - 1e-9
            low |= passed is False
            fields = {**measured, "dimension": name, "score": figure}
            if minimum is not None:
                fields["least"] = minimum
            code = Code.MEASURED if passed is None else Code.WITHIN if passed else Code.TOO_LOW
            wanted = None if minimum is None else f">= {minimum:g}"
            found = _figure(scale, figure)
            evidence.append(Evidence(f"dimensions.{name}", passed, "", wanted, found, code=code, fields=fields))
        evidence.extend(_words(judgments, asked))
        return self.result(reached and not low, share, tuple(evidence))

    def _material(self, value: Value, context: Context) -> list[tuple[str, str]]:
        reference = self.reference
        if reference is None and context.expected_value is not None:
            reference = text_of(context.expected_value)
        makers: dict[str, Any] = {
            "output": lambda: ("the answer to be judged", value.text),
            "prompt": lambda: ("what the agent was asked", prompt_of(value.transcript)),
            "transcript": lambda: ("the whole conversation", conversation(value.transcript)),
            "tools": lambda: ("the agent's tool calls and their results", tools_of(value.transcript)),
            "expected": lambda: ("the expected answer (reference)", reference),
        }
        wanted = [name for name in dict.fromkeys(self.see) if name != "expected" or reference is not None]
        if not wanted:
            raise UnusableError(code=Code.NOTHING_TO_SEE)
        return [makers[name]() for name in wanted]


def _words(judgments: Sequence[Judgment], asked: Sequence[RemoteCall]) -> Iterator[Evidence]:
    """What the judge said, whole; and with several votes, how far they lie apart."""
    many = len(judgments) > 1
    fields: dict[str, Any]
    if many:
        scores = [one.score for one in judgments]
        fields = {"votes": scores, "median": median(scores)}
        yield Evidence("votes", None, found=scores, code=Code.REPLIED, fields=fields)
    for number, (one, its) in enumerate(zip(judgments, asked, strict=True), 1):
        which = f"[{number}]" if many else ""
        if one.reasoning or its.repair is not None:
            fields = {"text": one.reasoning[: 2 * _LINE], "model": its.last.model, "repaired": its.repair is not None}
            yield Evidence(f"reasoning{which}", None, found=one.reasoning, code=Code.REPLIED, fields=fields)
        for name, texts in (("strengths", one.strengths), ("weaknesses", one.weaknesses)):
            if texts:
                fields = {"remarks": list(texts)}
                yield Evidence(f"{name}{which}", None, found=list(texts), code=Code.REPLIED, fields=fields)


def _figure(scale: Scale, score: float) -> Any:
    return bool(score) if scale.name == "pass_fail" and score in (0, 1) else score
