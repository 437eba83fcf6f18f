"""What a save of the agent's code changed, in a line, and a line a run."""

from __future__ import annotations

from pathlib import Path

from agenteval_tui.core.groups import grouped
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.numbers import about_dollars, count, dollars
from agenteval_tui.core.phrasing import abridged
from agenteval_tui.runs.change.model import CodeChange, InstalledCopy, NotBuilt, RunChange, Watching
from agenteval_tui.views.model import Text

_CODE = "The agents' code, their tools, hooks, services and probes run for real."
_CODE_ALONE = (
    "The agents' code, hooks, services and probes run for real. Tools do not: their results come from the recordings."
)
_FREE = "Answers of models come from the recordings, and nothing is paid for."
_LIVE = "Answers of models come from the recordings; requests that are not recorded ask the model."
EFFECTS: dict[str, tuple[str, str]] = {
    "passes": ("passes now", "good"),
    "fails": ("fails now", "bad"),
    "needs_model": ("needs the model", "warn"),
    "unchanged": ("unchanged", "dim"),
}
"""What a change does to a run, in words, and what that means."""
EFFECTS_SHOWN = ("passes", "fails", "needs_model")
_LISTED = 40  # lines of runs
_FILES = 2  # that are named


def saved_text(files: tuple[str, ...], folder: Path) -> str:
    """`saved FILE and 3 more`; where nothing was saved, that all was checked."""
    if not files:
        return "with the code as it is"
    return f"saved {abridged([_relative(file, folder) for file in files], _FILES)}"


def what_runs(*, live: bool, tools_recorded: bool) -> str:
    """What is run for real after a save, and what is not."""
    return f"{_CODE_ALONE if tools_recorded else _CODE} {_LIVE if live else _FREE}"


def not_built_text(event: NotBuilt, folder: Path) -> str:
    """That sources were saved which are not in their program yet."""
    output = _relative(event.folder, folder)
    return (
        f"{saved_text(event.files, folder)}: {output} was built before that. Its runs are made when it is built again."
    )


def change_text(change: CodeChange, folder: Path) -> Text:
    """The change in a line: `saved FILE: 3 of 12 failures pass now, 1 test fails now, 14 unchanged; …`."""
    saved = (f"{saved_text(change.files, folder)}: ", "")
    if change.error:
        return (saved, (change.error, "bad"), (f" ({change.fix})" if change.fix else "", "dim"))
    parts: list[tuple[str, str]] = []
    if change.passes:
        passes = "passes" if change.passes == 1 else "pass"
        parts.append((f"{change.passes:,} of {count(change.failures_before, 'failure')} {passes} now", "good"))
    if change.fails:
        parts.append((f"{count(change.fails, 'run')} {'fails' if change.fails == 1 else 'fail'} now", "bad"))
    if change.unchanged:
        parts.append((f"{change.unchanged:,} unchanged", ""))
    if change.needs_model:
        parts.append((f"{change.needs_model:,} {'needs' if change.needs_model == 1 else 'need'} the model", "warn"))
    if not parts:
        parts.append(("no recorded run uses it", "dim"))
    spans: list[tuple[str, str]] = [saved]
    for place, part in enumerate(parts):
        spans += [(", ", "")] * bool(place) + [part]
    took = f"{change.duration_ms / 1000:.1f} s"
    paid = f", {dollars(change.cost) or 'cost not known'}" if change.requests else ""
    return (*spans, (f"; {count(change.requests, 'request')}{paid}, {took}", "dim"))


def change_lines(change: CodeChange, folder: Path) -> tuple[Text, ...]:
    """The change, and a line for each way in which runs of a test differ now from the recorded ones."""
    alike = grouped(
        ((run.effect, run.suite, run.test, run.row_key, run.variation, run.criterion, run.reason), run)
        for run in change.runs
        if run.effect != "unchanged"
    )
    ways = sorted(alike.values(), key=lambda runs: EFFECTS_SHOWN.index(runs[0].effect))
    lines = [run_text(runs[0], len(runs)) for runs in ways[:_LISTED]]
    more = len(ways) - _LISTED
    if more > 0:
        lines.append(((f"  and {more:,} more", "dim"),))
    if change.real_tools:
        lines.append(((f"  {real_tools_text(change)}", "warn"),))
    return (change_text(change, folder), *lines)


def run_text(change: RunChange, repetitions: int = 1) -> Text:
    """A run in a line: what became of it, and why. `repetitions`: this many runs of its test did the same."""
    words, token = EFFECTS[change.effect]
    place = f"{change.test}#{change.repetition}" if repetitions == 1 else f"{change.test} × {repetitions}"
    row = f" {change.row_key.partition(':')[2]}" if change.row_key else ""
    variation = f" ({change.variation})" if change.variation else ""
    spans = [(f"  {words:<16}", token), (f"{place}{row}{variation}", "bold")]
    if change.effect == "needs_model":
        each = " each" if repetitions > 1 else ""
        price = f", {about_dollars(change.cost)}{each}" if change.cost else ""
        at = f" from request {change.request} on{price}: " if change.request else ": "
        spans.append((at, ""))
        spans.append((change.reason, "dim"))
    elif change.reason:
        named = f"{change.criterion}: " if change.criterion else ""
        spans.append((f"  {named}{change.reason}", "dim"))
    if change.step is not None:
        spans.append((f"  differs from message {change.step}", "dim"))
    if change.after and change.effect != "unchanged":
        spans.append((f"  {short_id(change.before)} → {short_id(change.after)}", "dim"))
    return tuple(spans)


def copy_text(copy: InstalledCopy) -> str:
    """That saves change nothing of an agent, and how to change that."""
    return f"{copy.agent}: {copy.problem}: saves of its files change nothing. To change that, {copy.fix}"


def unrecorded_tools_text(watching: Watching) -> str:
    """Of which agents all tools run, although the recordings were to answer for them."""
    return (
        f"The recordings of {', '.join(watching.real_tools)} have no calls of MCP servers, so these tools run for "
        "real. `agenteval docs record` says how to record them."
    )


def real_tools_text(change: CodeChange) -> str:
    """Which tools ran although their results were to be recorded ones; "" where none did."""
    if not change.real_tools:
        return ""
    return f"ran for real, because no equal call is recorded: {', '.join(change.real_tools)}"


def needed_text(change: CodeChange) -> str:
    """What the runs that need the model would cost; "" where none does."""
    if not change.needs_model:
        return ""
    price = f", {about_dollars(change.needed_cost)}" if change.needed_cost else ""
    return f"ask the model for {count(change.needs_model, 'run')}{price}"


def _relative(file: str, folder: Path) -> str:
    path = Path(file)
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else file
