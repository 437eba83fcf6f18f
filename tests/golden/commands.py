"""What the command line prints: every command over one recorded history, as JSON, and in words at 80 columns."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import click
from recorder import Files, Recorder, unmeasured

from agenteval_tui.cli.main import agenteval

HISTORY = "orders"

# What is asked of each command that has `--json`: with it, and without it on a terminal. `{first}` to `{sixth}` are the
# executions of the history in their order, `{failed}`, `{passed}` and `{judged}` are runs of the second one.
ASKED: dict[str, tuple[str, ...]] = {
    "agents": ("", "list orders.suite.yaml", "check orders.suite.yaml --agent v1"),
    "audit": ("orders.suite.yaml",),
    "blame": ("{failed}", "{judged}"),
    "baseline": ("",),
    "baseline list": ("",),
    "causes": ("{second}", "orders.suite.yaml", "--all"),
    "compare": (
        *("{first} {second}", "{second} {third} --quick", "baseline {third} --all"),
        *("{fourth} {fourth} --agent v1 --agent v2",),
    ),
    "criterion": ("'status/Says when it comes'", "'status/Says when it comes' --compare 1 2"),
    "db": ("",),
    "db check": ("", "--deep"),
    "db import": ("{other}",),
    "db query": ("'SELECT id, test, outcome FROM runs ORDER BY id LIMIT 3'",),
    "db prune": ("--older-than 1d --keep 1 --dry-run",),
    "doctor": ("",),
    "flaky": ("", "--all --test refund"),
    "fork": ("{failed}",),
    "grade": (
        *("orders.suite.yaml --execution {third}", "--criteria criteria.yaml --transcript transcript.json"),
        "--criteria criteria.yaml --transcripts messages.jsonl",
    ),
    "history": ("", "--runs --outcome failed", "Friday --runs --limit 3", "--kind import"),
    "init": (),  # it searches a folder: tests/cli/test_init.py
    "import": ("--dry-run promptfoo.json messages.jsonl",),
    "judge-report": ("", "{judged}/1"),
    "listen": (),  # waits for other programs: tests/cli/test_listen.py
    "make-test": ("{passed} --dry-run",),
    "prices": (),  # the bundled list changes with each release: tests/cli/test_prices.py
    "prices show": ("made-up-model",),
    "prices update": (),  # tests/cli/test_prices.py
    "ps": ("",),
    "name": ("last",),
    "quarantine": ("",),
    "quarantine list": ("--all",),
    "record": (),  # tests/cli/test_record.py: it starts a program
    "replay": (),  # likewise
    "report": (),  # in reports.py
    "review": ("", "--failures --disagreements"),
    "run": ("orders.suite.yaml --plan", "orders.suite.yaml --plan --ab v1 v2 --sample 3 --seed 1"),
    "shrink": (),  # asks agents: tests/cli/test_shrink.py
    "suggest": ("status", "tone --from-judge", "refund/1"),
    "show": ("{third}", "{failed}", "{judged}", "{failed} --transcript", "{failed} --diff {passed}"),
    "stats": ("{second}", "--last", "{second} --costs", "{fourth} --ab"),
    "trends": ("", "--group test --by week", "--by execution --test status"),
    "triage": ("",),
    "trust": ("--list",),
    "validate": ("orders.suite.yaml", "broken.suite.yaml"),
    "why": ("{failed}", "{failed}/1", "{broken}"),
    # Of executions that run: live.py.
    "attach": (),
    "resume": (),
}
# Of these, what was measured just now is not compared: it is the machine's, and not stored.
OF_THE_MACHINE = ("agents", "db", "db check", "db prune", "doctor")
# Other forms than JSON that are published: those go into pull requests and tables.
OTHER_FORMS = (
    *("causes {second} --md", "compare {first} {second} --md", "compare baseline {third} --all --md"),
    *("why {failed} --markdown", "why {judged} --markdown", "trends --csv", "trends --group test --csv"),
    *("criterion 'status/Says when it comes' --diff 1 2", "schema --list", "import promptfoo-config.yaml --to -"),
)


def leaves(group: click.Group = agenteval, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """All commands by their words; a group too where it does something by itself."""
    context = click.Context(group)
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        assert command is not None
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield before + word, command
        if isinstance(command, click.Group):
            yield from leaves(command, f"{before}{word} ")


def json_option(command: click.Command) -> click.Option | None:
    """Its option `--json`."""
    return next((one for one in command.params if isinstance(one, click.Option) and "--json" in one.opts), None)


def overview(recorder: Recorder) -> Files:
    """Which commands there are, with arguments and options; and which have no `--json`."""
    found = {name: [_parameter(one) for one in command.params] for name, command in leaves()}
    without = [name for name, command in leaves() if json_option(command) is None]
    return {
        "commands.json": {"without --json": without, "parameters": found},
        "help.txt": recorder.call("--help", terminal=True).out,
    }


def _parameter(one: click.Parameter) -> str:
    if isinstance(one, click.Argument):
        return f"{one.name}{'...' if one.nargs == -1 else ''}{' (needed)' if one.required else ''}"
    assert isinstance(one, click.Option)
    kind = "flag" if one.is_flag else one.type.name
    choices = f" of {', '.join(map(str, one.type.choices))}" if isinstance(one.type, click.Choice) else ""
    return f"{'/'.join([*one.opts, *one.secondary_opts])}: {kind}{choices}{' (several)' if one.multiple else ''}"


@cache
def words_of(recorder: Recorder) -> dict[str, Any]:
    """What stands for the placeholders of `ASKED`."""
    path = recorder.history(HISTORY)
    executions = [one["execution"] for one in reversed(recorder.call("history", "--json", db=path).document)]
    runs = recorder.call("show", executions[1], "--json", db=path).document["runs"]

    def first(test: str, outcome: str) -> str:
        return next(str(one["run"]) for one in runs if one["test"] == test and one["outcome"] == outcome)

    names = ("first", "second", "third", "fourth", "fifth", "sixth")
    return {
        **dict(zip(names, executions, strict=False)),
        "failed": first("refund", "failed"),
        "passed": next(one["run"] for one in runs if one["test"] == "status" and one["outcome"] == "passed"),
        "judged": first("tone", "failed"),
        "broken": first("secret", "failed"),
        "other": recorder.copy("support"),
    }


def printed(recorder: Recorder, name: str) -> Files:
    """What a command prints: one file with its JSON documents, and one with its words."""
    command = dict(leaves())[name]
    option = json_option(command)
    assert option is not None
    documents: dict[str, object] = {}
    texts: list[str] = []
    settled: Callable[[Any], Any] = unmeasured if name in OF_THE_MACHINE else lambda said: said
    for asked in ASKED[name]:
        words = shlex.split(asked.format(**words_of(recorder)))
        said = recorder.call(
            *name.split(), *words, "--json", *(() if option.is_flag else ("-",)), db=recorder.copy(HISTORY)
        )
        documents[f"{name} {asked}".strip()] = {
            "exit code": said.code,
            **({"stderr": said.err.splitlines()} if said.err else {}),
            "stdout": settled(said.documents),
        }
        said = recorder.call(*name.split(), *words, db=recorder.copy(HISTORY), terminal=True)
        texts.append(f"$ agenteval {name} {asked}".strip() + "\n" + settled(said.text()))
    return {"documents.json": documents, "words.txt": "\n".join(texts)}


def other_forms(recorder: Recorder) -> Files:
    """Markdown and CSV."""
    found = []
    for asked in OTHER_FORMS:
        words = shlex.split(asked.format(**words_of(recorder)))
        found.append(f"$ agenteval {asked}\n{recorder.call(*words, db=recorder.copy(HISTORY)).text()}")
    return {"forms.txt": "\n".join(found)}
