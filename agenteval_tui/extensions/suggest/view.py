"""What is shown of suggested criteria: each with its config, what it agrees with, and which run to label next."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval_tui.core.display import one_line
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.numbers import count, percent
from agenteval_tui.extensions.suggest.search import Check, Suggestion, Suggestions
from agenteval_tui.extensions.suggest.stored_examples import TestExamples
from agenteval_tui.views.model import Node, Paragraph, Text, Tree, View, paragraphs, text

_WRONG = 5
_SIMPLE, _SPECIFIC = 6.0, 12.0
"""Bits up to which a suggestion is simple (one of 64 equally likely ones), or specific (one of 4,096)."""


def suggestions_view(
    suggestions: Suggestions, test_examples: TestExamples, checked: Check | None = None, options: str = ""
) -> View:
    """All of it: the labels, the criteria with their configs, what they are worth, what to do next."""
    if not suggestions.suggestions:
        nothing = Paragraph(text("no criterion agrees with these labels"))
        return (
            Paragraph(labels_text(suggestions, test_examples)),
            nothing,
            *paragraphs(next_lines(suggestions, options=options)),
        )
    nodes = tuple(
        Node(
            text((f"{number}  ", "dim"), (one_line(suggestion.title, 200), "bold")),
            tuple(Node(line) for line in facts_of(suggestion, suggestions)),
            block=(f"// {suggestion.prototype_class}", *suggestion.config.splitlines()),
        )
        for number, suggestion in enumerate(suggestions.suggestions, 1)
    )
    worth = () if checked is None else (Paragraph(check_text(checked)),)
    return (
        Paragraph(labels_text(suggestions, test_examples)),
        Tree(nodes),
        *worth,
        *paragraphs(next_lines(suggestions, options=options)),
    )


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


def labels_text(suggestions: Suggestions, test_examples: TestExamples) -> Text:
    """`order-status: 12 of 40 runs are labelled, 8 good and 4 bad`."""
    who = "judged" if test_examples.judge else "labelled"
    subject = f"{one_line(test_examples.test_id, 60)}: " if test_examples.test_id else ""
    of = f" (criterion {one_line(test_examples.criterion, 60)})" if test_examples.criterion else ""
    return text(
        (subject, "bold"),
        f"{suggestions.good + suggestions.bad} of {count(suggestions.runs, 'run')} {who}{of}: ",
        (f"{suggestions.good} good", "good"),
        ", ",
        (f"{suggestions.bad} bad", "bad" if suggestions.bad else "dim"),
    )


def facts_of(suggestion: Suggestion, suggestions: Suggestions) -> Iterator[Text]:
    """What is known of a suggestion, a line each."""
    sign = ("✓ ", "good") if suggestion.agrees == suggestion.labelled else ("✗ ", "warn")
    checked = (
        ""
        if suggestion.left_out is None
        else f"; predicts {suggestion.left_out} of {suggestion.labelled} without seeing them"
    )
    if suggestions.bad:
        words = f"agrees with {suggestion.agrees} of {count(suggestion.labelled, 'label')}{checked}"
    else:
        words = (
            f"holds for all {count(suggestions.good, 'good run')}" if suggestions.good > 1 else "holds for the good run"
        )
    rest = f"; passes {suggestion.passes} of {count(suggestion.runs, 'run')}; {simplicity(suggestion)}"
    yield text(sign, words, (rest, "dim"))
    if suggestion.wrong:
        more = f" and {len(suggestion.wrong) - _WRONG} more" if len(suggestion.wrong) > _WRONG else ""
        yield text(("wrong: ", "warn"), ", ".join(map(short_id, suggestion.wrong[:_WRONG])) + more)
    if suggestion.teaches and suggestion.teaches != suggestions.label_next:
        yield text((f"labelling {short_id(suggestion.teaches)} would tell you most about it", "dim"))


def simplicity(suggestion: Suggestion) -> str:
    """How much a suggestion says, in words: what says a lot may be true of these runs only."""
    if suggestion.size <= _SIMPLE:
        return "simple"
    return "specific" if suggestion.size <= _SPECIFIC else "very specific: it may fit these runs only"


def next_lines(suggestions: Suggestions, most: int = _WRONG, *, options: str = "") -> Iterator[Text]:
    """What to label next, how sure it is, and which labels contradict each other: at most `most` pairs."""
    pairs = suggestions.contradictions[:most]
    remaining = len(suggestions.contradictions) - len(pairs)
    for number, pair in enumerate(pairs, 1):
        good, bad = map(short_id, pair)
        more = (
            f" {count(remaining, 'more pair')} of labels contradict each other."
            if remaining and number == len(pairs)
            else ""
        )
        yield text(
            ("! ", "warn"),
            f"{good} is labelled good and {bad} bad, but both said and did the same: no criterion agrees with "
            f"both. Take one label back: agenteval label {bad} --remove{options}{'.' if more else ''}{more}",
        )
    if suggestions.unseen is not None:
        share, these = percent(suggestions.unseen), "these share" if suggestions.good > 1 else "this one has"
        yield text(
            f"{count(suggestions.good, 'good run')}, no bad one: up to {share} of good runs may lack what {these} "
            "(95 % confidence, rule of three). Label a bad run to learn what matters."
        )
    if suggestions.label_next:
        yield text(
            "Label next: ",
            (short_id(suggestions.label_next), "accent"),
            (f"   agenteval label {short_id(suggestions.label_next)} passed|failed{options}", "dim"),
        )
    if not any(suggestion.agrees == suggestion.labelled for suggestion in suggestions.suggestions):
        yield text(("No criterion agrees with every label.", "warn"))
