"""`Judge`: another agent says how good the value is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.metrics.judge_prompt import (
    conversation,
    judge_messages,
    prompt_of,
    repair_messages,
    tools_of,
)
from agenteval_tui.grading.metrics.judge_reply import Judgment, UnreadableError, read_judgment
from agenteval_tui.grading.metrics.judge_scale import SCALES, OffScaleError, Scale, ScaleName, median
from agenteval_tui.grading.metrics.metric import Context, Finding
from agenteval_tui.grading.placeholders import text_of
from agenteval_tui.grading.remote import (
    Asked,
    AskKind,
    RemoteMetric,
    RemoteRequest,
    Reply,
    UnusableError,
    replies_as_evidence,
)
from agenteval_tui.grading.results import Evidence, MetricResult
from agenteval_tui.grading.value import Value

See = Literal["output", "prompt", "transcript", "tools", "expected"]

_LINE = 300


class Judge(RemoteMetric):
    """Asks another agent, the judge, to score the value by criteria in words.

    The judge gets a fixed prompt with the material marked as data. It answers with one JSON object: a score and its
    reasons, bare or in one code block, or after one think block. An answer in any other form, or whose fields
    contradict each other, is asked for once more; if that can't be read either, or a score is not on the scale, the
    outcome is `error`, never a verdict.
    """

    asks: ClassVar[AskKind] = "chat"
    given_criteria: ClassVar[str] = ""
    """What a preset asks for, before the criteria of its user."""

    criteria: str = Field("", description="What makes a good answer, in words. The judge scores by this.")
    scale: ScaleName = Field("zero_to_one", description="What the judge answers with.")
    dimensions: dict[str, str] | None = Field(
        None, description="Aspects that get a score of their own, by name, each with what it asks for."
    )
    pass_threshold: float | None = Field(
        None,
        ge=0,
        le=10,
        description="The least score that passes: 0..1, or above 1 on the scale. Default 0.7 (one_to_five: 3.5).",
    )
    minimums: dict[str, float] | None = Field(
        None, description="The least score of a dimension, on the scale itself; each must be reached."
    )
    reference: str | None = Field(
        None, description="The right answer, for the judge to compare with. Default: the criterion's expected value."
    )
    see: Annotated[list[See], Field(min_length=1)] = Field(
        default=["prompt", "output", "expected"],
        description="What the judge gets to see. `expected` is the reference, where there is one.",
    )
    judge: str = Field(
        "", description='The name of the agent that judges. Default: what --judge names, else the agent "judge".'
    )
    votes: int = Field(1, ge=1, le=25, description="How often the judge is asked; the score is the median.")

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

    def findings(self) -> Iterator[Finding]:
        if self.checks_nothing():
            yield Finding("warning", "checks-nothing", "the judge has neither `criteria` nor `dimensions`")
        if self.reference is not None and "expected" not in self.see:
            yield Finding(
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
            self._read(reply)
        except UnreadableError as problem:
            messages = repair_messages(request.payload["messages"], reply.raw, str(problem))
            return RemoteRequest("chat", self.judge, {"messages": messages, "vote": request.payload["vote"]})
        except OffScaleError:
            pass
        return None

    def conclude(self, asked: Sequence[Asked], value: Value, context: Context) -> MetricResult:
        judgments: list[Judgment] = []
        for number, one in enumerate(asked, 1):
            try:
                judgments.append(self._read(one.last))
            except (UnreadableError, OffScaleError) as problem:
                code = Code.OFF_SCALE if isinstance(problem, OffScaleError) else Code.UNREADABLE_REPLY
                fields = {"problem": str(problem), "vote": number, "votes": len(asked)}
                return self.error(evidence=replies_as_evidence(asked), code=code, fields=fields)
        if not judgments:
            raise UnusableError(code=Code.NOT_ASKED, kind=self.asks, target=self.target)
        return self._result(judgments, asked)

    def _read(self, reply: Reply) -> Judgment:
        return read_judgment(reply.raw, self.the_scale, tuple(self.dimensions or ()), threshold=self.threshold)

    def _result(self, judgments: Sequence[Judgment], asked: Sequence[Asked]) -> MetricResult:
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
        evidence.extend(_words(scale, judgments, asked))
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


def _words(scale: Scale, judgments: Sequence[Judgment], asked: Sequence[Asked]) -> Iterator[Evidence]:
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
