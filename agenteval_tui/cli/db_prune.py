"""`agenteval db prune`: old runs go, by age and by count per test."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from agenteval_tui.cli.db import existing, megabytes
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.cli.output import plural
from agenteval_tui.cli.questions import can_ask, yes
from agenteval_tui.text.problems import AgentevalError

if TYPE_CHECKING:
    from agenteval_tui.history.pruning import Prunable
    from agenteval_tui.history.removal import Removed

_AGE = re.compile(r"(\d{1,6})\s*(h|d|w|mo|y)", re.IGNORECASE)
_HOURS = {"h": 1, "d": 24, "w": 7 * 24, "mo": 30 * 24, "y": 365 * 24}
_REASONS = {
    "running": "running now",
    "baseline": "a baseline",
    "labelled": "labelled",
    "quarantine": "in quarantine",
    "triage": "an example of a triage decision",
}


def cutoff(text: str, now: int) -> int:
    """The moment that an age ("90d", "12h", "2w", "6mo", "1y") or a day ("2026-08-01") stands for, in milliseconds."""
    found = _AGE.fullmatch(text.strip())
    if found:
        return now - int(found.group(1)) * _HOURS[found.group(2).lower()] * 3_600_000
    from datetime import datetime

    try:
        return int(datetime.fromisoformat(text.strip()).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise AgentevalError(
            f"{text!r} is neither an age nor a day", mend="such as 90d, 12h, 2w, 6mo, 1y, or 2026-08-01"
        ) from None


@click.command("prune")
@click.option("--older-than", "older_than", metavar="AGE", help="Runs older than this (90d, 12h, 2w, 6mo, 1y, a day).")
@click.option("--keep", type=click.IntRange(0), metavar="N", help="The newest N runs of each test stay.")
@click.option("--dry-run", is_flag=True, help="Say what would go; change nothing.")
@click.option("--yes", "-y", "sure", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document; with it nothing is asked.")
@common_options
@pass_invocation
def command(
    invocation: Invocation, older_than: str | None, keep: int | None, dry_run: bool, sure: bool, as_json: bool
) -> int:
    """Remove old runs of all projects, with their transcripts and results.

    With both options a run goes only when both allow it.
    What always stays: baselines, labelled runs, tests in quarantine, examples of triage decisions, and what runs now.
    The file does not shrink by itself: new runs take the space, or `agenteval db vacuum` gives it back.
    """
    from agenteval_tui.history.pruning import Pruning, prunable, prune
    from agenteval_tui.text.identity import now_ms

    existing(invocation)
    wanted = Pruning(None if older_than is None else cutoff(older_than, now_ms()), keep)
    with invocation.store(to_look=dry_run) as store:
        found = prunable(store, wanted)
        if not as_json:
            _say(invocation, found)
        if dry_run or (not found.runs and not found.executions):
            if as_json:
                invocation.out.json(_data(found, None))
            return 0
        if not sure and not _sure(invocation, found, as_json):
            raise AgentevalError("nothing was removed")
        done = prune(store, found, lambda at, of: _tell(invocation, at, of))
        invocation.err.status("")
    if as_json:
        invocation.out.json(_data(found, done))
    else:
        invocation.out.line(
            f"removed {plural(done.runs, 'run')} and {plural(done.executions, 'execution')};"
            f" {megabytes(done.free_bytes)} of the file are unused now"
        )
        invocation.out.line(("agenteval db vacuum gives them back to the disk", "dim"))
    return 0


def _tell(invocation: Invocation, at: int, of: int) -> bool:
    invocation.err.status(f"removing: {at:,} of {of:,} runs")
    return False


def _sure(invocation: Invocation, found: Prunable, as_json: bool) -> bool:
    if as_json or not can_ask(invocation):
        raise AgentevalError(
            "this removes runs for good, and nobody can be asked here", mend="--yes, or --dry-run to look"
        )
    return yes(invocation, f"Remove {plural(len(found.runs), 'run')} of all projects for good?")


def _say(invocation: Invocation, found: Prunable) -> None:
    out = invocation.out
    if not found.runs and not found.executions:
        out.line(f"nothing of {plural(found.of_runs, 'run')} is old enough to go")
    else:
        out.line(
            f"{len(found.runs):,} of {plural(found.of_runs, 'run')} and"
            f" {found.executions:,} of {plural(found.of_executions, 'execution')} would go,"
            f" about {megabytes(found.bytes)} (all projects)"
        )
    for why, number in found.kept.items():
        out.line(("  stays: ", "dim"), f"{plural(number, 'run')}, {_REASONS.get(why, why)}")


def _data(found: Prunable, done: Removed | None) -> dict[str, Any]:
    return {
        "version": 1,
        "runs": len(found.runs),
        "of_runs": found.of_runs,
        "executions": found.executions,
        "of_executions": found.of_executions,
        "bytes": found.bytes,
        "kept": dict(found.kept),
        "removed": None
        if done is None
        else {"runs": done.runs, "executions": done.executions, "unused": done.free_bytes},
    }
