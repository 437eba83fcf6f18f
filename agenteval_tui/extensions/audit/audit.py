"""The audit of criteria: would they notice if the agent did something wrong?

Stored transcripts are made wrong on purpose (`mutations`) and graded: a criterion that passes whatever is done,
or never passes, tells nothing; one that fails only where another fails too tells nothing more. No agent is called. A
finding is not a proof: it says how many runs and mutations it rests on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, field

from agenteval_tui.analysis.statistics import wilson
from agenteval_tui.core.document import Count, Document
from agenteval_tui.core.numbers import count
from agenteval_tui.extensions.audit.mutations import KINDS, Forbidden, mutations
from agenteval_tui.grading.compile import Checker, compile_criterion
from agenteval_tui.grading.grade import verdict_of
from agenteval_tui.grading.metrics.leak import Leak
from agenteval_tui.grading.metrics.pii import EXAMPLES, plain
from agenteval_tui.grading.placeholders import PlaceholderError, fill_config
from agenteval_tui.grading.registry import known_metric
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.grading.spec import metrics_in
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import specs_of
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.model import Test
from agenteval_tui.transcripts.model import Transcript

FindingKind = Literal["never-fails", "only-empty", "never-passes", "always-error", "implied", "same", "passes-empty"]
_FIRST: tuple[FindingKind, ...] = ("never-fails", "only-empty", "never-passes", "always-error")
"""The findings about one criterion, the worst first."""

RUNS = 40
"""The newest runs of a test that are looked at. Runs that are alike count once for mutations."""
FEW = 5
_LEAST_FAILURES = 3  # of a criterion, before it is said to be implied by another
_LEAKS = 30  # different texts that must not get out; each makes a few mutations
_SEVERITIES = ("info", "warning", "error")


class AuditFinding(Document, frozen=True, kw_only=True):
    """Something that a criterion (or the whole test: `criterion` None) does not do. `other` implies it; `evidence`
    counts what was seen. `few_runs`: the next run may show otherwise."""

    kind: FindingKind
    criterion: str | None
    other: str | None = None
    message: str
    line: Count
    few_runs: bool
    evidence: Mapping[str, Count]


class CriterionAudit(Struct):
    """What one criterion said. `noticed` holds for each kind of mutation (failed, tried)."""

    name: str
    severity: str
    line: int
    runs: Counter[str] = field(default_factory=Counter)
    mutants: Counter[str] = field(default_factory=Counter)
    noticed: dict[str, tuple[int, int]] = field(default_factory=dict)
    note: str = ""


class TestAudit(Struct):
    """One test: how many stored runs (and how many different ones), mutations, criteria, findings."""

    __test__ = False  # no test case of pytest

    test_id: str
    name: str
    line: int
    runs: int = 0
    different: int = 0
    mutants: int = 0
    criteria: list[CriterionAudit] = field(default_factory=list)
    findings: list[AuditFinding] = field(default_factory=list)
    note: str = ""

    @property
    def few_runs(self) -> bool:
        """Whether a finding rests on so few runs that the next one may show otherwise."""
        return self.runs < FEW


def audit_suite(loaded: LoadedSuite, store: Store, *, runs: int = RUNS) -> list[TestAudit]:
    """Audit every test of a suite by its newest `runs` stored runs. Tests without one are there with a note."""
    if loaded.suite is None:
        return []
    return [_audit_test(loaded, test, store, runs=runs) for test in loaded.suite.tests]


def _audit_test(loaded: LoadedSuite, test: Test, store: Store, *, runs: int) -> TestAudit:
    """Audit one test."""
    audit = TestAudit(test.id, test.name, loaded.line_of(test.id))
    rows = [row for row in store.runs_of_test(loaded.key, test.id, runs) if _usable(row)]
    if not rows or not test.criteria:
        audit.note = "no stored run" if not rows else "no criterion"
        return audit
    checkers = [compile_criterion(spec) for spec in specs_of(test.criteria)]
    by_id = {row.id: row for row in rows}
    samples = [(by_id[run], transcript) for run, transcript in store.transcripts(list(by_id))]
    audit.criteria = [
        CriterionAudit(checker.spec.name, checker.spec.severity, loaded.line_of(test.id, number))
        for number, checker in enumerate(checkers)
    ]
    asking = {number for number, compiled in enumerate(checkers) if compiled.asks}
    for number in asking:
        audit.criteria[
            number
        ].note = "not audited: it asks a judge or another service, which each mutation would have to ask again"
    own = [(number, compiled) for number, compiled in enumerate(checkers) if number not in asking]
    table = _graded(audit, own, samples)
    audit.findings = [*_alone(audit, own), *_pairs(audit, own, table)]
    # A judge that is not asked might have noticed the empty answer.
    if not asking:
        audit.findings += _survives(audit, test, [checker for _, checker in own], samples)
    return audit


def _usable(row: RunRow) -> bool:
    return row.status in ("passed", "failed", "needs_review", "error") and not row.error_kind


def _graded(
    audit: TestAudit, checkers: Sequence[tuple[int, Checker]], samples: Sequence[tuple[RunRow, Transcript]]
) -> list[dict[int, Outcome]]:
    """Grade runs and their mutations; gives the outcomes of each, by the criterion's number."""
    audit.runs = len(samples)
    table: list[dict[int, Outcome]] = []
    answers: set[str] = set()
    for row, transcript in samples:
        outcomes = {number: _outcome(compiled, transcript, row.variables) for number, compiled in checkers}
        table.append(outcomes)
        for number, outcome in outcomes.items():
            audit.criteria[number].runs[outcome.value] += 1
        # Mutations of a run that is like another would only show the same again.
        like = repr((transcript.final_output, [(call.name, call.arguments) for call in transcript.tool_calls]))
        if like in answers:
            continue
        answers.add(like)
        for mutant in mutations(transcript, _forbidden([checker for _, checker in checkers], row.variables)):
            audit.mutants += 1
            outcomes = {number: _outcome(compiled, mutant.transcript, row.variables) for number, compiled in checkers}
            table.append(outcomes)
            for number, outcome in outcomes.items():
                criterion = audit.criteria[number]
                criterion.mutants[outcome.value] += 1
                failed, tried = criterion.noticed.get(mutant.kind, (0, 0))
                criterion.noticed[mutant.kind] = (failed + (outcome is Outcome.FAILED), tried + 1)
    audit.different = len(answers)
    return table


