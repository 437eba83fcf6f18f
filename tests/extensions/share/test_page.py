"""A shared page: it can be read back whole, nothing in it acts, it holds no secret, and it says what it leaves out."""

from __future__ import annotations

import html.parser
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attacks import ATTACKS

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.extensions.share.embedded_runs import BEGIN
from agenteval_tui.extensions.share.page import ShareOptions, secrets_here, share
from agenteval_tui.formats.exporters.agenteval import EXPORTER
from agenteval_tui.formats.exporters.export import stored_runs
from agenteval_tui.formats.import_file import import_file
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.results import CriterionResult, Evidence, MetricResult, Outcome
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript, Usage

HOSTILE = (
    "</script><script>alert(31337)</script>",
    "</SCRIPT ><img src=x onerror=alert(31337)>",
    "<!--<script>31337",
    "]]><iframe src=//31337></iframe>&lt;b&gt;",
    '" onmouseover="alert(31337)" x="',
    "line ends \u2028\u2029 of JavaScript \ud800 x",
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "h.db") as opened:
        yield opened


def keep(store: Store, outcomes: list[str], text: str) -> None:
    """One test, a repetition for each outcome: those that fail call a tool with another order. `text` is everywhere."""
    runs = []
    for number, outcome in enumerate(outcomes):
        passed = outcome == "passed"
        planned = PlannedRun(
            f"RUN-{number:05}", "EXEC-1", number, "/s/a.suite.yaml", text, "t", text, text,
            repetition=number + 1, agent=text, prompt=text, variables={"v": text},
        )  # fmt: skip
        transcript = Transcript(
            messages=(
                Message("user", text),
                Message("assistant", "", reasoning=text, tool_calls=(0,)),
                Message("tool", text, tool_call=0, name=text),
                Message("assistant", text),
            ),
            tool_calls=(ToolCall("1", "get_order", {"order": "W1" if passed else text}, text),),
            final_output=text,
            usage=Usage(input_tokens=10, output_tokens=5, cost=0.25),
            log=text,
        )
        evidence = Evidence(
            "get_order", passed, "", {"order": "W1"}, {"order": text}, code="" if passed else Code.DIFFERS,
            fields={} if passed else {
                "tool": "get_order",
                "arguments": [{"path": "order", "is": "different", "wanted": "W1", "found": text, "expected": "W1"}],
            },
        )  # fmt: skip
        metric = MetricResult(
            text, "ToolCheck", Outcome.PASSED if passed else Outcome.FAILED, float(passed), evidence=(evidence,)
        )
        outcome_of = Outcome.PASSED if passed else Outcome.FAILED
        result = CriterionResult(text, outcome_of, float(passed), metrics=(metric,), value=text)
        moment = 1_700_000_000_000 + number
        ended = RunEnded(planned.id, outcome, float(passed), moment, 250.0, 1, transcript, (result,), why=text)
        runs.append((planned, ended))
    store.import_runs(
        ExecutionRecord("EXEC-1", text, "run", "a.suite.yaml", ("/s/a.suite.yaml",), 1),
        iter(runs),
        digest="d",
        path="x",
    )


