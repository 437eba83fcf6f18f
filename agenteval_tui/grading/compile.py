"""Criteria made ready: everything that is the same for each transcript is done once, then grading is only looking."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from functools import cached_property, lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import canonical_json
from agenteval_tui.grading import registry
from agenteval_tui.grading.coded_error import CodedError
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.config_variables import (
    metric_without_templates,
    templates_of,
    variables_of,
    without_templates,
)
from agenteval_tui.grading.extracted_value import Context, ExtractionError, Value
from agenteval_tui.grading.placeholders import PlaceholderError, fill, fill_config, has_placeholders, look_up, names_in
from agenteval_tui.grading.regex_search import SlowPatternError
from agenteval_tui.grading.remote_requests import RemoteRequest, Reply
from agenteval_tui.grading.results import CriterionResult, Evidence, Fields, MetricResult, Outcome, Span, weighted_mean
from agenteval_tui.grading.spec import CriterionSpec, json_like, metrics_in
from agenteval_tui.transcripts.model import Transcript, message_place
from agenteval_tui.transcripts.observed import ObservedKind, unseen
from agenteval_tui.uxon.diagnostics import Diagnostic

if TYPE_CHECKING:
    from agenteval_tui.grading.extractors.extractor import Extract, Prototype
    from agenteval_tui.grading.metrics.metric import Check, Metric
    from agenteval_tui.grading.remote import RemoteMetric

    _Model = TypeVar("_Model", Prototype, Metric)

_FILLED = 256
"""Configs with their placeholders filled that one checker keeps: one for each row of a data set, as a rule."""


class UnusableConfigError(Exception):
    """A config that cannot be used: why, in one line."""


class Pipeline(Struct, frozen=True):
    """A config without placeholders, made ready."""

    prototype: Prototype
    extract: Extract
    metrics: tuple[tuple[Metric, Check], ...]
    remote: tuple[RemoteMetric, ...] = ()
    """Those of the metrics that ask a respondent."""
    needs: frozenset[ObservedKind] = frozenset()
    """What must have been observed for any verdict."""


def _must_be_read(pipeline: Pipeline, transcript: Transcript, value: Value | None) -> None:
    """Raises `ExtractionError` if the value comes from a message of which nothing could be read: its text is only a
    mark, and says nothing about the answer."""
    unread: dict[str, str] = {}
    for note in transcript.notes:
        if note.code == "unread" and note.place:
            unread.setdefault(note.place, note.what)
    if not unread:
        return
    spans = pipeline.prototype.why_nothing(transcript).searched if value is None else value.spans(0, len(value.text))
    for span in spans:
        what = unread.get(message_place(span.index)) if span.kind == "message" else None
        if what is not None:
            raise ExtractionError(code=Code.UNREAD_PART, what=what)


def _must_be_observed(pipeline: Pipeline, transcript: Transcript) -> None:
    """Raises `ExtractionError` if what the criterion looks at wasn't observed: then nothing is judged by its
    absence."""
    missing = unseen(transcript, pipeline.needs)
    if missing is not None:
        kind, note = missing
        raise ExtractionError(code=Code.NOT_OBSERVED, kind=kind, note=note.code, what=note.what)


def _observed(metric: Metric, result: MetricResult, transcript: Transcript) -> MetricResult:
    """The result; an error in place of a pass that rests on something that wasn't observed."""
    if result.outcome is not Outcome.PASSED or result.neutral:
        return result
    missing = unseen(transcript, metric.needs_to_pass)
    if missing is None:
        return result
    kind, note = missing
    return metric.error(code=Code.NOT_OBSERVED, fields={"kind": kind, "note": note.code, "what": note.what})


