"""Which expected thing is which actual one: the assignment with the smallest total difference.

Exact by shortest augmenting paths (Jonker and Volgenant): `rows * rows * columns` steps for rows <= columns. Where
that is more than `MOST_STEPS` the pairs are taken greedily, cheapest first: quick, every row and column still used at
most once, but the total may be larger than the smallest one. `Assignment.exact` says which it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from msgspec import Struct

MOST_STEPS = 250_000
"""Steps of the exact algorithm that are worth it: about 30 ms."""


class Assignment(Struct, frozen=True):
    """`pairs` of (row, column), in the order of the rows; `total` of their costs; whether that is the smallest."""

    pairs: tuple[tuple[int, int], ...]
    total: float
    exact: bool = True


def assign(costs: Sequence[Sequence[float]], *, most_steps: int = MOST_STEPS) -> Assignment:
    """Pair rows with columns, each used once, as many as the shorter side has, with the smallest sum of costs.

    `costs[row][column]` are finite numbers; all rows are of the same length.
    """
    rows = len(costs)
    columns = len(costs[0]) if rows else 0
    if not rows or not columns:
        return Assignment((), 0.0)
    few, many = min(rows, columns), max(rows, columns)
    exact = few * few * many <= most_steps
    if not exact:
        pairs = _greedy(costs, rows, columns)
    elif rows <= columns:
        pairs = list(enumerate(_exact(costs, rows, columns)))
    else:
        turned = [[costs[row][column] for row in range(rows)] for column in range(columns)]
        pairs = sorted((row, column) for column, row in enumerate(_exact(turned, columns, rows)))
    return Assignment(tuple(pairs), sum(costs[row][column] for row, column in pairs), exact)


def _exact(costs: Sequence[Sequence[float]], rows: int, columns: int) -> list[int]:
    """The column of each row; rows <= columns. One row after the other, each by the cheapest augmenting path.

    `of_row` and `of_column` are the prices of the dual problem; a free pair costs what is left after both. Column 0 is
    not a real column: it represents the row that is being placed.
    """
    of_row = [0.0] * (rows + 1)
    of_column = [0.0] * (columns + 1)
    owner = [0] * (columns + 1)  # the row (from 1) that has this column; 0: free
    came_from = [0] * (columns + 1)
    for row in range(1, rows + 1):
        owner[0] = row
        column = 0
        cheapest = [inf] * (columns + 1)
        done = [False] * (columns + 1)
        while owner[column]:
            done[column] = True
            holder = owner[column]
            line, price = costs[holder - 1], of_row[holder]
            step, following = inf, 0
            for other in range(1, columns + 1):
                if done[other]:
                    continue
                slack = line[other - 1] - price - of_column[other]
                if slack < cheapest[other]:
                    cheapest[other] = slack
                    came_from[other] = column
                if cheapest[other] < step:
                    step, following = cheapest[other], other
            for other in range(columns + 1):
                # The prices move together: pairs that are made cost nothing still, and one more column comes within
                # reach.
                if done[other]:
                    of_row[owner[other]] += step
                    of_column[other] -= step
                else:
                    cheapest[other] -= step
            column = following
        # Back along the path: each row on it takes the next column, and gives its own away.
        while column:
            owner[column] = owner[came_from[column]]
            column = came_from[column]
    assignment = [0] * rows
    for column in range(1, columns + 1):
        if owner[column]:
            assignment[owner[column] - 1] = column - 1
    return assignment


def _greedy(costs: Sequence[Sequence[float]], rows: int, columns: int) -> list[tuple[int, int]]:
    free_rows, free_columns = set(range(rows)), set(range(columns))
    pairs: list[tuple[int, int]] = []
    for _, row, column in sorted((costs[row][column], row, column) for row in range(rows) for column in range(columns)):
        if row in free_rows and column in free_columns:
            free_rows.remove(row)
            free_columns.remove(column)
            pairs.append((row, column))
            if not free_rows or not free_columns:
                break
    return sorted(pairs)
