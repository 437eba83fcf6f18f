"""Makes docs/command-line.md, and the table for completion (agenteval_tui/cli/completion_table.json), of the verbs
themselves: run it after a verb or an option was changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from agenteval_tui.cli.complete import TABLE
from agenteval_tui.cli.examples import EXAMPLES
from agenteval_tui.cli.main import agenteval
from agenteval_tui.cli.verbs import own_verbs, short_help, verb_groups
from agenteval_tui.core import entry_points
from agenteval_tui.core.entry_points import EXPORTERS, IMPORTERS
from agenteval_tui.formats.documents.registry import SCHEMAS

PAGE = Path(__file__).with_name("command-line.md")

COMMON = {"--db", "--debug", "--quiet", "--verbose"}
HEAD = """\
# The command line

`docs/make_command_line.py` makes this page from the commands' own help (`agenteval COMMAND --help`).

| exit code | means |
|---|---|
| 0 | all passed, or the pass rate reached `--fail-under` |
| 1 | something failed (or waits for a person), a gate was missed, or a limit stopped the execution |
| 2 | wrong use, or a suite is invalid: nothing ran |
| 3 | agents or the machine failed: there is no verdict |
| 130 | interrupted: by Ctrl-C, or by `agenteval cancel` from anywhere |

If there are both failures and errors, the code is 1, because a failure is a verdict. A limit (`--max-cost`,
`--max-tokens`, `--max-time`) also gives 1: a job may safely retry after 3, but running this again would cost the same
again.

In a terminal, `run` and `resume` start the execution in a separate process and watch it. Ctrl-C cancels it; a second
Ctrl-C leaves without waiting for its end. If you lose the terminal, it keeps running. In a pipe, or if `CI` is set, the
execution runs in the process that you started. In both cases, `ps`, `attach`, `pause`, `continue` and `cancel` find it.
Progress is a line at the bottom of the terminal, or plain lines elsewhere; `NO_COLOR`, `CI` and `TERM=dumb` are
honoured. With `--json -`, stdout has one JSON document and nothing else. `agenteval schema` prints the schemas.

