"""A fact has one type, from where it is found to where it is printed: no record repeats the fields of another."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import combinations

from sources import modules, of_all_sources

LEAST = 4
"""Fields from which on two records are compared."""
SHARED = 0.6
"""The share of all their fields, from which on one of two records is too many."""

_FILE = "pydantic reads what people write in files; inside the program, data is a msgspec record"
_PATHS = "each field says where something is in a foreign reply, and not what it is"
_WORDS = "the document has words, or other records, where the record has codes and fields"
_FROM_ONE = "steps count from 0 inside, and from 1 in what is printed"
ALIKE = {
    ("AskedRequest", "RequestReference"): "a request, and its places in the tables of texts",
    ("CallPaths", "HostedCall"): _PATHS,
    ("CallPaths", "ResultPaths"): _PATHS,
    ("ConfigFix", "Diagnostic"): "a fix of a suite's file; a problem of the config text in it",
    ("ConfigFix", "TemplateProblem"): "a fix of a suite's file; a problem of a template, which has no edit",
    ("ConfigurationPasses", "Part"): "the document has the short form of a version",
    ("Costs", "ExecutionCosts"): _WORDS,
    ("Criterion", "CriterionSpec"): _FILE,
    ("DecidedCause", "TriageDecision"): "the fields of a decision are printed within a cause, or beside its fields",
    ("Diagnostic", "TemplateProblem"): "a template's problem has no severity and no edit; suites lie below uxon",
    ("Evidence", "EvidenceDocument"): _WORDS,
    ("ForkBranch", "Outcomes"): _FROM_ONE,
    ("ForkOrigin", "ForkedFrom"): _FROM_ONE,
    ("ForkOrigin", "Outcomes"): "the answers to one question, and where one run of them comes from, as it is stored",
    ("InputMessage", "OpenAIMessage"): _FILE,
    ("Output", "Printed"): "an event of an agent has no time yet; the order of the fields of an output is stored",
    ("Price", "PriceOption"): _FILE,
    ("Price", "UsagePaths"): _PATHS,
    ("PriceOption", "UsagePaths"): _PATHS,
    ("Reading", "StoredReading"): "the JSON has a value that is null, or none: the record has None for both",
    ("SimulatedUser", "UserBrief"): _FILE,
    ("Span", "SpanDocument"): "which fields a place has in JSON depends on its kind",
    ("StoredTranscript", "Transcript"): "a file that a person writes may leave out all but the messages",
}
"""Records that share most of their fields, and why both are needed. This list may only get shorter."""


def fields_of(node: ast.ClassDef) -> frozenset[str]:
    """The fields that a class declares itself: those of a base are not repeated."""
    return frozenset(
        line.target.id
        for line in node.body
        if isinstance(line, ast.AnnAssign)
        and isinstance(line.target, ast.Name)
        and "ClassVar" not in ast.dump(line.annotation)
    )


def records() -> Iterator[tuple[str, frozenset[str]]]:
    for nodes in modules().values():
        for node in nodes:
            if isinstance(node, ast.ClassDef) and len(fields := fields_of(node)) >= LEAST:
                yield node.name, fields


@of_all_sources
def test_no_record_repeats_another() -> None:
    alike = {
        tuple(sorted((name, other)))
        for (name, fields), (other, others) in combinations(records(), 2)
        if len(fields & others) >= LEAST and len(fields & others) >= SHARED * len(fields | others)
    }
    assert alike - ALIKE.keys() == set(), "inherit the record, or use it: see `core.document.extended`"
    assert ALIKE.keys() - alike == set(), "these are no longer alike: take them from the list"
