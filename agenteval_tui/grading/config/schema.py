"""The schema of a config, made from the models of prototype classes and metrics: one source for all help."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from inspect import get_annotations
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import AliasChoices, BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading import registry
from agenteval_tui.grading.config.model import RegexText
from agenteval_tui.grading.type_names import short_name
from agenteval_tui.uxon.schema import (
    ArrayType,
    MapType,
    ObjectType,
    Property,
    ScalarType,
    Type,
    UnionType,
    Variants,
)

_METRICS_DOC = "How the value is judged: a list of metrics. Each has a `type`; the score is their weighted mean."
_NAMELESS = {str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null"}


def config_schema(prototype_class: str) -> ObjectType:
    """The type of a `config_uxon` for that prototype class. Raises `AgentevalError` for a name that is not known."""
    return _config_schema(registry.prototype(prototype_class).__name__)


@cache
def _config_schema(name: str) -> ObjectType:
    model = registry.prototype(name)
    own = object_type(model)
    metrics = Property("metrics", ArrayType(metric_schema()), required=False, doc=_METRICS_DOC)
    return ObjectType(name, own.doc, (*own.properties, metrics))


@cache
def metric_schema() -> ObjectType:
    """The type of one entry of `metrics`: its variants are the available metrics."""
    return ObjectType("metric", "One metric.", variants=Variants(_Metrics(), "type", short_name, "metric"))


class _Metrics(Mapping[str, ObjectType]):
    """The types of all metrics by name. A metric is loaded when someone asks for it: most configs name one or two."""

    def __getitem__(self, name: str) -> ObjectType:
        if name not in self:
            raise KeyError(name)
        return _metric_type(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and registry.known_metric(name) == name

    def __iter__(self) -> Iterator[str]:
        return iter(registry.metric_names())

    def __len__(self) -> int:
        return len(registry.metric_names())


@cache
def _metric_type(name: str) -> ObjectType:
    try:
        return object_type(registry.metric(name), name)
    except AgentevalError as broken:
        # A plug-in that can not be loaded: the criterion that names it says so, not each of its properties.
        return ObjectType(name, str(broken), extra=True)


@cache
def object_type(model: type[BaseModel], name: str | None = None) -> ObjectType:
    """The type that a property model describes."""
    return ObjectType(
        name or model.__name__,
        " ".join((model.__doc__ or "").split()),
        tuple(_property(field_name, field) for field_name, field in _own_first(model)),
        extra=model.model_config.get("extra") == "allow",
    )


def _own_first(model: type[BaseModel]) -> list[tuple[str, FieldInfo]]:
    """What every metric has (name, weight) comes after what makes this one."""
    owner = {name: place for place, base in reversed(list(enumerate(model.__mro__))) for name in get_annotations(base)}
    return sorted(model.model_fields.items(), key=lambda pair: owner.get(pair[0], 0))


def property_names(model: type[BaseModel]) -> list[str]:
    """The names of a model's properties as they are written in a config."""
    return [_names(name, field)[0] for name, field in model.model_fields.items()]


def model_at(model: type[BaseModel], path: Sequence[Any]) -> type[BaseModel] | None:
    """The property model that `path` leads to from `model`; None where there is no model."""
    current: Any = model
    for step in path:
        if isinstance(step, int):
            continue
        if not (isinstance(current, type) and issubclass(current, BaseModel)):
            return None
        field = next((f for n, f in current.model_fields.items() if step in _names(n, f)), None)
        if field is None:
            return None
        current = _innermost(field.annotation)
    return current if isinstance(current, type) and issubclass(current, BaseModel) else None


def _innermost(annotation: Any) -> object:
    for argument in get_args(annotation):
        inner = _innermost(argument)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            return inner
    return annotation


def _property(name: str, field: FieldInfo) -> Property:
    names = _names(name, field)
    default = None if field.default is PydanticUndefined else field.default
    return Property(
        names[0],
        type=_bounded(_type(field.annotation, tuple(field.metadata)), field),
        required=field.is_required(),
        doc=" ".join((field.description or "").split()),
        default=default,
        aliases=tuple(names[1:]),
        facts=str(extra.get("facts", "")) if isinstance(extra := field.json_schema_extra, dict) else "",
        examples=tuple(field.examples or ()),
    )


def _names(name: str, field: FieldInfo) -> list[str]:
    alias = field.validation_alias
    if isinstance(alias, AliasChoices):
        return [str(choice) for choice in alias.choices]
    return [alias] if isinstance(alias, str) else [name]


def _type(annotation: Any, metadata: tuple[Any, ...] = ()) -> Type:
    # Annotated[...] below a union arrives here as it is.
    inner = getattr(annotation, "__metadata__", None)
    if inner is not None:
        return _type(annotation.__origin__, (*metadata, *inner))
    if annotation is str and any(isinstance(constraint, RegexText) for constraint in metadata):
        return ScalarType("regex")
    kind = _NAMELESS.get(annotation)
    if kind is not None:
        return ScalarType(kind)  # type: ignore[arg-type]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return object_type(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ScalarType(
            "string" if all(isinstance(argument, str) for argument in arguments) else "any", tuple(arguments)
        )
    if origin in (Union, types.UnionType):
        # "Not given" is the absence of the property, not null.
        options = tuple(_type(argument, metadata) for argument in arguments if argument is not types.NoneType)
        return options[0] if len(options) == 1 else UnionType(options)
    if origin in (list, tuple, set, frozenset):
        return ArrayType(_type(arguments[0]) if arguments else ScalarType("any"))
    if origin is dict:
        return MapType(_type(arguments[1]) if len(arguments) > 1 else ScalarType("any"))
    return ScalarType("any")


def _bounded(kind: Type, field: FieldInfo) -> Type:
    if not isinstance(kind, ScalarType) or kind.kind not in ("integer", "number"):
        return kind
    low = next((constraint.ge for constraint in field.metadata if getattr(constraint, "ge", None) is not None), None)
    high = next((constraint.le for constraint in field.metadata if getattr(constraint, "le", None) is not None), None)
    return ScalarType(kind.kind, kind.enum, low, high)
