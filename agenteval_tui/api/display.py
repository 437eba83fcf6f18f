"""How an object of the API is shown: as text where it is printed, as a table in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agenteval_tui.core.numbers import decimal
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.views.markdown import markdown
from agenteval_tui.views.model import Column, Paragraph, Row, Span, Table, Text, View, outcome_sign, text
from agenteval_tui.views.terminal import plain_text


class Shown:
    """An object with a view. Foreign text in it is made displayable, for a terminal and for a notebook."""

    def view(self) -> View:
        """What is shown of it."""
        raise NotImplementedError

    def __str__(self) -> str:
        return plain_text(self.view())

    def _repr_markdown_(self) -> str:
        """What a notebook shows."""
        return markdown(self.view())


def table(heads: Sequence[str], rows: Iterable[Sequence[str | Span]], *, more: str = "") -> Table:
    """A table of plain words. A head that ends in `#` is that of a column of numbers."""
    columns = tuple(Column(head.removesuffix("#"), "right" if head.endswith("#") else "left") for head in heads)
    return Table(columns, tuple(Row(tuple(text(cell) for cell in row)) for row in rows), more)


def criteria_table(results: Iterable[CriterionResult]) -> Table:
    """What each criterion said: its outcome, and its score."""
    rows = [(outcome_cell(str(result.outcome)), result.criterion, score_cell(result.score)) for result in results]
    return table(("outcome", "criterion", "score#"), rows)


def outcome_cell(outcome: str) -> Span:
    """An outcome with its sign, in its colour."""
    sign, token = outcome_sign(outcome)
    return f"{sign} {outcome}", token


def score_cell(score: float | None) -> str:
    """A score with two digits; "": nothing was scored."""
    return "" if score is None else decimal(score)


def line(words: Text) -> Paragraph:
    """A line over or below a table."""
    return Paragraph(words)
