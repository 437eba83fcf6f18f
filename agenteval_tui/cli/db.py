"""`agenteval db`: how the history file is, what takes its space; checking it, and giving space back."""

from __future__ import annotations

import time
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from agenteval_tui import places
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.cli.output import Output, Style, moment, plural
from agenteval_tui.text.problems import INFRASTRUCTURE, AgentevalError

# The word behind `db`: the module, and the name of its command.
_PARTS = {
    "check": ("db", "check_command"),
    "prune": ("db_prune", "command"),
    "vacuum": ("db", "vacuum_command"),
    "export": ("db_files", "export_command"),
    "import": ("db_files", "import_command"),
    "move": ("db_files", "move_command"),
    "salvage": ("db_files", "salvage_command"),
}


class _Parts(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_PARTS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _PARTS:
            return None
        module, name = _PARTS[cmd_name]
        found = getattr(import_module(f"agenteval_tui.cli.{module}"), name)
        assert isinstance(found, click.Command)
        return found


@click.group("db", cls=_Parts, invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@common_options
@click.pass_context
def command(context: click.Context, as_json: bool) -> int:
    """Show how the history file is: its size and health, what takes the space, versions, counts.

    `db check` looks thoroughly; `db prune` removes old runs; `db vacuum` gives unused space back to the disk; `db
    export`, `db import` and `db move` are for another disk or machine; `db salvage` is for damaged files.
    """
    if context.invoked_subcommand is not None:
        return 0
    invocation = context.ensure_object(Invocation)
    path = existing(invocation)
    data = _looked(path)
    if as_json:
        invocation.out.json(data)
    else:
        _print(invocation.out, data)
    return INFRASTRUCTURE if data["problems"] or data["wrong"] else 0


def existing(invocation: Invocation) -> Path:
    """The history file; raises AgentevalError when there is none."""
    path = places.history_file(invocation.db)
    if not path.exists():
        raise AgentevalError("there is no history yet", where=str(path), mend="run a suite first: agenteval run PATH")
    return path


def megabytes(size: float) -> str:
    """1.3 GB, 2.5 MB, 12 KB."""
    for unit, of in (("GB", 1e9), ("MB", 1e6)):
        if size >= of:
            return f"{size / of:,.1f} {unit}"
    return f"{size / 1e3:,.0f} KB"


def _looked(path: Path) -> dict[str, Any]:
    import sqlite3

    from agenteval_tui.history.connect import on_network
    from agenteval_tui.history.health import check_health
    from agenteval_tui.history.upkeep import space

    health = check_health(path)
    parts = space(path).parts if not health.problems else ()
    beside = sorted(path.parent.glob(f"{path.name}.version-*")) + sorted(path.parent.glob(f"{path.name}.damaged-*"))
    rows = health.rows
    return {
        "version": 1,
        "file": str(path),
        "size": health.size,
        "log_size": health.log_size,
        "unused": health.free,
        "journal": health.journal,
        "network": on_network(path),
        "file_version": health.version,
        "newest_version": health.newest_version,
        "sqlite": sqlite3.sqlite_version,
        "problems": list(health.problems),
        "wrong": list(health.wrong),
        "counts": {
            name: rows.get(name, 0)
            for name in ("executions", "runs", "tests", "criteria", "transcripts", "labels", "baselines", "quarantines")
        },
        "space": [{"what": what, "bytes": size} for what, size in parts],
        "beside": [{"file": str(one), "size": one.stat().st_size} for one in beside],
    }


def _print(out: Output, data: dict[str, Any]) -> None:
    health: tuple[str, Style] = ("whole", "good")
    if data["problems"]:
        health = ("damaged", "bad")
    elif data["wrong"]:
        health = ("not as it should be", "warn")
    out.line(data["file"])
    log = f" and {megabytes(data['log_size'])} of its log" if data["log_size"] else ""
    out.line(
        f"  {megabytes(data['size'])}{log}, ", health, f"; version {data['file_version']}, SQLite {data['sqlite']}"
    )
    for problem in data["problems"][:5]:
        out.line(("    " + problem, "bad"))
    if data["problems"]:
        out.line("    start agenteval: it moves a damaged file aside and saves what can be read (or: db salvage)")
    for wrong in data["wrong"]:
        out.line(("    " + wrong, "warn"))
    if data["wrong"]:
        out.line("    agenteval db check says what to do")
    if data["network"]:
        out.line(("  on a network file system: reading waits while a run is written", "warn"))
    if data["file_version"] > data["newest_version"]:
        out.line(("  made by a newer agenteval: read only here", "warn"))
    counts = data["counts"]
    out.line(
        f"  {plural(counts['executions'], 'execution')}, {plural(counts['runs'], 'run')} of"
        f" {plural(counts['tests'], 'test')}; {plural(counts['labels'], 'label')},"
        f" {plural(counts['baselines'], 'baseline')}"
    )
    for part in data["space"]:
        share = part["bytes"] / max(data["size"], 1)
        out.line(f"  {part['what']:<22}{megabytes(part['bytes']):>10}  ", (f"{100 * share:3.0f} %", "dim"))
    for one in data["beside"]:
        out.line(("  kept beside it: ", "dim"), f"{one['file']} ({megabytes(one['size'])})")
    if data["unused"] > data["size"] / 4:
        out.line(("  agenteval db vacuum gives the unused space back", "dim"))


@click.command("check")
@click.option("--deep", is_flag=True, help="Unpack every transcript and result too.")
@click.option(
    "--mend",
    "mending",
    is_flag=True,
    help="Put right what does not fit: missing columns, totals, the search index, rows that name nothing.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@common_options
@pass_invocation
def check_command(invocation: Invocation, deep: bool, mending: bool, as_json: bool) -> int:
    """Read the whole history file: every page, its tables, the search index, totals, and rows that name others.

    Exit code 3 when something is wrong. What was lost with an earlier, damaged file is listed, but does not count as
    wrong. The next start saves what can be read of a damaged file.
    """
    from agenteval_tui.history.upkeep import check, mend

    path = existing(invocation)
    began = time.monotonic()
    found = check(path, deep=deep)
    if mending and found.wrong and not found.damage:
        with invocation.store() as store:  # opening it adds what its tables lack
            mend(store)
        before, found = found.wrong, check(path, deep=deep)
        mended = tuple(one for one in before if one not in found.wrong)
    else:
        mended = ()
    if as_json:
        invocation.out.json(
            {
                "version": 1,
                "damage": list(found.damage),
                "wrong": list(found.wrong),
                "mended": list(mended),
                "lost": found.lost,
                "lost_evidence": found.lost_evidence,
            }
        )
    else:
        _print_check(invocation.out, found, mended, time.monotonic() - began)
    return INFRASTRUCTURE if found.damage or found.wrong else 0


def _print_check(out: Output, found: Any, mended: tuple[str, ...], seconds: float) -> None:
    for one in found.damage:
        out.line(("✗ ", "bad"), f"damaged: {one}")
    for one in found.wrong:
        out.line(("! ", "warn"), one)
    for one in mended:
        out.line(("✓ ", "good"), f"put right: {one}")
    if found.lost:
        out.line(("! ", "warn"), f"the transcripts of {plural(found.lost, 'run')} are lost: they are listed without")
    if found.lost_evidence:
        out.line(
            ("! ", "warn"), f"the evidence of {plural(found.lost_evidence, 'run')} is lost: only verdicts are left"
        )
    if found.damage:
        out.line("start agenteval: it moves a damaged file aside and saves what can be read (or: agenteval db salvage)")
    elif not all(one.addable for one in found.shape):
        out.line("agenteval db salvage writes everything in it into a new history with the right tables")
    elif found.shape:
        out.line("agenteval db check --mend adds what is missing (so does the next start), after a copy was made")
    elif found.wrong:
        out.line("agenteval db check --mend puts it right: it counts anew and removes what names nothing")
    else:
        state = "sound, but for what is lost" if found.lost or found.lost_evidence else "whole"
        out.line(("✓ ", "good"), f"the history is {state} ({moment(int(time.time() * 1000))}, {seconds:.1f} s)")


@click.command("vacuum")
@common_options
@pass_invocation
def vacuum_command(invocation: Invocation) -> int:
    """Write the history file anew without unused space. Needs room for it twice; not while an execution runs."""
    from agenteval_tui.history.upkeep import vacuum

    existing(invocation)
    with invocation.store() as store:
        done = vacuum(store)
    freed = max(done.before - done.after, 0)
    invocation.out.line(
        f"{megabytes(done.before)} → {megabytes(done.after)}: {megabytes(freed)} given back to the disk"
    )
    return 0
