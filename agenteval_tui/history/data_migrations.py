"""What older programs stored, brought to the form of today: agents' configurations, and signatures of causes.

Configurations are stored with what it takes to resume an execution. The version of signatures is
`grading.causes.VERSION`.

Version 1 read sentences. Wherever what it read was right, version 2 makes the same signature, so this mapping is small:
it covers checks that could not run (their cause was our own sentence, and is a code now), a function that returned
something, and patterns too slow to extract with.

What can't be mapped: where version 1 took an agent's own words for ours ("key missing in body" in a value read as a
missing key), its signature does not say so, and stays as it is. The runs keep it and the decision about it keeps
holding for them; new runs with that fault get the right signature, and are to be decided about once. No decision is
dropped: of two decisions whose signatures become one the newer holds, with the note of the other one behind its own.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from typing import Any

from agenteval_tui.agents.agent_version import agent_version
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.task_specs import unpack

_ERRORS: tuple[tuple[re.Pattern[str], str, str], ...] = tuple(
    (re.compile(pattern), code, about)
    for pattern, code, about in (
        # Sentences as `core.fingerprint` stored them: numbers are N, quoted texts …, all on one line.
        (r"the pattern .* took longer than N s on this text$|the pattern .*…$", "slow_pattern", ""),
        (r"unknown variable ", "unknown_variable", ""),
        (r"\{\{.*\}\} cannot be read: a name or a dotted path", "bad_placeholder", ""),
        (r"(?:the result of .*: )?N characters are too many to ", "too_large", ""),
        (r"(?:the result of .*: )?the value is longer than N characters$", "too_large", ""),
        (r"(?:the result of .*: )?the (?:JSON|value) is nested too deeply", "too_deep", ""),
        (r"the schema refers to itself without an end", "too_deep", ""),
        (r"(?:the result of .*: )?the JSON cannot be read: ", "unreadable_number", ""),
        (r"(?:the result of .*: )?… (?:cannot be applied: |is nested too deeply to be applied$)", "path_failed", ""),
        (r"the schema refers to .*, which is not in it", "unresolved_reference", ""),
        (r"there is nothing to compare with: ", "no_expected_value", ""),
        (r"there is no right label: ", "no_expected_value", ""),
        (r"the system prompt was not recorded: ", "no_system_prompt", ""),
        (r"a text without words has no grade$", "no_words", ""),
        (r"this value is no list of documents: ", "not_a_list", ""),
        (r"the time of the run was not measured$", "not_measured", "time"),
        (r"the number of tokens was not measured$", "not_measured", "tokens"),
        (r"the input was not measured$", "not_measured", "input_tokens"),
        (r"the output was not measured$", "not_measured", "output_tokens"),
        (r"the cost of the run was not measured$", "not_measured", "cost"),
        (r"the number of tool calls was not measured$", "not_measured", "calls"),
        (r"(?:the (?:judge|embedder|function)\b.*|nobody) was not asked yet$", "not_asked", ""),
        (r"no judge was asked$", "not_asked", ""),
        (r"(?:the (?:judge|embedder|function)\b.*|nobody) was not asked this yet: ", "not_asked_this", ""),
        (r"the judge's reply can't be read, neither the first nor the second", "unreadable_reply", ""),
        # Since then a score that is none makes the whole reply unreadable.
        (r"the judge's score .* is no (?:score|number)", "unreadable_reply", ""),
        (r"the judge's score .* is not on the scale", "off_scale", ""),
        (r"the judge would see nothing: ", "nothing_to_see", ""),
        (r"the label can't be read$|the label's (?:verdict|rating) ", "unusable_label", ""),
        (
            r"the embedder's reply can't be read: |the embedder gave (?:a vector of zeros|vectors of)",
            "unusable_vector",
            "",
        ),
    )
)
_BY_METRIC = {
    "Python": re.compile(r"what \S+ returned can't be read$|\S+:\S+ returned "),
}
_BROKE = re.compile(r"the (?:check|metric) broke: ")
_RETURNED = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]* returned ")
_SLOW_EXTRACTION = re.compile(r"the pattern .* took longer than N s on this text$")
_PLACES = 7
"""kind, criterion, prototype class, metric, condition, about, way."""


def find_versions(connection: sqlite3.Connection) -> None:
    """Give runs without a version of their agent the one that their task names. Within the caller's transaction.

    Runs that have no task (imported ones, and those of the oldest programs) stay without: it is not known.
    """
    packs: dict[int, list[Any]] = {}
    for execution, setup in connection.execute(
        "SELECT id, setup FROM executions WHERE setup IS NOT NULL ORDER BY id"
    ).fetchall():
        versions = _versions(connection, setup)
        if not versions:
            continue
        if len(set(versions.values())) == 1:
            (version,) = set(versions.values())
            connection.execute(
                "UPDATE runs SET agent_version = ? WHERE execution = ? AND agent_version = '' AND recording = ''",
                (version, execution),
            )
            continue
        found = []
        for run, pack, number in connection.execute(
            "SELECT id, task, task_number FROM runs WHERE execution = ? AND task IS NOT NULL AND agent_version = ''",
            (execution,),
        ).fetchall():
            if pack not in packs:
                packs[pack] = _data(connection, pack, list)
            tasks = packs[pack]
            task = tasks[number] if 0 <= number < len(tasks) else None
            version = versions.get(str(task.get("agent")), "") if isinstance(task, dict) else ""
            if version:
                found.append((version, run))
        connection.executemany("UPDATE runs SET agent_version = ? WHERE id = ?", found)
    # What is graded again was answered by the agent that was recorded.
    connection.execute(
        "UPDATE runs SET agent_version ="
        " coalesce((SELECT o.agent_version FROM runs o WHERE o.uid = runs.recording), '')"
        " WHERE recording != '' AND agent_version = ''"
    )


def _versions(connection: sqlite3.Connection, setup: int) -> dict[str, str]:
    """By the hash that tasks name: the versions of an execution's agents."""
    agents = _data(connection, setup, dict).get("agents")
    if not isinstance(agents, dict):
        return {}
    return {
        name: agent_version(one["config"])
        for name, one in agents.items()
        if isinstance(one, dict) and isinstance(one.get("config"), dict)
    }


