"""`Judge`: another agent says how good the value is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from agenteval_tui.core.ids import content_hash
from agenteval_tui.core.numbers import median
from agenteval_tui.core.schema_rules import Rule, given, set_to, where
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.config.model import EXACT, RegexText, no_null
from agenteval_tui.grading.extracted_value import Context, ExtractionError, Value
from agenteval_tui.grading.extractors.context import last_request
from agenteval_tui.grading.metrics.human import read_label
from agenteval_tui.grading.metrics.judge_acceptance import LabelledScore, LabelledScores, acceptance, read_labelled
from agenteval_tui.grading.metrics.judge_question import (
    AS_JSON,
    OWN_NAMES,
    SHOWN,
    PromptTemplate,
    conversation,
    in_single_braces,
    json_form,
    judge_messages,
    listed,
    material_of,
    own_messages,
    prompt_of,
    repair_messages,
    template_of,
    tools_of,
    variable_text,
)
from agenteval_tui.grading.metrics.judge_reply import Judgment, UnreadableError, read_judgment
from agenteval_tui.grading.metrics.judge_reply_forms import (
    KINDS,
    PatternReplyError,
    ReplyForm,
    form_of,
    read_reply,
)
from agenteval_tui.grading.metrics.judge_scale import SCALES, OffScaleError, Scale, ScaleName
from agenteval_tui.grading.metrics.metric import ConfigWarning
from agenteval_tui.grading.placeholders import PlaceholderError, is_blank, text_of
from agenteval_tui.grading.regex_search import PatternError, SlowPatternError
from agenteval_tui.grading.remote import RemoteMetric, UnusableError, replies_as_evidence
from agenteval_tui.grading.remote_requests import AskKind, RemoteCall, RemoteRequest, Reply
from agenteval_tui.grading.results import Evidence, MetricResult, Outcome
from agenteval_tui.grading.sentences import score_phrase
from agenteval_tui.transcripts.observed import ObservedKind

See = Literal["output", "prompt", "transcript", "tools", "expected"]
_LINE = 300
_OF_A_PROMPT = ("reply", "yes_words", "no_words", "overall")
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


class Accept(BaseModel):
    """How often a judge may be wrong where it decides. People's labels show for which scores that holds."""

    model_config = EXACT
    _no_null = no_null

    error: float = Field(gt=0, lt=0.5, description="The share of its verdicts that may be wrong: 0.1 is one in ten.")
    confidence: float = Field(0.95, ge=0.5, lt=1, description="How certain that must be.")


