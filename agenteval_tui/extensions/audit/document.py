"""Whether criteria can tell good runs from bad ones: what `agenteval audit --json` prints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from agenteval_tui.core.document import Count, Document, Severity
from agenteval_tui.extensions.audit.audit import AuditFinding, TestAudit


class Noticed(Document, frozen=True, kw_only=True):
    """Mutations of one kind: how many were tried, and how many failed."""

    failed: Count
    tried: Count


class AuditedCriterion(Document, frozen=True, kw_only=True):
    """A criterion: its outcomes over runs and mutations, and what it noticed, by kind of mutation."""

    criterion: str
    severity: Severity
    line: Count
    runs: dict[str, Count]
    mutations: dict[str, Count]
    noticed: dict[str, Noticed]
    note: str


class AuditedTest(Document, frozen=True, kw_only=True):
    """A test with what was found about its criteria."""

    test: str
    name: str
    line: Count
    runs: Annotated[Count, Meta(description="stored runs that were looked at")]
    different_runs: Annotated[Count, Meta(description="those that are not alike")]
    mutations: Count
    note: Annotated[str, Meta(description="why the test was not audited")]
    criteria: tuple[
        Annotated[
            AuditedCriterion,
            Meta(description="Outcomes over runs and mutations; what it noticed, by kind of mutation."),
        ],
        ...,
    ]
    findings: tuple[AuditFinding, ...]


class AuditedSuite(Document, frozen=True, kw_only=True):
    """A suite's file with its tests."""

    file: str
    tests: tuple[AuditedTest, ...]


class Audit(Document, frozen=True, kw_only=True):
    """`agenteval audit`."""

    version: Literal[1] = 1
    suites: tuple[AuditedSuite, ...]


def audited_suite(path: Path, tests: list[TestAudit]) -> AuditedSuite:
    """A suite in an audit."""
    return AuditedSuite(file=str(path), tests=tuple(_test(test) for test in tests))


def _test(test: TestAudit) -> AuditedTest:
    return AuditedTest(
        test=test.test_id,
        name=test.name,
        line=test.line,
        runs=test.runs,
        different_runs=test.different,
        mutations=test.mutants,
        note=test.note,
        criteria=tuple(
            AuditedCriterion(
                criterion=audited.name,
                severity=audited.severity,
                line=audited.line,
                runs=dict(audited.runs),
                mutations=dict(audited.mutants),
                noticed={
                    kind: Noticed(failed=failed, tried=tried) for kind, (failed, tried) in audited.noticed.items()
                },
                note=audited.note,
            )
            for audited in test.criteria
        ),
        findings=tuple(test.findings),
    )
