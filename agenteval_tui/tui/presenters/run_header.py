"""The run that is inspected, in a line."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval_tui.analysis.run_facts import RunFacts, disagrees, last_labels
from agenteval_tui.analysis.workbench import Workbench
from agenteval_tui.core.display import one_line
from agenteval_tui.grading.grade import not_made, verdict_of
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.grading.sentences import not_made_sentence
from agenteval_tui.tui.presenters.number_format import duration, tokens
from agenteval_tui.tui.presenters.status_style import mark, word, word_of_run
from agenteval_tui.tui.presenters.view_lines import cell
from agenteval_tui.tui.styled_text import Cell, Line, fit, spread, width_of
from agenteval_tui.views.label import WARNING, labelled_text


def run_cells(bench: Workbench, repetitions: int = 0, width: int = 0) -> tuple[Cell, ...]:
    """Outcome, test, repetition (of so many), verdict and score, as they were when it ran. `width`: the cells there
    are (0: enough); a long name gives way, what came of it does not."""
    run = bench.run
    of = f" of {repetitions}" if repetitions >= run.repetition and repetitions > 1 else ""
    score = f" {run.score:.2f}" if run.score is not None else ""
    end: list[Cell] = [(f"  run {run.repetition}{of}", ""), (f"  {word_of_run(run.status, run.why)}{score}", "dim")]
    name: list[Cell] = [(one_line(run.test_id), "bold")]
    if run.variation:
        name.append((f" · {one_line(run.variation)}", ""))
    if width:
        name = list(fit(name, max(width - 2 - width_of(end), 8)))
    return (mark(run.status), (" ", ""), *name, *end)


def facts(bench: Workbench) -> tuple[Cell, ...]:
    """Agent, duration, tokens."""
    run = bench.run
    known = (one_line(run.agent, 30), duration(run.duration_ms), tokens(bench.transcript.usage.total_tokens))
    return (("   ".join(fact for fact in known if fact), "dim"),)


def run_heading(
    bench: Workbench, results: Sequence[CriterionResult], width: int, run_facts: RunFacts | None = None
) -> Line:
    """The run over the whole width; with what today's criteria say, where that differs."""
    # A scratch criterion is nobody's verdict on the run.
    in_a_file = all(criterion.index is not None for criterion in bench.criteria)
    known = run_facts or RunFacts()
    differs = agreement(bench.run.status, results, known.pass_threshold) if in_a_file else ""
    note: tuple[Cell, ...] = (("   ", ""), (differs, "error")) if differs else ()
    if missing := not_made_sentence(not_made(results)) if bench.run.status in ("passed", "failed") else "":
        note = (*note, ("   ", ""), (missing, "error"))
    note = (*note, *_label_note(bench.run.status, known))
    return spread(((" ", ""), *run_cells(bench, known.repetitions), *note), (*facts(bench), (" ", "")), width)


def _label_note(status: str, known: RunFacts) -> tuple[Cell, ...]:
    """What people said of the run as a whole; the last one of each, a sign where one disagrees with the outcome."""
    labels = list(last_labels(known.labels, "").values())
    if not labels:
        return ()
    if any(disagrees(one, status) for one in labels):
        return (("   ", ""), cell(f"{WARNING[0]} {labelled_text(labels)}", WARNING[1]))
    return (("   ", ""), (labelled_text(labels), "dim"))


def agreement(stored: str, results: Sequence[CriterionResult], pass_threshold: float | None = None) -> str:
    """What to say when the stored outcome and the one under the criteria as they are now differ; "" otherwise."""
    own = [result for result in results if not result.source and not result.derived]
    if not own or stored not in ("passed", "failed"):
        return ""
    now = verdict_of(own, pass_threshold).outcome
    return "" if now == stored else f"the criteria as shown say {word(now)}"
