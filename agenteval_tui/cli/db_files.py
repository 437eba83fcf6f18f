"""`agenteval db export`, `import`, `move`, `salvage`: the history on another disk or machine, and a damaged one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from agenteval_tui.cli.db import existing, megabytes
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.cli.output import plural
from agenteval_tui.text.problems import AgentevalError


@click.command("export")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Write over FILE if it is there.")
@common_options
@pass_invocation
def export_command(invocation: Invocation, file: Path, force: bool) -> int:
    """Copy the history to FILE, as it is at this moment, also while executions run.

    The copy is a history like any other: use it with --db, or take it into another one with `db import`. What was
    running is interrupted in it. (A history.db that is copied with cp while something is written may be broken.)
    """
    from agenteval_tui.history.copying import copy_history

    path = existing(invocation)
    with invocation.store(to_look=True):
        pass  # an older file is brought up to date, a damaged one is saved
    size = copy_history(path, file, force=force)
    invocation.out.line(f"{file}: {megabytes(size)}")
    invocation.out.line((f"agenteval --db {file} history", "dim"))
    return 0


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list.")
@common_options
@pass_invocation
def import_command(invocation: Invocation, files: tuple[Path, ...], as_json: bool) -> int:
    """Take the runs of other history FILES in: from another machine, from CI, from before.

    Executions and runs keep their ids, so that the same file a second time adds nothing; what was resumed elsewhere is
    completed. Labels, baselines of tests that have none here, quarantines and triage decisions come too; labels and
    decisions that were taken back, here or there, are gone.
    """
    from agenteval_tui.analysis.labels import settle
    from agenteval_tui.history.merging import merge_history

    done: list[dict[str, Any]] = []
    with invocation.store() as store:
        for file in files:
            merged = merge_history(
                store,
                file,
                lambda at, of, file=file: invocation.err.status(f"{file.name}: {at:,} of {of:,} runs"),  # type: ignore[misc]
            )
            invocation.err.status("")
            settle(store, merged.relabelled)
            done.append(
                {
                    "file": str(file),
                    "executions": merged.executions,
                    "runs": merged.runs,
                    "completed": merged.completed,
                    "labels": merged.labels,
                    "taken_back": merged.taken_back,
                    "already": merged.already,
                    "left_out": list(merged.left_out),
                }
            )
            if not as_json:
                _print_merged(invocation, done[-1])
    if as_json:
        invocation.out.json(done)
    return 0


def _print_merged(invocation: Invocation, one: dict[str, Any]) -> None:
    parts = [f"{plural(one['executions'], 'execution')} and {plural(one['runs'], 'run')} added"]
    if one["completed"]:
        parts.append(f"{plural(one['completed'], 'run')} completed")
    if one["labels"]:
        parts.append(f"{plural(one['labels'], 'label')} added")
    if one["taken_back"]:
        parts.append(f"{one['taken_back']} taken back there, and now here")
    if one["already"]:
        parts.append(f"{plural(one['already'], 'run')} known already")
    invocation.out.line(f"{one['file']}: {', '.join(parts)}")
    for said in one["left_out"]:
        invocation.out.line(("  left out ", "warn"), said)


@click.command("move")
@click.argument("old")
@click.argument("new")
@common_options
@pass_invocation
def move_command(invocation: Invocation, old: str, new: str) -> int:
    """Suites that were in the folder (or file) OLD are in NEW now: their past goes with them.

    The history knows suites by their absolute path. After a project was moved or renamed, or a history came from
    another machine, this joins what was run there with what is run here. OLD need not exist any more.
    """
    from agenteval_tui.history.copying import move_suites

    existing(invocation)
    there = Path(os.path.realpath(new))
    if not there.exists():
        raise AgentevalError("there is no such file or folder", where=new, mend="name where the suites are now")
    with invocation.store() as store:
        # Not resolved: it may be gone, and links in it lead elsewhere now.
        done = move_suites(store, os.path.abspath(Path(old).expanduser()), str(there))  # noqa: PTH100
    if not done.suites:
        raise AgentevalError(f"the history has no suite in {old}", mend="agenteval history --json lists the suites")
    joined = f"; {plural(done.merged, 'test')} had been run under both paths" if done.merged else ""
    invocation.out.line(f"{plural(done.suites, 'suite')} moved to {there}{joined}")
    return 0


@click.command("salvage")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--to", type=click.Path(path_type=Path), help="The new file (default: FILE.salvaged.db).")
@common_options
@pass_invocation
def salvage_command(invocation: Invocation, file: Path | None, to: Path | None) -> int:
    """Save everything that can still be read of a damaged history FILE (default: the history) into a new one.

    FILE stays as it is. A destroyed page costs only what was on it, and everything that is lost is listed. Totals, the
    search index, tool calls and results of criteria are made anew from what is left.
    """
    from agenteval_tui.history.rescue import said, salvage

    source = file or existing(invocation)
    target = to or source.with_name(f"{source.name}.salvaged.db")
    saved = salvage(source, target)
    invocation.out.line(
        f"{target}: {plural(saved.rows['executions'], 'execution')}, {plural(saved.rows['runs'], 'run')},"
        f" {plural(saved.rows['transcripts'], 'transcript')}"
    )
    for loss in saved.lost:
        invocation.out.line(("  lost ", "warn"), said(loss))
    if not saved.lost:
        invocation.out.line(("  nothing is lost", "dim"))
    invocation.out.line((f"agenteval db import {target} takes them into the history", "dim"))
    return 0
