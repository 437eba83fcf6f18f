"""What `agenteval db` and its subcommands print with `--json`. Sizes are bytes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from agenteval_tui.core.document import Count, Document


class Space(Document, frozen=True, kw_only=True):
    """What a part of the history takes in the file."""

    what: str
    bytes: Count


class NearbyFile(Document, frozen=True, kw_only=True):
    """A file beside the history that belongs to it."""

    file: str
    size: Count


class HistoryHealth(Document, frozen=True, kw_only=True):
    """`agenteval db`: how the history file is."""

    version: Literal[1] = 1
    file: str
    size: Count
    log_size: Count
    unused: Annotated[Count, Meta(description="what deleted rows left; new rows take it")]
    journal: str
    network: Annotated[bool, Meta(description="the file is on a network file system")]
    file_version: Count
    newest_version: Annotated[Count, Meta(description="of files, that this program knows")]
    sqlite: str
    problems: Annotated[tuple[str, ...], Meta(description="empty: SQLite can read the file")]
    wrong: Annotated[tuple[str, ...], Meta(description="what can be read and does not fit")]
    counts: dict[str, Count]
    space: Annotated[tuple[Space, ...], Meta(description="the largest first")]
    beside: Annotated[tuple[NearbyFile, ...], Meta(description="copies of older versions, and damaged files")]


class HistoryCheck(Document, frozen=True, kw_only=True):
    """`agenteval db check`."""

    version: Literal[1] = 1
    damage: Annotated[tuple[str, ...], Meta(description="what SQLite can't read")]
    wrong: Annotated[tuple[str, ...], Meta(description="what can be read and does not fit")]
    mended: tuple[str, ...]
    lost: Annotated[Count, Meta(description="runs whose transcript is gone for good")]
    lost_evidence: Annotated[Count, Meta(description="runs whose evidence is gone for good")]


class Removed(Document, frozen=True, kw_only=True):
    """What a pruning removed, and the bytes that are unused now."""

    runs: Count
    executions: Count
    unused: Count


class HistoryPruning(Document, frozen=True, kw_only=True):
    """`agenteval db prune`."""

    version: Literal[1] = 1
    runs: Annotated[Count, Meta(description="runs that were removed, or would be")]
    of_runs: Count
    executions: Count
    of_executions: Count
    bytes: Annotated[Count, Meta(description="approximate size of these runs in the file")]
    kept: Annotated[dict[str, Count], Meta(description="selected runs that stay, by reason")]
    removed: Annotated[Removed | None, Meta(description="null: nothing was removed")]


class HistoryMerge(Document, frozen=True, kw_only=True):
    """`agenteval db import`: the result for one file."""

    file: str
    executions: Count
    runs: Count
    completed: Annotated[Count, Meta(description="runs that had not ended in this history")]
    labels: Count
    taken_back: Annotated[Count, Meta(description="labels, decisions and baselines that were removed, as in the file")]
    already: Count
    left_out: tuple[str, ...]


class HistoryQueryResult(Document, frozen=True, kw_only=True):
    """`agenteval db query --json`: the rows of a person's own query."""

    version: Literal[1] = 1
    views: Annotated[Count, Meta(description="the version of the views that it read")]
    columns: Annotated[tuple[str, ...], Meta(description="their names; of equal ones the second is `NAME_2`")]
    rows: Annotated[
        tuple[dict[str, Any], ...], Meta(description="by column: text, number, null; of bytes their hexadecimal digits")
    ]
    cut: Annotated[bool, Meta(description="whether there are more rows")]


class HistoryViewColumn(Document, frozen=True, kw_only=True):
    """A column of a view."""

    name: str
    about: str


class HistoryView(Document, frozen=True, kw_only=True):
    """A view that queries can read."""

    name: str
    about: str
    columns: tuple[HistoryViewColumn, ...]


class HistoryViews(Document, frozen=True, kw_only=True):
    """`agenteval db query --views --json`."""

    version: Literal[1] = 1
    views_version: Annotated[Count, Meta(description="changes when a query that was right would be wrong")]
    views: tuple[HistoryView, ...]
