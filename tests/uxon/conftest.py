"""The types of a config like the product's own, written down by hand for the tests of this floor."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agenteval_tui.uxon.check import check
from agenteval_tui.uxon.diagnostics import Diagnostic
from agenteval_tui.uxon.parse import parse
from agenteval_tui.uxon.schema import ArrayType, MapType, ObjectType, Property, ScalarType, UnionType, Variants

STRING = ScalarType("string")
STRINGS = ArrayType(STRING)
COUNT = ScalarType("integer", minimum=0)
ANY = ScalarType("any")

TEXT_MATCH = ObjectType(
    "TextMatch",
    properties=(
        *(Property(n, STRING) for n in ("equals", "equals_ignore_case", "contains", "contains_ignore_case")),
        *(Property(n, STRING) for n in ("starts_with", "ends_with")),
        *(Property(n, STRINGS) for n in ("contains_all", "contains_any", "not_contains_any", "starts_with_any")),
        Property("ends_with_any", STRINGS),
    ),
)
TOOL = ObjectType(
    "ToolCheckData",
    properties=(
        Property("name", STRING, required=True),
        Property("required", ScalarType("boolean"), default=True),
        Property("min_calls", COUNT),
        Property("max_calls", COUNT),
        Property("arguments", UnionType((MapType(ANY), ArrayType(MapType(ANY))))),
        Property("allow_additional_arguments", ScalarType("boolean"), default=False),
    ),
)
TOOL_CHECK = ObjectType(
    "ToolCheck",
    properties=(
        Property("tools", ArrayType(TOOL), aliases=("tool",)),
        Property("forbidden_tools", STRINGS),
        Property("tool_call_forbidden", ScalarType("boolean")),
    ),
)
METRIC = ObjectType(
    "metric",
    properties=(
        Property("type", STRING, required=True),
        Property("name", STRING),
        Property("weight", ScalarType("number", minimum=0), default=1),
    ),
    variants=Variants(
        {"TextMatch": TEXT_MATCH, "ToolCheck": TOOL_CHECK},
        normalise=lambda name: name.replace("\\", ".").rsplit(".", 1)[-1],
    ),
)
CONFIG = ObjectType(
    "TextResponse",
    properties=(
        Property("extract_by_regex", ScalarType("regex")),
        Property("extract_code_block", ScalarType("integer", minimum=1)),
        Property("with_block", ScalarType("boolean")),
        Property("mode", ScalarType("string", enum=("strict", "unordered", "subset"))),
        Property("metrics", ArrayType(METRIC)),
    ),
)


@pytest.fixture(scope="session")
def diagnose() -> Callable[[str], tuple[Diagnostic, ...]]:
    """What is wrong with the text of a TextResponse config."""
    return lambda text: check(parse(text), CONFIG)