class Page(html.parser.HTMLParser):
    """The elements and attributes of a page, its words, and what is in its script element."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.embedded = ""
        self._in = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in = tag

    def handle_endtag(self, tag: str) -> None:
        self._in = ""

    def handle_data(self, data: str) -> None:
        if self._in == "script":
            self.embedded += data
        elif self._in != "style":
            self.words += data


def page_of(store: Store, **options: Any) -> str:
    return "".join(share(store, store.execution("EXEC-1"), **options).pieces)


@pytest.mark.sweep
@pytest.mark.parametrize("text", [*HOSTILE, *list(ATTACKS.values())[:6]], ids=lambda text: ascii(text)[:24])
def test_nothing_hostile_acts_in_the_page_and_it_comes_back_as_it_was(text: str, store: Store, tmp_path: Path) -> None:
    keep(store, ["failed", "passed"], text)
    whole = page_of(store)
    page = Page(whole)
    allowed = {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "h4", "dl", "dt", "dd", "p", "code", "b",
        "table", "thead", "tbody", "tr", "th", "td", "section", "ul", "li", "i", "span", "div", "mark", "details",
        "summary", "pre", "script",
    }  # fmt: skip
    assert {tag for tag, _ in page.tags} <= allowed
    assert {name for _, attributes in page.tags for name in attributes} <= {
        "lang", "charset", "name", "content", "http-equiv", "class", "id", "type"
    }  # fmt: skip
    scripts = [attributes for tag, attributes in page.tags if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "agenteval-runs"}]
    assert "default-src 'none'" in whole
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page.words)
    file = tmp_path / "shared.html"
    file.write_bytes(whole.encode("utf-8", "backslashreplace"))
    with Store.open(tmp_path / "other.db") as other:
        report = import_file(file, other)
        assert (report.read, report.added, report.skipped, report.notes) == (2, 2, (), ())
        assert import_file(file, other).already
        there, here = (one.runs_of_execution(which) for one, which in ((other, report.execution_id), (store, "EXEC-1")))
        assert exported(other, there) == exported(store, here)
    assert [one["repetition"] for one in json.loads(page.embedded)] == [1, 2]


def exported(store: Store, rows: Any) -> list[Any]:
    """Runs as the format `agenteval` writes them."""
    return [json.loads("".join(EXPORTER.pieces([run]))) for run in stored_runs(store, rows)]


def test_the_page_shows_evidence_as_a_comparison_where_repetitions_part_and_what_they_cost(store: Store) -> None:
    keep(store, ["failed", "passed", "failed"], "W2")
    page = page_of(store)
    words = Page(page).words
    assert "<span>expected</span><code>&quot;W1&quot;</code>" in page
    assert "<code>&quot;W<mark>2</mark>&quot;</code>" in page
    assert 'Divergence: step 1: 2 of 3 call get_order with order="W2" (0/2 pass)' in words
    assert 'called get_order with order="W2"' in words
    assert "$0.75" in words  # of three runs
    assert words.count("Transcript: 4 messages, 1 tool call") == 3
    assert words.count("Decisive step: not known from the recording") == 2, "of each run that failed"
    assert words.count("◇ stands out, step 2") == 2
    run = "".join(share(store, store.run("RUN-00001")).pieces)
    assert Page(run).words.count("Transcript: ") == 1
    assert len(json.loads(Page(run).embedded)) == 1


def test_secrets_of_the_environment_are_taken_out_of_page_and_runs(store: Store) -> None:
    secret = 'sk-<4711>&"abcdef'
    keep(store, ["failed"], f"my key is {secret}, as written")
    page = page_of(store, secrets=[secret])
    assert "4711" not in page
    assert "my key is ***, as written" in Page(page).words
    found = json.loads(Page(page).embedded)[0]
    assert found["messages"][0]["content"] == "my key is ***, as written"
    assert secrets_here({"OPENAI_API_KEY": "a-key", "HOME": "/root", "KEYBOARD": "us", "DB_PASSWORD": " "}) == {"a-key"}
    others = {"GITHUB_PAT": "long-secret-1", "SERVICE_APIKEY": "long-secret-2", "HTTP_AUTHORIZATION": "Bearer secret-3"}
    found = secrets_here({**others, "DATABASE_URL": "postgres://me:long-secret-4@db/shop"})
    assert {"long-secret-1", "long-secret-2", "secret-3", "long-secret-4"} <= found


def test_what_does_not_fit_is_left_out_and_named(store: Store) -> None:
    keep(store, ["passed", "passed", "failed"], "x" * 30_000)
    whole = share(store, store.execution("EXEC-1"))
    assert (whole.runs, whole.missing) == (3, "")
    made = share(store, store.execution("EXEC-1"), ShareOptions(max_mb=(whole.size - 100_000) / 1e6))
    page = Page("".join(made.pieces))
    assert made.size <= whole.size - 100_000
    assert 1 <= made.runs < 3
    assert f"Not in this file: {3 - made.runs} run" in page.words
    assert json.loads(page.embedded)[-1]["repetition"] == 3  # the failed one is in it
    with pytest.raises(AgentevalError, match="no run fits"):
        share(store, store.execution("EXEC-1"), ShareOptions(max_mb=0.001))


def test_pages_that_are_cut_off_or_have_no_runs_say_so(store: Store, tmp_path: Path) -> None:
    keep(store, ["failed", "passed"], "hello")
    page = page_of(store)
    file = tmp_path / "page.html"
    file.write_text(page[: page.rindex('"version"') + 40])
    with Store.open(tmp_path / "other.db") as other:
        report = import_file(file, other)
        assert (report.added, report.cut_off) == (1, True)
        for text in ("<!doctype html><p>hello", page[: page.index(BEGIN)]):
            file.write_text(text)
            with pytest.raises(AgentevalError, match="no runs in this HTML page"):
                import_file(file, other)
        file.write_text(f"<html>{BEGIN}[]</script>")
        with pytest.raises(AgentevalError):
            import_file(file, other)
