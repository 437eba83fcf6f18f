"""`agenteval judge-report`: how far judges and other criteria agree with people, and a judge with itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from agenteval_tui.analysis.agreement import (
    JudgedVersion,
    JudgeFigures,
    disagreements,
    is_judged,
    judge_figures,
    sole_of_results,
)
from agenteval_tui.analysis.explanation import criterion_named
from agenteval_tui.analysis.judge_repeatability import rejudge, respondents_for
from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, json_option, pass_invocation
from agenteval_tui.cli.output import Output, outcome_sign
from agenteval_tui.cli.trust_prompt import ask_permission
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import short_hash
from agenteval_tui.core.numbers import count, decimal, interval_phrase, percent
from agenteval_tui.core.phrasing import abridged
from agenteval_tui.formats.documents.judge import JudgeReport, judge_replies, judged_criterion, repeated_judgment
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.labels import label_of
from agenteval_tui.history.records import RunFilter, RunRow
from agenteval_tui.history.references import References
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import known_spec
from agenteval_tui.runs.event_loop import run_to_end
from agenteval_tui.runs.judge_client import ROUNDS
from agenteval_tui.runs.trust_check import check_asking
from agenteval_tui.views.comparison import p_value_text

_DIFFER = 5


@click.command("judge-report")
@click.argument("reference", metavar="[RUN/CRITERION]", required=False, shell_complete=shell_completion.runs)
@click.option("--suite", "suites", multiple=True, metavar="SUITE", help="Only this suite: its name or its file.")
@click.option(
    "--execution",
    metavar="REF",
    help="Only this execution (an id, or `last`).",
    shell_complete=shell_completion.executions,
)
@click.option(
    "--reask", type=click.IntRange(1, 100), metavar="N", help="Ask the judge about RUN/CRITERION again, N times."
)
@click.option(
    "--judge", metavar="A", help="With --reask: this agent as the judge.", shell_complete=shell_completion.agents
)
@click.option("--trust", is_flag=True, help="With --reask: let programs and functions in the suite's folder run.")
@json_option
@all_projects("--all")
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    reference: str | None,
    suites: tuple[str, ...],
    execution: str | None,
    reask: int | None,
    judge: str | None,
    trust: bool,
    as_json: bool,
) -> int:
    """Show how often judges agree with people's labels: accuracy and Cohen's kappa, for each judged criterion, and for
    every other criterion of labelled runs.

    With RUN/CRITERION: what the judge was asked, its raw replies, and people's labels of that run. CRITERION is a
    number (from 1), a name, or the start of one. --reask asks the judge again, to see how often it agrees with itself;
    this changes no stored result.
    """
    if reask is None and (judge is not None or trust):
        raise click.UsageError("--judge and --trust need --reask")
    if reference is None:
        if reask is not None:
            raise click.UsageError("--reask needs RUN/CRITERION")
        return _agreement(invocation, suites, execution, as_json)
    if suites or execution:
        raise click.UsageError("RUN/CRITERION already names the run: leave out --suite and --execution")
    with invocation.store(to_look=True) as store:
        row, result = find_criterion(invocation.references(store), reference)
        if reask is not None:
            return _reask(
                invocation, trust, store=store, row=row, result=result, times=reask, judge=judge, as_json=as_json
            )
        return _print_replies(invocation.out, store, row, result, as_json)


def find_criterion(references: References, reference: str) -> tuple[RunRow, CriterionResult]:
    """The run and the stored result of its criterion that RUN/CRITERION names; with one judged criterion, RUN will do.
    Raises `AgentevalError`."""
    row, criterion = references.address(reference)
    results = references.store.results(row.id)
    if criterion:
        return row, criterion_named(row.id, results, criterion)[1]
    judged = {number: result for number, result in enumerate(results, 1) if is_judged(result)}
    if len(judged) != 1:
        names = ", ".join(f"{number} ({result.criterion})" for number, result in judged.items())
        fix = f"name one as RUN/NUMBER: {names}" if judged else ""
        raise AgentevalError(f"run {row.id} has {count(len(judged), 'judged criterion')}", fix=fix)
    return row, next(iter(judged.values()))


def _agreement(invocation: Invocation, suites: tuple[str, ...], execution: str | None, as_json: bool) -> int:
    named = {suite: (str(Path(suite).resolve()), suite.casefold()) for suite in suites}

    def is_of(suite: str, key: str, name: str) -> bool:
        return key == named[suite][0] or name.casefold() == named[suite][1]

    with invocation.store(to_look=True) as store:
        run_filter = (
            RunFilter(execution_id=invocation.references(store).execution(execution).id)
            if execution
            # A suite that is named is meant wherever it is.
            else RunFilter(projects=() if suites else invocation.projects)
        )
        stored = store.read(lambda c: c.execute("SELECT key, name FROM suites").fetchall())
        if missing := [suite for suite in suites if not any(is_of(suite, *row) for row in stored)]:
            raise AgentevalError("this suite has no stored runs", where=", ".join(missing))
        rows = [
            row
            for row in store.run_rows(disagreements(store, store.run_ids(run_filter)))
            if not suites or any(is_of(suite, row.suite_key, row.suite_name) for suite in suites)
        ]
        figures = judge_figures(store, rows)
        nothing = "" if figures else invocation.why_nothing(store)
    if as_json:
        invocation.out.json(JudgeReport(criteria=tuple(map(judged_criterion, figures))))
        return 0
    if not figures:
        invocation.out.line(nothing or "no stored run was judged or labelled")
    for figure in figures:
        _print_figures(invocation.out, figure)
    return 0


def _print_figures(out: Output, figures: JudgeFigures) -> None:
    who = f"  {one_line(', '.join(figures.judges), 60)}" if figures.judges else ""
    out.line((f"{one_line(figures.suite, 40)}: {one_line(figures.criterion, 60)}", "bold"), (who, "dim"))
    errors = f", {figures.errors:,} in error" if figures.errors else ""
    checked = "judged" if figures.by_judge else "checked"
    silent = f", {figures.silent} left to people" if figures.silent else ""
    labelled = f"labelled by people: {figures.labelled}"
    out.line(f"  {checked} {figures.judged}: {figures.passed:,} passed{errors}{silent}; {labelled}")
    _print_agreement(out, figures)
    unsaid = figures.unsaid
    if unsaid.n:
        right = unsaid.both_yes + unsaid.both_no
        out.line(f"  of {count(unsaid.n, 'labelled run')} that it left to people, it would have been right in {right}")
    if len(figures.versions) > 1:
        _print_versions(out, figures.versions)


def _print_agreement(out: Output, figures: JudgeFigures) -> None:
    agreement = figures.agreement
    if agreement.accuracy is None:
        out.line(("  nothing to compare yet: `agenteval label RUN/CRITERION passed|failed|1..5`", "dim"))
        return
    kappa = "undefined (both always said the same)" if agreement.kappa is None else f"{agreement.kappa:.2f}"
    out.line(
        f"  accuracy {percent(agreement.accuracy)} of n = {agreement.n} ({interval_phrase(agreement.interval)}), "
        f"Cohen's kappa {kappa}"
    )
    out.line(
        f"  both yes {agreement.both_yes}, both no {agreement.both_no}, "
        f"only the {'judge' if figures.by_judge else 'criterion'} {agreement.only_judge}, "
        f"only the person {agreement.only_person}"
    )
    if figures.undecided:
        out.line((f"  {count(figures.undecided, 'labelled run')} without a verdict left out", "dim"))
    if figures.differ:
        out.line((f"  they differ in {abridged(figures.differ, _DIFFER)}", "warn"))


def _print_versions(out: Output, versions: Sequence[JudgedVersion]) -> None:
    """How far each version agrees with people, and whether the newest does more than the one before it."""
    for version in versions:
        silent = f", {version.silent} left to people" if version.silent else ""
        summary = (
            "no label to compare with"
            if version.accuracy is None
            else f"accuracy {percent(version.accuracy)} of n = {version.n}"
        )
        out.line(f"  version {short_hash(version.hash)}: {summary}{silent}")
    newest = versions[0]
    if newest.p_value is not None:
        out.line(
            f"  of {count(newest.both, 'labelled run')} that both newest versions decided, only the newest agrees with "
            f"people in {newest.better}, only the one before in {newest.worse} ({p_value_text(newest.p_value)})"
        )
        return
    compared = "no labelled run has a verdict of both newest versions"
    if not newest.n:
        compared = "no labelled run has a verdict of the newest version"
    grade = "`agenteval grade SUITE --execution REF --judge NAME --save` judges stored runs with it"
    out.line((f"  {compared}: {grade}", "warn"))


def _spec(store: Store, result: CriterionResult) -> CriterionSpec:
    spec = known_spec(store, result.criterion_hash)
    if spec is None:
        raise AgentevalError(f"the criterion {result.criterion!r} is not stored with its configuration")
    return spec


def _print_replies(out: Output, store: Store, row: RunRow, result: CriterionResult, as_json: bool) -> int:
    checker = compile_criterion(_spec(store, result))
    transcript = store.transcript(row.id)
    stored = {reply.request.hash: reply for reply in store.replies(row.id)}
    replies = {key: question.reply for key, question in stored.items()}
    own, known_replies = [], dict[str, Any]()
    # What the criterion asks, question by question, as far as it was answered.
    for _ in range(ROUNDS):
        for request in checker.requests(transcript, row.variables, known_replies):
            if request.hash in stored:
                own.append(stored[request.hash])
                known_replies[request.hash] = replies[request.hash]
    label = label_of(store.labels([row.id]), result.criterion, sole_of_results(store.results(row.id)))
    if as_json:
        out.json(judge_replies(row.id, result, label, own))
        return 0
    score = "" if result.score is None else f", score {decimal(result.score)}"
    head = f"{one_line(result.criterion)}: {result.outcome}{score}"
    out.line((head, outcome_sign(result.outcome)[1]), (f"  {row.id}", "dim"))
    for number, question in enumerate(own, 1):
        used = (
            f", {question.reply.input_tokens} + {question.reply.output_tokens} tokens"
            if question.reply.input_tokens
            else ""
        )
        out.line((f"question {number}", "bold"), (f"  {question.reply.model or question.request.target}{used}", "dim"))
        for message in question.request.payload.get("messages", ()):
            out.line((f"[{message['role']}]", "dim"))
            out.line(message["content"])
        for name in ("text", "value", "question"):
            if name in question.request.payload:
                out.line(str(question.request.payload[name]))
        out.line((f"reply {number}", "bold"))
        out.line((question.reply.error, "broken") if question.reply.error else question.reply.raw)
    if not own:
        out.line(("this run has no stored questions to judges", "dim"))
    if label is not None:
        comment = f": {one_line(label.comment)}" if label.comment else ""
        who = f" ({one_line(label.who)})" if label.who else ""
        verb = "rated it" if label.passed is None else "says:"
        out.line(f"a person{who} {verb} {label.verdict_text}{comment}")
    return 0


def _reask(
    invocation: Invocation,
    trust: bool,
    store: Store,
    row: RunRow,
    result: CriterionResult,
    times: int,
    judge: str | None,
    as_json: bool,
) -> int:
    if not is_judged(result):
        raise AgentevalError(f"the criterion {result.criterion!r} asks no judge: there is nothing to ask again")
    spec = _spec(store, result)
    out = invocation.out
    respondents = respondents_for([row.suite_key], judge)
    permission = ask_permission(
        invocation, lambda yes: check_asking(respondents, [(row.suite_key, spec)], trusted=trust or yes)
    )
    again = run_to_end(rejudge(store, row, spec, times, respondents, permission))
    repeated = repeated_judgment(row.id, result, again)
    if as_json:
        out.json(repeated)
        return 0
    outcomes = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in repeated.outcomes.items())
    out.line((f"{one_line(result.criterion)}, asked {times} times: {outcomes}", "bold"), (f"  {row.id}", "dim"))
    if repeated.scores:
        listed = ", ".join(decimal(score) for score in repeated.scores)
        out.line(f"  scores {listed}: median {repeated.median:.2f}, spread {repeated.spread:.2f}")
    flips = repeated.flips
    if flips:
        differ = "differs" if flips == 1 else "differ"
        out.line((f"  {count(flips, 'verdict')} of {times} {differ} from the majority", "warn"))
    for reason in dict.fromkeys(repeated.reasons):
        if reason:
            out.line((f"  {one_line(reason, 200)}", "dim"))
    tokens = f", {repeated.input_tokens} + {repeated.output_tokens or 0} tokens" if repeated.input_tokens else ""
    out.line((f"  {count(repeated.asked, 'question')} asked{tokens}; stored: {result.outcome}", "dim"))
    return 0
