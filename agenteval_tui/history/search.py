"""From what people type, and from a filter, to SQL."""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from agenteval_tui.core.outcomes import STATUSES
from agenteval_tui.core.storable import storable
from agenteval_tui.history.baselines import KEPT_RUNS
from agenteval_tui.history.execution_names import META, OF_EXECUTIONS
from agenteval_tui.history.recordings import FORK
from agenteval_tui.history.records import RunFilter
from agenteval_tui.history.scope import runs_in

_WORD = re.compile(r'"([^"]*)"?|(\S+)')
FIELDS = (
    "outcome",
    "agent",
    "test",
    "suite",
    "tag",
    "since",
    "before",
    "cause",
    "kind",
    "is",
    "name",
    "note",
    "commit",
)
NOT_PASSED = ("failed", "error", "cancelled", "needs_review")
_OUTCOMES = tuple(status for status in STATUSES if status != "grading")
_STATUS_OF_WORD = {"review": "needs_review", "errors": "error", "pass": "passed", "fail": "failed"}
_QUERY_PART = re.compile(r'((?:meta\.[\w.-]+|\w+)):("[^"]*"?|\S*)|("[^"]*"?|\S+)')
_AGE = re.compile(r"(\d{1,5}) *(min|h|d|w|mo|y)")
_MINUTES = {"min": 1, "h": 60, "d": 1440, "w": 10_080, "mo": 43_200, "y": 525_600}


def match_expression(text: str) -> str:
    """`text` as an FTS5 expression that can't be malformed: every word quoted, all must occur; "" when it has none.

    Words in double quotes are a phrase. The last word, when it is not in quotes, also finds longer words.
    """
    text = storable(text).replace("\0", " ")
    parts: list[str] = []
    prefix = False
    for match in _WORD.finditer(text):
        phrase, word = match.group(1), match.group(2)
        term = (word if phrase is None else phrase).replace('"', " ")
        # A term without a letter or digit has no tokens: FTS5 would make it match nothing, or everything.
        if any(char.isalnum() for char in term):
            parts.append(f'"{term}"')
            # The start of a word: not of one ASCII letter, which would be most of all words.
            prefix = phrase is None and (len(term.strip()) > 1 or not term.isascii())
    if not parts:
        return ""
    return " AND ".join(parts) + (" *" if prefix and not text[-1:].isspace() else "")


def run_conditions(run_filter: RunFilter) -> tuple[list[str], list[str]]:
    """The conditions of a filter over table `runs` and the values for their `?`, in order; `text` is not among them."""
    conditions: list[str] = []
    values: list[str] = []
    if run_filter.outcomes:
        conditions.append(f"status IN ({','.join('?' * len(run_filter.outcomes))})")
        values.extend(run_filter.outcomes)
    if run_filter.agent:
        conditions.append("agent = ?")
        values.append(run_filter.agent)
    if run_filter.suite_key or run_filter.test_id:
        inner: list[str] = []
        if run_filter.suite_key:
            inner.append("suite = (SELECT id FROM suites WHERE key = ?)")
            values.append(run_filter.suite_key)
        if run_filter.test_id:
            inner.append("test_id = ?")
            values.append(run_filter.test_id)
        conditions.append(f"test IN (SELECT id FROM tests WHERE {' AND '.join(inner)})")
    if run_filter.execution_id:
        conditions.append("execution = (SELECT id FROM executions WHERE uid = ?)")
        values.append(run_filter.execution_id)
    if run_filter.counted:
        conditions.append(f"superseded != {FORK}")
    if run_filter.kind:
        conditions.append("execution IN (SELECT id FROM executions WHERE kind = ?)")
        values.append(run_filter.kind)
    for part, condition in (
        (run_filter.agent_part, "agent IN (SELECT DISTINCT agent FROM runs WHERE instr(lower(agent), ?))"),
        (
            run_filter.test_part,
            "test IN (SELECT id FROM tests WHERE instr(lower(test_id || char(10) || name), ?))",
        ),
        (
            run_filter.suite_part,
            "test IN (SELECT t.id FROM tests t JOIN suites s ON s.id = t.suite"
            " WHERE instr(lower(s.key || char(10) || s.name), ?))",
        ),
        (
            run_filter.cause_part,
            "id IN (SELECT run FROM criterion_results WHERE cause > '' AND instr(lower(cause), ?)"
            " UNION SELECT id FROM runs WHERE status = 'error' AND instr(lower(error_kind), ?))",
        ),
    ):
        if part:
            conditions.append(condition)
            values += [part.lower()] * conditions[-1].count("?")
    described, parts = described_executions(
        run_filter.name_part, run_filter.commit, run_filter.meta, note_part=run_filter.note_part
    )
    conditions += described
    values += parts
    for tag in run_filter.tags:
        conditions.append(
            "plan IN (SELECT p.id FROM plans p, json_each(p.tags) AS one WHERE p.tags != '[]' AND lower(one.value) = ?)"
        )
        values.append(tag.lower())
    for at, sign in ((run_filter.since_ms, ">="), (run_filter.before_ms, "<")):
        if at is not None:
            conditions.append(f"execution IN (SELECT id FROM executions WHERE started_ms {sign} {int(at)})")
    if run_filter.projects:
        condition, of_projects = runs_in(run_filter.projects)
        conditions.append(condition)
        values += of_projects
    if run_filter.baseline:
        conditions.append(f"id IN ({KEPT_RUNS})")
    if run_filter.labelled:
        conditions.append("id IN (SELECT run FROM labels WHERE key = '')")
    if run_filter.feedback:
        conditions.append("id IN (SELECT run FROM labels WHERE key != '')")
    return conditions, [storable(value) for value in values]


