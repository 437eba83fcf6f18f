"""From what people type, and from a filter, to SQL."""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import re

from agenteval_tui.history.baselines import KEPT_RUNS
from agenteval_tui.history.blobs import clean
from agenteval_tui.history.rows import RunFilter
from agenteval_tui.history.scope import runs_in

_PART = re.compile(r'"([^"]*)"?|(\S+)')


def match_expression(text: str) -> str:
    """`text` as an FTS5 expression that can't be malformed: every word quoted, all must occur; "" when it has none.

    Words in double quotes are a phrase. The last word, when it is not in quotes, also finds longer words.
    """
    text = clean(text).replace("\0", " ")
    parts: list[str] = []
    prefix = False
    for match in _PART.finditer(text):
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


def run_conditions(wanted: RunFilter) -> tuple[list[str], list[str]]:
    """The conditions of a filter over table `runs` and the values for their `?`, in order; `text` is not among them."""
    conditions: list[str] = []
    values: list[str] = []
    if wanted.outcomes:
        conditions.append(f"status IN ({','.join('?' * len(wanted.outcomes))})")
        values.extend(wanted.outcomes)
    if wanted.agent:
        conditions.append("agent = ?")
        values.append(wanted.agent)
    if wanted.suite_key or wanted.test_id:
        inner: list[str] = []
        if wanted.suite_key:
            inner.append("suite = (SELECT id FROM suites WHERE key = ?)")
            values.append(wanted.suite_key)
        if wanted.test_id:
            inner.append("test_id = ?")
            values.append(wanted.test_id)
        conditions.append(f"test IN (SELECT id FROM tests WHERE {' AND '.join(inner)})")
    if wanted.execution_id:
        conditions.append("execution = (SELECT id FROM executions WHERE uid = ?)")
        values.append(wanted.execution_id)
    if wanted.kind:
        conditions.append("execution IN (SELECT id FROM executions WHERE kind = ?)")
        values.append(wanted.kind)
    for part, condition in (
        (wanted.agent_part, "agent IN (SELECT DISTINCT agent FROM runs WHERE instr(lower(agent), ?))"),
        (
            wanted.test_part,
            "test IN (SELECT id FROM tests WHERE instr(lower(test_id || char(10) || name), ?))",
        ),
        (
            wanted.suite_part,
            "test IN (SELECT t.id FROM tests t JOIN suites s ON s.id = t.suite"
            " WHERE instr(lower(s.key || char(10) || s.name), ?))",
        ),
        (
            wanted.cause_part,
            "id IN (SELECT run FROM criterion_results WHERE cause > '' AND instr(lower(cause), ?)"
            " UNION SELECT id FROM runs WHERE status = 'error' AND instr(lower(error_kind), ?))",
        ),
    ):
        if part:
            conditions.append(condition)
            values += [part.lower()] * conditions[-1].count("?")
    for tag in wanted.tags:
        conditions.append(
            "plan IN (SELECT p.id FROM plans p, json_each(p.tags) AS one WHERE p.tags != '[]' AND lower(one.value) = ?)"
        )
        values.append(tag.lower())
    for at, sign in ((wanted.since_ms, ">="), (wanted.before_ms, "<")):
        if at is not None:
            conditions.append(f"execution IN (SELECT id FROM executions WHERE started_ms {sign} {int(at)})")
    if wanted.projects:
        condition, of_projects = runs_in(wanted.projects)
        conditions.append(condition)
        values += of_projects
    if wanted.baseline:
        conditions.append(f"id IN ({KEPT_RUNS})")
    if wanted.labelled:
        conditions.append("id IN (SELECT run FROM labels)")
    return conditions, [clean(value) for value in values]
