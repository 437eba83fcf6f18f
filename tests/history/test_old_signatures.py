"""Causes that older programs read out of sentences: a history of commit 23bd94c (`data/make_history_5_causes.py`)."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from agenteval_tui.grading.causes import cause_from, signatures
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.grade import grade
from agenteval_tui.grading.sentences import criterion_sentence, evidence_sentence
from agenteval_tui.history.data_migrations import upgraded
from agenteval_tui.history.merge import merge_history
from agenteval_tui.history.store import Store
from agenteval_tui.history.triage import decisions_by_signature as decisions
from agenteval_tui.runs.criteria import spec_from_dict

OLD = gzip.decompress((Path(__file__).parent / "data" / "history-5-causes.db.gz").read_bytes())
CHANGED = {
    "no judge": ["error", "no judge", "TextResponse", "Judge", "not_asked"],
    "judge": ["error", "judge", "TextResponse", "Judge", "unreadable_reply"],
    "off scale": ["error", "off scale", "TextResponse", "Judge", "off_scale"],
    "function": ["failed", "function", "TextResponse", "Python", "function"],
    "returned": ["error", "returned", "TextResponse", "Python", "unusable_return"],
    "cost": ["error", "cost", "TextResponse", "Cost", "not_measured", "cost"],
    "tokens": ["error", "tokens", "TextResponse", "Tokens", "not_measured", "input_tokens"],
    "variable": ["error", "variable", "TextResponse", "", "unknown_variable"],
    "slow": ["error", "slow", "TextResponse", "Regex", "slow_pattern"],
    "slow block": ["error", "slow block", "TextResponse", "", "slow_pattern"],
}
"""Signatures that are others now; all the rest stay."""
FOOLED = '["failed","fooled","JsonResponse","Json","equals","","missing"]'


@pytest.fixture
def before(old: Path) -> dict[str, str]:
    with closing(sqlite3.connect(old)) as connection:
        return dict(connection.execute("SELECT name, cause FROM criterion_results WHERE cause > ''").fetchall())


@pytest.fixture
def store(old: Path, before: dict[str, str]) -> Iterator[Store]:
    with Store.open(old) as store:
        yield store


def _causes(store: Store) -> dict[str, str]:
    rows = "SELECT name, cause FROM criterion_results WHERE cause > ''"
    return dict(store.read(lambda connection: connection.execute(rows).fetchall()))


def test_what_was_right_stays_and_what_was_our_sentence_is_a_code(store: Store, before: dict[str, str]) -> None:
    after = _causes(store)
    assert {name: json.loads(after[name]) for name in after if after[name] != before[name]} == CHANGED
    assert after.keys() == before.keys()


def test_no_decision_is_lost(store: Store, before: dict[str, str]) -> None:
    found = decisions(store)
    after = _causes(store)
    for name in before:
        if name != "tokens":
            assert name in found[after[name]].note
    assert after["tokens"] not in found  # it was taken back, and that is remembered
    assert found[after["judge"]].decision == "ignore"
    assert found[after["judge"]].note == "about judge (before: fix, older)"
    taken = store.read(lambda c: c.execute("SELECT name FROM taken_back WHERE kind = 'triage'").fetchall())
    assert taken == [(after["tokens"],)]


def test_the_same_failures_of_today_have_the_migrated_signatures(
    store: Store, before: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs graded anew meet the decisions of old: all but the one that rests on the agent's words."""
    monkeypatch.setattr("agenteval_tui.grading.regex_search.TIME_LIMIT", 0.05)  # two of them are slow patterns
    after = _causes(store)
    for run in store.run_rows(range(1, 40)):
        transcript, name = store.transcript(run.id), run.test_name
        if name not in before or transcript.error is not None:
            continue
        (result,) = store.results(run.id)
        spec = replace(spec_from_dict(store.criterion(result.criterion_hash) or {}), name=name)
        replies = {one.request.hash: one.reply for one in store.replies(run.id)}
        verdict = grade(transcript, (spec,), replies=replies or None)
        made = signatures(str(verdict.outcome), verdict.results)[0]
        if name == "fooled":
            assert (after[name], made) == (FOOLED, FOOLED.replace('"","missing"', '"a","another value"'))
        elif "_all[" in after[name] or "_any[" in after[name] or "keywords[" in after[name]:
            pass  # the entry of a list has had its text as its name since version 4
        elif name not in ("judge", "off scale", "function", "returned"):  # their replies are not in the file
            assert made == after[name], name


def test_old_evidence_is_shown_with_its_sentences(store: Store) -> None:
    (result,) = store.results("CAUSE-arguments")
    (line,) = [one for one in result.metrics[0].evidence if one.passed is False]
    assert line.code == Code.MESSAGE
    assert evidence_sentence(line) == line.message
    assert evidence_sentence(line).startswith("the call of get_order differs in 3 arguments: order_id: expected")
    assert criterion_sentence(result).startswith(evidence_sentence(line))
    (negated,) = store.results("CAUSE-no-judge")
    assert criterion_sentence(negated) == "Judge: the judge was not asked yet"


def test_an_old_history_comes_in_with_its_decisions(old: Path, tmp_path: Path, before: dict[str, str]) -> None:
    with Store.open(tmp_path / "new.db") as store:
        merge_history(store, old)
        assert {json.loads(one)[1] for one in decisions(store) if json.loads(one)[0] == "error"} >= {"judge", "cost"}
        assert set(_causes(store).values()) & set(decisions(store))


@pytest.mark.parametrize(
    "text", ["", "[]", "7", "nothing", '["error"]', '["failed","a","b","c","d","e","f"]', "[1]" * 9]
)
def test_what_is_no_old_signature_stays(text: str) -> None:
    assert upgraded(text) == text


def test_a_signature_is_brought_up_once(store: Store) -> None:
    for signature in _causes(store).values():
        assert upgraded(signature) == signature
        assert cause_from(signature).words
