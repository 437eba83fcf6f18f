"""Errors: one sentence on stderr, nothing on stdout, the right exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from agenteval_tui.cli import main as cli_main
from agenteval_tui.cli.declared_options import FiniteNumber
from agenteval_tui.cli.verbs import all_verbs, find_verb, own_verbs

Program = Callable[..., subprocess.CompletedProcess[str]]
COMMANDS = {verb: command for verb in all_verbs() if (command := find_verb(verb)) is not None}
OPTIONS = [
    (verb, option)
    for verb, command in COMMANDS.items()
    for option in command.params
    if isinstance(option, click.Option)
]
"""The options of all verbs, those of extensions too."""


def one_sentence(text: str) -> str:
    lines = text.strip().splitlines()
    assert len(lines) == 1, text
    assert lines[0].startswith("agenteval: ")
    assert "Traceback" not in text
    return lines[0]


def test_an_unknown_verb(cli) -> None:
    result = cli("validte", "x")
    assert result.code == 2
    assert "did you mean validate?" in one_sentence(result.err)
    assert result.out == ""


def test_a_path_with_something_behind_it_is_not_called_missing(cli, suite: Path, tmp_path: Path) -> None:
    result = cli(suite, "--db", tmp_path / "x.db")
    assert result.code == 2
    assert "put options before the paths (agenteval [OPTIONS] PATH...)" in one_sentence(result.err)
    result = cli(suite, tmp_path / "nowhere")
    assert result.code == 2
    said = one_sentence(result.err)
    assert "there is no such file or folder" in said
    assert "nowhere" in said
    assert str(suite) not in said


def test_an_unknown_option(cli) -> None:
    result = cli("stats", "--jsn")
    assert result.code == 2
    assert "--json" in one_sentence(result.err)


@pytest.mark.parametrize("verb", ["run", "validate"])
def test_a_missing_path(cli, verb: str, tmp_path: Path) -> None:
    result = cli(verb, tmp_path / "nowhere")
    assert result.code == 2
    assert "there is no such file or folder" in one_sentence(result.err)


def test_a_bad_number(cli, suite: Path) -> None:
    assert cli("run", suite, "--repeat", "0").code == 2
    assert cli("run", suite, "--fail-under", "much").code == 2
    assert cli("run", suite, "--fail-under", "1.2").code == 2


@pytest.mark.parametrize("host", ["", " ", "..", "a..b", "9" * 400, "300.1.1.1", "nobody.invalid"])
@pytest.mark.parametrize("verb", [verb for verb, option in OPTIONS if option.name == "host"])
def test_a_host_that_this_machine_is_not(cli, verb: str, host: str) -> None:
    result = cli(verb, "--port=0", f"--host={host}")
    assert result.code == 3
    assert "no address of this machine has this name" in one_sentence(result.err)


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
@pytest.mark.parametrize(
    "words",
    [
        ("run", "--fail-under"),
        ("run", "--max-time"),
        *((verb, option.opts[0]) for verb, option in OPTIONS if isinstance(option.type, FiniteNumber)),
    ],
)
def test_what_is_no_number_limits_nothing(cli, words: tuple[str, str], number: str) -> None:
    verb, option = words
    result = cli(verb, f"{option}={number}")
    assert result.code == 2
    assert option in one_sentence(result.err)


@pytest.mark.parametrize(
    "words", [("run", "--json"), ("run", "--ab", "a"), ("grade", "--var"), ("--debug", "ps", "--db")]
)
def test_an_option_without_its_value_names_the_help_of_its_verb(cli, words: tuple[str, ...]) -> None:
    verb = next(word for word in words if not word.startswith("-"))
    assert f"`agenteval {verb} --help`" in one_sentence(cli(*words).err)


def test_an_unknown_test_is_named_with_what_there_is(cli, suite: Path) -> None:
    result = cli("run", suite, "--test", "god")
    assert result.code == 2
    assert "'good'" in one_sentence(result.err)


def test_an_unknown_execution(cli, suite: Path) -> None:
    assert cli("stats").code == 2
    assert "nothing has run yet" in one_sentence(cli("show", "01ZZZZZZ").err)


def test_a_report_into_a_missing_folder_is_said_before_anything_runs(cli, suite: Path, tmp_path: Path) -> None:
    result = cli("run", suite, "--junit", tmp_path / "no" / "r.xml")
    assert result.code == 2
    assert "no such folder" in one_sentence(result.err)
    assert cli("history").out.startswith("nothing has run yet")


def test_a_history_in_a_folder_that_can_not_be(cli, suite: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("x")
    result = cli("--db", blocked / "h.db", "run", suite)
    assert result.code == 3
    one_sentence(result.err)


def test_an_error_in_the_program_is_one_sentence_and_a_traceback_on_demand(cli, suite: Path, monkeypatch) -> None:
    def broken(paths: object) -> None:
        raise RuntimeError("\x1b[31mred\nnews")

    monkeypatch.setattr("agenteval_tui.cli.suite_arguments.check_suites", broken)
    result = cli("validate", suite)
    assert result.code == 3
    said = one_sentence(result.err)
    assert "RuntimeError" in said
    assert "--debug" in said
    assert "\x1b" not in said
    debug = cli("validate", suite, "--debug")
    assert debug.code == 3
    assert "Traceback" in debug.err


def test_ctrl_c_in_a_verb_ends_with_130(cli, suite: Path, monkeypatch) -> None:
    def interrupted(paths: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("agenteval_tui.cli.suite_arguments.check_suites", interrupted)
    assert cli("validate", suite).code == 130


def test_without_a_terminal_the_app_is_not_opened(cli) -> None:
    result = cli()
    assert result.code == 2
    assert "needs a terminal" in one_sentence(result.err)
    assert "agenteval run" in result.err
    assert "Look:" in result.out
    assert cli.opened == []


def test_on_a_terminal_the_app_opens_on_the_given_paths(cli, suite: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(cli_main, "on_a_terminal", lambda: True)
    assert cli().code == 0
    assert cli("--db", tmp_path / "h.db", suite).code == 0
    assert [(start.paths, start.db) for start in cli.opened] == [((), None), ((suite,), tmp_path / "h.db")]


def test_help_of_every_verb(cli) -> None:
    for verb in own_verbs():
        result = cli(verb, "--help")
        assert result.code == 0, verb
        assert "--db" in result.out
        assert result.err == ""
    everything = cli("--help")
    assert everything.code == 0
    assert all(f"  {verb}" in everything.out for verb in own_verbs())


@pytest.mark.e2e
def test_nothing_of_the_ui_toolkit_is_imported(suite: Path) -> None:
    """By no verb but those that show something; and nothing else that takes its time by those of every day."""
    root = Path(__file__).resolve().parents[2]
    toolkit, dear = ["textual", "rich"], ["textual", "rich", "httpx", "jsonschema"]
    daily = [["--version"], ["--help"], ["history"], ["grade", "--help"], ["validate", str(suite)]]
    verbs = [
        *((one, dear) for one in daily),
        *((one, toolkit) for one in (["schema", "suite"], ["validate", str(root / "sample_suites")])),
    ]
    # One process for all of them: what is loaded stays, so the first that loads it is named.
    probe = (
        "import sys, agenteval_tui.__main__ as m\n"
        f"for given, banned in {verbs!r}:\n"
        "    sys.argv = ['agenteval', *given]\n"
        "    try:\n"
        "        code = m.main(given)\n"
        "    except SystemExit as end:\n"
        "        code = end.code\n"
        "    found = [n for n in sys.modules if n.partition('.')[0] in banned]\n"
        "    if code or found:\n"
        "        sys.exit(f'{given}: {code} {found}')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe],
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.e2e
def test_version_imports_next_to_nothing(program: Program) -> None:
    import sys

    probe = "import sys, agenteval_tui.__main__ as m; m.main(['--version']); print('click' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", probe],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).resolve().parents[2],
    )
    assert done.stdout.splitlines()[1] == "False"


@pytest.mark.e2e
def test_a_reader_that_goes_away_costs_no_traceback(program: Program, suite: Path) -> None:
    import os
    import sys

    root = Path(__file__).resolve().parents[2]
    shell = f'"{sys.executable}" -m agenteval_tui schema suite | head -n 1'
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {shell}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert done.stdout == "{\n"
    assert done.stderr == ""
    assert done.returncode == 0


WRONG: list[tuple[list[str], str]] = [
    (["run", "SUITE", "--max-cost", "0"], "max-cost"),
    (["run", "SUITE", "--max-cost", "cheap"], "max-cost"),
    (["run", "SUITE", "--max-tokens", "0"], "max-tokens"),
    (["run", "SUITE", "--max-time", "soon"], "'soon' is not a duration"),
    (["run", "SUITE", "--max-time", "-5"], "is not a duration"),
    (["run", "SUITE", "--max-time", "nan"], "is not a duration"),
    (["run", "SUITE", "--sample", "0"], "sample"),
    (["run", "SUITE", "--cache=some"], "cache"),
    (["run", "SUITE", "--ab", "one"], "ab"),
    (["run", "SUITE", "--ab", "shop", "nobody"], "nobody"),
    (["run", "SUITE", "--ab", "shop", "shop", "--agent", "shop"], "--ab and --agent"),
    (["run", "SUITE", "--ab", "shop", "shop", "--variation", "v"], "--ab and --variation"),
    (["run", "SUITE", "--ab", "shop", "shop", "--no-regressions"], "--ab and --no-regressions"),
    (["run", "SUITE", "--agent", "nobody"], "nobody"),
    (["run", "SUITE", "--variation", "nobody"], "nobody"),
    (["run", "SUITE", "--detach", "--junit", "r.xml"], "--detach exits before"),
    (["run", "SUITE", "--detach", "--json", "-"], "--detach exits before"),
    (["run", "SUITE", "--detach", "--fail-under", "0.5"], "--fail-under"),
    (["run", "SUITE", "--plan", "--detach"], "--plan runs nothing"),
    (["run", "SUITE", "--plan", "--md", "r.md"], "--plan runs nothing"),
    (["run", "SUITE", "--md", "-"], "only --json can go to stdout"),
    (["run", "SUITE", "--html", "no/such/r.html"], "no such folder"),
    (["run", "SUITE", "--csv", "."], "a folder, not a file"),
    (["run", "SUITE", "--json", "r", "--md", "r"], "the same file"),
    (["run", "SUITE", "--resume", "last"], "already has its runs"),
    (["run", "--resume", "last", "--repeat", "2"], "--repeat can't be given"),
    (["run", "--resume", "last", "--cache"], "--cache can't be given"),
    (["run", "--resume", "last", "--seed", "0"], "--seed can't be given"),
    (["run", "SUITE", "--nam", "x"], "there is no option --nam (did you mean --name"),
    (["stats", "--xyzzy"], "there is no option --xyzzy (`agenteval stats --help` shows all options)"),
    (["completion"], "missing argument 'SHELL': choose from bash, zsh, fish (`agenteval completion"),
    (["completion", "tcsh"], "invalid value for 'SHELL': 'tcsh' is not one of 'bash', 'zsh', 'fish'"),
    (["triage", "x", "forget"], "invalid value for '[DECISION]': 'forget' is not one of 'accept'"),
    (["run", "--resume", "last"], "nothing has run yet"),
    (["resume"], "nothing has run yet"),
    (["resume", "01ABCDEF"], "01ABCDEF"),
    (["attach"], "no execution is running"),
    (["attach", "--fail-under", "2"], "is not a number from 0 to 1"),
    (["cancel", "--all", "01ABCDEF"], "not both"),
    (["pause", "01ABCDEF"], "no execution is running"),
    (["continue"], "no execution is running"),
    (["init", "--agent-kind", "spy"], "agent-kind"),
    (["trust", "no/such/folder"], "no such folder"),
    (["trust", ".", "--list"], "give one of"),
    (["trust", "--revoke", "."], "was not trusted"),
    (["stats", "--costs", "--ab"], "--costs and --ab can't be used together"),
    (["stats", "--costs"], "nothing has run yet"),
    (["fork", "good", "--price", "--json"], "--price and --json can't be used together"),
    (["blame", "good", "--price", "--json"], "--price and --json can't be used together"),
    (["shrink", "good", "--price", "--json"], "--price and --json can't be used together"),
    (["init", "--list", "no/such/folder"], "there is no such folder"),
    (["trends", "--alert-feedback", "kind=7"], "--alert-feedback: '7' is not a number from 0 to 1"),
    (["trends", "--alert-below", "200%"], "--alert-below: '200%' is not a number from 0 to 1"),
    (["label", "good", "6"], "6 is not a rating from 1 to 5; a score needs --key"),
    (["label", "good", "--key", "kind", "7"], "give one score from 0 to 1, such as 0.8, behind --key kind"),
    (["label", "good", "--key", "kind", "nan"], "give one score from 0 to 1, such as 0.8, behind --key kind"),
    (["show", "--transcript", "--output"], "--transcript and --output can't be used together"),
    (["show", "--output", "--diff", "last"], "--output and --diff can't be used together"),
    (["show", "last", "--request", "1", "--output"], "--output and --request can't be used together"),
    (["show", "last", "--request", "1", "--diff", "last"], "--request can't be used with another run"),
    (["import", "SUITE", "--to", "-", "--json"], "--to and --json can't be used together"),
    (["db", "import", "gone.db"], "there is no such history file"),
    (["db", "import", "SUITE"], "this is not a history file"),
    (["db", "salvage", "gone.db"], "there is no such history file"),
    (["db", "salvage", "SUITE"], "this is not a history file"),
]


@pytest.mark.parametrize(("arguments", "said"), WRONG, ids=lambda one: " ".join(one) if isinstance(one, list) else "")
def test_each_wrong_use_is_one_sentence_and_runs_nothing(
    cli, suite: Path, tmp_path: Path, monkeypatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.rglob("*"))
    result = cli(*[str(suite) if one == "SUITE" else one for one in arguments])
    assert result.code == 2, result.err
    assert said in one_sentence(result.err)
    assert result.out == ""
    made = {path.name for path in set(tmp_path.rglob("*")) - before}
    assert made <= {"data", "history.db", "history.db-wal", "history.db-shm", "history.lock", "live"}, made


def test_a_folder_without_suites_is_wrong_use_as_json_too(cli, tmp_path: Path) -> None:
    assert cli("validate", tmp_path).code == 2
    as_json = cli("validate", tmp_path, "--json")
    assert (as_json.code, as_json.json("validate")) == (2, [])


def test_a_file_to_write_is_not_called_another_tools(cli, suite: Path, tmp_path: Path) -> None:
    cli("run", suite)
    chats = tmp_path / "chats.json"
    assert cli("export", "last", chats).code == 0
    assert "--force overwrites it" in one_sentence(cli("export", "last", chats).err)


def test_the_programs_own_debug_is_not_ours(cli, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    nowhere = tmp_path / "file" / "history.db"
    assert "history" in one_sentence(cli("--db", nowhere, "record", "--", "true", "--debug").err)
    assert "Traceback" in cli("--db", nowhere, "record", "--debug", "--", "true").err


def test_a_wrong_word_about_the_history_is_wrong_use(cli, suite: Path, tmp_path: Path) -> None:
    """Exit code 3 means that the file or the machine failed."""
    cli("run", suite)
    copy = tmp_path / "copy.db"
    assert cli("db", "export", copy).code == 0
    for words, said in (
        (("db", "export", copy), "already exists"),
        (("db", "salvage", copy, "--to", copy), "already exists"),
        (("quarantine", "add", "good", "--until", "2020-01-01"), "must lie in the future"),
        (("quarantine", "add", f"{suite}::good", "--criterion", "gone"), "good has no criterion 'gone'"),
        (("baseline", "set", "last", "--test", "gone"), "lists its tests"),
    ):
        refused = cli(*words)
        assert (refused.code, said in one_sentence(refused.err)) == (2, True), refused.err


def test_a_path_behind_cache_is_a_path(cli, suite: Path) -> None:
    assert cli("run", "--cache", suite, "--test", "good", "--plan").code == 0
    assert "first repetitions" in cli("run", "--cache", suite, "--plan").out
    assert "all repetitions" in cli("run", "--cache=all", suite, "--plan").out
