"""What is shown of suggested criteria: each with its config, what it agrees with, and which run to label next."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval_tui.analysis.suggest.search import Suggestion, Suggestions
from agenteval_tui.analysis.suggest.stored import TestExamples
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import count, percent
from agenteval_tui.views.model import Node, Paragraph, Text, Tree, View, paragraphs, text

_WRONG = 5


def suggestions_view(found: Suggestions, given: TestExamples) -> View:
    """All of it: the labels, the criteria with their configs, what to do next."""
    if not found.suggestions:
        return (Paragraph(labels_text(found, given)), Paragraph(text("no criterion agrees with these labels")))
    nodes = tuple(
        Node(
            text((f"{number}  ", "dim"), (one_line(one.title, 200), "bold")),
            tuple(Node(line) for line in facts_of(one, found)),
            block=(f"// {one.prototype_class}", *one.config.splitlines()),
        )
        for number, one in enumerate(found.suggestions, 1)
    )
    return (Paragraph(labels_text(found, given)), Tree(nodes), *paragraphs(next_lines(found)))


def labels_text(found: Suggestions, given: TestExamples) -> Text:
    """`order-status: 12 of 40 runs are labelled, 8 good and 4 bad`."""
    who = "judged" if given.judge else "labelled"
    subject = f"{one_line(given.test_id, 60)}: " if given.test_id else ""
    of = f" (criterion {one_line(given.criterion, 60)})" if given.criterion else ""
    return text(
        (subject, "bold"),
        f"{found.good + found.bad} of {count(found.runs, 'run')} {who}{of}: ",
        (f"{found.good} good", "good"),
        ", ",
        (f"{found.bad} bad", "bad" if found.bad else "dim"),
    )


def facts_of(one: Suggestion, found: Suggestions) -> Iterator[Text]:
    """What is known of a suggestion, a line each."""
    sign = ("✓ ", "good") if one.agrees == one.labelled else ("✗ ", "warn")
    checked = "" if one.left_out is None else f"; {one.left_out} of {one.labelled} when made without the run"
    if found.bad:
        words = f"agrees with {one.agrees} of {count(one.labelled, 'label')}{checked}"
    else:
        words = f"holds of all {count(found.good, 'good run')}" if found.good > 1 else "holds of the good run"
    yield text(sign, words, (f"; passes {one.passes} of {count(one.runs, 'run')}; size {one.size:g}", "dim"))
    if one.wrong:
        more = f" and {len(one.wrong) - _WRONG} more" if len(one.wrong) > _WRONG else ""
        yield text(("wrong: ", "warn"), ", ".join(one.wrong[:_WRONG]) + more)
    if one.teaches and one.teaches != found.label_next:
        yield text((f"a label of {one.teaches} would tell most about it", "dim"))


def next_lines(found: Suggestions) -> Iterator[Text]:
    """What to label next, and how sure it is."""
    if found.unseen is not None:
        share, these = percent(found.unseen), "these share" if found.good > 1 else "this one has"
        yield text(
            f"{count(found.good, 'good run')}, no bad one: up to {share} of good runs may lack what {these} "
            "(95 %, rule of three). Label a bad run to know what matters."
        )
    if found.label_next:
        yield text(
            "Label next: ",
            (found.label_next, "accent"),
            (f"   agenteval label {found.label_next} passed|failed", "dim"),
        )
    if not any(one.agrees == one.labelled for one in found.suggestions):
        yield text(("No criterion agrees with every label.", "warn"))
