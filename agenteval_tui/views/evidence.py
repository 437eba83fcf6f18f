"""What is shown of evidence: the facts of an explanation as a tree, and what is known of the run beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from agenteval_tui.analysis.explanation import Explanation
from agenteval_tui.core.display import displayable, one_line
from agenteval_tui.core.numbers import count
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.explain import Fact, Mark, explain, on_one_line
from agenteval_tui.grading.results import CriterionResult, Evidence, Outcome
from agenteval_tui.grading.sentences import not_made_sentence
from agenteval_tui.history.records import RunRow
from agenteval_tui.transcripts.model import SETUP, RunError
from agenteval_tui.views.blame import blame_line, passed_before_text, standout_line
from agenteval_tui.views.comparison_text import comparison_text
from agenteval_tui.views.divergence import parting_text
from agenteval_tui.views.evidence_comparison import comparison_title, comparisons, hidden_differences
from agenteval_tui.views.label import label_text
from agenteval_tui.views.model import OUTCOMES, Heading, Node, Paragraph, Span, Text, Tree, View, outcome_text, text
from agenteval_tui.views.model_request import lost_text
from agenteval_tui.views.traceback import raised_block, raised_title, traceback_block

SIGNS: dict[Mark, Span] = {
    "passed": OUTCOMES["passed"],
    "failed": OUTCOMES["failed"],
    "error": OUTCOMES["error"],
    "info": ("·", "dim"),
    "near": ("≈", "near"),
}
_LONGEST = 400  # characters of a fact beside other things
_LONGEST_REPLY = 2000  # characters of a reply that could not be read
_MOST_LINES = 20  # and its lines


def fact_tree(facts: Iterable[Fact], *, longest: int | None = None, indent: int = 0) -> Tree:
    """Facts, a line each: criteria are bold, and what is below a criterion keeps its characters as code does."""
    return Tree(tuple(_node(fact, "bold", longest) for fact in facts), indent=indent)


def results_in_short(results: Iterable[CriterionResult], *, missed: bool = False, indent: int = 0) -> View:
    """Results beside other things, each line cut. `missed`: what did not pass, and nothing of what passed."""
    if missed:
        results = (result for result in results if result.outcome not in (Outcome.PASSED, Outcome.SKIPPED))
    facts: Iterable[Fact] = explain(results)
    if missed:
        facts = map(_without_passed, facts)
    return (fact_tree(facts, longest=_LONGEST, indent=indent),)


def _without_passed(fact: Fact) -> Fact:
    return replace(fact, children=tuple(_without_passed(child) for child in fact.children if child.mark != "passed"))


def _node(fact: Fact, tokens: str, longest: int | None) -> Node:
    compared = comparisons(fact.evidence) if fact.evidence is not None else ()
    block: tuple[str, ...] = ()
    words = on_one_line(fact.text)
    if fact.evidence is not None and compared:
        # What was expected and what came say more than the sentence.
        words = on_one_line(": ".join(filter(None, (fact.evidence.condition, _title(fact.evidence)))))
        block = comparison_text(compared)
        if hidden := hidden_differences(fact.evidence):
            block = (*block, f"… {count(hidden, 'more difference')}")
    elif fact.evidence is not None and longest is None:
        block = _unread_reply(fact.evidence)
    if longest is not None and len(words) > longest:
        words = words[: longest - 1] + "…"
    children = tuple(
        _node(child, "dim code" if child.mark in ("passed", "info") else "code", longest) for child in fact.children
    )
    return Node(text((words, tokens)), children, SIGNS[fact.mark], block)


def _unread_reply(evidence: Evidence) -> tuple[str, ...]:
    """The lines of a judge's reply that could not be read, as it was sent; the first of a long one."""
    reply = evidence.found
    if evidence.code != Code.REPLIED or "error" not in evidence.fields or not isinstance(reply, str):
        return ()
    lines = displayable(reply[:_LONGEST_REPLY]).split("\n")
    cut = len(reply) > _LONGEST_REPLY or len(lines) > _MOST_LINES
    return (*lines[:_MOST_LINES], *(("…",) if cut else ()))


def _title(evidence: Evidence) -> str:
    """`get_order, 1 of 2 arguments differs`; "" where the name of the condition is all there is to say."""
    tool, how = comparison_title(evidence)
    return f"{tool} {how}" if how.startswith("was ") else f"{tool}, {how}" if tool else how


