"""What `agenteval db` and its subcommands print with `--json`. Sizes are bytes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from agenteval_tui.core.document import Count, Document
from agenteval_tui.history.merge import MergeCounts
from agenteval_tui.history.pruning import PrunableCounts
from agenteval_tui.history.sql_query import QueryHead


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
    fixed: tuple[str, ...]
    lost: Annotated[Count, Meta(description="runs whose transcript is gone for good")]
    lost_evidence: Annotated[Count, Meta(description="runs whose evidence is gone for good")]


class Removed(Document, frozen=True, kw_only=True):
    """What a pruning removed, and the bytes that are unused now."""

    runs: Count
    executions: Count
    unused: Count


class HistoryPruning(PrunableCounts, frozen=True, kw_only=True):
    """`agenteval db prune`."""

    version: Literal[1] = 1
    runs: Annotated[Count, Meta(description="runs that were removed, or would be")]
    removed: Annotated[Removed | None, Meta(description="null: nothing was removed")]


class HistoryMerge(MergeCounts, frozen=True, kw_only=True):
    """`agenteval db import`: the result for one file."""

    file: str


class HistoryQueryResult(QueryHead, frozen=True, kw_only=True):
    """`agenteval db query --json`: the rows of a person's own query."""

    version: Literal[1] = 1
    rows: Annotated[
        tuple[dict[str, Any], ...], Meta(description="by column: text, number, null; of bytes their hexadecimal digits")
    ]


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
