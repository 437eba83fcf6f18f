"""A label in lines: the rating, the verdict, and what was said before."""

from __future__ import annotations

from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import age
from agenteval_tui.grading.remote_requests import GOOD_FROM
from agenteval_tui.history.labels import Label
from agenteval_tui.tui.presenters.status_style import glyph
from agenteval_tui.tui.presenters.text_layout import paragraph
from agenteval_tui.tui.styled_text import Cell, Line

RATING_WORDS = {1: "bad", 2: "more bad than good", 3: "undecided", 4: "good", 5: "very good"}


def rating_line(rating: int | None) -> Line:
    """`rating   1  2 [3] 4  5   undecided`."""
    cells: list[Cell] = [("rating       ", "dim")]
    for number in range(1, 6):
        chosen = number == rating
        cells.append((f"[{number}]" if chosen else f" {number} ", "bold accent" if chosen else ""))
    return (*cells, (f"   {RATING_WORDS[rating]}" if rating else "   not given", "dim"))


def verdict_line(passed: bool | None, rating: int | None) -> Line:
    """`verdict  [✓ passed]  ✗ failed`; without one, what the rating says."""
    cells: list[Cell] = [("verdict      ", "dim")]
    for value, name in ((True, "passed"), (False, "failed")):
        chosen = passed is value
        text = f"{glyph(name)} {name}"
        cells.append((f"[{text}]" if chosen else f" {text} ", f"bold {name}" if chosen else ""))
    if passed is None and rating is not None:
        cells.append((f"   counts as {'passed' if rating >= GOOD_FROM else 'failed'}, by the rating", "dim"))
    return tuple(cells)


def label_words(label: Label) -> Line:
    """`✓ passed, 4 of 5  kim: polite enough`."""
    name = "passed" if label.good else "failed"
    cells: list[Cell] = [(f"{glyph(name)} ", name), (label.said, "")]
    if label.who:
        cells.append((f"  {one_line(label.who, 40)}", "dim"))
    if label.comment:
        cells.append((f": {one_line(label.comment, 200)}", ""))
    return tuple(cells)


def current_line(label: Label, width: int, now: int) -> list[Line]:
    """What was said last of it, and when."""
    who = f" by {one_line(label.who, 40)}" if label.who else ""
    comment = f": {one_line(label.comment, 200)}" if label.comment else ""
    return paragraph(f"Last said{who} {age(label.at_ms, now)}: {label.said}{comment}", width, "dim")
