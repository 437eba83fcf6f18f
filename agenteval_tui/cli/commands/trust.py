"""`agenteval trust`: which repositories may run code on this machine, and which secrets they may send where."""

from __future__ import annotations

from pathlib import Path

import click

from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.documents.listings import AgreedSending, TrustedRepositories, TrustedRepositoryRow
from agenteval_tui.runs.trust_check import sends_below
from agenteval_tui.suites.discover import require_project
from agenteval_tui.suites.trust import Trust, TrustedRepository


@click.command("trust")
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("--list", "listed", is_flag=True, help="List what is trusted.")
@click.option("--revoke", metavar="PATH", type=click.Path(path_type=Path), help="Stop trusting this repository.")
@click.option("--json", "as_json", is_flag=True, help="Print the list as one JSON document.")
@common_options
@pass_invocation
def command(invocation: Invocation, path: Path | None, listed: bool, revoke: Path | None, as_json: bool) -> int:
    """Trust the repository of PATH (default: the current folder), now and later: its code may run on this machine.

    Until then, nothing in it runs, and no secret is sent. It covers all git worktrees of the repository. Submodules and
    repositories within it are trusted by themselves. Without git, the nearest folder with a pyproject.toml counts, else
    the folder itself.

    The secrets that suites in PATH would send are listed; they may go there from now on. agenteval asks again before it
    sends one to another address. `agenteval run --trust` allows everything once; AGENTEVAL_TRUST=1 does so in CI.
    """
    if (path is not None) + (revoke is not None) + (listed or as_json) > 1:
        raise AgentevalError("give one of: a folder, --list, --revoke")
    trust = Trust.load()
    if revoke is not None:
        folder = trust.revoke(revoke)
        if not folder:
            raise AgentevalError("this was not trusted", where=str(revoke), fix="agenteval trust --list")
        invocation.out.line("no longer trusted: ", one_line(folder))
    elif listed or as_json:
        _list(invocation, trust, as_json)
    else:
        folder_of_suites = _folder(path or Path())
        entry = trust.trust(folder_of_suites, sends_below(folder_of_suites))
        invocation.out.line(("trusted ", "good"), one_line(entry.folder))
        _sends(invocation, entry)
    return 0


def _folder(path: Path) -> Path:
    if not path.exists():
        raise AgentevalError("there is no such folder", where=str(path), fix="check the path")
    if not path.is_dir() and not path.is_file():
        raise AgentevalError("this is not a folder", where=str(path), fix="name the folder of your suites")
    folder = path if path.is_dir() else path.resolve().parent
    require_project(folder)
    return folder


def _list(invocation: Invocation, trust: Trust, as_json: bool) -> None:
    if trust.problem:
        raise AgentevalError(trust.problem, fix="remove the file, and trust the repositories that you know again")
    if as_json:
        invocation.out.json(TrustedRepositories(repositories=tuple(map(_row, trust.listed()))))
        return
    for entry in trust.listed():
        gone = "" if Path(entry.folder).is_dir() else "  no longer there"
        invocation.out.line(one_line(entry.folder), (f"  since {entry.when[:10]}", "dim"), (gone, "warn"))
        _sends(invocation, entry)
    if not trust.listed():
        invocation.out.line("no repository is trusted, so no code of suites runs; agenteval trust PATH trusts one")


def _sends(invocation: Invocation, entry: TrustedRepository) -> None:
    for sending in entry.sends:
        invocation.out.line("  ", one_line(str(sending), 400))


def _row(entry: TrustedRepository) -> TrustedRepositoryRow:
    sends = tuple(AgreedSending(name=sending.name, address=sending.address) for sending in entry.sends)
    return TrustedRepositoryRow(folder=entry.folder, since=entry.when, sends=sends)
