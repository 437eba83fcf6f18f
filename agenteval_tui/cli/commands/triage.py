"""`agenteval triage`: decide once about a cause of failures."""

from __future__ import annotations

from collections.abc import Callable

import click

from agenteval_tui.analysis.causes import (
    CauseGroup,
    Causes,
    Scope,
    execution_scope,
    filter_scope,
    group_failures,
    newest_scope,
)
from agenteval_tui.analysis.triage import TriageStatus, decide, statuses
from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.declared_options import Until, who_option
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, json_option, pass_invocation
from agenteval_tui.cli.output import Output
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError, AmbiguousError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.formats.documents.causes import Triage, decided_cause
from agenteval_tui.grading.causes import cause_from
from agenteval_tui.history import triage
from agenteval_tui.history.current_user import current_user
from agenteval_tui.history.errors import NothingRanError
from agenteval_tui.history.queries import is_empty
from agenteval_tui.history.records import RunFilter
from agenteval_tui.history.references import References
from agenteval_tui.history.store import Store
from agenteval_tui.history.triage import Decision
from agenteval_tui.views.causes import decision_line

_CHOICES = ("accept", "fix", "quarantine", "label", "ignore", "reopen")


@click.command("triage")
@click.argument("cause", required=False)
@click.argument("decision", metavar="[DECISION]", required=False, type=click.Choice(_CHOICES))
@click.option("--note", default="", help="Why, in a few words.")
@click.option("--until", "until_ms", type=Until(), help="When to reopen it: 14d, 2w, or a day (2026-12-24).")
@who_option
@click.option(
    "--execution",
    metavar="REF",
    help="The execution with the cause (default: the newest that has it).",
    shell_complete=shell_completion.executions,
)
@click.option("--passed", is_flag=True, help="With label: its runs were right, and the criterion is wrong.")
@json_option
@all_projects("--all")
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    cause: str | None,
    decision: str | None,
    note: str,
    until_ms: int | None,
    who: str,
    execution: str | None,
    passed: bool,
    as_json: bool,
) -> int:
    """Decide about CAUSE, a short id that `agenteval causes` prints; without one, list the decisions.

    \b
    accept      make the newest runs of its tests their baseline
    fix         the criterion is wrong: show where to fix it
    quarantine  its tests run, but do not gate (for 14 days, or --until)
    label       label its runs as failed (with --passed: passed)
    ignore      ignore it until something changes
    reopen      withdraw the decision

    A decision reopens when its date has passed, when the criterion changes, when the cause appears in other tests, or
    when it grows by more than chance (accept and ignore). `agenteval docs triage` says which rule applies to which
    decision.
    """
    if cause is None:
        with invocation.store(to_look=True) as store:
            return _list(invocation, store, execution, as_json)
    if decision is None:
        raise click.UsageError(f"give a decision about {cause}: {', '.join(_CHOICES)}")
    out = invocation.out
    with invocation.store() as store:
        if decision == "reopen":
            return _reopen(out, store, cause, as_json=as_json)
        causes, group = _find_cause(invocation.references(store), execution, cause)
        done = decide(
            store,
            group,
            decision,
            note=note,
            who=who or current_user(),
            until_ms=until_ms,
            passed=passed,
            execution_id=causes.scope.execution_id,
        )
    if as_json:
        out.json(Triage(decisions=(decided_cause(done.decision, group.title, done=done.effect),)))
        return 0
    out.line((f"{group.cause.id}  ", "dim"), (one_line(group.title, 200), "bold"))
    out.line(f"{done.effect}{f': {one_line(note, 200)}' if note else ''}")
    if decision == "fix":
        out.line((f"agenteval open {group.address()}{invocation.db_option}", "dim"))
    return 0


def _reopen(out: Output, store: Store, cause: str, *, as_json: bool) -> int:
    decided = triage.decisions_by_signature(store)
    signature = triage.signature_of(list(decided), cause)
    triage.reopen(store, signature)
    if as_json:
        out.json(Triage(decisions=()))
        return 0
    # The quarantines may have other reasons by now: who reopens a cause looks at them.
    rest = " Its quarantines stay: `agenteval quarantine`." if decided[signature].decision == "quarantine" else ""
    out.line(f"open again: {one_line(_title(signature), 200)}.{rest}")
    return 0


def _list(invocation: Invocation, store: Store, execution: str | None, as_json: bool) -> int:
    decisions = triage.decisions(store)
    now: dict[str, TriageStatus] = (
        statuses(store, _causes(invocation.references(store), execution)) if decisions else {}
    )
    triage_statuses = [now.get(decision.signature) or TriageStatus(decision, _over(decision)) for decision in decisions]
    if as_json:
        listed = (
            decided_cause(row.decision, _title(row.decision.signature), row.open_again) for row in triage_statuses
        )
        invocation.out.json(Triage(decisions=tuple(listed)))
        return 0
    if not triage_statuses:
        invocation.out.line("there are no decisions yet: `agenteval causes` lists the causes of failures")
    for row in triage_statuses:
        gone = "" if row.decision.signature in now else "  not in the newest execution"
        title = one_line(_title(row.decision.signature), 200)
        invocation.out.line((f"{row.decision.id}  ", "dim"), (title, "bold"), (gone, "dim"))
        invocation.out.view((decision_line(row),))
    return 0


def _over(decision: Decision) -> str:
    return "its date has passed" if decision.until_ms is not None and now_ms() >= decision.until_ms else ""


def _find_cause(references: References, execution: str | None, cause: str) -> tuple[Causes, CauseGroup]:
    """The cause that a short name means, with what it is in: the execution that is named; else the last one, else the
    newest runs of each test, else all runs."""
    store = references.store
    if store.read(is_empty):
        raise NothingRanError(cause)
    looked: list[Callable[[], Causes]] = [lambda: _causes(references, execution)]
    if execution is None:
        looked.append(lambda: group_failures(store, newest_scope(store, projects=references.projects)))
        looked.append(lambda: group_failures(store, filter_scope(store, RunFilter())))
    for place, look in enumerate(looked, 1):
        causes = look()
        try:
            signature = triage.signature_of([group.cause.signature for group in causes.groups], cause)
        except AmbiguousError:
            raise  # several of that beginning: no reason to go on
        except AgentevalError:
            # One that is gone from the last execution is somewhere.
            if place == len(looked):
                raise
            continue
        return causes, next(group for group in causes.groups if group.cause.signature == signature)
    raise AssertionError("the last look raises")


def _causes(references: References, execution: str | None) -> Causes:
    """Of the execution that is named (None: the newest; without one nothing)."""
    try:
        row = references.execution(execution or "")
    except AgentevalError:
        if execution is not None:
            raise
        return Causes(Scope(()))
    return group_failures(references.store, execution_scope(references.store, row.id))


def _title(signature: str) -> str:
    try:
        return cause_from(signature).title
    except ValueError:
        return signature
