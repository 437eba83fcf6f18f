"""`agenteval init`: a first suite that runs at once, and an example of agents; nothing is ever overwritten."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from agenteval_tui.cli.init_files import KINDS, TRUSTED, files_of
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.text.problems import AgentevalError, InfrastructureError


@click.command("init")
@click.argument("folder", required=False, default=".", type=click.Path(path_type=Path))
@click.option(
    "--agent-kind",
    "kind",
    type=click.Choice(KINDS),
    default="demo",
    show_default=True,
    help="For which kind of agent; `demo` is bundled and needs no key.",
)
@common_options
@pass_invocation
def command(invocation: Invocation, folder: Path, kind: str) -> int:
    """Write a first suite into FOLDER (made if need be; default: here), and an example of an agents.yaml.

    With the kind `demo` it runs at once: no key, no network. `command` and `python` come with a small agent to begin
    from. Files that exist are never overwritten: then nothing is written.
    """
    texts = files_of(kind)
    taken = [name for name in texts if os.path.lexists(folder / name)]
    if taken:
        raise AgentevalError(
            f"{', '.join(taken)} is there already: nothing was written", where=str(folder), mend="name another folder"
        )
    _write(folder, texts)
    out = invocation.out
    for name in texts:
        out.line(("wrote ", "good"), str(folder / name))
    _say_next(invocation, folder, kind)
    return 0


def _write(folder: Path, texts: dict[str, str]) -> None:
    """All of them or none. Raises `AgentevalError`."""
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            path = folder / name
            with path.open("x", encoding="utf-8", newline="\n") as file:
                written.append(path)
                file.write(text)
    except OSError as error:
        for path in written:
            path.unlink(missing_ok=True)
        raise InfrastructureError(
            f"this can't be written: {error.strerror}", where=str(error.filename or folder), mend="check the folder"
        ) from error


def _say_next(invocation: Invocation, folder: Path, kind: str) -> None:
    out = invocation.out
    suite = shlex.quote(str(folder / "first.suite.yaml"))
    trust = " --trust" if kind in TRUSTED else ""
    out.line()
    out.line(("Next:", "bold"))
    if kind in TRUSTED:
        out.line((f"  # {TRUSTED[kind]}: it runs only where you say so", "dim"))
    elif kind != "demo":
        out.line(("  # set what first.suite.yaml names under `agents:` (address, key), then:", "dim"))
        out.line(f"  agenteval agents check {suite}")
    out.line(f"  agenteval validate {suite}")
    out.line(f"  agenteval run {suite}{trust}")
    out.line(f"  agenteval {suite}", ("    # the app: see why, edit a criterion, watch the verdict change", "dim"))
