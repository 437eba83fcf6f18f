"""What HTML files of ours are made of: they load nothing, run nothing, and escape everything that they were told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from types import MappingProxyType

from agenteval_tui.core.display import displayable, one_line
from agenteval_tui.core.numbers import count
from agenteval_tui.transcripts.codec import arguments_text
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.views.attachment import attachment_text
from agenteval_tui.views.model import Column, Table, Text, sentence
from agenteval_tui.views.traceback import traceback_block

MARK = '<meta name="generator" content="agenteval">'
"""In the first lines of every report: it says that the file is one of ours."""
LONGEST_TEXT = 20_000  # characters of one message, call or result
MOST_MESSAGES = 400  # of one transcript

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #1a7f37; --bad: #cf222e; --broken: #8250df; --dim: #6e7781 }
@media (prefers-color-scheme: dark) { :root { --good: #3fb950; --bad: #ff7b72; --broken: #d2a8ff; --dim: #9198a1 } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
body { overflow-wrap: anywhere } h1 { line-height: 1.2 } td, th { overflow-wrap: normal }
table { display: block; overflow-x: auto; border-collapse: collapse; margin: .5rem 0 1.5rem }
th, td { text-align: left; padding: .25rem .8rem .25rem 0 }
tr { border-bottom: 1px solid var(--line) } td.n { text-align: right; font-variant-numeric: tabular-nums }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0 .8rem; font: 13px/1.45 ui-monospace, monospace }
details { border-left: 3px solid var(--line); padding-left: .8rem; margin: .4rem 0 } summary { cursor: pointer }
.good { color: var(--good) } .bad { color: var(--bad) } .broken { color: var(--broken) } .dim { color: var(--dim) }
@media (max-width: 40rem) { body { margin: 1rem auto } h1 { font-size: 1.5rem } }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .1rem 1rem }
dt { font-weight: 600 } dd { margin: 0 }
"""
TOKENS = frozenset({"good", "bad", "broken", "dim"})
"""Those that are classes of the style."""


def head_html(title: str, style: str = "") -> Iterator[str]:
    """The head of a page and its title, up to the body. A policy in it forbids a browser to run or load anything."""
    heading = line_html(title)
    yield "<!doctype html>"
    yield '<html lang="en">'
    yield "<head>"
    yield '<meta charset="utf-8">'
    yield MARK
    yield (
        # Should a text ever get past the escape, a browser still runs and loads nothing of it.
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">"
    )
    yield '<meta name="viewport" content="width=device-width">'
    # A link that somebody follows from it does not tell where the report lies.
    yield '<meta name="referrer" content="no-referrer">'
    yield f"<title>{heading}</title>"
    yield f"<style>{_STYLE}{style}</style>"
    yield "</head>"
    yield "<body>"
    yield f"<h1>{heading}</h1>"


def table_html(table: Table) -> Iterator[str]:
    """A table of a view, and what is not listed in it."""
    heads = "".join(f"<th>{line_html(column.head)}</th>" for column in table.columns)
    yield f"<table><thead><tr>{heads}</tr></thead><tbody>"
    for row in table.rows:
        yield "<tr>" + "".join(map(_cell, row.cells, table.columns)) + "</tr>"
    yield "</tbody></table>"
    if table.more:
        yield f"<p>{line_html(sentence(table.more))}</p>"


def _cell(words: Text, column: Column) -> str:
    parts = []
    for part, token in words:
        text = escape(" ".join(displayable(part).split("\n")))
        parts.append(f'<span class="{token}">{text}</span>' if token in TOKENS else text)
    head = '<td class="n">' if column.align == "right" else "<td>"
    return f"{head}{''.join(parts)}</td>"


def transcript_html(transcript: Transcript, notes: Mapping[int, str] = MappingProxyType({})) -> Iterator[str]:
    """Messages in order, tool calls where they were made; what is longer than a page bears is cut, and it says so.
    `notes`: what is said beside a message, by its index."""
    for number, message in enumerate(transcript.messages[:MOST_MESSAGES]):
        name = f" {line_html(message.name)}" if message.name else ""
        simulated = ' <span class="dim">(simulated)</span>' if message.simulated else ""
        note = f' <span class="bad">{line_html(notes[number])}</span>' if number in notes else ""
        yield f"<p><b>{line_html(message.role)}</b>{simulated}{name}{note}</p>"
        if message.reasoning:
            yield f'<pre class="dim">{block_html(message.reasoning)}</pre>'
        if message.content:
            yield f"<pre>{block_html(message.content)}</pre>"
        for attachment in message.attachments:
            yield f'<p class="dim">{line_html(attachment_text(attachment))}</p>'
        for index in message.tool_calls:
            call = transcript.tool_calls[index]
            failed = ' <span class="bad">failed</span>' if call.status == "error" else ""
            yield f"<pre>→ {block_html(call.name)} {block_html(arguments_text(call))}{failed}</pre>"
    if len(transcript.messages) > MOST_MESSAGES:
        yield f"<p>{count(len(transcript.messages) - MOST_MESSAGES, 'more message')} not shown here.</p>"
    if transcript.error is not None:
        yield f'<p class="broken">{line_html(f"{transcript.error.kind}: {transcript.error.message}")}</p>'
        if transcript.error.traceback is not None:
            yield f"<pre>{block_html(chr(10).join(traceback_block(transcript.error.traceback)))}</pre>"


def line_html(text: str) -> str:
    """A text on one line, escaped."""
    return escape(one_line(text))


def block_html(text: str) -> str:
    """A text with its lines, escaped; a long one is cut, and it says so."""
    cut = f"\n… {len(text) - LONGEST_TEXT:,} more characters" if len(text) > LONGEST_TEXT else ""
    # Cut before it is escaped: half an entity would be shown as text.
    return escape(displayable(text[:LONGEST_TEXT]) + cut)