class Checker:
    """A criterion made ready. `check` never raises, whatever the config and the transcript are."""

    def __init__(self, spec: CriterionSpec) -> None:
        self.spec = spec
        self._prototype = spec.prototype
        self._hash = spec.hash
        self._variables: frozenset[str] = frozenset()
        self._filled: OrderedDict[str, Pipeline | str] = OrderedDict()
        self._lock = Lock()
        self._pipeline: Pipeline | str | None = None
        self._quick: dict[tuple[int, ...], tuple[CriterionResult, tuple[MetricResult, ...]]] = {}
        if spec.broken:
            self._pipeline = spec.broken
        # Asked twice: taking the templates out copies the config, and few have placeholders at all.
        elif has_placeholders(spec.value) and has_placeholders(without_templates(spec.value)):
            self._variables = names_in(without_templates(spec.value))
        else:
            self._pipeline = _build(self._prototype, spec.prototype_class, spec.value)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What is wrong with the config text, with places in `spec.config_text`."""
        # 65 ms of pydantic, which reading stored runs does not need.
        from agenteval_tui.grading.config.diagnostics import diagnose

        return diagnose(self.spec.config_text, self.spec.prototype_class)

    @property
    def problem(self) -> str:
        """Why no transcript can be graded with this criterion, in one line; "" when it can be."""
        return self._pipeline if isinstance(self._pipeline, str) else ""

    @property
    def variables(self) -> frozenset[str]:
        """The variables that the config asks for."""
        return frozenset() if self.spec.broken else variables_of(self.spec.value)

    @cached_property
    def asks(self) -> bool:
        """Whether a metric asks a respondent. False for a config that can't be used."""
        if self.problem:
            return False
        models = map(registry.metric_of, metrics_in(self.spec.value))
        return any(model is not None and model.asks is not None for model in models)

    def check(
        self,
        transcript: Transcript,
        variables: Mapping[str, Any] | None = None,
        *,
        explain: bool = True,
        replies: Mapping[str, Reply] | None = None,
    ) -> CriterionResult:
        """What the criterion says of `transcript`.

        `explain=False` gives outcome, score and the metrics' scores only, without value and evidence: for grading
        thousands at once. `replies` are what judges and others said, by the hash of the question; a metric whose
        questions are not answered there is an `error`.
        """
        try:
            return self._check(transcript, variables or {}, explain, replies)
        except (SlowPatternError, PlaceholderError, ExtractionError) as problem:
            return self._result(Outcome.ERROR, None, code=problem.code, fields=problem.fields, message=problem.message)
        except Exception as problem:
            # A plug-in's mistake, or ours: it must not take the other results with it.
            fields = {"what": "check", "type": type(problem).__name__, "message": str(problem)}
            return self._result(Outcome.ERROR, None, Code.BROKE, fields)

    def requests(
        self,
        transcript: Transcript,
        variables: Mapping[str, Any] | None = None,
        replies: Mapping[str, Reply] | None = None,
    ) -> tuple[RemoteRequest, ...]:
        """The questions that need a reply before `check` can give a verdict, without those that `replies` answers;
        never raises. Empty for a criterion that asks nothing. Call this again after asking: a reply may need a second
        question.
        """
        try:
            pipeline = self._pipeline if self._pipeline is not None else self._fill(variables or {})
            if isinstance(pipeline, str) or not pipeline.remote:
                return ()
            value = pipeline.extract(transcript)
            if value is None:
                return ()
            # Only notes, and stored requests, can say that something was not observed: most transcripts need no look.
            if transcript.notes or "requests" in pipeline.needs:
                _must_be_observed(pipeline, transcript)
                _must_be_read(pipeline, transcript, value)
            context = self._context(variables or {}, False, replies)
            remote_requests = [request for metric in pipeline.remote for request in metric.missing(value, context)]
        except Exception:
            return ()  # `check` meets the same, and says it
        return tuple({request.hash: request for request in remote_requests}.values())

    def _context(self, variables: Mapping[str, Any], explain: bool, replies: Mapping[str, Reply] | None) -> Context:
        expected = self.spec.expected_value
        if isinstance(expected, str) and "{{" in expected:
            expected = fill(expected, variables, typed=True)
        if expected is None:
            # The row of a dataset has the right answer. It is data: braces in it are not placeholders.
            expected = variables.get("expected_value")
        if isinstance(expected, str) and not expected.strip() and expected is not self.spec.expected_value:
            expected = None  # a hole in the data: there is nothing to compare with
        spec = self.spec
        return Context(
            expected,
            variables=variables,
            explain=explain,
            replies=replies,
            criterion=spec.name,
            negate=spec.negate,
            pass_threshold=spec.pass_threshold,
        )

    def _check(
        self,
        transcript: Transcript,
        variables: Mapping[str, Any],
        explain: bool,
        replies: Mapping[str, Reply] | None,
    ) -> CriterionResult:
        pipeline = self._pipeline if self._pipeline is not None else self._fill(variables)
        if isinstance(pipeline, str):
            return self._result(Outcome.ERROR, None, Code.BAD_CONFIG, {"message": pipeline})
        if transcript.notes or "requests" in pipeline.needs:
            _must_be_observed(pipeline, transcript)
        value = pipeline.extract(transcript)
        if transcript.notes:
            _must_be_read(pipeline, transcript, value)
        if value is None:
            return self._nothing(pipeline, transcript, explain)
        context = self._context(variables, explain, replies)
        results = tuple([_run(metric, check, value, context) for metric, check in pipeline.metrics])
        if transcript.notes:
            results = tuple(
                [
                    _observed(metric, result, transcript) if metric.needs_to_pass else result
                    for (metric, _), result in zip(pipeline.metrics, results, strict=True)
                ]
            )
        if explain and self._variables:
            results = _with_templates(results, self.spec.value)
        if explain or pipeline.remote:
            return self._judged(pipeline, results, value if explain else None)
        # Metrics give the same few result objects again and again when they need not explain.
        # By identity: what is kept holds the results, so no other object can get their numbers.
        key = tuple(map(id, results))
        judged = self._quick.get(key)
        if judged is None:
            judged = (self._judged(pipeline, results, None), results)
            if len(self._quick) < 1000:
                self._quick[key] = judged
        return judged[0]

    def _fill(self, variables: Mapping[str, Any]) -> Pipeline | str:
        """The pipeline for a row's variables. Raises `PlaceholderError`."""
        spec = self.spec
        values = dict(variables)
        if spec.expected_value is not None:
            values["expected_value"] = fill(json_like(spec.expected_value), variables, typed=True)

        key = canonical_json([[name, json_like(look_up(name, values))] for name in sorted(self._variables)])
        # Runs are graded in several threads. Two may build the same pipeline at once, which does no harm.
        with self._lock:
            filled = self._filled.get(key)
            if filled is not None:
                self._filled.move_to_end(key)
                return filled
        value = _fill_config(spec.value, values)
        pipeline = _build(self._prototype, spec.prototype_class, value)
        with self._lock:
            self._filled[key] = pipeline
            while len(self._filled) > _FILLED:
                self._filled.popitem(last=False)
        return pipeline

    def _judged(self, pipeline: Pipeline, results: tuple[MetricResult, ...], value: Value | None) -> CriterionResult:
        outcome, score, code, fields = _combined(results, self.spec.pass_threshold)
        if outcome is Outcome.PASSED and score is None and pipeline.prototype.can_find_nothing:
            score, code, fields = 1.0, Code.VALUE_FOUND, {}
        return self._result(outcome, score, code, fields, results, value)

    def _nothing(self, pipeline: Pipeline, transcript: Transcript, explain: bool) -> CriterionResult:
        if not explain:
            return self._result(Outcome.FAILED, 0.0, Code.NOTHING_EXTRACTED, {})
        why = pipeline.prototype.why_nothing(transcript)
        fields = {"message": why.message} if why.message else why.fields
        evidence = Evidence(
            "extraction",
            False,
            spans=why.searched,
            near=why.near,
            group="extraction",
            code=Code.NOTHING_EXTRACTED if why.message else why.code,
            fields=fields,
        )
        # No metric could run; the extraction's own line takes the place of theirs.
        line = MetricResult("extraction", "extraction", Outcome.FAILED, 0.0, evidence=(evidence,))
        return self._result(Outcome.FAILED, 0.0, Code.NOTHING_EXTRACTED, {}, (line,))

    def _result(
        self,
        outcome: Outcome,
        score: float | None,
        code: str = "",
        fields: Fields | None = None,
        results: tuple[MetricResult, ...] = (),
        value: Value | None = None,
        message: str = "",
    ) -> CriterionResult:
        spec = self.spec
        text, spans = _shown(value)
        if spec.negate and score is not None and outcome in (Outcome.PASSED, Outcome.FAILED):
            was, score = outcome, 1.0 - score
            outcome = Outcome.FAILED if was is Outcome.PASSED else Outcome.PASSED
        return CriterionResult(
            criterion=spec.name,
            outcome=outcome,
            score=score,
            severity=spec.severity,
            weight=spec.weight,
            negate=spec.negate,
            prototype_class=self._prototype,
            criterion_hash=self._hash,
            value=text,
            value_spans=spans,
            metrics=results,
            message=message,
            code=code,
            fields=fields or {},
        )


