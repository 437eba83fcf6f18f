"""Schemas of documents are made from their types (`formats.documents.schema`)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_type_hints

import pytest
from msgspec import UNSET, Meta, Struct, UnsetType, to_builtins

from agenteval_tui.core.document import Count, Document, Outcome, Share, Time
from agenteval_tui.formats.documents import results, stats, trends
from agenteval_tui.formats.documents.schema import schema_of


class Leaf(Document, frozen=True):
    name: str


class Branch(Document, frozen=True, kw_only=True):
    """Words for people who read the code."""

    version: Literal[1] = 1
    text: Annotated[str, Meta(description="what it is")]
    at: Time
    outcome: Outcome | None
    share: Share | None = None
    leaf: Leaf | None
    pair: tuple[float, float]
    counts: dict[str, Count]
    anything: Any
    absent: Annotated[Count, Meta(description="only sometimes")] | UnsetType = UNSET


class Tree(Document, frozen=True):
    name: str
    children: tuple[Tree, ...] = ()


LEAF = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
OUTCOMES = ["passed", "failed", "error", "skipped", "needs_review"]


def test_each_kind_of_field() -> None:
    assert schema_of(Branch) == {
        "type": "object",
        "properties": {
            "version": {"const": 1},
            "text": {"type": "string", "description": "what it is"},
            "at": {"type": "string", "format": "date-time"},
            "outcome": {"anyOf": [{"enum": OUTCOMES}, {"type": "null"}]},
            "share": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
            "leaf": {**LEAF, "type": ["object", "null"]},
            "pair": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
            "counts": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
            "anything": {},
            "absent": {"type": "integer", "minimum": 0, "description": "only sometimes"},
        },
        "required": ["version", "text", "at", "outcome", "share", "leaf", "pair", "counts", "anything"],
        "additionalProperties": False,
    }


def test_a_list_of_documents() -> None:
    assert schema_of(tuple[Leaf, ...]) == {"type": "array", "items": LEAF}


def test_what_holds_itself_is_a_definition() -> None:
    assert schema_of(Tree) == {
        "$ref": "#/$defs/Tree",
        "$defs": {
            "Tree": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
                },
                "required": ["name", "children"],
                "additionalProperties": False,
            }
        },
    }


def test_what_is_unset_is_left_out() -> None:
    branch = Branch(
        text="t", at="2026-01-02T03:04:05Z", outcome=None, leaf=None, pair=(0.0, 1.0), counts={}, anything=None
    )
    assert "absent" not in to_builtins(branch)
    assert to_builtins(branch)["version"] == 1


class Word(Struct, tag="word", tag_field="type"):
    """A word."""

    text: str


class Break(Struct, tag="break", tag_field="type"):
    """A break."""


def test_tagged_types_are_told_apart_and_open_where_the_class_is() -> None:
    assert schema_of(Annotated[Word | Break, Meta(description="a part")]) == {
        "oneOf": [
            {
                "type": "object",
                "properties": {"type": {"const": "word"}, "text": {"type": "string"}},
                "required": ["type", "text"],
                "description": "A word.",
            },
            {
                "type": "object",
                "properties": {"type": {"const": "break"}},
                "required": ["type"],
                "description": "A break.",
            },
        ],
        "description": "a part",
    }


@pytest.mark.parametrize(
    ("part", "wholes"),
    [
        (results.RunDocument, [results.ShownRun]),
        (stats.Spent, [stats.AgentSpent, stats.CriterionSpent]),
        (trends.TrendPoint, [trends.TrendSeries]),
    ],
)
def test_what_stands_in_several_documents_is_alike_in_all(part: Any, wholes: list[Any]) -> None:
    """Its fields stand in the middle of those of others, and the order of keys is published: msgspec has no way to
    include a struct's fields there, so they are written again."""
    for whole in wholes:
        types = get_type_hints(whole, include_extras=True)
        shared = [name for name in whole.__struct_fields__ if name in part.__struct_fields__]
        assert shared == list(part.__struct_fields__)
        assert {name: types[name] for name in shared} == get_type_hints(part, include_extras=True)