For CI systems, see [agenteval in CI](ci.md). Every command has `--db FILE` (the history file; default: `AGENTEVAL_DB`,
or the one in your data folder), `--quiet`, `--verbose`, `--debug` (a traceback when the program fails) and `--help`.
"""


def page() -> str:
    """The whole page."""
    context = click.Context(agenteval, info_name="agenteval")
    parts = [HEAD, _groups()]
    for name in own_verbs():
        command = agenteval.get_command(context, name)
        assert command is not None
        parts.append(_verb(name, command))
        if isinstance(command, click.Group):
            inside = click.Context(command, info_name=name)
            for word in command.list_commands(inside):
                part = command.get_command(inside, word)
                assert part is not None
                parts.append(_verb(f"{name} {word}", part))
    return "\n".join(parts)


def _groups() -> str:
    lines = ["| for | commands |", "|---|---|"]
    for group, names in verb_groups().items():
        lines.append(f"| {group} | {', '.join(f'[{name}](#{name})' for name in names)} |")
    return "\n".join([*lines, ""])


# Made here and not by click, whose versions say it differently.
def _verb(name: str, command: click.Command) -> str:
    arguments = [_argument(one) for one in command.params if isinstance(one, click.Argument)]
    lines = [f"## {name}", "", f"`{' '.join(['agenteval', name, *arguments])}`", "", *_wrapped(command.help or ""), ""]
    options = [
        one for one in command.params if isinstance(one, click.Option) and not one.hidden and not set(one.opts) & COMMON
    ]
    if options:
        lines += ["| option | |", "|---|---|"]
        lines += [f"| `{_cell(_option(one))}` | {_cell(' '.join((one.help or '').split()))} |" for one in options]
        lines.append("")
    if listed := EXAMPLES.get(name):
        lines += ["```bash", *(f"{typed}  # {does}" for typed, does in listed), "```", ""]
    return "\n".join(lines)


def _argument(one: click.Argument) -> str:
    word = one.metavar or (one.name or "").upper()
    if word.startswith("["):
        return word  # it says itself what may be left out, and how often it may come
    dots = "..." if one.nargs == -1 and not word.endswith("...") else ""
    return f"{word if one.required else f'[{word}]'}{dots}"


def _option(one: click.Option) -> str:
    names = "/".join([*one.opts, *one.secondary_opts])
    if one.is_flag:
        return names
    choices = f"[{'|'.join(map(str, one.type.choices))}]" if isinstance(one.type, click.Choice) else ""
    word = one.metavar or choices or one.type.name.upper()
    return names + ("" if word.startswith("[=") else " ") + word


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _wrapped(text: str) -> list[str]:
    import textwrap

    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        lines += [""] if lines else []
        listed = paragraph.lstrip().removeprefix("\b")
        if listed != paragraph.lstrip():  # click marks lines that are not to be wrapped
            lines += ["```text", *textwrap.dedent(listed.strip("\n")).splitlines(), "```"]
        else:
            lines += textwrap.wrap(" ".join(paragraph.split()), 118)
    return lines


# What completion offers for a value, by the name of its parameter, where its type does not say it.
KINDS = {
    "execution": "executions", "resume": "executions", "run_ref": "runs", "other": "runs", "a": "executions",
    "b": "executions", "references": "executions+files", "reference": "references", "address": "references",
    "tests": "tests", "test": "tests", "test_id": "tests", "tags": "tags", "agent": "agents", "agents": "agents",
    "names": "agents", "judge": "agents", "ab": "arms", "variation": "variations", "variations": "variations",
    "page": "pages", "what": "executions+files", "old": "folders", "new": "folders", "suite": "files",
    "words": "none", **dict.fromkeys(("json_file", "junit_file", "csv_file", "md_file", "html_file"), "files"),
}  # fmt: skip
# The same where a verb means something else by that name.
KINDS_OF_VERBS = {
    **{(verb, "reference"): "runs" for verb in ("why", "blame", "fork", "label", "judge-report")},
    ("criterion", "reference"): "tests", ("compare", "a"): "choice:baseline+executions",
    **{(verb, "execution"): "running" for verb in ("attach", "pause", "continue", "cancel")},
}  # fmt: skip


def table() -> dict[str, Any]:
    """What `agenteval_tui/cli/complete.py` reads."""
    context = click.Context(agenteval, info_name="agenteval")
    verbs = {}
    for name in own_verbs():
        command = agenteval.get_command(context, name)
        assert command is not None
        verbs[name] = _completed(name, command, short_help(name))
    verbs["help"]["arguments"] = [{"kind": f"choice:{'|'.join(own_verbs())}", "many": False}]
    return {**_completed("", agenteval, ""), "verbs": verbs}


def _completed(name: str, command: click.Command, about: str) -> dict[str, Any]:
    made: dict[str, Any] = {"help": about, "options": [], "arguments": []}
    for one in command.params:
        kind = _kind(name, one)
        if isinstance(one, click.Argument):
            made["arguments"].append({"kind": kind, "many": one.nargs == -1})
        elif isinstance(one, click.Option) and not one.hidden:
            values = 0 if one.is_flag or (one.metavar or "").startswith("[=") else one.nargs
            names = sorted([*one.opts, *one.secondary_opts], key=lambda word: not word.startswith("--"))
            about = " ".join((one.help or "").split())
            made["options"].append(
                {"names": names, "help": about, "values": values, "kind": kind, "many": one.multiple}
            )
    made["options"].append({"names": ["--help", "-h"], "help": "Show this message and exit.", "values": 0,
                            "kind": "none", "many": False})  # fmt: skip
    if isinstance(command, click.Group) and name:
        inside = click.Context(command, info_name=name)
        parts = {word: command.get_command(inside, word) for word in command.list_commands(inside)}
        made["verbs"] = {
            word: _completed(f"{name} {word}", part, part.get_short_help_str(limit=200))
            for word, part in parts.items()
            if part is not None
        }
    return made


def _kind(verb: str, one: click.Parameter) -> str:
    if isinstance(one.type, click.Choice):
        return f"choice:{'|'.join(map(str, one.type.choices))}"
    if "--format" in one.opts:
        return f"choice:{'|'.join(sorted(entry_points.own(IMPORTERS if verb == 'import' else EXPORTERS)))}"
    if (verb, one.name) == ("schema", "name"):
        return f"choice:{'|'.join(SCHEMAS)}"
    if isinstance(one.type, click.Path):
        return "files" if one.type.file_okay else "folders"
    return KINDS_OF_VERBS.get((verb, one.name or ""), KINDS.get(one.name or "", "none"))


def table_text() -> str:
    """The table as it is in its file."""
    return json.dumps(table(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TABLE.write_text(table_text(), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
