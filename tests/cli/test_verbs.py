"""Verbs that plug-ins bring."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from agenteval_tui.cli import main
from agenteval_tui.cli.commands import doctor
from agenteval_tui.cli.main import agenteval
from agenteval_tui.cli.verbs import VERBS, all_verbs, own_verbs
from agenteval_tui.core import entry_points

PLUGIN = """
import click

@click.command("greet", short_help="Greet somebody.")
@click.argument("name")
def greet(name):
    "Greet NAME."
    click.echo(f"good day, {name}")
    return 1
"""
ENTRY_POINTS = """
[agenteval.commands]
greet = greeting:greet
validate = greeting:greet
serve = greeting:greet
broken = greeting:not_there

number = greeting:__name__
"""


@pytest.fixture(autouse=True)
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "greeting.py").write_text(PLUGIN)
    info = tmp_path / "greeting-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    looked_for = entry_points._plugins
    looked_for.cache_clear()
    yield
    looked_for.cache_clear()


def test_a_plug_in_s_verb_is_called_and_its_exit_code_counts(cli) -> None:
    result = cli("greet", "Ada")
    assert (result.code, result.out) == (1, "good day, Ada\n")
    assert "Greet NAME." in cli("greet", "--help").out
    assert "did you mean greet?" in cli("gret", "Ada").err


def test_the_help_lists_them_last_and_survives_those_that_are_broken(cli) -> None:
    assert all_verbs() == (*own_verbs(), "broken", "greet", "number")
    result = cli("--help")
    assert result.code == 0
    assert result.out.index("  doctor ") < result.out.index("  greet         Greet somebody.")
    assert "the verb 'broken' can't be loaded" in result.out


@pytest.mark.parametrize(
    ("verb", "said"), [("broken", "can't be loaded"), ("number", "is a str and not a click command")]
)
def test_one_that_is_broken_is_an_error_of_who_calls_it(cli, verb: str, said: str) -> None:
    result = cli(verb)
    assert result.code == 2
    assert said in result.err
    assert "update or uninstall greeting 1.0" in result.err


def test_it_replaces_none_of_ours_and_the_doctor_says_so(cli) -> None:
    assert "Greet" not in cli("validate", "--help").out
    assert "Greet" not in cli("serve", "--help").out
    said = [one.message for one in doctor._plug_ins() if one.state == "warning"]
    assert [one.split()[0] for one in said] == ["'serve'", "'validate'"]


def test_a_shell_completes_them() -> None:
    context = click.Context(agenteval, info_name="agenteval", resilient_parsing=True)
    found = {one.value: one.help for one in agenteval.shell_complete(context, "")}
    assert found["greet"] == "Greet somebody."
    assert "broken" not in found
    assert set(VERBS) <= found.keys()


def test_plug_ins_are_not_looked_for_where_the_verb_is_ours(cli, suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_points, "_plugins", lambda: pytest.fail("they were looked for"))
    assert cli("validate", suite).code == 0
    assert cli("demo-server", "--help").code == 0
    monkeypatch.setattr(main, "on_a_terminal", lambda: True)
    assert cli(suite).code == 0
    assert len(cli.opened) == 1
