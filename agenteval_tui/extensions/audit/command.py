"""`agenteval audit`: criteria that never fail, never pass, or that another implies."""

from __future__ import annotations

from pathlib import Path

import click

from agenteval_tui.cli.exit_codes import FAILED
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.cli.named_tests import named
from agenteval_tui.cli.output import Output, Style
from agenteval_tui.cli.suite_arguments import paths_given
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import WRONG_USE, AgentevalError
from agenteval_tui.core.numbers import count
from agenteval_tui.extensions.audit.audit import AuditFinding, TestAudit, audit_suite
from agenteval_tui.extensions.audit.document import Audit, audited_suite
from agenteval_tui.suites.discover import discover
from agenteval_tui.suites.load import load_suite

_TITLES: dict[str, tuple[str, Style]] = {
    "never-fails": ("never fails", "warn"),
    "only-empty": ("fails only when empty", "warn"),
    "never-passes": ("never passes", "bad"),
    "always-error": ("always an error", "broken"),
    "implied": ("implied", "warn"),
    "same": ("says nothing new", "warn"),
    "passes-empty": ("passes when empty", "warn"),
}


@click.command("audit")
@click.argument("paths", nargs=-1, metavar="[SUITE]...", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON document.")
@click.option("--strict", is_flag=True, help="Exit code 1 when something is found.")
@click.option(
    "--runs",
    type=click.IntRange(1, 1000),
    metavar="N",
    default=40,
    show_default=True,
    help="How many of each test's newest stored runs to look at.",
)
@common_options
@pass_invocation
def command(invocation: Invocation, paths: tuple[Path, ...], as_json: bool, strict: bool, runs: int) -> int:
    """Test whether the criteria of SUITE (files or folders; FILE::TEST: one test; default: the current folder) would
    notice a wrong answer.

    The stored runs of each test are changed on purpose (a call dropped, an argument swapped, the answer emptied,
    refused, cut off or about something else) and graded. No agent is called. Criteria that ask a judge are skipped.
    """

    selection = named(paths_given(paths))
    files = discover(selection.paths)
    if not files:
        raise AgentevalError("no suites found", fix="a suite is a file `*.suite.yaml`, or `suite.yaml`")
    audited: list[tuple[Path, list[TestAudit]]] = []
    with invocation.store(to_look=True) as store:
        for path in files:
            loaded = load_suite(path)
            if loaded.suite is None:
                first = next((problem for problem in loaded.problems if problem.severity == "error"), None)
                raise AgentevalError(
                    first.message if first else "this is not a suite",
                    where=f"{path}:{first.line}" if first else str(path),
                )
            selection.chosen([loaded])  # raises where a test is not there
            listed = audit_suite(loaded, store, runs=runs)
            audited.append(
                (path, [test_audit for test_audit in listed if selection.takes(loaded.key, test_audit.test_id)])
            )
    tests = [test for _, listed in audited for test in listed]
    findings = [finding for test in tests for finding in test.findings]
    if as_json:
        invocation.out.json(Audit(suites=tuple(audited_suite(path, listed) for path, listed in audited)))
    else:
        for path, listed in audited:
            for test in listed:
                _print_test(invocation.out, path, test)
        _print_end(invocation.out, tests, findings)
    if not any(test.runs for test in tests) and strict:
        return WRONG_USE  # nothing was tried, so nothing is proved
    return FAILED if strict and findings else 0


def _print_test(out: Output, path: Path, test: TestAudit) -> None:
    for finding in test.findings:
        title, style = _TITLES[finding.kind]
        subject = f"{test.test_id}/{one_line(finding.criterion, 60)}" if finding.criterion else test.test_id
        few = f" [only {count(test.runs, 'run')}: run the test more often to be sure]" if finding.few_runs else ""
        out.line(
            f"{path}:{finding.line}: ",
            (title, style),
            f": {subject}: {one_line(finding.message, 400)}",
            (few, "dim"),
        )
    for criterion in test.criteria:
        if criterion.note:
            out.line(
                (f"{path}:{criterion.line}: {test.test_id}/{one_line(criterion.name, 60)}: {criterion.note}", "dim")
            )


def _print_end(out: Output, tests: list[TestAudit], findings: list[AuditFinding]) -> None:
    tried = [test for test in tests if not test.note]
    unaudited = [test.test_id for test in tests if test.note == "no stored run"]
    criteria = sum(len(test.criteria) for test in tried)
    runs, mutants = sum(test.runs for test in tried), sum(test.mutants for test in tried)
    out.line(
        f"{count(len(tried), 'test')}, {count(criteria, 'criterion')}, "
        f"{count(runs, 'stored run')}, {count(mutants, 'mutation')}: "
        f"{count(len(findings), 'finding') if findings else 'nothing found'}"
    )
    if unaudited:
        ids = ", ".join(one_line(test_id, 40) for test_id in unaudited[:8]) + (", …" if len(unaudited) > 8 else "")
        out.line((f"not audited, for lack of stored runs: {ids}", "dim"))
