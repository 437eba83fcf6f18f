"""Markdown, HTML and GitHub's commands of an execution: the figures are right, and nothing foreign can act in them."""

from __future__ import annotations

import csv
import html.parser
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attacks import ATTACKS
from markdown_it import MarkdownIt
from msgspec.structs import replace

from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.numbers import dollars, percent
from agenteval_tui.formats.exporters.github import MOST, annotation_lines, command, summary_md
from agenteval_tui.formats.exporters.report_figures import report_figures, seconds
from agenteval_tui.formats.exporters.report_html import report_html
from agenteval_tui.formats.exporters.report_md import report_md
from agenteval_tui.formats.exporters.results_csv import results_csv
from agenteval_tui.formats.import_file import import_file
from agenteval_tui.grading.results import CriterionResult, Evidence, MetricResult, Outcome
from agenteval_tui.history import quarantines
from agenteval_tui.history.quarantines import Quarantine
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded, RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model import Message, RunError, ToolCall, Transcript, Usage

WEB = (
    "<script>alert(31337)</script>",
    "</pre></details></body><img src=x onerror=alert(31337)>",
    "<!-- --><iframe src=//31337></iframe>",
    '" onmouseover="alert(31337)" x="',
    "javascript:alert(31337)",
    "&lt;script&gt;31337",
    "![31337](http://31337/x.png) [click](javascript:31337) <b>31337</b> @31337 #31337",
    "``` \n# 31337\n| a | b |\n|--|--|\n",
    "</summary></style><style>*{background:url(//31337)}</style>",
    "```` ` `` 31337",
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "h.db") as opened:
        yield opened


def keep(
    store: Store, outcomes: list[str], text: str = "hello", name: str = "Test", duration_ms: float = 1500.0
) -> None:
    """An execution whose runs ended so; every text in it that anybody may choose is `text`."""
    runs = []
    for number, outcome in enumerate(outcomes):
        planned = PlannedRun(
            f"RUN-{number:05}", "EXEC-1", number, "/s/a.suite.yaml", text, f"t{number // 2}", name, text,
            repetition=number % 2 + 1, agent=text, prompt=text, tags=(text,),
        )  # fmt: skip
        error = RunError(text, text, text) if outcome == "error" else None
        transcript = Transcript(
            messages=(
                Message("user", text),
                Message("assistant", "", reasoning=text, tool_calls=(0,)),
                Message("tool", text, tool_call=0, name=text),
                Message("assistant", text),
            ),
            tool_calls=(ToolCall("c", text, {text: text}, text, message=1),),
            usage=Usage(100, 20, cost=0.018),
            final_output=text,
            error=error,
        )
        verdict = Outcome(outcome) if outcome in ("passed", "failed") else Outcome.ERROR
        evidence = Evidence("contains", verdict is Outcome.PASSED, text, text, text)
        metric = MetricResult(text, "TextMatch", verdict, float(verdict is Outcome.PASSED), evidence=(evidence,))
        result = CriterionResult(text, verdict, float(verdict is Outcome.PASSED), value=text, metrics=(metric,))
        runs.append((planned, RunEnded(planned.id, outcome, 1.0, 1_000, duration_ms, 1, transcript, (result,),
                                       why=text)))  # fmt: skip
    record = ExecutionRecord("EXEC-1", text if text != "hello" else "Shop", "run", "a.suite.yaml", ("/s/a.suite.yaml",),
                             1_736_899_200_000)  # fmt: skip
    store.import_runs(record, runs)


@pytest.mark.parametrize(("duration_ms", "cell"), [(1500.0, "1500"), (12.345678, "12.3457"), (5_432_109.8, "5432110")])
def test_a_table_has_long_times_whole(store: Store, duration_ms: float, cell: str) -> None:
    keep(store, ["passed"], duration_ms=duration_ms)
    (row,) = csv.DictReader(io.StringIO(results_csv(store, store.execution("EXEC-1"))))
    assert (row["duration_ms"], row["cost"], row["score"]) == (cell, "0.018", "1")


def test_figures_as_people_read_them() -> None:
    assert [percent(one, 1) for one in (0.87, 0.875, 1.0, 0.0)] == ["87 %", "87.5 %", "100 %", "0 %"]
    assert [dollars(one) for one in (0.018, 12.345, 0.0, 0.00001)] == ["$0.0180", "$12.35", "$0.00", "< $0.0001"]
    assert [seconds(one) for one in (340.0, 1500.0, None)] == ["340 ms", "1.5 s", "–"]


