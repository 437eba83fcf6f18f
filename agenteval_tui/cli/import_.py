"""`agenteval import`: recordings of other tools become executions in the history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.cli.output import Output, plural


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--format", "format_name", metavar="NAME", help="openai or tau-bench; without it the file tells.")
@click.option("--json", "as_json", is_flag=True, help="Print what was imported as one JSON list.")
@common_options
@pass_invocation
def command(invocation: Invocation, files: tuple[Path, ...], format_name: str | None, as_json: bool) -> int:
    """Import FILES: OpenAI chat messages (JSON, JSONL) or tau-bench results.

    Each file becomes one execution; another tool's verdict is kept as a criterion result. The same file a second time
    adds nothing. What can't be read is left out, counted, and the reason said.
    """
    from agenteval_tui.exchange.importing import ImportReport, import_file

    reports: list[tuple[Path, ImportReport]] = []
    with invocation.store() as store:
        for path in files:

            def progress(done: int, size: int, name: str = path.name) -> None:
                invocation.err.status(f"{name}: {100 * done // max(size, 1)} %")

            report = import_file(path, store, format=format_name, on_progress=progress)
            invocation.err.status("")
            reports.append((path, report))
            if not as_json:
                _print(invocation.out, path, report)
    if as_json:
        invocation.out.json([_data(path, report) for path, report in reports])
    return 0


def _print(out: Output, path: Path, report: Any) -> None:
    if report.already:
        out.line(
            f"{path}: imported before as execution {report.execution_id} with {plural(report.read, 'run')}; ",
            "nothing was added",
        )
        return
    out.line(
        f"{path}: {report.format}, {plural(report.read, 'run')} read, {report.added:,} added",
        f" as execution {report.execution_id}",
    )
    for reason, count in report.skipped:
        out.line(("  skipped ", "warn"), f"{count:,}: {reason}")
    for note in report.notes:
        out.line(("  note ", "warn"), note)
    if report.cut_off:
        out.line(("  the file is cut off: ", "warn"), "what stands before the cut is in the history")
    out.line((f"  agenteval stats {report.execution_id[:10]}  agenteval show {report.execution_id[:10]}", "dim"))


def _data(path: Path, report: Any) -> dict[str, Any]:
    return {
        "file": str(path),
        "format": report.format,
        "execution": report.execution_id,
        "read": report.read,
        "added": report.added,
        "already": report.already,
        "cut_off": report.cut_off,
        "skipped": [{"reason": reason, "count": count} for reason, count in report.skipped],
        "notes": list(report.notes),
    }
