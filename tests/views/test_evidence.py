"""One explanation: terminal, Markdown, screen, JSON and JUnit carry the same facts, whatever foreign text they hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt
from msgspec import to_builtins
from msgspec.structs import replace

from agenteval_tui.analysis.explanation import Explanation, explanation_of, missed_of
from agenteval_tui.core.display import displayable
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.documents.registry import schema
from agenteval_tui.formats.documents.why import explanation_document
from agenteval_tui.formats.exporters.junit import junit_xml
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.explain import Fact, explain, fact_document, flat, on_one_line
from agenteval_tui.grading.grade import grade
from agenteval_tui.grading.results import CriterionResult, Evidence, MetricResult, Outcome, Span
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded, RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model import Message, Output, RunError, Transcript
from agenteval_tui.tui.presenters.view_lines import view_lines
from agenteval_tui.tui.styled_text import plain as plain_line
from agenteval_tui.views.evidence import explanation, explanation_page, explanation_view, fact_tree, results_in_short
from agenteval_tui.views.markdown import markdown
from agenteval_tui.views.terminal import plain_text

ATTACKS = [
    "\x1b]52;c;aGk=\x07\x1b[31mred",
    "\x00\x08\x0b\x0c\x7f\x85\x9b",
    "]]><!-- & <script>alert(1)</script>",
    "\ud800 alone \udfff",
    "\ufffe\uffff\ufdd0 \U0001fffe",
    "\u202eturned\u2066 zero\u200bwidth\ufeff",
    "two\nlines\r\nand\ttab\u2028sep",
    "`` ticks ` and ``` fences",
    "[link](http://x.example) **bold** _it_ <b>html</b> ![i](j) @team #12 | cell |",
    "  two  spaces  ",
    "- item\n# heading\n1. one",
    "",
]


def failing(name: str, reason: str, value: str | None = "value") -> CriterionResult:
    miss = Evidence("contains_all[0]", False, reason, "x", "y", (Span("value", 0, 0, 1),), (Span("message", 1, 2, 5),))
    hit = Evidence("contains_all[1]", True, "it is there")
    metric = MetricResult("words", "TextMatch", Outcome.FAILED, 0.0, evidence=(hit, miss), message=reason)
    return CriterionResult(name, Outcome.FAILED, 0.0, prototype_class="TextResponse", value=value, metrics=(metric,))


PASSED = CriterionResult("polite", Outcome.PASSED, 1.0)
BROKEN = CriterionResult("judged", Outcome.ERROR, None, message="the judge could not be read")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "history.db") as opened:
        yield opened


def kept(store: Store, results: tuple[CriterionResult, ...], *, status: str = "failed", name: str = "Test",
         error: RunError | None = None, answer: str = "answer") -> RunRow:  # fmt: skip
    """A run in the history with these results."""
    number = len(store.executions())
    execution = f"EXECUTION-{number}"
    run = f"RUN-{number:06}"
    store.begin_execution(
        ExecutionRecord(execution, name, "run", "Suite", ("/s.suite.yaml",), 1_000),
        [PlannedRun(run, execution, 0, "/s.suite.yaml", name, "test", name, agent="demo", prompt="?")],
    ).result()
    transcript = Transcript((Message("assistant", answer),), final_output=answer, error=error)
    store.run_ended(RunEnded(run, status, 0.0, 2_000, 10.0, 1, transcript, results, 0, "why: " + name)).result()
    store.end_execution(execution, "finished").result()
    return store.run(run)


def as_text(one: Explanation) -> str:
    return plain_text(explanation(one))


def as_markdown(one: Explanation) -> str:
    return markdown(explanation_page(one)).rstrip("\n")


def render_text(facts: tuple[Fact, ...]) -> str:
    return plain_text((fact_tree(facts),))


def render_markdown(facts: tuple[Fact, ...]) -> str:
    return markdown((fact_tree(facts),)).rstrip("\n")


def explained(store: Store, row: RunRow, wanted: str = "") -> Explanation:
    return explanation_of(row, store.results(row.id), store.transcript(row.id), criterion=wanted)


def test_text_says_all_and_where_to_see_it_again(store: Store) -> None:
    row = kept(store, (PASSED, failing("words", '"x" is not in the text'), BROKEN))
    assert as_text(explained(store, row)).splitlines() == [
        "! 1 check could not run",
        "✓ polite: passed, score 1.00",
        "✗ words: failed, score 0.00",
        '  · TextResponse found "value"',
        "  ✗ words (TextMatch): 0.00",
        '    ✗ contains_all[0]: "x" is not in the text',
        "      ≈ closest: message 2, characters 3 to 5",
        "    ✓ contains_all[1]: it is there",
        "! judged: error",
        "  ! the judge could not be read",
        f"agenteval why {row.id}",
    ]
    assert as_text(explained(store, row, "2")).splitlines()[-1] == f"agenteval why {row.id}/2"
    missed = missed_of(row, store.results(row.id), store.transcript(row.id))
    assert [number for number, _ in missed.criteria] == [2, 3]


def test_a_criterion_is_named_by_number_name_or_the_beginning_of_it(store: Store) -> None:
    row = kept(store, (PASSED, failing("Words", "no"), failing("Words too", "no")))
    assert [explained(store, row, wanted).address for wanted in ("2", "words", "WORDS T", "pol")] == [
        f"{row.id}/2", f"{row.id}/2", f"{row.id}/3", f"{row.id}/1",
    ]  # fmt: skip
    with pytest.raises(AgentevalError, match="several criteria begin with 'w'"):
        explained(store, row, "w")
    for wanted in ("4", "0", "nothing"):
        with pytest.raises(AgentevalError, match="there is no criterion"):
            explained(store, row, wanted)


def test_json_fits_its_schema_and_holds_the_same_tree(store: Store) -> None:
    validator = Draft202012Validator(schema("why"))
    for number, attack in enumerate(ATTACKS):
        error = RunError("timeout", attack, "wait longer") if number % 2 else None
        row = kept(store, (PASSED, failing(attack, attack, attack), BROKEN), name=attack or "-", error=error)
        found = explained(store, row)
        document = json.loads(json.dumps(to_builtins(explanation_document(found))))
        validator.validate(document)
        assert json.loads(json.dumps(document)) == document
        assert (document["error"] is None) is (error is None)
        texts = [fact["text"] for one in document["criteria"] for fact in _json_flat(one["explanation"])]
        assert texts == [fact.text for _, fact in flat(found.facts)]


def _json_flat(fact: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield fact
    for child in fact["children"]:
        yield from _json_flat(child)


@pytest.mark.parametrize("attack", ATTACKS)
def test_junit_is_xml_and_carries_the_whole_explanation(store: Store, attack: str) -> None:
    error = RunError("connection", attack, "start it")
    failed = kept(store, (PASSED, failing(attack, attack * 300, attack), BROKEN), name=attack or "-", answer=attack)
    broken = kept(store, (), status="error", name=attack or "-", error=error, answer=attack)
    for row, tag in ((failed, "failure"), (broken, "error")):
        text = junit_xml(store, store.execution(row.execution_id))
        root = ElementTree.fromstring(text.encode("utf-8"))
        assert root.tag == "testsuites"
        assert root.attrib["failures" if tag == "failure" else "errors"] == "1"
        (case,) = root.iter("testcase")
        assert case.attrib["name"] == displayable(attack or "-")
        found = case.find(tag)
        assert found is not None
        said = as_text(missed_of(row, store.results(row.id), store.transcript(row.id)))
        assert found.text == said
        assert "polite" not in said
        assert (case.findall("system-out")[-1].text or "") == displayable(attack)


def test_junit_of_what_was_not_decided(store: Store) -> None:
    row = kept(store, (), status="needs_review")
    root = ElementTree.fromstring(junit_xml(store, store.execution(row.execution_id)))
    (suite,) = root.iter("testsuite")
    assert suite.attrib["skipped"] == "1"
    assert root.find(".//skipped") is not None


# ---------------------------------------------------------------------- Markdown
def rendered(markdown: str) -> list[Any]:
    return MarkdownIt("gfm-like", {"linkify": False}).parse(markdown)


def rendered_text(tokens: list[Any]) -> list[str]:
    """The text of each block, as a reader sees it."""
    return ["".join(child.content for child in token.children or ()) for token in tokens if token.type == "inline"]


def facts_of(attack: str) -> tuple[Fact, ...]:
    return explain([failing(attack, attack, attack), BROKEN])


@pytest.mark.parametrize("attack", ATTACKS)
def test_markdown_reads_as_the_text_and_nothing_in_it_is_markup(attack: str) -> None:
    facts = facts_of(attack)
    tokens = rendered(render_markdown(facts))
    kinds = {token.type for token in tokens} | {child.type for token in tokens for child in token.children or ()}
    assert kinds <= {
        "bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close", "paragraph_open",
        "paragraph_close", "inline", "text", "text_special", "code_inline", "strong_open", "strong_close",
    }  # fmt: skip
    words = [_squeezed(line) for line in rendered_text(tokens)]
    assert words == [_squeezed(displayable(line)) for line in render_text(facts).split("\n")]


def _squeezed(line: str) -> str:
    return " ".join(line.split())


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=30) | st.lists(st.sampled_from(ATTACKS), max_size=3).map("".join))
def test_every_renderer_gives_a_line_a_fact(text: str) -> None:
    facts = facts_of(text)
    number = len(list(flat(facts)))
    assert len(render_text(facts).split("\n")) == number
    assert len(displayable(render_text(facts)).splitlines()) == number
    assert len(render_markdown(facts).splitlines()) == number
    assert [_squeezed(line) for line in rendered_text(rendered(render_markdown(facts)))] == [
        _squeezed(displayable(line)) for line in render_text(facts).split("\n")
    ]


def test_markdown_of_a_run_is_a_section_for_a_bug_report(store: Store) -> None:
    row = kept(store, (failing("words", "no"),), name="A *test*", error=RunError("timeout", "60 s", "wait"))
    lines = as_markdown(explained(store, row)).splitlines()
    assert lines[0] == r"### A \*test\*: failed"
    assert lines[2] == "`A *test* / test`, repetition 1, agent `demo`"
    assert lines[4] == "- ! `the agent did not finish: timeout: 60 s (wait)`"
    assert lines[5] == "- ✗ **words: failed, score 0.00**"
    assert lines[-1] == f"`agenteval why {row.id}/1`"
    opened = [one.type for one in rendered("\n".join(lines)) if one.type.endswith("_open") and one.level == 0]
    assert opened == ["heading_open", "paragraph_open", "bullet_list_open", "paragraph_open"]


@pytest.mark.parametrize("wanted", ["", "words", "2"])
@pytest.mark.parametrize("coded", [True, False])
def test_an_agents_error_is_said_once(store: Store, wanted: str, coded: bool) -> None:
    """Also of a history from before results had codes, and where only one criterion is asked about."""
    error = RunError("program", "ended with code 3: no such table", "run it by hand")
    specs = [CriterionSpec(name, "TextResponse", {"metrics": []}) for name in ("polite", "words")]
    results = grade(Transcript(error=error), specs).results
    if not coded:
        said = f"not graded: the agent did not finish ({error.kind}: {error.message})"
        results = tuple(replace(one, code="", fields={}, message=said) for one in results)
    row = kept(store, results, status="error", error=error)
    found = explained(store, row, wanted)
    facts = json.dumps(to_builtins([fact_document(one) for one in found.facts]))
    for text in (as_text(found), as_markdown(found), facts):
        assert text.count("no such table") == (0 if text.startswith("[") else 1)
        assert text.count("not graded") == len(found.criteria) == (1 if wanted else 2)
    assert json.loads(json.dumps(to_builtins(explanation_document(found))))["error"]["message"] == error.message


def test_what_the_code_logged_stands_below_an_error_that_does_not_say_where_it_is_from(store: Store) -> None:
    row = kept(store, (), status="error", error=RunError("status", "answered 500", "look at its log"))
    output = (
        Output(1.0, "log", "ready", "INFO", "app"),
        Output(2.0, "log", "no attribute 'output_txt'", "ERROR", "app.main"),
        Output(3.0, "stderr", "| INFO | asked\n2026-12-01 | ERROR | app.main:79 - it failed\nINFO 500"),
        Output(4.0, "stdout", "an error is a word, too"),
    )
    error = RunError("status", "answered 500", "look at its log")
    found = explanation_of(row, (), Transcript(output=output, error=error))
    assert as_text(found).splitlines()[:3] == [
        "! the agent did not finish: status: answered 500 (look at its log)",
        "! logged: ERROR app.main no attribute 'output_txt'",
        "! logged: 2026-12-01 | ERROR | app.main:79 - it failed",
    ]
    assert len(json.loads(json.dumps(to_builtins(explanation_document(found))))["logged"]) == 2
    assert not explanation_of(row, (), Transcript(output=output)).logged


def test_what_another_tool_skipped_keeps_its_reason(store: Store) -> None:
    theirs = CriterionResult("theirs", Outcome.SKIPPED, None, message="not applicable", source="promptfoo")
    row = kept(store, (theirs,), status="error", error=RunError("program", "gone"))
    assert "not applicable" in as_text(explained(store, row))


def test_spaces_that_matter_stay() -> None:
    assert on_one_line("a  b\tc\r\nd\ne") == "a  b→c⏎d⏎e"
    assert re.search("`.*a  b.*`", render_markdown(facts_of("a  b")))


def test_a_screen_wraps_facts_beside_their_signs() -> None:
    (tree,) = results_in_short([failing("words", "a reason that is longer than the screen is wide")])
    shown = [plain_line(line) for line in view_lines((tree,), 30)]
    assert shown[0] == "✗ words: failed, score 0.00"
    assert "    ✗ contains_all[0]: a" in shown[3]
    assert shown[4].startswith("      ")
    assert max(map(len, shown)) <= 30
    assert shown[-2:] == ["    ✓ contains_all[1]: it is", "      there"]
    missed = plain_text(results_in_short([failing("words", "no"), PASSED], missed=True, indent=4))
    assert missed.startswith("    ✗ words")
    assert "it is there" not in missed
    assert "polite" not in missed


def test_what_is_known_of_the_run_stands_before_its_facts(store: Store) -> None:
    row = kept(store, (), status="error", error=RunError("timeout", "60 s", "wait"))
    for text in (as_text(explained(store, row)), plain_text(explanation_view(explained(store, row)))):
        assert text.endswith(f"! the agent did not finish: timeout: 60 s (wait)\nagenteval why {row.id}")
    row = kept(store, ())
    assert plain_text(explanation_view(explained(store, row))).splitlines() == [
        f"Test: failed  {row.id}", "no criterion was applied to this run", f"agenteval why {row.id}",
    ]  # fmt: skip
    assert "no criterion" not in as_text(missed_of(row, (), Transcript()))


def test_a_reply_of_a_judge_that_could_not_be_read_is_shown_as_it_was() -> None:
    reply = "I would say\n\x1b[2Jgood\u202e, 7 of 10" + "\nand more" * 900
    line = Evidence("reply", None, found=reply, code=Code.REPLIED, fields={"error": ""})
    metric = MetricResult(
        "Judge", "Judge", Outcome.ERROR, None, 1.0, code=Code.UNREADABLE_REPLY, evidence=(line,),
        fields={"problem": "it is no JSON"},
    )  # fmt: skip
    result = replace(failing("c", "x"), outcome=Outcome.ERROR, metrics=(metric,))
    shown = plain_text((fact_tree(explain([result])),)).split("\n")
    start = next(at for at, words in enumerate(shown) if words.strip() == "I would say")
    assert shown[start + 1].strip() == "␛[2Jgood↔, 7 of 10"
    assert shown[start + 2].strip() == "and more"
    assert shown[-1].strip() == "…"
    assert len(shown) < 40
    assert "I would say" not in plain_text(results_in_short([result]))