def test_the_markdown_report_has_the_layout_and_the_figures(store: Store) -> None:
    keep(store, ["passed", "passed", "passed", "failed", "error", "passed"])
    text = report_md(store, store.execution("EXEC-1"))
    head, results, rest = re.split(r"### Results|### Failures", text)
    assert "## Evaluation report: Shop" in head
    assert "**Date:** 2025-01-15" in head
    assert "**Dataset:** hello (3 tests, 6 runs)" in head
    assert "**Experiment:** EXEC-1" in head
    # 1, 1/2 and 1 of the decided runs of the three tests: their mean, and 4 of 5 runs.
    assert "| Pass rate | 83.3 % (too few for an interval) |" in results
    assert "| Runs passed | 4 of 5 decided |" in results
    assert "| In error | 1 |" in results
    assert "pass^2" not in results  # a test has one decided run only
    assert "| Latency (p50) | 1.5 s |" in results
    assert r"| Cost/run (p50) | \$0.0180 |" in results
    assert re.search(r"\| ✓ t0 \\\[hello\\\] \| [^|]* \| 2/2 \|", results)
    assert "flaky" in results
    assert rest.index("Test: error") < rest.index("Test: failed")
    assert "agenteval why RUN-00003" in rest
    conclusion = text.partition("### Conclusion")[2]
    assert "1 of 3 tests passed in every run." in conclusion
    assert "1 run ended in an error, which no rate counts." in conclusion


def test_failures_that_are_too_many_are_counted(store: Store) -> None:
    keep(store, ["failed"] * 8)
    execution = store.execution("EXEC-1")
    for text in (report_md(store, execution, most=3), report_html(store, execution, most=3)):
        assert text.count("agenteval why RUN-") == 3
        assert text.count("2 runs: repetitions 1, 2") == 3  # for the same reason: said once
        assert "2 more runs that did not pass: not listed here." in text


def test_a_failure_that_is_too_long_is_cut_at_a_line(store: Store) -> None:
    keep(store, ["failed"], "`x " * 4_000)
    text = report_md(store, store.execution("EXEC-1"))
    assert len(text) < 20_000
    assert "agenteval why RUN-00000" in text