def _data(connection: sqlite3.Connection, number: int, kind: type[Any]) -> Any:
    found = connection.execute("SELECT data FROM tasks WHERE id = ?", (number,)).fetchone()
    try:
        value = unpack(found[0]) if found is not None else kind()
    except (HistoryError, TypeError):
        return kind()  # broken bytes: not known
    return value if isinstance(value, kind) else kind()


# Signatures of causes that older programs stored, brought to the version of today (`grading.causes.VERSION`)


def upgraded(signature: str) -> str:
    """A signature of version 1 as version 2 makes it; what is none, or stays, as it is."""
    try:
        parts = json.loads(signature)
    except (ValueError, RecursionError):
        return signature
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts) or len(parts) != _PLACES:
        return signature
    kind, _, _, metric, condition, _, way = parts
    changed: tuple[str, str, str] | None = None
    if kind == "error" and not condition:
        changed = _error(metric, way)
    elif kind == "failed" and metric == "Python" and condition == "function" and _RETURNED.match(way):
        changed = (condition, "", "")
    elif kind == "failed" and metric == "extraction" and _SLOW_EXTRACTION.match(way):
        changed = ("", "", "slow_pattern")
    if changed is None:
        return signature
    return shortened_signature([*parts[:4], *changed])


def shortened_signature(parts: list[str]) -> str:
    """These parts as they are stored: what is empty at the end is left out."""
    made = list(parts)
    while made and not made[-1]:
        made.pop()
    return json.dumps(made, ensure_ascii=False, separators=(",", ":"))


def _error(metric: str, way: str) -> tuple[str, str, str] | None:
    broke = _BROKE.match(way)
    if broke is not None:
        return "broke", "", way[broke.end() :]
    own = _BY_METRIC.get(metric)
    if own is not None and own.match(way):
        return "unusable_return", "", ""
    return next(((code, about, "") for pattern, code, about in _ERRORS if pattern.match(way)), None)


def upgrade_signatures(connection: sqlite3.Connection) -> None:
    """Rewrite the causes of results, the decisions about them, and what was taken back of those."""
    rewrite_signatures(connection, upgraded)


def rewrite_signatures(connection: sqlite3.Connection, upgraded: Callable[[str], str]) -> None:
    """Put what `upgraded` makes of each signature in its place, wherever signatures are stored."""
    for (old,) in connection.execute("SELECT DISTINCT cause FROM criterion_results WHERE cause > ''").fetchall():
        new = upgraded(old)
        if new != old:
            connection.execute("UPDATE criterion_results SET cause = ? WHERE cause = ?", (new, old))
    # The newest first: it is the one that holds.
    for row, old in connection.execute("SELECT id, signature FROM triage ORDER BY at_ms DESC, id DESC").fetchall():
        new = upgraded(old)
        if new != old:
            _move(connection, row, new)
    for row, old, at_ms in connection.execute(
        "SELECT id, name, at_ms FROM taken_back WHERE kind = 'triage' ORDER BY id"
    ).fetchall():
        new = upgraded(old)
        if new != old:
            connection.execute("DELETE FROM taken_back WHERE id = ?", (row,))
            connection.execute(
                "INSERT INTO taken_back (kind, name, at_ms) VALUES ('triage', ?, ?)"
                " ON CONFLICT (kind, name) DO UPDATE SET at_ms = max(at_ms, excluded.at_ms)",
                (new, at_ms),
            )


def _move(connection: sqlite3.Connection, row: int, signature: str) -> None:
    """Attach a decision to its new signature; where one is there already, that is the newer one."""
    there = connection.execute("SELECT id, note FROM triage WHERE signature = ?", (signature,)).fetchone()
    if there is None:
        connection.execute("UPDATE triage SET signature = ? WHERE id = ?", (signature, row))
        return
    decision, note = connection.execute("SELECT decision, note FROM triage WHERE id = ?", (row,)).fetchone()
    said = f"before: {decision}" + (f", {note}" if note else "")
    joined = f"{there[1]} ({said})" if there[1] else said
    connection.execute("UPDATE triage SET note = ? WHERE id = ?", (joined, there[0]))
    connection.execute("DELETE FROM triage WHERE id = ?", (row,))
