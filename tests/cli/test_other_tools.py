"""Verbs and options of other tools get a hint that leads to ours."""

from __future__ import annotations

import pytest

from agenteval_tui.cli import other_tools
from agenteval_tui.cli.main import main
from agenteval_tui.cli.verbs import find_verb, own_verbs


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("evaluate", "support"), "use `agenteval run SUITE`"),
        (("vizra:evaluate", "customer_support"), "use `agenteval run SUITE`"),
        (("ab-test", "v1", "v2"), "use `agenteval run SUITE --ab A B`"),
        (("eval",), "use `agenteval run SUITE`"),
        (("create_feedback", "run-1"), "use `agenteval label RUN`"),
        (("list_runs",), "use `agenteval history`"),
        (("analytics",), "use `agenteval stats last`"),
        (("testen",), "use `agenteval run SUITE`"),
        (("vergleichen", "a", "b"), "use `agenteval compare A B`"),
        (("bewerten",), "use `agenteval grade --execution ID --criteria FILE`"),
        (("view",), "use `agenteval open last`"),
        (("help", "evaluate"), "use `agenteval run SUITE`"),
        (("run", "--output", "x.json"), "there is no option --output (use --json FILE"),
        (("run", "--output=x.json"), "there is no option --output (use --json FILE"),
        (("run", "--file=data.csv"), "use the path of a suite: `agenteval import FILE --to NAME.suite.yaml`"),
        (("run", "x.yaml", "--judge-model", "gpt-4o"), "use --judge AGENT"),
        (("run", "--experiment-prefix", "v2"), "use --name TEXT"),
        (("run", "--max-concurrency", "3"), "use --concurrency N"),
        (("grade", "--judge-model", "gpt-4o"), "there is no option --judge-model (use --judge AGENT; `agenteval grade"),
        (("stats", "last", "--output", "x.json"), "there is no option --output (use --json; `agenteval stats"),
        (("import", "--config", "x.yaml"), "there is no option --config ("),
        (("import", "--suite", "x.yaml"), "there is no option --suite"),
        (("stats", "--csv-file", "x.csv"), "there is no option --csv-file ("),
        (("--db", "run", "grade", "--output", "x.json"), "there is no option --output (use --json; `agenteval grade"),
        (("--db", "grade", "run", "--output", "x.json"), "there is no option --output (use --json FILE"),
        (("history", "--experiment", "v2"), "there is no option --experiment ("),
        (("trends", "--limit", "5"), "there is no option --limit"),
    ],
)
def test_words_of_other_tools_lead_to_ours(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], hint: str
) -> None:
    assert main(list(words), launch_app=lambda start: 0) == 2
    assert hint in capsys.readouterr().err


def test_no_word_of_another_tool_hides_one_of_ours() -> None:
    run = find_verb("run")
    assert run is not None
    own = {option for one in run.params for option in one.opts}
    assert not own & set(other_tools._OPTIONS)
    assert not set(own_verbs()) & set(other_tools._VERBS)
    for command in other_tools._VERBS.values():
        assert command.split()[0] in own_verbs()
    for option in other_tools._OPTIONS.values():
        assert option.name in own or (option.name == "" and option.run.startswith("the path"))
