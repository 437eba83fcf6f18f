"""`agenteval trust`: which folders may run programs on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count
from agenteval_tui.formats.documents.listings import TrustedFolder, TrustedFolders
from agenteval_tui.runs.trust_check import files_of
from agenteval_tui.suites.discover import require_project
from agenteval_tui.suites.trust import FolderTrust, Trust


@click.command("trust")
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("--list", "listed", is_flag=True, help="List the trusted folders (the default).")
@click.option("--forget", metavar="PATH", type=click.Path(path_type=Path), help="Stop trusting this folder.")
@click.option("--json", "as_json", is_flag=True, help="Print the list as one JSON document.")
@common_options
@pass_invocation
def command(invocation: Invocation, path: Path | None, listed: bool, forget: Path | None, as_json: bool) -> int:
    """Trust the folder PATH with its current content: its programs, tools and Python functions may run.

    Nothing in a suite's folder runs before you trust it. Every file counts, also files elsewhere that a command names.
    When a file is changed, added or removed, you have to trust the folder again; agenteval names the file.
    `agenteval run --trust` allows it once, for that run.
    """

    if sum((path is not None, listed, forget is not None)) > 1:
        raise AgentevalError("give one of: a folder, --list, --forget")
    trust = Trust.load()
    if path is not None:
        folder = _folder(path)
        made = trust.trust(folder, files_of(folder))
        invocation.out.line(("trusted ", "good"), one_line(str(folder)), (f"  {count(len(made.files), 'file')}", "dim"))
        return 0
    if forget is not None:
        if not trust.distrust(forget):
            raise AgentevalError("this folder was not trusted", where=str(forget), mend="agenteval trust --list")
        invocation.out.line("forgotten: ", one_line(str(forget)))
        return 0
    _list(invocation, trust, as_json)
    return 0


def _folder(path: Path) -> Path:
    if not path.exists():
        raise AgentevalError("there is no such folder", where=str(path), mend="check the path")
    if not path.is_dir() and not path.is_file():
        raise AgentevalError("this is not a folder", where=str(path), mend="name the folder of your suites")
    folder = path if path.is_dir() else path.resolve().parent
    require_project(folder)
    return folder


def _list(invocation: Invocation, trust: Trust, as_json: bool) -> None:
    if trust.problem:
        raise AgentevalError(trust.problem, mend="remove the file, and trust the folders that you know again")
    if as_json:
        invocation.out.json(TrustedFolders(folders=tuple(_data(trust, entry) for entry in trust.listed())))
        return
    for entry in trust.listed():
        why_not = trust.why_not(Path(entry.folder))
        invocation.out.line(
            one_line(entry.folder),
            (f"  {entry.when[:10]}, {count(len(entry.files), 'file')}", "dim"),
            ("" if why_not else "  as it was", "good"),
            (f"  {one_line(why_not)}" if why_not else "", "warn"),
        )
    if not trust.listed():
        invocation.out.line(
            "no folder is trusted, so programs that suites name do not run; agenteval trust FOLDER trusts one"
        )


def _data(trust: Trust, trusted: FolderTrust) -> TrustedFolder:
    why_not = trust.why_not(Path(trusted.folder))
    return TrustedFolder(
        folder=trusted.folder,
        since=trusted.when,
        files=len(trusted.files),
        trusted=not why_not,
        reason=why_not,
    )
