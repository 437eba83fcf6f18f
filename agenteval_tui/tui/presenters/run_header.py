"""The run that is inspected, in a line; and why it did not pass, in another."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval_tui.analysis.run_facts import RunFacts, disagrees, last_labels
from agenteval_tui.analysis.workbench import Workbench
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import decimal, short_dollars, short_duration, token_count
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.explain import why
from agenteval_tui.grading.grade import not_made, verdict_of
from agenteval_tui.grading.results import CriterionResult, Verdict
from agenteval_tui.grading.sentences import not_made_sentence, verdict_sentence
from agenteval_tui.tui.presenters.status_style import glyph, mark, token, word, word_of_run
from agenteval_tui.tui.presenters.view_lines import cell
from agenteval_tui.tui.styled_text import Cell, Line, cell_len, fit, longest_that_fits, width_of
from agenteval_tui.views.failure import Miss, first_miss, part
from agenteval_tui.views.label import WARNING, labelled_text

_GAP = 3
_LEAST = 8  # cells of a test's name, whatever else there is to say


def run_header(
    bench: Workbench,
    results: Sequence[CriterionResult],
    run_facts: RunFacts,
    width: int,
    *,
    edited: bool = False,
    passed_before: bool = False,
    place: str = "",
    keys: str = "",
    took: bool = True,
) -> tuple[Line, Line]:
    """What stands left and right in the header of a run, in `width` cells together.

    Left the outcome, the test, the repetition, the score, and what is to be noted: labels, checks that were impossible,
    an outcome that is different today (`edited`: with an edit that is not saved), that the test `passed_before` with
    other code. Right the agent, what the run took (unless that stands elsewhere: not `took`), the `keys` to its
    neighbours, and its `place` among them. Where there is no room for all, the agent goes first, then what it took, the
    keys, the notes; a long name is cut.
    """
    run = bench.run
    of = f" of {run_facts.repetitions}" if run_facts.repetitions >= run.repetition and run_facts.repetitions > 1 else ""
    threshold = run_facts.pass_threshold
    how = f"score {decimal(run.score, beside=threshold)}" if run.score is not None else word_of_run(run.status, run.why)
    verdict = _verdict_now(run.status, results, threshold)
    if verdict is not None and verdict.code == Code.THRESHOLD and run.status == "failed":
        how += f", below {threshold:g}"
    end: Line = ((f"  run {run.repetition}{of}", ""), (f"   {how}", "dim"))
    name: Line = ((one_line(run.test_id), "bold"),)
    if run.variation:
        name = (*name, (f" · {one_line(run.variation)}", ""))
    parts: dict[str, Line] = {
        "place": ((place, "dim"),),
        "notes": _notes(bench, results, run_facts, edited, passed_before),
        "keys": ((keys, "accent"),),
        "took": ((" · ".join(facts(bench)) if took else "", "dim"),),
        "agent": ((one_line(run.agent, 30), "dim"),),
    }
    room = width - 2 - width_of(end) - min(width_of(name), max(width // 3, _LEAST))
    visible: set[str] = set()
    for which, cells in parts.items():
        if size := width_of(cells):
            room -= size + _GAP
            if room < 0:
                break
            visible.add(which)
    notes: Line = ((" " * _GAP, ""), *parts["notes"]) if "notes" in visible else ()
    right: list[Cell] = []
    for which in ("agent", "took", "keys", "place"):
        if which in visible:
            right += [(" " * _GAP, ""), *parts[which]] if right else parts[which]
    left_over = width - 2 - width_of((*end, *notes, *right)) - (_GAP if right else 0)
    return (mark(run.status), (" ", ""), *fit(name, max(left_over, _LEAST)), *end, *notes), tuple(right)


def facts(bench: Workbench) -> list[str]:
    """How long the run took, how many tokens, of the agent and of the simulated user, why the answer ended."""
    user = bench.transcript.user_usage
    played = " ".join(amount for amount in (token_count(user.total_tokens), short_dollars(user.cost)) if amount)
    listed = (
        short_duration(bench.run.duration_ms),
        token_count(bench.transcript.usage.total_tokens),
        f"user {played}" if played else "",
        one_line(bench.transcript.finish_reason or "", 20),
    )
    return [fact for fact in listed if fact]


def _notes(
    bench: Workbench, results: Sequence[CriterionResult], run_facts: RunFacts, edited: bool, passed_before: bool
) -> Line:
    # A scratch criterion is not a verdict on the run.
    in_a_file = all(criterion.index is not None for criterion in bench.criteria)
    status = bench.run.status
    notes: list[Cell] = []
    if in_a_file and (differs := agreement(status, results, run_facts.pass_threshold, edited=edited)):
        verdict = _verdict_now(status, results, run_facts.pass_threshold)
        notes.append((differs, token(verdict.outcome if verdict is not None else status)))
    if status in ("passed", "failed") and (missing := not_made_sentence(not_made(results))):
        notes.append((missing, "error"))
    if labels := list(last_labels(run_facts.labels).values()):
        label_text = labelled_text(labels)
        differ = any(disagrees(label, status) for label in labels)
        notes.append(cell(f"{WARNING[0]} {label_text}", WARNING[1]) if differ else (label_text, "dim"))
    if passed_before:
        notes.append(("passed with earlier code", "review"))
    gap: Cell = (" " * _GAP, "")
    return tuple(part for note in notes for part in (gap, note))[1:]


def agreement(
    stored: str, results: Sequence[CriterionResult], pass_threshold: float | None = None, *, edited: bool = False
) -> str:
    """What to say when the stored outcome and the one under the criteria as they are now differ; "" otherwise."""
    verdict = _verdict_now(stored, results, pass_threshold)
    what = "your edit" if edited else "today's criteria"
    return "" if verdict is None or verdict.outcome == stored else f"graded with {what}: {word(verdict.outcome)}"


def _verdict_now(stored: str, results: Sequence[CriterionResult], pass_threshold: float | None) -> Verdict | None:
    """The run's verdict under these results; None where they decide nothing."""
    own = [result for result in results if not result.source and not result.derived]
    return verdict_of(own, pass_threshold) if own and stored in ("passed", "failed") else None


