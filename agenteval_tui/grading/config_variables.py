"""The variables that a config asks for. Some properties are templates that the metric itself fills (`Metric.fills`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agenteval_tui.grading import registry
from agenteval_tui.grading.placeholders import names_in
from agenteval_tui.grading.spec import metrics_in


def variables_of(config: Any) -> frozenset[str]:
    """The names and paths of variables that the whole config needs."""
    own = frozenset(name for text, names in _templates(config) for name in names_in(text) if name not in names)
    return names_in(without_templates(config)) | own


def without_templates(config: Any) -> object:
    """The config without the properties that metrics fill themselves."""
    listed = metrics_in(config)
    if not any(map(templates_of, listed)):
        return config
    return {**config, "metrics": [metric_without_templates(metric) for metric in listed]}


def metric_without_templates(metric: Any) -> object:
    """The same of one metric."""
    filled = templates_of(metric)
    return {name: value for name, value in metric.items() if name not in filled} if filled else metric


def templates_of(metric: Any) -> Mapping[str, frozenset[str]]:
    """The properties of this metric of a config that it fills itself, each with the names that aren't variables."""
    model = registry.metric_of(metric)
    if model is None:
        return {}
    return {key: names for key, names in model.fills.items() if isinstance(metric.get(key), str)}


def _templates(config: Any) -> Iterator[tuple[str, frozenset[str]]]:
    for metric in metrics_in(config):
        for key, names in templates_of(metric).items():
            yield metric[key], names