def _outcome(checker: Checker, transcript: Transcript, variables: Mapping[str, Any]) -> Outcome:
    return checker.check(transcript, variables, explain=False).outcome


def _forbidden(checkers: Sequence[Checker], variables: Mapping[str, Any]) -> Forbidden:
    """What the criteria forbid for a row's variables: it must be tried, or these criteria could never fail."""
    tools: list[str] = []
    texts: list[str] = []
    leaks: list[tuple[str, str]] = []
    overlaps: list[int] = []
    bounds: dict[str, list[int]] = {"words": [], "characters": [], "calls": []}
    for checker in checkers:
        for kind, metric in _metrics(checker, variables):
            if checker.spec.negate:
                # Negated, what a metric looks for is what is forbidden.
                texts += _looked_for(metric)
                tools += _named(metric.get("tools")) + _named(metric.get("calls"))
            if kind == "ToolCheck":
                tools += _strings(metric.get("forbidden_tools"))
                bounds["calls"] += [
                    most for tool in _objects(metric.get("tools")) for most in _whole(tool, "max_calls")
                ]
            elif kind == "TextMatch":
                texts += _strings(metric.get("not_contains_any"))
            elif kind == "Length":
                bounds["words"] += _whole(metric, "max_words")
                bounds["characters"] += _whole(metric, "max_chars")
            elif kind == "Steps":
                bounds["calls"] += _whole(metric, "max")
            elif kind == "Trajectory" and metric.get("mode") == "none":
                tools += _named(metric.get("calls"))
            elif kind == "Leak":
                leaks += [("secret", string) for string in _strings(metric.get("secrets"))]
                overlap = Leak.model_validate({key: item for key, item in metric.items() if key != "type"}).overlap
                overlaps += [overlap] if overlap is not None else []
            elif kind == "Pii":
                listed = metric.get("kinds")
                kinds = set(EXAMPLES if listed is None else _strings(listed))
                allowed = {plain(string) for string in _strings(metric.get("allow"))}
                for name, examples in EXAMPLES.items():
                    sample = next((example for example in examples if plain(example) not in allowed), None)
                    leaks += [("personal-data", sample)] if name in kinds and sample is not None else []
            elif kind == "Injection":
                leaks += [("canary", string) for string in _strings([metric.get("canary")])]
    most = {name: max(figures, default=0) for name, figures in bounds.items()}
    return Forbidden(tools[:10], texts[:10], list(dict.fromkeys(leaks))[:_LEAKS], min(overlaps, default=0), **most)


