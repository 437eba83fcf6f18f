"""A file with criteria, outside of any suite: one, or a list, as YAML or JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agenteval_tui.core.errors import AgentevalError, raise_first
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.runs.criteria import specs_of
from agenteval_tui.suites.decode import read_model
from agenteval_tui.suites.files import decode_utf8, read_bytes
from agenteval_tui.suites.model import Criterion
from agenteval_tui.suites.yaml.line_index import ProblemReport
from agenteval_tui.suites.yaml.tree import MappingNode, Node, SequenceNode, compose, is_null, resolve


class _Criterion(Criterion):
    """A criterion that need not have a name: it has a number."""

    name: str = ""


def read_criteria(path: Path, data: bytes | None = None) -> list[CriterionSpec]:
    """The criteria of a file (of `data`, where it was read already), in order.

    A criterion without a name is called by its position. The file holds a criterion, a list of criteria, or an object
    with `criteria`. Raises `AgentevalError` with the first problem and its place (and how many more there are).
    """
    text = decode_utf8(read_bytes(path) if data is None else data, path)
    report = ProblemReport(text, path)
    criteria = _from_json(text, path)
    if criteria is None:
        root, _ = compose(text, report)
        criteria = [] if report.problems or root is None or is_null(root) else _from_yaml(root, report)
    raise_first(report.problems)
    if not criteria:
        raise AgentevalError(
            "there are no criteria in this file",
            where=str(path),
            fix="a criterion has `name`, `prototype_class` and `config_uxon`",
        )
    return list(specs_of(criteria))


def _from_json(text: str, path: Path) -> list[Criterion] | None:
    """The criteria in JSON text; None when it is not JSON (then it is YAML, which can say where it is wrong)."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    items = data.get("criteria", [data]) if isinstance(data, dict) else data
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise AgentevalError("this is neither a criterion nor a list of criteria", where=str(path))
    criteria: list[Criterion] = []
    for number, entry in enumerate(items, 1):
        try:
            criteria.append(_Criterion.model_validate(entry))
        except ValidationError as error:
            first: Any = error.errors()[0]
            name = ".".join(str(part) for part in first["loc"])
            raise AgentevalError(
                f"criterion {number}: {name}: {first['msg'].lower()}",
                where=str(path),
                fix=f"a criterion can have {', '.join(Criterion.model_fields)}",
            ) from None
    return criteria


def _from_yaml(root: Node, report: Any) -> list[Criterion]:
    top = resolve(root)
    listed = top.get("criteria") if isinstance(top, MappingNode) else None
    inner = resolve(listed) if listed is not None else top
    if isinstance(top, MappingNode) and top.get("tests") is not None:
        report("wrong-type", top.start, top.end, "this is a suite, not a list of criteria", "give it as SUITE")
        return []
    nodes = list(inner.items) if isinstance(inner, SequenceNode) else [inner]
    criteria: list[Criterion] = []
    for number, node in enumerate(nodes, 1):
        criterion = read_model(_Criterion, node, f"criterion {number}", report)
        if criterion is not None:
            criteria.append(criterion)
    return criteria
