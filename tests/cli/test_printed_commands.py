"""Commands that are printed work when they are copied, also where another history was named."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.core import directories


def commands_in(text: str) -> list[str]:
    return re.findall(r"agenteval (?:show|why|causes|stats) [^()\n`]*?(?=\)|\n|`|  |$)", text)


def test_printed_commands_name_the_history(cli: Any, suite: Path, tmp_path: Path) -> None:
    db = tmp_path / "my history.db"
    for words in (["run", suite], ["show"], ["causes"], ["why"], ["why", "--markdown"]):
        printed = commands_in(cli(*words, "--db", db).out)
        assert printed, words
        for command in printed:
            done = cli(*shlex.split(command)[1:])
            assert done.code in (0, 1), (command, done.err)
            assert done.out, command


def test_files_in_printed_commands_are_quoted(cli: Any, suite: Path, tmp_path: Path) -> None:
    cli("run", suite)
    copy, page = tmp_path / "my copy.db", tmp_path / "my page.html"
    printed = [
        cli("db", "export", copy).out,
        cli("db", "salvage", copy).out,
        cli("share", "last", page).out,
        cli("make-test", "good", "--suite", tmp_path / "my tests.suite.yaml").out,
    ]
    commands = [re.search(r"agenteval .*?(?=  | adds| or write|\n)", text) for text in printed]
    assert [shlex.split(command[0])[1:] for command in commands if command is not None] == [
        ["--db", str(copy), "history"],
        ["db", "import", f"{copy}.salvaged.db"],
        ["open", str(page)],
        ["run", str(tmp_path / "my tests.suite.yaml"), "--agent", "NAME,"],
    ]


def test_the_own_history_is_not_named(cli: Any, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTEVAL_DB", str(tmp_path / "own.db"))
    assert directories.history_file() == tmp_path / "own.db"
    assert "--db" not in cli("run", suite).out
    assert "--db" not in cli("run", suite, "--db", tmp_path / "own.db").out


PACKAGE = Path(directories.__file__).parents[1]
OF_THE_HISTORY = (
    "attach|audit|baseline|blame|cancel|causes|compare|continue|criterion|db|debug|export|flaky|fork|grade|history|"
    "judge-report|label|make-test|name|open|pause|ps|quarantine|replay|report|resume|review|share|show|shrink|stats|"
    "suggest|trends|triage|why"
)
PRINTED = re.compile(rf"agenteval (?:{OF_THE_HISTORY})\b((?: (?! )|\{{[^{{}}]*\}}|[^\s;()`{{}}])*)")
WITHOUT_HISTORY = (
    *("cli/examples.py", "cli/other_tools.py"),  # pages for any history
    "cli/commands/init.py",  # a file that is written into a project
    "cli/demo_run.py",  # it names the demo's own history
)


def texts_in(file: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of all texts but docstrings and descriptions of options; `{source}` where something is put in."""
    source = file.read_text()
    if not re.search("agenteval[ \"']", source):
        return  # no text of it names a command: most modules need not be parsed
    tree = ast.parse(source)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        parent = parents.get(node)
        if isinstance(parent, ast.Expr | ast.JoinedStr) or getattr(parent, "arg", "") in ("help", "description"):
            continue
        if isinstance(node, ast.JoinedStr):
            parts = [
                str(part.value) if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"
                for part in node.values
                if isinstance(part, ast.Constant | ast.FormattedValue)
            ]
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def commands_without_history(file: Path, *, only_with_ids: bool) -> list[str]:
    """Commands that can be copied as they are, and do not say in which history they look."""
    return [
        f"{file.relative_to(PACKAGE)}:{line}: {command[0]}"
        for line, text in texts_in(file)
        for command in PRINTED.finditer(text)
        if not re.search(r"\{[^{}]*options?\b", text[command.start() :])
        and not ("{" not in command[1] and text[: command.start()].endswith("`"))  # the name of a verb
        and ("{" in command[1] or not (only_with_ids or re.search(r"\b[A-Z]{2,}\b", command[1])))
    ]


@pytest.mark.parametrize("room", ["cli", "views", "tui", "analysis", "history", "runs"])
def test_every_command_that_can_be_copied_takes_the_option_of_the_history(room: str) -> None:
    """Errors from below the command line may mention a verb; a command with an id must work there, too."""
    files = [
        file for file in sorted((PACKAGE / room).rglob("*.py")) if str(file.relative_to(PACKAGE)) not in WITHOUT_HISTORY
    ]
    assert files
    only_with_ids = room not in ("cli", "views")
    assert [found for file in files for found in commands_without_history(file, only_with_ids=only_with_ids)] == []


def test_a_command_without_the_option_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    (tmp_path / "a.py").write_text(
        '''"""`agenteval why`: not printed."""\nX = f"agenteval why {run}"\nY = f"agenteval why {run}{options}"\n'''
        """Z = ("agenteval ps", f"see agenteval history{db_option} (agenteval show {run})", "agenteval show RUN")\n"""
    )
    found = [place.partition(": ")[2] for place in commands_without_history(tmp_path / "a.py", only_with_ids=False)]
    assert found == ["agenteval why {run}", "agenteval ps", "agenteval show {run}"]
    with_ids = commands_without_history(tmp_path / "a.py", only_with_ids=True)
    assert [place.partition(": ")[2] for place in with_ids] == ["agenteval why {run}", "agenteval show {run}"]