class JudgeError(ValueError):
    """Properties of a judge that don't go together: which one, and why."""

    code = "judge-reply"

    def __init__(self, name: str, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.path = (name,)
        self.position = position


class Judge(RemoteMetric):
    """Asks another agent, the judge, to score the value by criteria that you write in words.

    The judge gets a fixed prompt, or yours (`prompt`), in which the material is marked as data. It answers with one
    JSON object, which has a score and its reasons, or in the form that `reply` names. Sentences before or after the
    object, a code block around it, and a think block before it are allowed. If there are several objects, if the only
    one is a quote of the material, or if its fields contradict each other, the judge is asked once more. If that answer
    can't be read either, or a score isn't on the scale, the outcome is `error`, never a verdict. Servers with
    structured output (OpenAI, Gemini) are asked for the object's form.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                *(_scale_rule(scale) for scale in SCALES.values()),
                where(
                    {"required": ["minimums"], "properties": {"minimums": {"minProperties": 1}}}, given("dimensions")
                ),
                *(where({"required": [name]}, given("prompt")) for name in _OF_A_PROMPT),
            ]
        }
    )
    asks: ClassVar[AskKind] = "chat"
    given_criteria: ClassVar[str] = ""
    """The criteria of a preset. They come before the criteria of its user."""

    fills: ClassVar[Mapping[str, frozenset[str]]] = {"prompt": OWN_NAMES}

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
    prompt: str | None = Field(
        None,
        description="Your own prompt, in place of the fixed one. {{output}}, {{prompt}}, {{expected}}, {{transcript}}, "
        "{{tools}}, {{context}} and the row's variables are put in as marked data; {{criteria}}, {{dimensions}} and "
        "{{reply_form}} as they are.",
    )
    reply: Annotated[str, RegexText()] = Field(
        "json",
        examples=list(KINDS),
        description="How a judge with your own `prompt` answers: json, number, yes_no, lines (`Helpfulness: 4 - why`), "
        "or a pattern with the group (?P<score>...) or one for each dimension, and perhaps (?P<reasoning>...).",
    )
    yes_words: Annotated[list[str], Field(min_length=1)] | None = Field(
        None, description="The words for yes. Default: yes, ja. Case does not matter."
    )
    no_words: Annotated[list[str], Field(min_length=1)] | None = Field(
        None, description="The words for no. Default: no, nein. Case does not matter."
    )
    overall: str | None = Field(
        None,
        description="With `reply: lines`, the label of the line with the overall score, which must be there. Default: "
        "`Overall Score`, `Overall` or `Score`, or else the mean of the dimensions.",
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
    accept: Accept | None = Field(
        None,
        description="With `error: 0.1`, the judge keeps silent for scores with which people's labels show it to be "
        "wrong in more than 10 % of the runs, or with too few labels to know. Such runs wait for a person.",
    )
    votes: int = Field(1, ge=1, le=25, description="How often to ask the judge; the score is the median.")

    @property
    def alone_because(self) -> str:
        if self.accept is None:
            return ""
        return "`accept` needs a criterion with this metric alone: people label the criterion as a whole"

    @property
    def needs(self) -> frozenset[ObservedKind]:
        parts = self.see if self.template is None else self.template.names
        return frozenset(("tool_calls",) if {"tools", "transcript"} & {*parts} else ())

    @field_validator("prompt")
    @classmethod
    def _prompt(cls, text: str | None) -> str | None:
        if text is not None:
            template_of(text)
        return text

    @model_validator(mode="after")
    def _read_strictly(self) -> Self:
        if self.prompt is None:
            for name in _OF_A_PROMPT:
                if name in self.model_fields_set:
                    raise JudgeError(name, f"`{name}` needs a `prompt`: the fixed prompt asks for JSON")
            return self
        try:
            form = self.form
        except PatternError as problem:
            raise JudgeError("reply", problem.message, problem.position) from None
        except PatternReplyError as problem:
            raise JudgeError("reply", str(problem)) from None
        if form.kind == "yes_no" and self.scale not in ("pass_fail", _DEFAULT_SCALE):
            raise JudgeError("scale", f"`reply: yes_no` has no figure on {self.scale}: leave `scale` out")
        if form.kind in ("number", "yes_no") and self.dimensions:
            raise JudgeError(
                "dimensions", f"`reply: {form.kind}` has one score: use `lines` or `json` for `dimensions`"
            )
        if form.kind != "lines" and self.overall is not None:
            raise JudgeError("overall", "`overall` is for `reply: lines`")
        both = {word.casefold() for word in form.yes} & {word.casefold() for word in form.no}
        if both:
            raise JudgeError("no_words", f"{sorted(both)[0]!r} can't mean both yes and no")
        return self

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
        return SCALES["pass_fail" if self.reply == "yes_no" and self.prompt is not None else self.scale]

    @property
    def template(self) -> PromptTemplate | None:
        """The person's own prompt; None: the fixed one."""
        return None if self.prompt is None else template_of(self.prompt)

    @property
    def form(self) -> ReplyForm:
        """How replies are read."""
        return form_of(self.reply, self.yes_words, self.no_words, self.overall, self.dimensions)

    @property
    def target(self) -> str:
        return self.judge

    @property
    def threshold(self) -> float:
        """The least share 0..1 that passes."""
        scale, bound = self.the_scale, self.pass_threshold
        if bound is not None and bound <= 1:
            return bound
        return scale.share(scale.threshold if bound is None else bound)

    def checks_nothing(self) -> bool:
        return not (self.criteria.strip() or self.given_criteria or self.dimensions or self.prompt)

    def findings(self) -> Iterator[ConfigWarning]:
        if self.checks_nothing():
            yield ConfigWarning("warning", "checks-nothing", "the judge has neither `criteria` nor `dimensions`")
        if self.template is not None:
            yield from self._findings_of_prompt(self.template)
        elif self.reference is not None and "expected" not in self.see:
            yield ConfigWarning(
                "warning", "without-effect", '`reference` is not shown: `see` has no "expected"', ("reference",)
            )

    def requests(self, value: Value, context: Context) -> tuple[RemoteRequest, ...]:
        payload = self._asked(value, context)
        # With the number of the vote, as equal questions are asked once.
        return tuple(RemoteRequest("chat", self.judge, {**payload, "vote": vote}) for vote in range(1, self.votes + 1))

    def missing(self, value: Value, context: Context) -> tuple[RemoteRequest, ...]:
        remote_requests = super().missing(value, context)
        if remote_requests or self.accept is None or self.checks_nothing():
            return remote_requests  # people's labels matter once the judge has answered
        replies = context.replies or {}
        return tuple(request for request in self._of_people(value, context) if request.hash not in replies)

    def _of_people(self, value: Value, context: Context) -> tuple[RemoteRequest, RemoteRequest]:
        """What is asked of people: their labels of what this judge scored, and their verdict on this value."""
        how = self.model_dump(exclude={"name", "weight", "pass_threshold", "minimums", "accept"}, exclude_none=True)
        scored = RemoteRequest("labels", context.criterion, {"judge": self.judge, "asked": content_hash(how)})
        return scored, RemoteRequest("person", context.criterion, {"judge": self.judge, "output": value.text})

    def follow_up(self, request: RemoteRequest, reply: Reply) -> RemoteRequest | None:
        try:
            self._read(reply, request)
        except UnreadableError as problem:
            is_json = self.prompt is None or self.reply == "json"
            form = AS_JSON if is_json else self.form.remedy(self.the_scale, tuple(self.dimensions or ()))
            messages = repair_messages(request.payload["messages"], reply.raw, str(problem), form)
            return RemoteRequest("chat", self.judge, {**request.payload, "messages": messages})
        except (OffScaleError, SlowPatternError):
            pass
        return None

    def conclude(self, remote_calls: Sequence[RemoteCall], value: Value, context: Context) -> MetricResult:
        judgments: list[Judgment] = []
        for number, remote_call in enumerate(remote_calls, 1):
            try:
                judgments.append(self._read(remote_call.last, remote_call.request))
            except (UnreadableError, OffScaleError) as problem:
                code = Code.OFF_SCALE if isinstance(problem, OffScaleError) else Code.UNREADABLE_REPLY
                fields: dict[str, Any] = {"problem": str(problem), "vote": number, "votes": len(remote_calls)}
                if isinstance(problem, OffScaleError) and "scale" not in self.model_fields_set and problem.fits:
                    fields["fits"] = problem.fits
                return self.error(evidence=replies_as_evidence(remote_calls), code=code, fields=fields)
        if not judgments:
            raise UnusableError(code=Code.NOT_ASKED, kind=self.asks, target=self.target)
        result = self._result(judgments, remote_calls)
        return result if self.accept is None else self._accepted(result, judgments, value, context, self.accept)

    def _read(self, reply: Reply, request: RemoteRequest) -> Judgment:
        question = next(message["content"] for message in request.payload["messages"] if message["role"] == "user")
        dimensions = tuple(self.dimensions or ())
        material = None if self.prompt is None else material_of(question, request.payload["fence"])
        if material is not None and self.reply != "json":
            form = self.form
            return read_reply(reply.raw, form, self.the_scale, dimensions, threshold=self.threshold, material=material)
        return read_judgment(
            reply.raw, self.the_scale, dimensions, threshold=self.threshold, question=question, material=material
        )

    def _result(self, judgments: Sequence[Judgment], remote_calls: Sequence[RemoteCall]) -> MetricResult:
        scale = self.the_scale
        raw, medians = _medians(judgments)
        share = scale.share(raw)
        reached = share >= self.threshold - 1e-9
        least = scale.low + self.threshold * (scale.high - scale.low)
        # The reasons of the vote that is nearest to the median: they fit the figure that is shown.
        closest = min(judgments, key=lambda judgment: abs(judgment.score - raw))
        measured: dict[str, Any] = {"measure": "score", "scale": [scale.name, scale.low, scale.high]}
        fields: dict[str, Any] = {**measured, "score": raw, "least": least, "reasoning": closest.reasoning[:_LINE]}
        code, expected = Code.WITHIN if reached else Code.TOO_LOW, f">= {score_phrase(measured['scale'], least)}"
        evidence = [Evidence("score", reached, "", expected, _figure(scale, raw), code=code, fields=fields)]
        for name in self.dimensions or ():
            figure = medians[name]
            minimum = (self.minimums or {}).get(name)
            passed = None if minimum is None else figure >= minimum - 1e-9
            fields = {**measured, "dimension": name, "score": figure}
            if minimum is not None:
                fields["least"] = minimum
            code = Code.MEASURED if passed is None else Code.WITHIN if passed else Code.TOO_LOW
            least_in_words = None if minimum is None else f">= {minimum:g}"
            amount = _figure(scale, figure)
            evidence.append(
                Evidence(f"dimensions.{name}", passed, "", least_in_words, amount, code=code, fields=fields)
            )
        evidence.extend(_words(judgments, remote_calls))
        return self.result(self._passes(raw, medians), share, tuple(evidence))

    def _passes(self, score: float, dimensions: Mapping[str, float]) -> bool:
        minimums = (self.minimums or {}).items()
        reached = self.the_scale.share(score) >= self.threshold - 1e-9
        return reached and all(dimensions.get(name, least) >= least - 1e-9 for name, least in minimums)

    def _accepted(
        self, result: MetricResult, judgments: Sequence[Judgment], value: Value, context: Context, accept: Accept
    ) -> MetricResult:
        """The result if the judge may decide with this score, else what a person says, or that one is waited for."""
        scale, replies = self.the_scale, context.replies or {}
        scored, person = self._of_people(value, context)
        labelled = read_labelled(replies[scored.hash].raw) if scored.hash in replies else LabelledScores(())
        threshold = self.threshold if context.pass_threshold is None else context.pass_threshold

        def passes(score: float, dimensions: Mapping[str, float]) -> bool:
            if context.pass_threshold is not None:
                return scale.share(score) >= threshold - 1e-9
            return self._passes(score, dimensions)

        scores = tuple(
            LabelledScore(
                scale.share(score.score),
                passes(score.score, score.dimensions),
                # People label the output. Where a criterion is negated, its metric is to fail for a good one.
                score.good is not context.negate,
                score.count,
            )
            for score in labelled.scores
        )
        accepted = acceptance(scores, scale.name, threshold, accept.error, accept.confidence)
        raw, medians = _medians(judgments)
        above, below = accepted.silent_between(threshold)
        fields: dict[str, Any] = {
            "score": raw,
            "scale": [scale.name, scale.low, scale.high],
            "error": accept.error,
            "confidence": accept.confidence,
            "labels": accepted.labels,
            "decided": accepted.decided,
            "wrong": accepted.wrong,
            "needed": accepted.needed,
            "trusted": accepted.trusted,
            "unjudged": labelled.unjudged,
            "above": None if above is None else scale.score(above),
            "below": None if below is None else scale.score(below),
        }
        if accepted.decides(scale.share(raw), passes(raw, medians)):
            line = Evidence("accept", None, code=Code.TRUSTED, fields=fields)
            return replace(result, evidence=(*result.evidence, line))
        # The judge's figures stay to be seen, but they decide nothing.
        lines = tuple([replace(line, passed=None) for line in result.evidence])
        silent = replace(result, outcome=Outcome.NEEDS_REVIEW, score=None, evidence=lines, code=Code.KEEPS_SILENT)
        silent = replace(silent, fields=fields)
        label = replies.get(person.hash)
        if label is None:
            return silent
        passed, score, line = read_label(label.raw, negate=context.negate)
        evidence = Evidence("accept", None, code=Code.KEEPS_SILENT, fields=fields)
        return self.result(passed, score, (line, evidence, *lines))

    def _asked(self, value: Value, context: Context) -> dict[str, Any]:
        """What one vote is asked with. Raises `UnusableError`."""
        criteria = "\n\n".join(part for part in (self.given_criteria, self.criteria.strip()) if part)
        dimensions, scale = self.dimensions or {}, self.the_scale
        template = self.template
        if template is None:
            names = [name for name in dict.fromkeys(self.see) if name != "expected" or self._has_reference(context)]
            if not names:
                raise UnusableError(code=Code.NOTHING_TO_SEE)
            material = [self._shown(name, value, context) for name in names]
            return {"messages": judge_messages(criteria, scale, dimensions, material)}
        form = self.form
        answer = json_form(scale, dimensions) if form.kind == "json" else form.asked_for(scale, tuple(dimensions))
        words = {"criteria": criteria, "dimensions": listed(dimensions), "reply_form": answer}
        content, fence = template.filled(words, lambda name: self._shown(name, value, context))
        payload: dict[str, Any] = {"messages": own_messages(content), "fence": fence}
        return payload if form.kind == "json" else {**payload, "reply": "text"}

    def _has_reference(self, context: Context) -> bool:
        return self.reference is not None or context.expected_value is not None

    def _shown(self, name: str, value: Value, context: Context) -> tuple[str, str]:
        """What a judge is shown under this name, and how that is called. Raises `UnusableError`."""
        transcript = value.transcript
        if name == "output":
            return SHOWN[name], value.text
        if name == "prompt":
            return SHOWN[name], prompt_of(transcript)
        if name == "transcript":
            return SHOWN[name], conversation(transcript)
        if name == "tools":
            return SHOWN[name], tools_of(transcript)
        if name in ("expected", "expected_value"):
            if not self._has_reference(context):
                raise UnusableError(code=Code.NO_EXPECTED_VALUE, metric=self.type_name)
            return SHOWN["expected"], text_of(context.expected_value) if self.reference is None else self.reference
        try:
            if name == "context" and is_blank(context.variables.get(name)):
                request_text = last_request(transcript)
                if request_text is None:
                    raise UnusableError(code=Code.NO_CONTEXT)
                return SHOWN[name], request_text
            return variable_text(name, context.variables)
        except (ExtractionError, PlaceholderError) as problem:
            raise UnusableError(code=problem.code, **problem.fields) from None

    def _findings_of_prompt(self, template: PromptTemplate) -> Iterator[ConfigWarning]:
        names = template.names
        for message, _ in in_single_braces(template.text):
            yield ConfigWarning("warning", "judge-prompt", message, ("prompt",))
        if "see" in self.model_fields_set:
            yield ConfigWarning("warning", "without-effect", "`see` has no effect beside `prompt`", ("see",))
        if self.reference is not None and not names & {"expected", "expected_value"}:
            yield ConfigWarning(
                "warning", "without-effect", "`reference` is not shown: `prompt` has no {{expected}}", ("reference",)
            )
        if self.criteria.strip() and "criteria" not in names:
            yield ConfigWarning(
                "warning", "without-effect", "`criteria` are not asked: `prompt` has no {{criteria}}", ("criteria",)
            )
        text = template.text.casefold()
        hidden = [name for name in self.dimensions or () if name.casefold() not in text]
        if hidden and "dimensions" not in names and "reply_form" not in names:
            yield ConfigWarning(
                "warning",
                "not-asked",
                f"the judge is not told of the dimension {hidden[0]!r}: name it in "
                "`prompt`, or write {{dimensions}}",
                ("dimensions",),
            )
        if self.reply == "json" and "reply_form" not in names and "score" not in text:
            yield ConfigWarning(
                "warning",
                "not-asked",
                "the prompt does not ask for JSON with a `score`: write {{reply_form}} at its end, or name another "
                "`reply`",
                ("prompt",),
            )


def _medians(judgments: Sequence[Judgment]) -> tuple[float, dict[str, float]]:
    """The score over all votes, and that of each dimension."""
    names = judgments[0].dimensions
    score = median(judgment.score for judgment in judgments)
    return score, {name: median(judgment.dimensions[name] for judgment in judgments) for name in names}


def _words(judgments: Sequence[Judgment], remote_calls: Sequence[RemoteCall]) -> Iterator[Evidence]:
    """What the judge said, whole; and with several votes, how far they lie apart."""
    many = len(judgments) > 1
    fields: dict[str, Any]
    if many:
        scores = [judgment.score for judgment in judgments]
        fields = {"votes": scores, "median": median(scores)}
        yield Evidence("votes", None, found=scores, code=Code.REPLIED, fields=fields)
    for number, (judgment, its) in enumerate(zip(judgments, remote_calls, strict=True), 1):
        which = f"[{number}]" if many else ""
        if judgment.reasoning or its.repair is not None:
            fields = {
                "text": judgment.reasoning[: 2 * _LINE],
                "model": its.last.model,
                "repaired": its.repair is not None,
            }
            yield Evidence(f"reasoning{which}", None, found=judgment.reasoning, code=Code.REPLIED, fields=fields)
        for name, texts in (("strengths", judgment.strengths), ("weaknesses", judgment.weaknesses)):
            if texts:
                fields = {"remarks": list(texts)}
                yield Evidence(f"{name}{which}", None, found=list(texts), code=Code.REPLIED, fields=fields)


def _figure(scale: Scale, score: float) -> object:
    return bool(score) if scale.name == "pass_fail" and score in (0, 1) else score
