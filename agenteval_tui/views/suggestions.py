"""What is shown of suggested criteria: each with its config, what it agrees with, and which run to label next."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval_tui.analysis.suggest.search import Check, Suggestion, Suggestions
from agenteval_tui.analysis.suggest.stored_examples import TestExamples
from agenteval_tui.core.display import one_line
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.numbers import count, percent
from agenteval_tui.views.model import Node, Paragraph, Text, Tree, View, paragraphs, text

_WRONG = 5
_SIMPLE, _SPECIFIC = 6.0, 12.0
"""Bits up to which a suggestion is simple (one of 64 equally likely ones), or specific (one of 4,096)."""


def suggestions_view(found: Suggestions, given: TestExamples, checked: Check | None = None) -> View:
    """All of it: the labels, the criteria with their configs, what they are worth, what to do next."""
    if not found.suggestions:
        nothing = Paragraph(text("no criterion agrees with these labels"))
        return (Paragraph(labels_text(found, given)), nothing, *paragraphs(next_lines(found)))
    nodes = tuple(
        Node(
            text((f"{number}  ", "dim"), (one_line(one.title, 200), "bold")),
            tuple(Node(line) for line in facts_of(one, found)),
            block=(f"// {one.prototype_class}", *one.config.splitlines()),
        )
        for number, one in enumerate(found.suggestions, 1)
    )
    worth = () if checked is None else (Paragraph(check_text(checked)),)
    return (Paragraph(labels_text(found, given)), Tree(nodes), *worth, *paragraphs(next_lines(found)))


def check_text(checked: Check) -> Text:
    """How good the suggestions are: `When a label is left out, the first criterion predicts it 11 of 15 times; …`."""
    first = f"when a label is left out, the first criterion predicts it {checked.right} of {checked.labels} times"
    always = f"always saying “{'good' if checked.mostly else 'bad'}” would be right {checked.usual} times"
    if checked.better:
        return text((f"{first[:1].upper()}{first[1:]}; {always}.", "dim"))
    if checked.labels - checked.usual == 1:
        rarer = "bad" if checked.mostly else "good"
        return text(
            ("! ", "warn"),
            f"It is too early to tell how good this is: only one run is labelled {rarer}. Label a second {rarer} run.",
        )
    return text(("! ", "warn"), f"No better than a guess: {first}; {always}. More labels may help.")


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
    checked = "" if one.left_out is None else f"; predicts {one.left_out} of {one.labelled} without seeing them"
    if found.bad:
        words = f"agrees with {one.agrees} of {count(one.labelled, 'label')}{checked}"
    else:
        words = f"holds for all {count(found.good, 'good run')}" if found.good > 1 else "holds for the good run"
    rest = f"; passes {one.passes} of {count(one.runs, 'run')}; {simplicity(one)}"
    yield text(sign, words, (rest, "dim"))
    if one.wrong:
        more = f" and {len(one.wrong) - _WRONG} more" if len(one.wrong) > _WRONG else ""
        yield text(("wrong: ", "warn"), ", ".join(map(short_id, one.wrong[:_WRONG])) + more)
    if one.teaches and one.teaches != found.label_next:
        yield text((f"labelling {short_id(one.teaches)} would tell you most about it", "dim"))


def simplicity(one: Suggestion) -> str:
    """How much a suggestion says, in words: what says a lot may be true of these runs only."""
    if one.size <= _SIMPLE:
        return "simple"
    return "specific" if one.size <= _SPECIFIC else "very specific: it may fit these runs only"


def next_lines(found: Suggestions, most: int = _WRONG) -> Iterator[Text]:
    """What to label next, how sure it is, and which labels contradict each other: at most `most` pairs."""
    told = found.contradictions[:most]
    left = len(found.contradictions) - len(told)
    for number, pair in enumerate(told, 1):
        good, bad = map(short_id, pair)
        more = f" {count(left, 'more pair')} of labels contradict each other." if left and number == len(told) else ""
        yield text(
            ("! ", "warn"),
            f"{good} is labelled good and {bad} bad, but both said and did the same: no criterion agrees with "
            f"both. Take one label back: agenteval label {bad} --remove{'.' if more else ''}{more}",
        )
    if found.unseen is not None:
        share, these = percent(found.unseen), "these share" if found.good > 1 else "this one has"
        yield text(
            f"{count(found.good, 'good run')}, no bad one: up to {share} of good runs may lack what {these} "
            "(95 % confidence, rule of three). Label a bad run to learn what matters."
        )
    if found.label_next:
        yield text(
            "Label next: ",
            (short_id(found.label_next), "accent"),
            (f"   agenteval label {short_id(found.label_next)} passed|failed", "dim"),
        )
    if not any(one.agrees == one.labelled for one in found.suggestions):
        yield text(("No criterion agrees with every label.", "warn"))