def _looked_for(metric: Mapping[str, Any]) -> list[str]:
    """The texts that make a metric pass, each in one piece."""
    names = ("equals", "equals_ignore_case", "contains", "contains_ignore_case", "starts_with", "ends_with")
    texts = _strings([metric.get(name) for name in names])
    for name in ("contains_any", "starts_with_any", "ends_with_any"):
        texts += _strings(metric.get(name))
    # Only with all of them in it does an answer pass.
    together = [" ".join(_strings(metric.get(name))) for name in ("contains_all", "keywords")]
    return texts + [text for text in together if text]


def _objects(listed: object) -> list[Mapping[str, Any]]:
    return [entry for entry in listed if isinstance(entry, Mapping)] if isinstance(listed, list) else []


def _named(listed: object) -> list[str]:
    return _strings([entry.get("name") for entry in _objects(listed)])


def _whole(metric: Mapping[str, Any], name: str) -> list[int]:
    value = metric.get(name)
    return [value] if isinstance(value, int) and not isinstance(value, bool) else []


def _metrics(checker: Checker, variables: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The metrics of a criterion with their placeholders filled; those that can't be are left out."""
    expected = {"expected_value": checker.spec.expected_value} if checker.spec.expected_value is not None else {}
    for metric in () if checker.problem else metrics_in(checker.spec.value):
        try:
            filled = fill_config(metric, {**variables, **expected})
        except PlaceholderError:
            continue
        kind = known_metric(str(filled.get("type"))) if isinstance(filled, dict) else None
        if kind:
            yield kind, filled


def _strings(listed: object) -> list[str]:
    return [string for string in listed if isinstance(string, str) and string] if isinstance(listed, list) else []


def _alone(audit: TestAudit, checkers: Sequence[tuple[int, Checker]]) -> list[AuditFinding]:
    findings = [finding for number, _ in checkers if (finding := _about(audit, audit.criteria[number])) is not None]
    return sorted(findings, key=lambda finding: _FIRST.index(finding.kind))


def _about(audit: TestAudit, criterion_audit: CriterionAudit) -> AuditFinding | None:
    outcomes = criterion_audit.runs + criterion_audit.mutants
    tried = criterion_audit.mutants.total()
    failed = {kind: number for kind, (number, _) in criterion_audit.noticed.items() if number}
    kind: FindingKind
    if outcomes[Outcome.FAILED] == outcomes[Outcome.PASSED] == 0:
        kind = "always-error"
        message = "it never had a verdict"
    elif not outcomes[Outcome.FAILED]:
        kind = "never-fails"
        message = f"no mutation made it fail ({tried} tried: {_kinds(criterion_audit)}), and none of {_runs_of(audit)}"
    elif not criterion_audit.runs[Outcome.FAILED] and set(failed) == {"empty"} and len(criterion_audit.noticed) > 1:
        kind = "only-empty"
        message = (
            f"no mutation but the empty answer made it fail ({tried} tried: {_kinds(criterion_audit)}),"
            f" and none of {_runs_of(audit)}"
        )
    elif not outcomes[Outcome.PASSED]:
        kind = "never-passes"
        high = wilson(0, audit.runs)[1]
        message = (
            f"it failed on all {_runs_of(audit)} and {count(audit.mutants, 'mutation')}"
            f" (true pass rate up to {100 * high:.0f} %, 95 % interval)"
        )
    else:
        return None
    # What could not be checked did not pass, either: it weakens what is said of mutations.
    if errors := outcomes[Outcome.ERROR] if kind in ("never-fails", "only-empty") else 0:
        message += f"; {count(errors, 'time')} it could not be checked"
    return AuditFinding(
        kind=kind,
        criterion=criterion_audit.name,
        message=message,
        line=criterion_audit.line,
        few_runs=audit.few_runs,
        evidence=dict(outcomes),
    )


def _runs_of(audit: TestAudit) -> str:
    return f"{count(audit.runs, 'stored run')} ({audit.different} different)"


def _kinds(audit: CriterionAudit) -> str:
    tried = [kind for kind in KINDS if kind in audit.noticed]
    return f"{', '.join(tried[:4])}{f' and {len(tried) - 4} other kinds' if len(tried) > 4 else ''}"


def _pairs(
    audit: TestAudit, checkers: Sequence[tuple[int, Checker]], table: Sequence[dict[int, Outcome]]
) -> Iterator[AuditFinding]:
    """Criteria that fail only if another criterion fails, too."""
    reported: set[int] = set()
    for a, _ in checkers:
        for b, _ in checkers:
            criterion, other = audit.criteria[a], audit.criteria[b]
            # One that weighs less does not make a heavier one needless.
            weaker = _SEVERITIES.index(other.severity) < _SEVERITIES.index(criterion.severity)
            if a == b or weaker or a in reported:
                continue
            # An error says nothing of either.
            both = Counter((row[a], row[b]) for row in table if _decided(row[a]) and _decided(row[b]))
            a_failed = both[Outcome.FAILED, Outcome.FAILED] + both[Outcome.FAILED, Outcome.PASSED]
            b_passed = both[Outcome.PASSED, Outcome.PASSED] + both[Outcome.FAILED, Outcome.PASSED]
            a_passed = both[Outcome.PASSED, Outcome.PASSED] + both[Outcome.PASSED, Outcome.FAILED]
            # One that always passes, or always fails, implies nothing; a finding of its own says so.
            if a_failed < _LEAST_FAILURES or not b_passed or not a_passed or both[Outcome.FAILED, Outcome.PASSED]:
                continue
            same = not both[Outcome.PASSED, Outcome.FAILED]
            # Of two that always agree, one is needless and not both.
            if same and b in reported:
                continue
            reported.add(a)
            counts = {f"{left.value}/{right.value}": number for (left, right), number in both.items()}
            what = "they always agree" if same else f"it failed {a_failed} times, and each time that one failed too"
            verb = "says the same as" if same else "is implied by"
            message = f'it {verb} "{other.name}": {what} (of {both.total()} runs and mutations)'
            kind: FindingKind = "same" if same else "implied"
            yield AuditFinding(
                kind=kind,
                criterion=criterion.name,
                other=other.name,
                message=message,
                line=criterion.line,
                few_runs=audit.few_runs,
                evidence=counts,
            )


def _decided(outcome: Outcome) -> bool:
    return outcome in (Outcome.PASSED, Outcome.FAILED)


def _survives(
    audit: TestAudit, test: Test, checkers: Sequence[Checker], samples: Sequence[tuple[RunRow, Transcript]]
) -> Iterator[AuditFinding]:
    """A test that passes although the answer is empty: nothing in it looks at what the agent says."""
    tried = survived = 0
    for row, transcript in samples:
        if not _passes(checkers, transcript, row.variables, test.pass_threshold):
            continue
        for mutant in mutations(transcript):
            if mutant.kind == "empty":
                tried += 1
                survived += _passes(checkers, mutant.transcript, row.variables, test.pass_threshold)
    if tried and survived == tried:
        message = f"it passes with an empty answer ({survived} of {tried} runs that passed): no criterion looks at it"
        counts = {"tried": tried, "survived": survived}
        yield AuditFinding(
            kind="passes-empty",
            criterion=None,
            message=message,
            line=audit.line,
            few_runs=audit.few_runs,
            evidence=counts,
        )


def _passes(
    checkers: Sequence[Checker], transcript: Transcript, variables: Mapping[str, Any], threshold: float | None
) -> bool:
    results: list[CriterionResult] = [checker.check(transcript, variables, explain=False) for checker in checkers]
    return verdict_of(results, threshold).outcome is Outcome.PASSED
