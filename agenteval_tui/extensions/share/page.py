"""Runs as one HTML file to give away: people read it in a browser, and `agenteval open` reads the runs back out of it.

The page loads nothing and runs nothing. The runs lie in a script element of a type that no browser runs, in the format
`agenteval`; every `<` in them is written as JSON's escape, so that no text of an agent can end the element.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Annotated

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.agents.secrets import secrets_of
from agenteval_tui.analysis.blame.free_answer import NothingToBlameError, ReadParts, RepetitionReader
from agenteval_tui.analysis.blame.model import Blame
from agenteval_tui.analysis.blame.recorded_facts import known_blame
from agenteval_tui.analysis.costs import execution_costs
from agenteval_tui.analysis.explanation import explanation_of
from agenteval_tui.analysis.repetitions import Divergence, divergence_of
from agenteval_tui.analysis.triage import causes_of_execution
from agenteval_tui.core.display import displayable, one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.numbers import count, decimal, dollars
from agenteval_tui.core.options import Options, limits
from agenteval_tui.core.outcomes import ENDED
from agenteval_tui.extensions.share.embedded_runs import BEGIN, END
from agenteval_tui.formats.exporters.agenteval import EXPORTER
from agenteval_tui.formats.exporters.export import stored_runs
from agenteval_tui.formats.exporters.exporter import StoredRun, json_line
from agenteval_tui.formats.exporters.html_parts import (
    TOKENS,
    block_html,
    head_html,
    line_html,
    table_html,
    transcript_html,
)
from agenteval_tui.formats.exporters.report_figures import report_figures, results_table, seconds, tests_table
from agenteval_tui.grading.codec import result_from_json, result_to_json
from agenteval_tui.grading.explain import Fact
from agenteval_tui.history.records import ExecutionRow, RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.observed import calls_phrase
from agenteval_tui.transcripts.redact import TranscriptRedactor
from agenteval_tui.views.blame import DECISIVE, OTHER, blame_line, suspects_in, unknown_text
from agenteval_tui.views.causes import causes_table
from agenteval_tui.views.comparison_text import NOTHING
from agenteval_tui.views.cost import costs_view, user_usage_text
from agenteval_tui.views.divergence import branch_text, divergence_text
from agenteval_tui.views.evidence import SIGNS, place_of
from agenteval_tui.views.evidence_comparison import (
    Comparison,
    comparison_title,
    comparisons,
    hidden_differences,
    leaves,
)
from agenteval_tui.views.label import label_text
from agenteval_tui.views.model import Column, Row, Table, outcome_sign, plain, text
from agenteval_tui.views.run_output import has_output, output_lines
from agenteval_tui.views.state import state_lines

_LONGEST_VALUE = 2_000  # characters of one side of a comparison
_BEFORE = 400  # of them before the place that differs
_SECRET_NAME = re.compile(r"(^|_)(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)$", re.IGNORECASE)


class ShareOptions(Options, frozen=True, kw_only=True):
    """How large the file may be; by default, what mail and chat still carry."""

    max_mb: Annotated[
        float, limits("The largest size of the file in MB; runs that passed are left out first.", "N", ge=0.001)
    ] = 25.0


_USUAL = ShareOptions()


_STYLE = """
.facts, .facts ul { list-style: none; padding-left: 1.1rem; margin: .2rem 0 } .facts { padding-left: 0 }
.facts > li { margin: .5rem 0 } .facts > li > span { font-weight: 600 }
.compared { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .1rem .8rem; margin: .3rem 0 .6rem }
.compared > b { grid-column: 1 / -1 } .compared > span { color: var(--dim) }
.compared code { font: 13px/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere }
mark { background: #f9c51366; color: inherit; border-bottom: 2px solid var(--bad) }
.run { border-top: 1px solid var(--line); margin-top: 1.2rem } a { color: inherit }
"""


class Share(Struct, frozen=True):
    """The file's text in pieces, and what it holds: `runs` runs; `left` did not fit, `not_ended` still ran."""

    pieces: tuple[str, ...]
    runs: int
    left: int = 0
    not_ended: int = 0

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(len(piece.encode("utf-8", "backslashreplace")) for piece in self.pieces)

    @property
    def missing(self) -> str:
        """What is not in it, in words; "" where it is whole."""
        parts = (
            f"{count(self.left, 'run')} left out because of the size, passed ones first" if self.left else "",
            f"{count(self.not_ended, 'run')} had not ended" if self.not_ended else "",
        )
        return "; ".join(filter(None, parts))


def share_name(target: ExecutionRow | RunRow) -> str:
    """A name for the file: `agenteval-3f2c90ab.html`."""
    return f"agenteval-{short_id(target.id).lower()}.html"


def secrets_here(environment: Mapping[str, str] = os.environ) -> frozenset[str]:
    """The values of the variables of this environment whose names say that they are secret, and the passwords in its
    addresses: what is kept out of the history of a program's run, and short values beside."""
    named = {value for name, value in environment.items() if _SECRET_NAME.search(name) and value.strip()}
    return frozenset((*named, *secrets_of({"kind": "command"}, environment)))


def share(
    store: Store,
    target: ExecutionRow | RunRow,
    options: ShareOptions = _USUAL,
    *,
    secrets: Iterable[str] | None = None,
) -> Share:
    """The file of an execution, or of one run. Runs that did not pass come in first if not all fit into the file.

    What was a secret when a run was stored is `***` in the history already. `secrets` (None: those of the environment)
    are taken out once more: imported runs may hold them. Raises `AgentevalError` where no run has ended, or none fits.
    """
    maker = _Maker(store, frozenset(secrets_here() if secrets is None else secrets))
    alone = isinstance(target, RunRow)
    execution = store.execution(target.execution_id) if isinstance(target, RunRow) else target
    every = [target] if isinstance(target, RunRow) else store.runs_of_execution(target.id)
    rows = [row for row in every if row.status in ENDED]
    if not rows:
        raise AgentevalError("no run of this execution has ended yet", where=target.id)
    head = maker.clean([*head_html(_title(target, execution), _STYLE), *_summary(store, target, execution)])
    left_for_runs = int(options.max_mb * 1e6) - _bytes(head)
    parts_by_run: dict[str, tuple[str, str]] = {}
    # What failed is what the file is opened for.
    for row in sorted(rows, key=lambda run_row: (run_row.status == "passed", run_row.position)):
        line, section = maker.run(row)
        left_for_runs -= _bytes([line, section])
        # No smaller run takes its place, which may have passed: those are left out first.
        if left_for_runs < 0:
            break
        parts_by_run[row.id] = line, section
    if not parts_by_run:
        raise AgentevalError("no run fits into this size", where=f"{options.max_mb:g} MB", fix="give a larger --max-mb")
    made_share = Share((), len(parts_by_run), len(rows) - len(parts_by_run), len(every) - len(rows))
    missing = [f'<p class="bad">Not in this file: {line_html(made_share.missing)}.</p>'] if made_share.missing else []
    # Of all runs that ended, also of those left out: what repetitions have in common counts them.
    tests = grouped(((row.suite_key, row.test_id, row.variation, row.row_label), row) for row in rows)
    body: list[str] = []
    for alike in tests.values():
        sections = [parts_by_run[row.id][1] for row in alike if row.id in parts_by_run]
        if sections:
            body += [*maker.clean(_test(store, alike, alone)), *sections]
    # In the order of the execution again.
    runs = ",\n".join(parts_by_run[row.id][0] for row in rows if row.id in parts_by_run)
    foot = [f"{BEGIN}[\n{runs}\n]{END}", "</body>", "</html>", ""]
    return replace(made_share, pieces=tuple(f"{piece}\n" for piece in (*head, *missing, *body, *foot)))


class _Maker:
    """Runs without the secrets."""

    def __init__(self, store: Store, secrets: frozenset[str]) -> None:
        self._store = store
        self._repetitions = RepetitionReader(store)
        self._redactor = TranscriptRedactor(secrets)
        # In HTML, a secret with `&` or `<` in it is written in another way.
        self._of_html = TranscriptRedactor({*secrets, *map(escape, secrets)})

    def clean(self, lines: Iterable[str]) -> list[str]:
        """Lines of HTML without them."""
        return [self._of_html.text(line) for line in lines]

    def run(self, row: RunRow) -> tuple[str, str]:
        """A run as a value of the embedded JSON, and as a section of the page."""
        (run,) = stored_runs(self._store, [row])
        results = tuple(result_from_json(self._redactor.data(result_to_json(result))) for result in run.results)
        # Before anything is derived from it: what is said of a run quotes its transcript.
        run = replace(run, transcript=self._redactor.transcript(run.transcript), results=results)
        # Again as data: names, variables and labels may hold a secret, too.
        value = self._redactor.data(json.loads("".join(EXPORTER.pieces([run]))))
        return _script_safe(json_line(value)), "\n".join(self.clean(_run(run, self._blame(run))))

    def _blame(self, run: StoredRun) -> Blame | None:
        """Which step it was lost at: looked for in what is left of the run without the secrets."""
        try:
            return known_blame(self._store, run.row, ReadParts(run.transcript, run.results, self._repetitions))
        except NothingToBlameError:
            return None


def _script_safe(line: str) -> str:
    """JSON that nothing in a script element can end: these characters stand only in its texts."""
    return line.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _bytes(lines: Iterable[str]) -> int:
    return sum(len(line.encode("utf-8", "backslashreplace")) + 2 for line in lines)


def _title(target: ExecutionRow | RunRow, execution: ExecutionRow) -> str:
    return f"{target.test_name}: {target.status}" if isinstance(target, RunRow) else execution.title


def _summary(store: Store, target: ExecutionRow | RunRow, execution: ExecutionRow) -> Iterator[str]:
    figures = report_figures(store, execution)
    rows_of_head = [("Date", figures.date), ("Experiment", figures.experiment)]
    if isinstance(target, RunRow):
        rows_of_head = [("Execution", execution.title), *rows_of_head]
    yield "<dl>"
    for name, value in rows_of_head:
        yield f"<dt>{name}</dt><dd>{line_html(value)}</dd>"
    yield "</dl>"
    yield (
        '<p class="dim">This file loads nothing and sends nothing. <code>agenteval open FILE.html</code> '
        "opens its runs in agenteval, with transcripts and evidence.</p>"
    )
    if isinstance(target, RunRow):
        return
    yield "<h2>Results</h2>"
    yield from table_html(results_table(figures))
    yield f"<p>{line_html(figures.conclusion)}</p>"
    yield from table_html(tests_table(figures.tests))
    causes, decided = causes_of_execution(store, execution.id)
    if causes.groups:
        yield "<h2>Causes</h2>"
        yield from table_html(causes_table(causes, decided))
    yield "<h2>Costs</h2>"
    for element in costs_view(execution_costs(store, execution.id)):
        if isinstance(element, Table):
            filled = tuple(row for row in element.rows if len(row.cells) > 1)
            yield from table_html(replace(element, rows=filled))
        else:
            yield f'<p class="dim">{line_html(plain(element.words))}</p>' if hasattr(element, "words") else ""
    yield "<h2>Runs</h2>"


def _test(store: Store, alike: list[RunRow], alone: bool) -> Iterator[str]:
    """What repetitions of a test have in common, and the step at which they part, before their transcripts."""
    # The divergence is told from a run that went wrong, if there is one.
    first = next((row for row in alike if row.status != "passed"), alike[0])
    if not alone:
        yield f'<h3>{line_html(first.test_name)} <span class="dim">{line_html(plain(place_of_test(first)))}</span></h3>'
    divergence = divergence_of(store, first, everywhere=False)
    if len(divergence.rows) < 2:
        return
    yield f"<p><b>Divergence:</b> {line_html(divergence_text(divergence))}</p>"
    forked = divergence.fork is not None
    between = (Column("at the divergence"),) if forked else ()
    columns = (Column("repetition", "right"), Column("ended"), *between, Column("why"))
    rows = []
    for row in sorted(divergence.rows.values(), key=lambda row: row.repetition):
        sign, token = outcome_sign(row.status)
        why = one_line(row.why or row.error_message, 300) if row.status != "passed" else ""
        parted = (text(_at_fork(divergence, row.id)),) if forked else ()
        rows.append(Row((text(str(row.repetition)), text((f"{sign} {row.status}", token)), *parted, text(why))))
    yield from table_html(Table(columns, tuple(rows)))


def place_of_test(row: RunRow) -> tuple[tuple[str, str], ...]:
    """The suite, the test, its variation and its row."""
    return text(f"{row.suite_name} / {row.case_name}")


def _at_fork(divergence: Divergence, run: str) -> str:
    fork = divergence.fork
    own_branch = fork.branch_of(run) if fork is not None else None
    return branch_text(fork, own_branch, "past") if fork is not None and own_branch is not None else "–"


def _run(run: StoredRun, blame: Blame | None) -> Iterator[str]:
    row, transcript = run.row, run.transcript
    sign, token = outcome_sign(row.status)
    yield f'<section class="run" id="run-{line_html(row.id)}">'
    spent = [count(len(transcript.messages), "message"), calls_phrase(transcript)]
    spent += [seconds(row.duration_ms)] if row.duration_ms is not None else []
    spent += [f"{row.tokens:,.0f} tokens"] if row.tokens is not None else []
    spent += [dollars(row.cost)] if row.cost is not None else []
    spent += [used] if (used := user_usage_text(transcript.user_usage)) else []
    status = f'<span class="{token if token in TOKENS else "dim"}">{sign} {line_html(row.status)}</span>'
    score = f", score {decimal(row.score)}" if row.score is not None else ""
    yield f"<h4>{status}{score}, repetition {row.repetition}</h4>"
    yield f'<p class="dim">{line_html(plain(place_of(row)))}; {line_html(", ".join(spent))}</p>'
    explained = explanation_of(row, run.results, transcript, run.labels)
    remarks = [explained.ending.description] if explained.ending is not None else []
    for remark in (*remarks, *(note.description for note in explained.notes)):
        yield f"<p>{line_html(remark)}</p>"
    for label in run.labels:
        yield f'<p class="dim">{line_html(label_text(label))}</p>'
    if explained.facts:
        yield f'<ul class="facts">{"".join(map(_fact, explained.facts))}</ul>'
    elif transcript.error is None:
        yield "<p>No criterion was applied to this run.</p>"
    notes: dict[int, str] = {}
    if blame is not None and blame.decisive is not None:
        yield f"<p><b>Decisive step:</b> {line_html(blame_line(blame, transcript))}</p>"
        notes = {step: f"{OTHER[0]} also suspected, step {step + 1}" for step in suspects_in(blame)}
        notes[blame.decisive.step] = f"{DECISIVE[0]} decisive step, step {blame.decisive.step + 1}"
    elif blame is not None and blame.decision == "not_known":
        yield f"<p><b>Decisive step:</b> {line_html(unknown_text(blame))}</p>"
        notes = {step: f"{OTHER[0]} stands out, step {step + 1}" for step in suspects_in(blame)}
    yield f"<details><summary>Transcript: {spent[0]}, {spent[1]}</summary>"
    yield from transcript_html(transcript, notes)
    if has_output(transcript):
        rows = [each.step or f"{each.at:<8} {each.source:<8} {each.text}" for each in output_lines(transcript)]
        yield f'<p><b>output</b></p><pre class="dim">{block_html(chr(10).join(rows))}</pre>'
    if transcript.state:
        rows = [
            f"{each.probe}  {each.change}" if each.probe else f"  {each.moment:<10}{each.sign} {each.text}"
            for each in state_lines(transcript)
        ]
        yield f'<p><b>state</b></p><pre class="dim">{block_html(chr(10).join(rows))}</pre>'
    yield "</details></section>"


def _fact(fact: Fact) -> str:
    sign, token = SIGNS[fact.mark]
    compared = list(leaves(comparisons(fact.evidence))) if fact.evidence is not None else []
    text = fact.text
    if fact.evidence is not None and compared:
        text = ": ".join(
            filter(None, (fact.evidence.condition, ", ".join(filter(None, comparison_title(fact.evidence)))))
        )
    compared_rows = "".join(map(_compared, compared))
    if fact.evidence is not None and compared and (hidden := hidden_differences(fact.evidence)):
        compared_rows += f'<p class="dim">{count(hidden, "more difference")}</p>'
    below = f"<ul>{''.join(map(_fact, fact.children))}</ul>" if fact.children else ""
    colour = token if token in TOKENS else "dim"
    return f'<li><i class="{colour}">{escape(sign)}</i> <span>{block_html(text)}</span>{compared_rows}{below}</li>'


def _compared(comparison: Comparison) -> str:
    rows = [f"<b>{line_html(comparison.name)}</b>"] if comparison.name else []
    if comparison.expected is not None:
        rows.append(f"<span>expected</span><code>{_value(comparison.expected, comparison.at, marked=False)}</code>")
    actual = f"<code>{_value(comparison.got, comparison.at)}</code>" if comparison.got is not None else NOTHING
    where = f' <span class="dim">{line_html(comparison.where)}</span>' if comparison.where else ""
    rows.append(f"<span>{'nearest' if comparison.where else 'got'}</span><div>{actual}{where}</div>")
    if comparison.note:
        rows.append(f'<span></span><div class="dim">{line_html(comparison.note)}</div>')
    return f'<div class="compared">{"".join(rows)}</div>'


def _value(value: str, at: int | None, *, marked: bool = True) -> str:
    """A value, of a long one the part around `at`; the character there is marked."""
    place = min(at or 0, len(value))
    # Of a long text, what comes before the difference says more than its beginning.
    start = max(place - _BEFORE, 0) if len(value) > _LONGEST_VALUE else 0
    end = min(start + _LONGEST_VALUE, len(value))
    head, tail = ("…" if start else ""), ("…" if end < len(value) else "")
    if at is None or not marked:
        return f"{head}{escape(displayable(value[start:end]))}{tail}"
    before, here, behind = value[start:place], value[place : place + 1], value[place + 1 : end]
    highlighted = f"<mark>{escape(displayable(here)) or ' '}</mark>"
    return f"{head}{escape(displayable(before))}{highlighted}{escape(displayable(behind))}{tail}"
