"""What the help says: groups, examples that work, `help VERB`; and how much is printed."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from agenteval_tui.cli.examples import EXAMPLES
from agenteval_tui.cli.invocation import Invocation
from agenteval_tui.cli.main import agenteval
from agenteval_tui.cli.verbs import GROUPS, own_verbs
from agenteval_tui.core.entry_points import COMMANDS, own

HARMLESS = (
    "validate", "show", "why", "causes", "history", "stats", "flaky", "judge-report", "triage", "label", "review",
    "quarantine add", "quarantine", "quarantine list", "quarantine end", "baseline set", "baseline", "baseline list",
    "baseline clear", "criterion", "ps", "db", "db check", "agents", "prices", "prices show",
    "trust", "docs", "schema", "completion", "help",
)  # fmt: skip
"""Their examples are run: they only look, or decide something in a history of the test's own."""
NOT_RUN = ("2f9c0a1b", "--json -", "trust evals", "--diff 1 2")


def parts(name: str, command: click.Command) -> dict[str, click.Command]:
    found = {name: command}
    if isinstance(command, click.Group):
        for word, part in command.commands.items():
            found |= parts(f"{name} {word}", part)
    return found


def top() -> click.Context:
    return click.Context(
        agenteval, info_name="agenteval", obj=Invocation(lambda start: 0), **agenteval.context_settings
    )


def every_command() -> dict[str, click.Command]:
    context = top()
    found: dict[str, click.Command] = {}
    for verb in own_verbs():
        command = agenteval.get_command(context, verb)
        assert command is not None
        found |= parts(verb, command)
    return found


def arguments_of(example: str) -> list[str]:
    """The arguments of an example, without what a shell does with them."""
    inner = example.removeprefix('eval "$(').removesuffix(')"').partition(" > ")[0]
    program, *arguments = shlex.split(inner)
    assert program == "agenteval"
    return arguments


def test_each_verb_is_in_one_group() -> None:
    assert list(GROUPS) == ["Test", "Look", "Decide", "Live", "Data", "Set up"]
    listed = [name for names in GROUPS.values() for name in names]
    extensions = {name for name, place in own(COMMANDS).items() if place.startswith("agenteval_tui.extensions.")}
    assert {*own_verbs()} - extensions <= {*listed}, "cli/verbs.py: name a new verb in one of GROUPS"
    assert len(listed) == len({*listed})


def test_each_verb_and_each_part_has_an_example_of_itself_that_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = every_command()
    assert set(EXAMPLES) == set(commands), "cli/examples.py: an example for each"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evals").mkdir()
    for name in ("c.yaml", "t.json", "results.json", "promptfooconfig.yaml", "other.db", "damaged.db",
                 "evals/shop.suite.yaml"):  # fmt: skip
        (tmp_path / name).touch()
    for name, examples in EXAMPLES.items():
        for typed, does in examples:
            assert does
            words = arguments_of(typed)
            assert words[: len(name.split())] == name.split(), typed
            rest, command, path = words[len(name.split()) :], commands[name], name
            if isinstance(command, click.Group) and rest and rest[0] in command.commands:
                pytest.fail(f"{typed} is an example of `{path} {rest[0]}`")
            command.make_context(path, rest, parent=top())  # click says what it can't take


def test_examples_that_only_look_work(cli: Any, suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evals = suite.parent / "evals"
    evals.mkdir()
    text = suite.read_text("utf-8").replace("id: bad", "id: refunds").replace("Names a whale", "Names the order")
    suite.unlink()
    (evals / "shop.suite.yaml").write_text(text, "utf-8")
    monkeypatch.chdir(evals.parent)
    assert cli("run", "evals").code == 1
    for name in HARMLESS:
        for typed, _ in EXAMPLES[name]:
            if not any(part in typed for part in NOT_RUN):
                done = cli(*arguments_of(typed))
                assert done.code in (0, 1), f"{typed}: {done.err}"
                assert done.out or done.err, typed


def test_help_of_a_verb_is_that_of_its_option(cli: Any) -> None:
    assert cli("help").out == cli("--help").out
    assert cli("help", "run").out == cli("run", "--help").out
    asked = cli("help", "db", "prune")
    assert asked.code == 0
    assert asked.out.startswith("Usage: agenteval db prune [OPTIONS]")
    assert (
        "  Examples:\n    agenteval db prune --older-than 90d --dry-run\n        what would be deleted\n" in asked.out
    )
    assert asked.out == cli("db", "prune", "-h").out
    assert cli("help", "rn").err == "agenteval: there is no verb 'rn' (did you mean run?)\n"
    assert "its parts: check, query, prune, vacuum" in cli("help", "db", "grow").err
    assert cli("help", "run", "fast").err == "agenteval: run has no part 'fast' (agenteval help run)\n"


def test_the_help_has_the_groups_in_their_order(cli: Any) -> None:
    lines = cli("--help").out.splitlines()
    heads = [line.rstrip(":") for line in lines if line.endswith(":") and not line.startswith((" ", "Options"))]
    assert heads == list(GROUPS)


def test_quiet_says_what_is_wrong_and_verbose_says_all(cli: Any, suite: Path) -> None:
    quiet = cli("-q", "run", suite)
    assert quiet.code == 1
    lines = quiet.out.splitlines()
    assert lines[0].startswith("✗ bad")
    assert lines[-1] == "1 passed, 1 failed of 2 runs"
    assert "good" not in quiet.out
    assert cli("run", suite, "--test", "good", "--quiet").out == "1 passed of 1 run\n"
    loud = cli("run", suite, "-v", "--repeat", "2")
    assert loud.code == 1
    assert loud.out.count("run 1: passed") == 1
    assert loud.out.count("run 2: failed") == 1
    assert "history: " in loud.err
    assert loud.err.rstrip().splitlines()[-1].startswith("took ")
    assert cli("validate", suite, "-q").out == ""
    assert f"{suite}: 2 tests" in cli("validate", suite, "-v").err
    assert cli("validate", suite, "-v", "--quiet").err == (
        "agenteval: --quiet and --verbose can't be used together (give only one)\n"
    )


def test_quiet_init_says_only_what_it_wrote(cli: Any, tmp_path: Path) -> None:
    lines = cli("-q", "init", tmp_path / "new").out.splitlines()
    assert lines
    assert all(line.startswith("wrote ") for line in lines)


def test_quiet_leaves_out_notes(cli: Any, suite: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(suite.parent)
    assert cli("run", suite, "--test", "good", "--set-baseline").code == 0
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    monkeypatch.chdir(other)
    monkeypatch.delenv("AGENTEVAL_SCOPE", raising=False)
    told = cli("baseline", "list")
    assert told.err.startswith("note: ")
    quiet = cli("baseline", "list", "-q")
    assert (quiet.out, quiet.err) == (told.out, "")


def test_the_version_has_a_short_option(cli: Any) -> None:
    assert cli("-V").out == cli("--version").out
    assert cli("-V").code == 0