def compile_criterion(spec: CriterionSpec) -> Checker:
    """The criterion made ready; never raises. The same criterion gives the same checker as long as it is cached."""
    return _compile(_Key(spec))


class _Key:
    """A spec as a key of the cache: everything that a checker's results show."""

    __slots__ = ("key", "spec")

    def __init__(self, spec: CriterionSpec) -> None:
        self.spec = spec
        self.key = (spec.hash, spec.name, spec.prototype_class, float(spec.weight), spec.severity, spec.source)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.key == other.key


@lru_cache(maxsize=512)
def _compile(key: _Key) -> Checker:
    return Checker(key.spec)


def _shown(value: Value | None) -> tuple[str | None, tuple[Span, ...]]:
    """The value's text and its places; none where the metrics could do without its text, which is not known."""
    try:
        return (None, ()) if value is None else (value.text, value.spans(0, len(value.text)))
    except ExtractionError:
        return None, ()


def _run(metric: Metric, check: Check, value: Value, context: Context) -> MetricResult:
    try:
        return check(value, context)
    except ExtractionError:
        raise  # the text of the value is not known: that is of the criterion, and of no metric alone
    except CodedError as problem:
        return metric.error_from(problem)
    except Exception as problem:
        fields = {"what": "metric", "type": type(problem).__name__, "message": str(problem)}
        return metric.error(code=Code.BROKE, fields=fields)