class Page(html.parser.HTMLParser):
    """What a browser would make of it: tags with their attributes, and texts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("text", WEB)
def test_no_page_of_a_browser_obeys_what_an_agent_said(store: Store, text: str) -> None:
    keep(store, ["failed", "error", "passed"], text, name=text)
    written = report_html(store, store.execution("EXEC-1"))
    page = Page(written)
    assert page.open == []
    allowed = {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "dl", "dt", "dd", "table", "thead", "tbody",
        "tr", "th", "td", "p", "pre", "b", "span", "section", "details", "summary",
    }  # fmt: skip
    assert {tag for tag, _ in page.tags} <= allowed
    assert {name for _, attributes in page.tags for name in attributes} <= {
        "lang", "charset", "name", "content", "http-equiv", "class",
    }  # fmt: skip
    assert [tag for tag, _ in page.tags].count("style") == 1
    assert "default-src 'none'" in written
    (style,) = re.findall(r"<style>(.*?)</style>", written, flags=re.S)
    assert "url(" not in style


@pytest.mark.sweep
@pytest.mark.parametrize("name", list(ATTACKS))
def test_no_terminal_and_no_reader_obeys_what_an_agent_said(tmp_path: Path, name: str) -> None:
    with Store.open(tmp_path / "h.db") as store:
        keep(store, ["failed", "error"], ATTACKS[name], name=ATTACKS[name])
        execution = store.execution("EXEC-1")
        runs = store.runs_of_execution("EXEC-1")
        written = [
            report_html(store, execution),
            report_md(store, execution),
            summary_md(store, execution),
            *annotation_lines(runs, lambda run: (ATTACKS[name], 1)),
        ]
    for text in written:
        text.encode("utf-8")
        bad = [char for char in text if (ord(char) < 32 and char not in "\n\t") or 127 <= ord(char) < 160]
        assert bad == []
        assert not re.search("[\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff\u061c\U000e0000-\U000e007f]", text)


@pytest.mark.parametrize("text", WEB)
def test_markdown_keeps_foreign_text_as_text(store: Store, text: str) -> None:
    keep(store, ["failed"], text, name=text)
    written = report_md(store, store.execution("EXEC-1"))
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(written)
    found = [one for token in tokens for one in (token, *(token.children or ()))]
    kinds = {one.type for one in found} - {"html_block"}
    assert not kinds & {"html_inline", "link_open", "image", "fence", "blockquote_open", "hr", "code_block"}
    assert [one.content.strip() for one in found if one.type == "html_block"] == [written.splitlines()[0]]
    assert sum(one.type == "table_open" for one in found) == 3
    assert sum(one.type == "heading_open" for one in found) == 7
    plain = "".join(one.content for one in found if one.type == "text")
    assert "31337" in plain


def test_annotations_name_file_line_and_reason_and_are_escaped(store: Store) -> None:
    keep(store, ["failed", "failed", "passed", "passed", "error"], "50%\r\n::add-mask::x, y: z", name="a:b,c%")
    lines = list(annotation_lines(store.runs_of_execution("EXEC-1"), lambda run: ("s/a:b,c.suite.yaml", 12)))
    assert len(lines) == 2  # repetitions are one
    for line in lines:
        assert "\n" not in line
        assert "\r" not in line
        assert line.startswith("::error file=s/a%3Ab%2Cc.suite.yaml,line=12,title=a%3Ab%2Cc%25::")
        assert line.count("::error ") == 1
    assert "failed (2 runs): 50%25 ::add-mask::x, y: z%0Aagenteval why RUN-00000" in lines[0]


def test_an_annotation_of_several_runs_says_what_holds_for_all_of_them() -> None:
    def lines(*ends: tuple[str, str]) -> list[str]:
        empty: dict[str, Any] = dict.fromkeys(RunRow.__struct_fields__, "")
        runs = [
            RunRow(
                **{**empty, "id": f"R{number}", "test_name": "T", "checks_not_made": 0, "status": status, "why": why}
            )
            for number, (status, why) in enumerate(ends)
        ]
        return list(annotation_lines(runs, lambda run: None))

    (alike,) = lines(("failed", "late"), ("failed", "late"))
    assert alike.endswith("::failed (2 runs): late%0Aagenteval why R0")
    (varied,) = lines(("error", "no connection"), ("failed", "late"), ("failed", "late"))
    assert varied.endswith(
        "::failed (2 runs), error (1 run): late (2 of 3 runs), and 1 other reason%0Aagenteval why R0"
    )


def test_runs_that_wait_for_a_person_are_said_as_such(store: Store) -> None:
    keep(store, ["passed", "needs_review"])
    execution = store.execution("EXEC-1")
    waiting = [run for run in store.runs_of_execution("EXEC-1") if run.status == "needs_review"]
    figures = report_figures(store, execution)
    assert "1 run waits for a person." in figures.conclusion
    assert "error" not in figures.conclusion
    assert sum(test.waiting for test in figures.tests) == 1
    assert "All" not in figures.conclusion
    assert "The test passed." not in figures.conclusion
    (line,) = annotation_lines([replace(run, why="") for run in waiting], lambda run: None)
    assert "::to be reviewed: it waits for a person%0A" in line


def test_annotations_that_nobody_would_see_are_counted(store: Store) -> None:
    keep(store, ["failed"] * 30)
    lines = list(annotation_lines(store.runs_of_execution("EXEC-1"), lambda run: None))
    assert len(lines) == MOST
    assert lines[0].startswith("::error title=Test::")
    assert lines[-1] == command("error", "6 more tests did not pass", title="agenteval")


def test_a_summary_is_never_too_large_for_its_page(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(store, ["failed", "passed"] * 60)
    execution = store.execution("EXEC-1")
    assert summary_md(store, execution).count("agenteval why RUN-") == 50
    github = sys.modules["agenteval_tui.formats.exporters.github"]
    monkeypatch.setattr(github, "SUMMARY_BYTES", 12_000)
    assert summary_md(store, execution).count("agenteval why RUN-") == 10
    monkeypatch.setattr(github, "SUMMARY_BYTES", 10)
    assert "too large" in summary_md(store, execution)


def test_a_report_of_imported_runs_says_when_they_were_made_and_that_nobody_graded_them(
    store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "talk.jsonl"
    said = '"messages": [{"role": "assistant", "content": "x"}]'
    path.write_text(f'{{"timestamp": "2025-02-03T04:05:06Z", {said}}}\n{{{said}}}', "utf-8")
    text = report_md(store, store.execution(import_file(path, store).execution_id))
    assert "**Date:** 2025-02-03 (imported 2" in text
    assert "| Not graded yet | 2 runs |" in text
    assert "No run is graded yet" in text
    assert "early stopping" not in text


def test_an_execution_that_did_nothing_has_a_report(store: Store) -> None:
    store.begin_execution(ExecutionRecord("EXEC-2", "Nothing", "run", "", (), 0), ()).result()
    store.end_execution("EXEC-2", "stopped", "the cost reached 1 USD").result()
    execution = store.execution("EXEC-2")
    assert "No run was decided. The execution was stopped: the cost reached 1 USD." in report_md(store, execution)
    assert "No run was decided." in report_html(store, execution)
    assert report_figures(store, execution).bad_runs == []


def test_two_suites_of_one_name_keep_what_is_known_of_their_tests(store: Store) -> None:
    suites = ("/a/smoke.suite.yaml", "/b/smoke.suite.yaml")
    answer = Transcript((Message("user", "q"), Message("assistant", "a")), final_output="a")
    runs = []
    ends = [(suites[0], "passed")] * 4 + [(suites[1], "failed"), (suites[1], "needs_review")]
    for number, (key, outcome) in enumerate(ends):
        planned = PlannedRun(f"RUN-{number}", "EXEC-1", number, key, "smoke", "greeting", "Greets", repetition=number)
        runs.append((planned, RunEnded(planned.id, outcome, 1.0, 1_000, 1.0, 1, answer, ())))
    options = {"gates": {key: {"greeting": 0.8} for key in suites}}
    store.import_runs(
        ExecutionRecord("EXEC-1", "smoke", "run", "a", suites, started_ms=1_000, options=options), iter(runs)
    )
    tests = report_figures(store, store.execution("EXEC-1")).tests
    assert [(test.gate, test.waiting) for test in tests] == [("gate 80 % reached", 0), ("gate 80 % missed", 1)]
    quarantines.put(store, Quarantine(suites[0], "greeting", now_ms() + 10**6)).result()
    held, other = report_figures(store, store.execution("EXEC-1")).tests
    assert held.quarantine
    assert (held.gate, other.gate, other.quarantine) == ("", "gate 80 % missed", "")