def explanation_view(explained: Explanation, options: str = "") -> View:
    """The run with its outcome, then all that `explanation` says."""
    status, token = outcome_text(explained.run.status)
    head = (f"{one_line(explained.run.test_name)}: {status}", token)
    return Paragraph(text(head, (f"  {explained.run.id}", "dim"))), *explanation(explained, options)


def explanation_page(explained: Explanation, level: int = 2, about: str = "", options: str = "") -> View:
    """A section for a bug report: the run with its outcome, where it is from, then all that `explanation` says.

    `about` is said before that.
    """
    head = Heading(text(f"{one_line(explained.run.test_name)}: {outcome_text(explained.run.status)[0]}"), level)
    return (
        head,
        *(Paragraph(text(words)) for words in (about,) if words),
        Paragraph(place_of(explained.run)),
        *explanation(explained, options),
    )


def place_of(row: RunRow) -> Text:
    """The test, its row, the repetition and the agent of a run."""
    where = one_line(f"{row.suite_name} / {row.case_name}")
    return text((where, "code"), f", repetition {row.repetition}, agent ", (one_line(row.agent), "code"))


def explanation(explanation: Explanation, options: str = "") -> View:
    """What ended the answer, why the agent did not finish, the facts; labels, where runs part; where it is from.
    `options`: those that the command which shows it again needs, as ` --db FILE`."""
    nodes = (*_of_the_run(explanation), *fact_tree(explanation.facts).nodes)
    notes = [Node(text((one_line(label_text(label)), "dim"))) for label in explanation.labels]
    for lost in explanation.lost:
        notes.append(Node(text(("not seen by the model: ", "bold"), lost_text(lost, explanation.run.id, options))))
    if (earlier := explanation.earlier_program) is not None:
        notes.append(
            Node(text(("with earlier code: ", "bold"), passed_before_text(earlier), (f"  {earlier.run}", "dim")))
        )
    if parting := parting_text(explanation.divergence):
        notes.append(Node(text(("first divergence: ", "bold"), one_line(parting))))
    if explanation.blame is not None and (line := blame_line(explanation.blame)):
        notes.append(Node(text(("went wrong at ", "bold"), line)))
    if explanation.blame is not None and (line := standout_line(explanation.blame)):
        notes.append(Node(text(("noticed at ", "bold"), line)))
    command = Paragraph(text((f"agenteval why {one_line(explanation.address + options)}", "dim code")))
    return (*(Tree(tuple(branch)) for branch in (nodes, notes) if branch), command)


def _of_the_run(explanation: Explanation) -> Iterator[Node]:
    remarks = (
        *((explanation.ending.description,) if explanation.ending is not None else ()),
        *(note.description for note in explanation.notes),
    )
    # A transcript may note what ended the answer, too: said once.
    for remark in dict.fromkeys(remarks):
        yield Node(text((one_line(remark), "warn code")), sign=("!", "warn"))
    if explanation.error is not None:
        fix = f" ({explanation.error.fix})" if explanation.error.fix else ""
        why = f"{_error_head(explanation.error)}: {explanation.error.message}{fix}"
        traceback = explanation.error.traceback
        block = () if traceback is None else traceback_block(traceback)
        yield Node(text((why, "broken code")), sign=SIGNS["error"], block=block)
    for output in explanation.logged:
        source = " ".join(filter(None, (output.level, output.logger)))
        yield Node(text(("logged: ", "bold"), one_line(f"{source} {output.text}".strip(), 300)), sign=("!", "warn"))
    for raised in explanation.raised:
        yield Node(
            text((one_line(raised_title(raised)), "broken code")), sign=SIGNS["error"], block=raised_block(raised)
        )
    if explanation.run.checks_not_made:
        yield Node(text((not_made_sentence(explanation.run.checks_not_made), "warn")), sign=("!", "warn"))
    if not explanation.judged and explanation.error is None:
        yield Node(text("no criterion was applied to this run"))


def _error_head(error: RunError) -> str:
    """Whose error it is: the agent's, the simulated user's, or that of what the run needs around it."""
    if error.kind == SETUP:
        return "the run could not be prepared"
    return "the user's fault" if error.of_user else f"the agent did not finish: {error.kind}"