_ENTRY = re.compile(r"(\w+)\[(\d+)\]")


def _with_templates(results: tuple[MetricResult, ...], config: Any) -> tuple[MetricResult, ...]:
    """The results with, in each missed line about an entry of a list, that entry as the config has it, if it holds
    variables: what is expected differs from row to row, and the entry is the same one."""
    listed = metrics_in(config)
    if len(listed) != len(results):
        return results
    return tuple([_with_template(result, written) for result, written in zip(results, listed, strict=True)])


def _with_template(result: MetricResult, written: Mapping[str, Any]) -> MetricResult:
    if result.outcome is not Outcome.FAILED or not has_placeholders(written):
        return result
    lines = []
    for line in result.evidence:
        entry = _ENTRY.fullmatch(line.condition) if line.passed is False else None
        texts = written.get(entry[1]) if entry is not None else None
        here = texts[int(entry[2]) :][:1] if entry is not None and isinstance(texts, list) else []
        is_template = bool(here) and isinstance(here[0], str) and bool(names_in(here[0]))
        lines.append(replace(line, fields={**line.fields, "template": here[0]}) if is_template else line)
    return replace(result, evidence=tuple(lines))


def _combined(
    results: tuple[MetricResult, ...], threshold: float | None
) -> tuple[Outcome, float | None, str, Fields | None]:
    """Outcome and score of a criterion from its metrics; code and fields where these say more than the metrics do. An
    error is never outweighed."""
    for undecided in (Outcome.ERROR, Outcome.NEEDS_REVIEW):
        for result in results:
            if result.outcome is undecided:
                return undecided, None, "", None
    counted = [result for result in results if not result.neutral and result.score is not None]
    if not counted:
        return Outcome.PASSED, None, Code.CHECKS_NOTHING, {"of": "criterion"}
    # A plug-in's metric may give any number.
    score = min(1.0, max(0.0, weighted_mean(counted)))
    if threshold is not None:
        # A mean of decimal numbers may fall a hair short of what it is.
        passed = score >= threshold - 1e-9
        fields = {"score": score, "threshold": threshold, "reached": passed}
        return (Outcome.PASSED if passed else Outcome.FAILED), score, Code.THRESHOLD, fields
    failed = any(metric_result.outcome is not Outcome.PASSED for metric_result in counted)
    return (Outcome.FAILED if failed else Outcome.PASSED), score, "", None