def reason_line(
    bench: Workbench,
    result: CriterionResult | None,
    results: Sequence[CriterionResult],
    width: int,
    pass_threshold: float | None = None,
    *,
    edited: bool = False,
) -> Line:
    """Why the run did not pass, in one line: why it ended, else the chosen criterion's reason, else that of the first
    one that did not pass, else that its score is below the test's `pass_threshold`. Of one that passes: that it did not
    before it was graded now; () where it did."""
    error = bench.transcript.error
    if error is not None:
        return fit((mark("error"), (f" {error.kind}: {one_line(error.message)}", "")), width)
    for candidate in (*((result,) if result is not None else ()), *results):
        if candidate.outcome in ("failed", "error", "needs_review"):
            name = () if candidate is result else ((f"{one_line(candidate.criterion, 40)}: ", "dim"),)
            sign: Cell = (f"{glyph(candidate.outcome)} ", token(candidate.outcome))
            lines: list[Line] = [(*name, (one_line(why(candidate) or word(candidate.outcome)), ""))]
            miss = first_miss([candidate])
            if miss is not None and miss.expected:
                # What decides is not cut: rather the values alone than a sentence without its end.
                compared = miss_lines(miss, width - cell_len(sign[0]))
                lines = compared if miss.looks_equal else [*lines, *compared]
            return longest_that_fits([(sign, *line) for line in lines], width)
    verdict = _verdict_now(bench.run.status, results, pass_threshold)
    if verdict is not None and verdict.code == Code.THRESHOLD:
        return fit((mark("failed"), (f" {verdict_sentence(verdict)}", "")), width)
    now = agreement(bench.run.status, results, pass_threshold, edited=edited)
    return fit((mark("passed"), (f" {now}", "")), width) if now and results else ()


def miss_lines(miss: Miss, width: int) -> list[Line]:
    """The expected and the actual value, and what they alone do not show: from the longest version to the shortest,
    which says in `width` cells what decides."""
    what: Line = ((f"{one_line(miss.what)}  ", "json-key"),) if miss.what else ()
    expected: Line = (("expected ", "dim"), (one_line(miss.expected), ""))
    values: Line = (*expected, ("  got ", "dim"), (one_line(miss.got), ""))
    note: Cell = (one_line(miss.note), "")
    noted: list[Line] = [(*expected, (": ", "dim"), note), (note,)] if miss.note else []
    both: list[Line] = [(*what, *values), (*values,)]
    if miss.looks_equal:
        return [*((*line, ("  (", "dim"), note, (")", "dim")) for line in both), *noted]
    room = max((width - width_of((values[0], values[2]))) // 2, _LEAST)
    expected_text, actual = (one_line(part(side, miss.at, room)[0]) for side in (miss.expected, miss.got))
    return [*both, *(noted or [(values[0], (expected_text, ""), values[2], (actual, ""))])]