class HistoryQuery(Struct, frozen=True):
    """What was typed: words for the full-text search, fields with values, and what is wrong with a field."""

    words: str = ""
    fields: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> HistoryQuery:
        """Read what was typed. An unknown field counts as words; a field without a value (yet) is ignored."""
        words: list[str] = []
        fields: list[tuple[str, str]] = []
        for match in _QUERY_PART.finditer(text):
            name, value, _ = match.groups()
            if name is not None and (name.lower() in FIELDS or name.startswith(META)):
                value = value.strip('"')
                if value:
                    fields.append((name.lower(), value))
            else:
                words.append(match.group())
        # A space at the end says that the last word is whole.
        return cls(" ".join(words) + (" " if words and text[-1:].isspace() else ""), tuple(fields))

    def __bool__(self) -> bool:
        return bool(self.words.strip() or self.fields)

    @property
    def of_executions(self) -> bool:
        """Whether all that it asks for is known of executions: what they are called, and are versions of."""
        fields = all(name in (*OF_EXECUTIONS, "note") or name.startswith(META) for name, _ in self.fields)
        return fields and not self.words.strip()

    @property
    def problem(self) -> str:
        """What can't be understood, in a few words; "" for nothing."""
        for name, value in self.fields:
            if name == "outcome" and not _outcomes(value):
                return f"no outcome is called {value}"
            if name in ("since", "before") and moment(value, 0) is None:
                return f"{name}: takes 24h, 7d, 2w or a day such as 2026-11-01"
            if name == "kind" and value.lower() not in ("run", "import", "fork"):
                return "kind: takes run, import or fork"
            if name == "is" and value.lower() not in ("baseline", "labelled", "feedback", "import", "fork"):
                return "is: takes baseline, labelled, feedback, import or fork"
        return ""

    def filter(self, now_ms: int, *, execution: str = "", failed_only: bool = False) -> RunFilter:
        """As the history understands it; what can't be understood lets nothing through that it would not."""
        outcomes: tuple[str, ...] = NOT_PASSED if failed_only else ()
        filter_fields: dict[str, Any] = {"tags": (), "meta": ()}
        for name, value in self.fields:
            word = value.lower()
            if name == "outcome":
                named_outcomes = _outcomes(value)
                both = (
                    tuple(outcome for outcome in named_outcomes if outcome in outcomes) if outcomes else named_outcomes
                )
                # Without any in common, one that no run has: no outcome at all would mean every run.
                outcomes = both or ("none",)
            elif name in ("agent", "test", "suite", "cause", "name", "note"):
                filter_fields[f"{name}_part"] = value
            elif name == "commit":
                filter_fields["commit"] = value
            elif name.startswith(META):
                filter_fields["meta"] += ((name.removeprefix(META), value),)
            elif name == "tag":
                filter_fields["tags"] += (value,)
            elif name in ("since", "before"):
                filter_fields[f"{name}_ms"] = moment(value, now_ms)
            elif word in ("run", "import", "fork"):
                filter_fields["kind"] = word
            elif word in ("baseline", "labelled", "feedback"):
                filter_fields[word] = True
        return RunFilter(text=self.words, execution_id=execution, outcomes=outcomes, **filter_fields)


def _outcomes(text: str) -> tuple[str, ...]:
    """The outcomes that one or several words (with commas) are the beginning of."""
    outcomes: list[str] = []
    for word in text.lower().split(","):
        beginning = _STATUS_OF_WORD.get(word, word)
        outcomes += [
            outcome for outcome in _OUTCOMES if word and outcome.startswith(beginning) and outcome not in outcomes
        ]
    return tuple(outcomes)


def moment(text: str, now_ms: int) -> int | None:
    """The moment (milliseconds) that an age before now (24h, 7d) or a day means; None: neither."""
    text = text.strip()
    age = _AGE.fullmatch(text.lower())
    if age:
        return now_ms - int(age.group(1)) * _MINUTES[age.group(2)] * 60_000
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return None


def described_executions(
    name_part: str, commit: str, meta: Sequence[tuple[str, str]], *, note_part: str = "", column: str = "execution"
) -> tuple[list[str], list[str]]:
    """Conditions on an execution's row number in `column`, and their values: letters of its name, of its note, of
    metadata by key, and the beginning of one of its commits; "" for any."""
    conditions: list[str] = []
    values: list[str] = []
    for part, condition in (
        (name_part, "name != '' AND instr(lower(name), ?)"),
        (note_part, "instr(lower(note), ?)"),
        (
            commit,
            "EXISTS (SELECT 1 FROM json_each(commits) AS one WHERE instr(json_extract(one.value, '$.commit'), ?) = 1)",
        ),
    ):
        if part:
            conditions.append(f"{column} IN (SELECT id FROM executions WHERE {condition})")
            values.append(part.lower())
    for key, part in meta:
        conditions.append(
            f"{column} IN (SELECT id FROM executions WHERE EXISTS (SELECT 1 FROM json_each(meta) AS one"
            " WHERE lower(one.key) = ? AND instr(lower(one.value), ?)))"
        )
        values += [key.lower(), part.lower()]
    return conditions, values