def _fill_config(value: object, variables: Mapping[str, Any]) -> object:
    """The config with its placeholders filled; in each metric with what that metric says of its properties."""
    if not isinstance(value, Mapping):
        return fill_config(value, variables)
    filled: dict[str, Any] = {}
    for key, item in value.items():
        if key == "metrics" and isinstance(item, list):
            filled[key] = [_fill_metric(metric, variables) for metric in item]
        else:
            filled[key] = fill_config({key: item}, variables)[key]
    return filled


def _fill_metric(metric: Any, variables: Mapping[str, Any]) -> object:
    # What a function is given is its own: it may well take an empty text.
    is_function = isinstance(metric, Mapping) and registry.known_metric(str(metric.get("type"))) == "Python"
    filled = (fill if is_function else fill_config)(metric_without_templates(metric), variables, _any_json(metric))
    return (
        {**filled, **{name: metric[name] for name in templates_of(metric)}} if isinstance(metric, Mapping) else filled
    )


def _any_json(metric: Any) -> frozenset[str]:
    model = registry.metric_of(metric)
    return frozenset() if model is None else model.any_json


def _build(name: str, written: str, value: object) -> Pipeline | str:
    """The pipeline of a config value; a text saying what is wrong with it when there is none."""
    try:
        return _pipeline(written, value)
    except (UnusableConfigError, AgentevalError) as problem:
        return str(problem)
    except Exception as problem:
        return f"{name} cannot be made ready: {type(problem).__name__}: {problem}"


def _pipeline(prototype_class: str, value: object) -> Pipeline:
    if value is None:
        value = {}
    if not isinstance(value, Mapping):
        raise UnusableConfigError("config_uxon must be an object: { ... }")
    problems: list[str] = []
    model = registry.prototype(prototype_class)
    prototype = _read(model, {key: item for key, item in value.items() if key != "metrics"}, "", problems)
    listed = value.get("metrics", [])
    if not isinstance(listed, list):
        problems.append("`metrics` must be a list: write [ ... ]")
        listed = []
    metrics = [_metric(number, entry, problems) for number, entry in enumerate(listed)]
    if problems or prototype is None:
        raise UnusableConfigError("; ".join(problems))
    for number, metric in enumerate(metrics):
        if metric is not None and metric.alone_because and len(metrics) > 1:
            raise UnusableConfigError(f"`metrics[{number}]`: {metric.alone_because}")
    prepared = tuple((metric, metric.prepare()) for metric in metrics if metric is not None)
    remote = tuple(cast("RemoteMetric", metric) for metric, _ in prepared if metric.asks is not None)
    needs = prototype.needs.union(*(metric.needs for metric, _ in prepared if not metric.checks_nothing()))
    return Pipeline(prototype, prototype.compile(), prepared, remote, needs)


def _metric(number: int, entry: object, problems: list[str]) -> Metric | None:
    where = f"metrics[{number}]"
    if not isinstance(entry, Mapping):
        problems.append(f"`{where}` must be an object: {{ ... }}")
        return None
    name = entry.get("type")
    if not isinstance(name, str):
        problems.append(f"`{where}.type` is missing" if name is None else f"`{where}.type` must be a string")
        return None
    try:
        model = registry.metric(name)
    except AgentevalError as unknown:
        problems.append(f"`{where}.type`: {unknown}")
        return None
    return _read(model, {key: item for key, item in entry.items() if key != "type"}, where, problems)


def _read(model: type[_Model], config: Mapping[str, Any], where: str, problems: list[str]) -> _Model | None:
    from pydantic import ValidationError

    try:
        return model.model_validate(dict(config))
    except ValidationError as error:
        # As in `diagnostics`.
        from agenteval_tui.grading.config.errors import message_for

        problems.append(message_for(error, model, where))
        return None
