"""What a cause's title says holds for every run of its group."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval_tui.analysis.causes import CauseGroup, execution_scope, group_failures
from agenteval_tui.grading.causes import deciding_line
from agenteval_tui.grading.grade import grade
from agenteval_tui.grading.sentences import verdict_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import spec_to_dict
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript

Case = tuple[Mapping[str, Any], str, Mapping[str, Any]]
"""A metric, the agent's answer, and the variables of the row."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "made.db") as opened:
        yield opened


def run(store: Store, execution: str, cases: Sequence[Case]) -> None:
    """An execution of one test for each case, with the criterion `c`. An answer that is a JSON list is tool calls."""
    plans, ends = [], []
    for number, (metric, answer, variables) in enumerate(cases):
        spec = CriterionSpec("c", "ToolResponse" if metric["type"] == "ToolCheck" else "TextResponse", {
            "metrics": [dict(metric)]
        })  # fmt: skip
        calls = tuple(
            ToolCall(f"c{place}", name, {}, "ok", message=1)
            for place, name in enumerate(json.loads(answer) if metric["type"] == "ToolCheck" else ())
        )
        messages = (Message("user", "Hi"), Message("assistant", answer, tool_calls=tuple(range(len(calls)))))
        transcript = Transcript(messages, calls, final_output=answer)
        name = f"{execution}-{number:03}"
        plans.append(
            PlannedRun(
                name, execution, number, "/s/a.suite.yaml", "A", f"t{number}", f"T {number}", agent="demo", prompt="Hi",
                criteria=(spec.hash,), specs=(spec_to_dict(spec),),
            )
        )  # fmt: skip
        verdict = grade(transcript, (spec,), dict(variables))
        ends.append(
            RunEnded(
                name, str(verdict.outcome), verdict.score, 1000 + number, 5.0, 1, transcript, verdict.results,
                why=verdict_sentence(verdict),
            )
        )  # fmt: skip
    store.begin_execution(ExecutionRecord(execution, execution, "run", "", ("/s/a.suite.yaml",), 1000), plans)
    for end in ends:
        store.run_ended(end)
    store.end_execution(execution, "finished").result()


def titles(store: Store) -> dict[str, int]:
    return {group.title: group.count for group in group_failures(store, execution_scope(store)).groups}


def contains(text: str) -> dict[str, Any]:
    return {"type": "TextMatch", "contains": text}


def test_one_of_five_tests_expects_another_text(store: Store) -> None:
    run(store, "E1", [(contains(text), "bad", {}) for text in ("alpha", "alpha", "beta", "alpha", "alpha")])
    assert titles(store) == {"c: the expected text is missing": 5}
    run(store, "E2", [(contains("alpha"), "bad", {})] * 5)
    assert titles(store) == {'c: "alpha" is not in the text': 5}


@pytest.mark.parametrize("place", range(9))
def test_the_one_that_differs_is_found_wherever_it_is(store: Store, place: int) -> None:
    run(store, "E1", [(contains("beta" if number == place else "alpha"), "bad", {}) for number in range(9)])
    assert titles(store) == {"c: the expected text is missing": 9}


def test_rows_with_different_expected_values(store: Store) -> None:
    metric = contains("{{expected_value}}")
    answers = [("yes", "no")] * 4 + [("no", "yes")] * 8
    run(store, "E1", [(metric, answer, {"expected_value": expected}) for expected, answer in answers])
    assert titles(store) == {"c: the expected text is missing": 12}


@pytest.mark.parametrize(
    ("cases", "title"),
    [
        ([({"type": "Regex", "pattern": "a+"}, "x", {}), ({"type": "Regex", "pattern": "b+"}, "x", {})],
         "c: Regex: the pattern is not found"),
        ([({"type": "Length", "min_words": 5}, "x", {}), ({"type": "Length", "min_words": 7}, "x", {})],
         "c: Length: min_words does not hold"),
        ([({"type": "Length", "min_words": 5}, "x", {}), ({"type": "Length", "min_words": 5}, "x y", {})],
         "c: Length: min_words does not hold (5)"),
        ([({"type": "TextMatch", "equals": "a" * 60 + "b"}, "x", {}),
          ({"type": "TextMatch", "equals": "a" * 60 + "c"}, "x", {})],
         "c: the text is not the expected one"),
        # Both tests miss the same entry; both entries hold it in their titles.
        ([({"type": "TextMatch", "contains_all": ["alpha", "beta"]}, "beta", {}),
          ({"type": "TextMatch", "contains_all": ["beta", "alpha"]}, "beta", {})],
         'c: "alpha" is not in the text'),
        ([({"type": "TextMatch", "not_contains_any": ["sorry", "no"]}, "no", {}),
          ({"type": "TextMatch", "not_contains_any": ["no", "sorry"]}, "no", {})],
         'c: the text contains "no", which is forbidden'),
        ([({"type": "TextMatch", "contains_all": ["{{a}}", "x"]}, "x", {"a": "Rome"}),
          ({"type": "TextMatch", "contains_all": ["x", "{{a}}"]}, "x", {"a": "Rome"})],
         'c: "Rome" is not in the text'),
        ([({"type": "TextMatch", "contains_all": ["{{a}}", "x"]}, "x", {"a": "Rome"}),
          ({"type": "TextMatch", "contains_all": ["{{a}}", "x"]}, "x", {"a": "Athens"})],
         "c: {{a}} is not in the text"),
        ([({"type": "Classification", "label": "ham", "labels": ["ham", "spam"]}, "spam", {})] * 2,
         "c: ham: taken for spam"),
    ],
)  # fmt: skip
def test_titles_of_constructed_groups(store: Store, cases: list[Case], title: str) -> None:
    run(store, "E1", cases)
    assert titles(store) == {title: len(cases)}


