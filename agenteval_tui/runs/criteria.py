"""Criteria between the file, grading and the store: what people wrote, what grades, what is kept as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from agenteval_tui.core.document import extended
from agenteval_tui.core.ids import criterion_names
from agenteval_tui.grading.spec import CriterionSpec, json_like

if TYPE_CHECKING:
    from agenteval_tui.history.store import Store
    from agenteval_tui.suites.model import Criterion


def spec_of(criterion: Criterion, name: str = "") -> CriterionSpec:
    """What grading needs of one criterion. `name`: what tells it from the others of its test; without it, its own."""
    return extended(CriterionSpec, criterion, name=name or criterion.name, config=criterion.config_uxon)


def specs_of(
    criteria: Iterable[Criterion], make: Callable[[Criterion, str], CriterionSpec] = spec_of
) -> tuple[CriterionSpec, ...]:
    """What grading needs of a test's criteria. Their names are made unique: see `criterion_names`."""
    listed = list(criteria)
    names = criterion_names([criterion.name for criterion in listed])
    return tuple([make(criterion, name) for criterion, name in zip(listed, names, strict=True)])


class Specs:
    """Makes specs, one object for all criteria that are equal: what grading compiles and hashes, it does once."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], CriterionSpec] = {}

    def of(self, criteria: Iterable[Criterion]) -> tuple[CriterionSpec, ...]:
        """The specs of a test's criteria."""
        return specs_of(criteria, self._spec)

    def _spec(self, criterion: Criterion, name: str) -> CriterionSpec:
        config = criterion.config_uxon
        # A text and a mapping of the same JSON are two: the text may be written in another way, and is shown so.
        key = (
            config if isinstance(config, str) else json.dumps(config, default=str),
            isinstance(config, str),
            name,
            criterion.prototype_class,
            criterion.description,
            criterion.expected_value,
            criterion.weight,
            criterion.severity,
            criterion.negate,
            criterion.pass_threshold,
        )
        criterion_spec = self._known.get(key)
        if criterion_spec is None:
            criterion_spec = self._known[key] = spec_of(criterion, name)
        return criterion_spec


def spec_to_dict(spec: CriterionSpec) -> dict[str, Any]:
    """The spec as JSON data, as the store keeps it: its fields and its `hash`."""
    return {**asdict(spec), "config": json_like(spec.config), "hash": spec.hash}


def spec_from_dict(data: object) -> CriterionSpec:
    """The spec in what `spec_to_dict` gave, also of an older or a newer version: what it has more is left out. Raises
    ValueError, which says what is missing or wrong."""
    if not isinstance(data, Mapping):
        raise ValueError("it is not a mapping")
    fields: Mapping[str, Any] = data
    missing = [name for name in ("name", "prototype_class", "config") if name not in fields]
    if missing:
        raise ValueError(f"it has no {missing[0]}")
    kinds = {name: fields[name] for name in _KINDS if name in fields}
    for name, value in kinds.items():
        if not isinstance(value, _KINDS[name]):
            raise ValueError(f"its {name} is of another kind")
    return CriterionSpec(**kinds, expected_value=fields.get("expected_value"))


_KINDS: Mapping[str, Any] = {
    "name": str,
    "prototype_class": str,
    "config": str | Mapping,
    "description": str,
    "weight": int | float,
    "severity": str,
    "negate": bool | int,
    "pass_threshold": int | float | None,
}


def known_spec(store: Store, content_hash: str) -> CriterionSpec | None:
    """The version of a criterion with this hash; None: it is not stored, or can't be read any more."""
    data = store.criterion(content_hash) if content_hash else None
    if data is None:
        return None
    try:
        return spec_from_dict(data)
    except ValueError:
        return None
