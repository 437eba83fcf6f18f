"""Prototype classes and metrics by name: those of the entry points."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from agenteval_tui.core import entry_points
from agenteval_tui.core.did_you_mean import closest
from agenteval_tui.core.entry_points import METRICS, PROTOTYPES, EntryPoint
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading.type_names import short_name

if TYPE_CHECKING:
    from agenteval_tui.grading.extractors.extractor import Prototype
    from agenteval_tui.grading.metrics.metric import Metric

_T = TypeVar("_T")


class UnknownNameError(AgentevalError):
    """There is no prototype class or metric of that name; `close` is the one that was meant, perhaps."""

    def __init__(self, kind: str, name: str, close: str | None, names: tuple[str, ...]) -> None:
        fix = f"did you mean {close}?" if close else f"there are: {', '.join(names)}"
        super().__init__(f"there is no {kind} {name!r}", fix=fix)
        self.close = close
        self.known = names


def prototype_names() -> tuple[str, ...]:
    """The short names of all prototype classes, sorted."""
    return entry_points.names(PROTOTYPES)


def metric_names() -> tuple[str, ...]:
    """The short names of all metrics, sorted."""
    return entry_points.names(METRICS)


@cache  # as `metric`
def prototype(name: str) -> type[Prototype]:
    """The prototype class of that name, in short or as Power UI writes it. Raises `UnknownNameError`."""
    # 60 ms of pydantic, which names alone do not need.
    from agenteval_tui.grading.extractors.extractor import Prototype

    return _load(_find(PROTOTYPES, "prototype class", name), Prototype)


@cache  # each check of a config asks for each of its metrics, thirty times a test
def metric(name: str) -> type[Metric]:
    """The metric of that name, bare or with a namespace. Raises `UnknownNameError`."""
    # As in `prototype`.
    from agenteval_tui.grading.metrics.metric import Metric

    return _load(_find(METRICS, "metric", name), Metric)


def known_metric(name: str) -> str | None:
    """The short name of the metric that `name` names; None when there is none."""
    short = short_name(name)
    # Our own first: for others, what is installed has to be looked at.
    return short if short in entry_points.own(METRICS) or short in metric_names() else None


def metric_of(entry: object) -> type[Metric] | None:
    """The metric that an entry of a config's `metrics` names; None for one that is not known, or can't be loaded."""
    name = entry.get("type") if isinstance(entry, Mapping) else None
    known_name = known_metric(name) if isinstance(name, str) else None
    try:
        return None if known_name is None else metric(known_name)
    except AgentevalError:
        return None


def _find(group: str, kind: str, name: str) -> EntryPoint:
    short = short_name(name)
    # A plug-in may have dots in its name; what is agenteval's own goes first.
    for candidate in (short,) if short in entry_points.own(group) else (name, short):
        if (point := entry_points.find(group, candidate)) is not None:
            return point
    names = entry_points.names(group)
    raise UnknownNameError(kind, name, closest(short, names), names)


@cache
def _load(point: EntryPoint, base: type[_T]) -> type[_T]:
    try:
        loaded = point.load()
    except Exception as error:
        raise AgentevalError(
            f"{point.name} cannot be loaded: {type(error).__name__}: {error}",
            where=point.target,
            fix="fix or uninstall the package that offers it",
        ) from error
    if not (isinstance(loaded, type) and issubclass(loaded, base)):
        raise AgentevalError(f"{point.name} is no {base.__name__} class", where=point.target)
    return loaded