def test_a_run_whose_evidence_is_gone_takes_the_text_out_of_the_title(store: Store) -> None:
    import sqlite3

    run(store, "E1", [(contains("alpha"), "bad", {})] * 5)
    with sqlite3.connect(store.path) as connection:
        connection.execute("UPDATE evidence SET data = x'00' WHERE run = (SELECT id FROM runs WHERE uid = 'E1-002')")
        connection.commit()
    connection.close()
    assert titles(store) == {"c: the expected text is missing": 5}


_WORD = st.sampled_from(["alpha", "beta", "gamma", "delta"])
_WORDS = st.lists(_WORD, min_size=1, max_size=3, unique=True)
_METRIC = st.one_of(
    _WORD.map(contains),
    _WORD.map(lambda word: {"type": "TextMatch", "equals": word}),
    st.just(contains("{{expected_value}}")),
    _WORDS.map(lambda words: {"type": "TextMatch", "contains_all": words}),
    _WORDS.map(lambda words: {"type": "TextMatch", "not_contains_any": words}),
    _WORDS.map(lambda words: {"type": "TextMatch", "contains_any": words}),
    _WORDS.map(lambda words: {"type": "Keywords", "keywords": words}),
    st.just({"type": "TextMatch", "contains_all": ["{{expected_value}}", "omega"]}),
    _WORD.map(lambda word: {"type": "Regex", "pattern": word}),
    st.integers(3, 6).map(lambda least: {"type": "Length", "min_words": least}),
    _WORDS.map(lambda names: {"type": "ToolCheck", "tools": [{"name": name} for name in names]}),
    _WORDS.map(lambda names: {"type": "ToolCheck", "forbidden_tools": names}),
)


@st.composite
def _cases(draw: st.DrawFn) -> list[Case]:
    cases: list[Case] = []
    for metric in draw(st.lists(_METRIC, min_size=1, max_size=3)):
        for _ in range(draw(st.integers(1, 4))):
            words = draw(st.lists(_WORD, max_size=3, unique=True))
            answer = json.dumps(words) if metric["type"] == "ToolCheck" else " ".join(["so:", *words])
            cases.append((metric, answer, {"expected_value": draw(_WORD)}))
    return draw(st.permutations(cases))


def named_in(title: str) -> set[str]:
    """The words and figures that a title names."""
    return set(re.findall(r"alpha|beta|gamma|delta|omega|\((\d+)\)", title)) - {""}


def missed_of(store: Store, group: CauseGroup, number: int) -> str:
    """All that the missed conditions of a run of the group say, as JSON."""
    result = store.results(group.run_ids[number])[group.positions[number]]
    assert deciding_line(result) is not None
    missed = [line for metric in result.metrics for line in metric.evidence if line.passed is False]
    return json.dumps([[line.expected, line.fields.get("tool")] for line in missed])


@settings(deadline=None, max_examples=60)
@given(cases=_cases())
def test_each_text_that_a_title_names_is_missed_in_every_run(
    tmp_path_factory: pytest.TempPathFactory, cases: list[Case]
) -> None:
    with Store.open(tmp_path_factory.mktemp("made") / "made.db") as store:
        run(store, "E1", cases)
        failed = 0
        for group in group_failures(store, execution_scope(store)).groups:
            failed += group.count
            for word in named_in(group.title.removeprefix("c: ")):
                for number in range(group.count):
                    assert word in missed_of(store, group, number), group.title
        assert failed == sum(row.status == "failed" for row in store.run_rows(store.run_ids()))
