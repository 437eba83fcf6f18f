"""`agenteval grade`: criteria on transcripts that are stored or given; no agent is called."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.analysis.judge_repeatability import respondents_for
from agenteval_tui.analysis.regrade import (
    Ask,
    CriteriaSource,
    RegradeResult,
    agreement,
    regrade,
    rules_of_suites,
    save_verdicts,
)
from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.declared_options import selected_tests
from agenteval_tui.cli.exit_codes import exit_code
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation
from agenteval_tui.cli.output import Output, outcome_sign
from agenteval_tui.cli.run_suites import load_for_run
from agenteval_tui.cli.standard_input import (
    NAME,
    STDIN,
    only_once,
    read_standard_input,
    standard_input_file,
)
from agenteval_tui.cli.trust_prompt import ask_permission
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count, decimal
from agenteval_tui.core.phrasing import abridged
from agenteval_tui.formats.documents.grade import GradedExecution, GradedRun, GradingSummary
from agenteval_tui.formats.import_file import open_source
from agenteval_tui.formats.stream.source import Source
from agenteval_tui.formats.transcript_to_grade import RunToGrade, runs_to_grade
from agenteval_tui.grading.codec import CriterionDocument, result_document
from agenteval_tui.grading.grade import grade, not_made
from agenteval_tui.grading.results import CriterionResult, Outcome, Verdict
from agenteval_tui.grading.sentences import not_made_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria_file import read_criteria
from agenteval_tui.runs.event_loop import run_to_end
from agenteval_tui.runs.judge_client import Answers, JudgeClient, JudgeRequestGroup
from agenteval_tui.runs.stored_judgments import JudgeLabels
from agenteval_tui.runs.trust_check import check_asking
from agenteval_tui.views.evidence import results_in_short
from agenteval_tui.views.model import OUTCOMES

_File = click.Path(path_type=Path, allow_dash=True)


@click.command("grade")
@click.argument("suites", nargs=-1, type=_File)
@click.option("--criteria", "criteria_file", type=_File, metavar="FILE", help="A criterion or a list (YAML or JSON).")
@click.option(
    "--transcript",
    "transcript_file",
    type=_File,
    metavar="FILE",
    help="A transcript, chat messages, a server's reply, or any other file that `import` reads.",
)
@click.option("--transcripts", "lines_file", type=_File, metavar="FILE.jsonl", help="Transcripts, one per line.")
@click.option(
    "--execution",
    metavar="REF",
    help="Grade the stored runs of this execution (an id, or `last`).",
    shell_complete=shell_completion.executions,
)
@click.option("--run", "run_ref", metavar="REF", help="Grade this stored run.", shell_complete=shell_completion.runs)
@selected_tests("With --execution: only runs of this test.")
@click.option("--var", "variables", multiple=True, metavar="NAME=VALUE", help="The value of {{NAME}} in the criteria.")
@click.option(
    "--judge",
    metavar="A",
    help="Ask this agent the questions that no judge has answered yet.",
    shell_complete=shell_completion.agents,
)
@click.option("--trust", is_flag=True, help="Let the criteria's Python functions run; look at them first.")
@click.option("--save", is_flag=True, help="With --execution: save the verdicts as a new execution.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (with --transcripts: one document per line).")
@all_projects("--all")
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    suites: tuple[Path, ...],
    criteria_file: Path | None,
    transcript_file: Path | None,
    lines_file: Path | None,
    execution: str | None,
    run_ref: str | None,
    tests: tuple[str, ...],
    variables: tuple[str, ...],
    judge: str | None,
    trust: bool,
    save: bool,
    as_json: bool,
) -> int:
    """Grade transcripts with criteria.

    The criteria come from --criteria FILE, for every transcript, or from SUITES, for stored runs of tests with the same
    id; a suite of the execution grades only its own runs. The transcripts are given (--transcript, --transcripts) or
    stored (--execution, --run). If another tool's verdict is stored with a run, it is shown beside ours. Judges and
    others are asked only with --judge or --trust; without that, their stored answers count, and a missing answer is an
    error.
    """
    sources = [source for source in (transcript_file, lines_file, execution, run_ref) if source is not None]
    if len(sources) != 1:
        raise click.UsageError("give one of --transcript, --transcripts, --execution and --run")
    if (criteria_file is None) == (not suites):
        raise click.UsageError("give --criteria FILE, or suites, but not both")
    only_once(criteria_file, transcript_file, lines_file, *suites)
    if save and execution is None:
        raise click.UsageError("--save needs --execution")
    named_values = dict(_variable(variable) for variable in variables)
    if transcript_file is not None or lines_file is not None:
        if criteria_file is None:
            raise click.UsageError("a transcript from a file has no test: name the criteria with --criteria FILE")
        specs = _read_criteria(invocation, criteria_file)
        grader = _Grader(specs, named_values, _asking(invocation, {"": specs}, judge, trust))
        path = transcript_file or lines_file
        assert path is not None
        return _grade_given(invocation, grader, path, as_json=as_json, by_line=transcript_file is None)
    return _grade_stored(
        invocation,
        suites,
        criteria_file=criteria_file,
        execution=execution,
        run_ref=run_ref,
        tests=tests,
        variables=named_values,
        save=save,
        as_json=as_json,
        judge=judge,
        trust=trust,
    )


def _asking(
    invocation: Invocation,
    specs: Mapping[str, Iterable[CriterionSpec]],
    judge: str | None,
    trust: bool,
    store: Store | None = None,
) -> Ask | None:
    """How judges and others are asked, for criteria by their suite's key; None: they are not.

    Raises `AgentevalError` for an unknown judge, `NotTrustedError` where what would be asked needs trust.
    """
    if judge is None and not trust:
        return None

    respondents = respondents_for(list(specs), judge)
    cases = [(key, spec) for key, listed in specs.items() for spec in listed]
    permission = ask_permission(invocation, lambda yes: check_asking(respondents, cases, trusted=trust or yes))

    async def all_of(cases: Sequence[JudgeRequestGroup]) -> list[Answers]:
        asker = JudgeClient(
            respondents,
            permission=permission,
            known=store.known_reply if store is not None else None,
            labels=JudgeLabels(store) if store is not None else None,
        )
        try:
            return list(await asyncio.gather(*(asker.answer(case) for case in cases)))
        finally:
            await asker.close()

    return lambda cases: run_to_end(all_of(cases))


class _Grader(Struct, frozen=True):
    """Grades given transcripts: the criteria, values for them, and how judges are asked (None: they are not)."""

    specs: Sequence[CriterionSpec]
    variables: Mapping[str, Any]
    ask: Ask | None

    def grade(self, run: RunToGrade) -> Verdict:
        """The verdict on a transcript. What was named with `--var` comes before what its file says."""
        variables = {**run.variables, **self.variables}
        replies = None
        # A run that broke off is in error, whatever a judge would say of what there is of it.
        if self.ask is not None and run.transcript.error is None:
            replies = self.ask([JudgeRequestGroup("", tuple(self.specs), run.transcript, variables)])[0].replies
        return grade(run.transcript, self.specs, variables, replies=replies)


def _variable(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not equals or not name:
        raise click.UsageError(f"--var {given}: write NAME=VALUE")
    return name, value


# Given transcripts


def _read_criteria(invocation: Invocation, path: Path) -> list[CriterionSpec]:
    if path == STDIN:
        return read_criteria(Path(NAME), read_standard_input(invocation, "criteria"))
    return read_criteria(path)


@contextmanager
def _file_or_stdin(invocation: Invocation, path: Path, what: str) -> Iterator[tuple[Path, str]]:
    """The file, or standard input as one, and what messages call it."""
    if path != STDIN:
        yield path, str(path)
        return
    with standard_input_file(invocation, what) as file:
        yield file, NAME


def _grade_given(invocation: Invocation, grader: _Grader, path: Path, *, as_json: bool, by_line: bool) -> int:
    what = "transcripts, one per line" if by_line else "a transcript"
    with _file_or_stdin(invocation, path, what) as (file, name), _open_named(file, name) as source:
        runs = runs_to_grade(source, name, by_line=by_line)
        # Two are enough to know whether there are several; the file may be larger than what fits into memory.
        first = list(islice(runs, 2))
        if len(first) == 1 and not by_line:
            _print_notes(invocation, first[0])
            return _grade_one(invocation.out, grader.grade(first[0]), as_json=as_json)
        return _grade_several(invocation, grader, chain(first, runs), as_json=as_json, name=name)


@contextmanager
def _open_named(file: Path, name: str) -> Iterator[Source]:
    try:
        with open_source(file) as source:
            yield source
    # Standard input is read from a file of ours, whose path says nothing to whoever piped it in.
    except AgentevalError as error:
        if error.where != str(file) or str(file) == name:
            raise
        raise AgentevalError(error.what, where=name, fix=error.fix) from None


def _print_notes(invocation: Invocation, run: RunToGrade) -> None:
    for note in run.notes:
        where = f"{run.label}: " if run.label else ""
        invocation.note(f"{where}{one_line(note)}")


def _grade_one(out: Output, verdict: Verdict, *, as_json: bool) -> int:
    if as_json:
        out.json(_results(verdict.results))
    else:
        out.view(results_in_short(verdict.results))
        score = "" if verdict.score is None else f", score {decimal(verdict.score)}"
        missing = not_made(verdict.results) if verdict.outcome is not Outcome.ERROR else 0
        out.line(
            (str(verdict.outcome), outcome_sign(verdict.outcome)[1]),
            score,
            (f"  {not_made_sentence(missing)}" if missing else "", "warn"),
        )
    return exit_code({str(verdict.outcome): 1})


def _grade_several(
    invocation: Invocation, grader: _Grader, runs: Iterable[RunToGrade], *, as_json: bool, name: str
) -> int:
    counts: Counter[str] = Counter()
    for run in runs:
        _print_notes(invocation, run)
        verdict = grader.grade(run)
        outcome = str(verdict.outcome)
        counts[outcome] += 1
        if as_json:
            invocation.out.json_line(_results(verdict.results))
            continue
        invocation.out.line(outcome_sign(outcome), f" {run.label}: {outcome}")
        invocation.out.view(results_in_short(verdict.results, missed=True, indent=2))
    if not counts:
        raise AgentevalError("there are no transcripts in this file", where=name)
    if not as_json:
        _print_counts(invocation.out, counts)
    return exit_code(counts)


def _results(results: Sequence[CriterionResult]) -> tuple[CriterionDocument, ...]:
    return tuple(map(result_document, results))


# Stored runs


def _grade_stored(
    invocation: Invocation,
    suites: tuple[Path, ...],
    criteria_file: Path | None,
    execution: str | None,
    run_ref: str | None,
    tests: tuple[str, ...],
    variables: Mapping[str, Any],
    save: bool,
    as_json: bool,
    judge: str | None,
    trust: bool,
) -> int:
    with invocation.store(to_look=not save) as store:
        rules = None
        if criteria_file is not None:
            rules = CriteriaSource(tuple(_read_criteria(invocation, criteria_file)), None, variables)
        loaded = load_for_run(invocation, suites, ()) if rules is None else []
        references = invocation.references(store)
        one_run = references.run(run_ref) if run_ref is not None else None
        row = references.execution(one_run.execution_id if one_run is not None else execution or "")
        test_ids = {test.casefold() for test in tests}
        all_runs = [one_run] if one_run is not None else store.runs_of_execution(row.id)
        rows = [regraded for regraded in all_runs if not test_ids or regraded.test_id.casefold() in test_ids]
        by_test = _with_variables(rules_of_suites(loaded, store.runs_of_execution(row.id)), variables)
        find: Callable[[RunRow], CriteriaSource | None] = by_test if rules is None else lambda row: rules
        done: list[RegradeResult] = []
        pairs = []
        specs: dict[str, list[CriterionSpec]] = {}
        for run in rows:
            rules_of_run = find(run)
            specs.setdefault(run.suite_key, []).extend(rules_of_run.specs if rules_of_run is not None else ())
        ask = _asking(invocation, specs, judge, trust, store)
        for regraded, transcript in regrade(store, rows, find, ask):
            done.append(regraded)
            if save:
                pairs.append((regraded, transcript))
            if not as_json:
                _print_run(invocation.out, regraded)
        if not done:
            names = abridged(list(dict.fromkeys(run.test_id for run in all_runs)), 8)
            raise AgentevalError(
                "no stored run matches these criteria",
                where=f"execution {row.id}",
                fix=f"the tests of its runs are {names}; a suite's tests need the same ids, and a suite of "
                "this execution grades only its own runs",
            )
        saved = ""
        if save:
            saved = save_verdicts(store, row, pairs, f"{row.title}, graded again")
    counts = Counter(str(regraded.verdict.outcome) for regraded in done)
    alike = agreement(done)
    left_out = len(rows) - len(done)
    if as_json:
        invocation.out.json(_document(row.id, done, counts, alike, left_out, saved))
    else:
        _print_counts(invocation.out, counts)
        _print_agreement(invocation.out, done, alike)
        if left_out:
            why = "no test with the same id in their suite, or not ended"
            invocation.out.line((f"{count(left_out, 'run')} left out: {why}", "dim"))
        if saved:
            invocation.out.line((f"saved as execution {saved}", "dim"))
    return exit_code(counts)


def _with_variables(
    find: Callable[[RunRow], CriteriaSource | None], variables: Mapping[str, Any]
) -> Callable[[RunRow], CriteriaSource | None]:
    def found(row: RunRow) -> CriteriaSource | None:
        rules = find(row)
        return replace(rules, variables={**(rules.variables or {}), **variables}) if rules and variables else rules

    return found


def _print_run(out: Output, regraded: RegradeResult) -> None:
    outcome = str(regraded.verdict.outcome)
    theirs = [f"{result.criterion}: {result.outcome}" for result in regraded.foreign]
    differs = regraded.foreign_outcome is not None and regraded.foreign_outcome is not regraded.verdict.outcome
    out.line(
        outcome_sign(outcome),
        f" {one_line(regraded.row.test_id, 40)} #{regraded.row.repetition}: {outcome}  ",
        (one_line("; ".join(theirs), 100), "warn" if differs else "dim"),
        (f"  {regraded.row.id}", "dim"),
    )
    out.view(results_in_short(regraded.verdict.results, missed=True, indent=4))


def _print_counts(out: Output, counts: Mapping[str, int]) -> None:
    order = [key for key in OUTCOMES if counts.get(key)]
    numbers = ", ".join(f"{counts[key]} {'in error' if key == 'error' else key.replace('_', ' ')}" for key in order)
    out.line(f"{numbers} of {count(sum(counts.values()), 'transcript')}")


def _print_agreement(out: Output, done: Sequence[RegradeResult], alike: Mapping[str, int]) -> None:
    names = list(dict.fromkeys(result.criterion for regraded in done for result in regraded.foreign))
    both = sum(alike.values()) - alike["undecided"]
    if not names or not both:
        return
    same = alike["both_passed"] + alike["both_failed"]
    out.line(
        f"against {one_line(', '.join(names), 60)}: the same verdict in {same} "
        f"of {both} (both passed {alike['both_passed']}, both failed {alike['both_failed']}, "
        f"only ours passed {alike['only_ours_passed']}, only theirs passed {alike['only_theirs_passed']})"
    )


def _document(
    execution: str,
    done: Sequence[RegradeResult],
    counts: Mapping[str, int],
    alike: Mapping[str, int],
    left_out: int,
    saved: str,
) -> GradedExecution:
    return GradedExecution(
        execution=execution,
        saved=saved or None,
        summary=GradingSummary(
            runs=len(done),
            left_out=left_out,
            outcomes=dict(counts),
            agreement=dict(alike),
        ),
        runs=tuple(
            GradedRun(
                run=regraded.row.id,
                test=regraded.row.test_id,
                repetition=regraded.row.repetition,
                outcome=str(regraded.verdict.outcome),
                score=regraded.verdict.score,
                criteria=_results(regraded.verdict.results),
                foreign=_results(regraded.foreign),
            )
            for regraded in done
        ),
    )
