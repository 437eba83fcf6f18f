"""Prototype classes and metrics by name, found by entry points; the built-in ones too."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading.type_names import short_name

if TYPE_CHECKING:
    from agenteval_tui.grading.extractors.extractor import Prototype
    from agenteval_tui.grading.metrics.metric import Metric

PROTOTYPES = "agenteval.prototypes"
METRICS = "agenteval.metrics"

# The same as in pyproject.toml: a checkout that is not installed has no entry points.
_BUILT_IN = {
    PROTOTYPES: {
        "JsonResponse": "agenteval_tui.grading.extractors.json_response:JsonResponse",
        "Retrieval": "agenteval_tui.grading.extractors.retrieval:Retrieval",
        "TextResponse": "agenteval_tui.grading.extractors.text_response:TextResponse",
        "ToolResponse": "agenteval_tui.grading.extractors.tool_response:ToolResponse",
        "Transcript": "agenteval_tui.grading.extractors.transcript:Transcript",
    },
    METRICS: {
        "Classification": "agenteval_tui.grading.metrics.classification:Classification",
        "Cost": "agenteval_tui.grading.metrics.run_limits:Cost",
        "Faithfulness": "agenteval_tui.grading.metrics.judge_presets:Faithfulness",
        "Groundedness": "agenteval_tui.grading.metrics.judge_presets:Groundedness",
        "Handoff": "agenteval_tui.grading.metrics.judge_presets:Handoff",
        "Human": "agenteval_tui.grading.metrics.human:Human",
        "Injection": "agenteval_tui.grading.metrics.injection:Injection",
        "Json": "agenteval_tui.grading.metrics.json:Json",
        "Judge": "agenteval_tui.grading.metrics.judge:Judge",
        "Keywords": "agenteval_tui.grading.metrics.keywords:Keywords",
        "Latency": "agenteval_tui.grading.metrics.run_limits:Latency",
        "Leak": "agenteval_tui.grading.metrics.leak:Leak",
        "Length": "agenteval_tui.grading.metrics.length:Length",
        "Lexical": "agenteval_tui.grading.metrics.lexical:Lexical",
        "Pii": "agenteval_tui.grading.metrics.pii:Pii",
        "Python": "agenteval_tui.grading.metrics.python:Python",
        "Readability": "agenteval_tui.grading.metrics.readability:Readability",
        "Regex": "agenteval_tui.grading.metrics.regex:Regex",
        "Relevance": "agenteval_tui.grading.metrics.judge_presets:Relevance",
        "Repetition": "agenteval_tui.grading.metrics.repetition:Repetition",
        "Retrieval": "agenteval_tui.grading.metrics.retrieval:Retrieval",
        "Safety": "agenteval_tui.grading.metrics.judge_presets:Safety",
        "Similarity": "agenteval_tui.grading.metrics.similarity:Similarity",
        "Steps": "agenteval_tui.grading.metrics.run_limits:Steps",
        "TextMatch": "agenteval_tui.grading.metrics.text_match:TextMatch",
        "Tokens": "agenteval_tui.grading.metrics.run_limits:Tokens",
        "ToolCheck": "agenteval_tui.grading.metrics.tool_check:ToolCheck",
        "Trajectory": "agenteval_tui.grading.metrics.trajectory:Trajectory",
    },
}


class UnknownNameError(AgentevalError):
    """There is no prototype class or metric of that name; `close` is the one that was meant, perhaps."""

    def __init__(self, kind: str, name: str, close: str | None, known: tuple[str, ...]) -> None:
        mend = f"did you mean {close}?" if close else f"there are: {', '.join(known)}"
        super().__init__(f"there is no {kind} {name!r}", mend=mend)
        self.close = close
        self.known = known


def prototype_names() -> tuple[str, ...]:
    """The short names of all prototype classes, sorted."""
    return tuple(sorted(_found(PROTOTYPES)))


def metric_names() -> tuple[str, ...]:
    """The short names of all metrics, sorted."""
    return tuple(sorted(_found(METRICS)))


def prototype(name: str) -> type[Prototype]:
    """The prototype class of that name, in short or as Power UI writes it. Raises `UnknownNameError`."""
    from agenteval_tui.grading.extractors.extractor import Prototype

    loaded: type[Prototype] = _load(PROTOTYPES, _exact(PROTOTYPES, "prototype class", name), Prototype)
    return loaded


def metric(name: str) -> type[Metric]:
    """The metric of that name, bare or with a namespace. Raises `UnknownNameError`."""
    from agenteval_tui.grading.metrics.metric import Metric

    loaded: type[Metric] = _load(METRICS, _exact(METRICS, "metric", name), Metric)
    return loaded


def known_metric(name: str) -> str | None:
    """The short name of the metric that `name` names; None when there is none."""
    short = short_name(name)
    return short if short in _BUILT_IN[METRICS] or short in _found(METRICS) else None


def _exact(group: str, kind: str, name: str) -> str:
    short = short_name(name)
    if short in _BUILT_IN[group]:
        return short  # no need to look through all that is installed
    found = _found(group)
    for candidate in (name, short):
        if candidate in found:
            return candidate
    from difflib import get_close_matches

    by_lower = {known.lower(): known for known in found}
    close = get_close_matches(short.lower(), by_lower, n=1)
    raise UnknownNameError(kind, name, by_lower[close[0]] if close else None, tuple(sorted(found)))


@cache
def _found(group: str) -> dict[str, str]:
    """All names with where they are (`package.module:Class`)."""
    from importlib.metadata import entry_points

    found = dict(_BUILT_IN[group])
    # What is installed may add names, and may not replace a built-in one: a plug-in changes no verdict unasked.
    for point in entry_points(group=group):
        found.setdefault(point.name, point.value)
    return found


@cache
def _load(group: str, name: str, base: type[Any]) -> Any:
    target = _BUILT_IN[group].get(name) or _found(group)[name]
    try:
        module, _, attribute = target.partition(":")
        loaded = getattr(import_module(module.strip()), attribute.strip())
    except Exception as error:
        raise AgentevalError(
            f"{name} cannot be loaded: {type(error).__name__}: {error}",
            where=target,
            mend="mend or uninstall the package that offers it",
        ) from error
    if not (isinstance(loaded, type) and issubclass(loaded, base)):
        raise AgentevalError(f"{name} is no {base.__name__} class", where=target)
    return loaded
