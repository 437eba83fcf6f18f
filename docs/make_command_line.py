"""Makes docs/command-line.md of the verbs themselves: run it after a verb or an option was changed."""

from __future__ import annotations

from pathlib import Path

import click

from agenteval_tui.cli.examples import EXAMPLES
from agenteval_tui.cli.main import agenteval
from agenteval_tui.cli.verbs import own_verbs, verb_groups

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


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
