"""A criterion is its test and its name: labels, verdicts and reports on criteria of equal content stay apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import ANY
from urllib.parse import quote

import pytest

from agenteval_tui.analysis.explanation import address_of_criterion
from agenteval_tui.cli.commands.open_app import start_at
from agenteval_tui.cli.invocation import Invocation
from agenteval_tui.core.errors import AgentevalError

HUMAN = '{metrics: [{type: Human, question: "Is it good?"}]}'
MATCH = "{metrics: [{type: TextMatch, contains_ignore_case: order}]}"


def suite(folder: Path, criteria: list[tuple[str, str]], *, name: str = "Orders", test: str = "order") -> Path:
    """A suite with one test; `criteria`: (name, more YAML or config)."""
    lines = [
        f"name: {name}",
        "agent: shop",
        "agents: {shop: {kind: demo, version: v1, pace: 0}}",
        "tests:",
        f"  - id: {test}",
        '    prompt: "Where is my order #W1042?"',
        "    criteria:",
    ]
    for called, config in criteria:
        lines += [
            f"      - name: {json.dumps(called, ensure_ascii=False)}",
            "        prototype_class: TextResponse",
            f"        config_uxon: {config}",
        ]
    path = folder / "orders.suite.yaml"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def newest(cli: Any) -> str:
    return str(json.loads(cli("show", "last", "--json").out)["runs"][0]["run"])


def outcomes(cli: Any, run: str) -> dict[str, str]:
    shown = json.loads(cli("show", run, "--json").out)
    return {one["criterion"]: one["outcome"] for one in shown["criteria"]}


@pytest.mark.parametrize(
    "names", [("tone", "facts"), ("tone", "tone"), (" ", "  "), ("a/b", "1"), ("tone", "Tone"), ('"q"', "'q'")]
)
def test_a_label_of_one_criterion_answers_no_other(cli: Any, tmp_path: Path, names: tuple[str, str]) -> None:
    cli("run", suite(tmp_path, [(one, HUMAN) for one in names]))
    run = newest(cli)
    waiting = json.loads(cli("review", "--json").out)["waiting"]
    assert [one["address"] for one in waiting] == [f"{run}/1", f"{run}/2"]
    assert "needs_review" in cli("label", f"{run}/1", "passed").out
    first, second = outcomes(cli, run)
    assert outcomes(cli, run) == {first: "passed", second: "needs_review"}
    (left,) = json.loads(cli("review", "--json").out)["waiting"]
    assert (left["address"], left["criterion"]) == (f"{run}/2", second)
    assert "failed" in cli("label", f"{run}/2", "failed").out
    assert outcomes(cli, run) == {first: "passed", second: "failed"}


def test_a_label_of_the_run_is_no_label_of_its_criteria(cli: Any, tmp_path: Path) -> None:
    cli("run", suite(tmp_path, [("tone", HUMAN), ("facts", HUMAN), ("about it", MATCH)]))
    run = newest(cli)
    said = cli("label", run, "passed").out
    assert "needs_review" in said
    assert f"this labels the run, not its criteria; to label a criterion: {run}/1, {run}/2, {run}/3" in said
    assert set(outcomes(cli, run).values()) == {"needs_review", "passed"}
    assert len(json.loads(cli("review", "--json").out)["waiting"]) == 2
    for one in json.loads(cli("judge-report", "--json").out)["criteria"]:
        assert (one["labelled"], one["n"], one["accuracy"]) == (0, 0, None)


def test_a_label_of_the_run_counts_for_the_only_criterion_that_decides(cli: Any, tmp_path: Path) -> None:
    config = f"{MATCH}\n        severity: warning"
    cli("run", suite(tmp_path, [("tone", HUMAN), ("about it", config)]))
    run = newest(cli)
    assert "counts for no criterion" not in cli("label", run, "failed").out
    assert outcomes(cli, run) == {"tone": "failed", "about it": "passed"}
    report = {one["criterion"]: one for one in json.loads(cli("judge-report", "--json").out)["criteria"]}
    assert report["about it"]["labelled"] == 0, "it decides nothing: what was said of the run was not said of it"


def test_a_label_is_taken_back_on_the_command_line(cli: Any, tmp_path: Path) -> None:
    cli("run", suite(tmp_path, [("tone", HUMAN), ("facts", HUMAN)]))
    run = newest(cli)
    cli("label", f"{run}/tone", "failed", "--who", "kim")
    cli("label", f"{run}/tone", "passed", "--who", "kim")
    cli("label", f"{run}/facts", "passed", "--who", "kim")
    assert outcomes(cli, run) == {"tone": "passed", "facts": "passed"}
    none = cli("label", f"{run}/tone", "--remove", "--who", "lee")
    assert (none.code, "lee has no label on tone" in none.err, "kim" in none.err) == (2, True, True)
    assert "; the run now counts as failed" in cli("label", f"{run}/tone", "--remove", "--who", "kim").out
    assert outcomes(cli, run) == {"tone": "failed", "facts": "passed"}, "the label before it counts again"
    assert "needs_review" in cli("label", f"{run}/tone", "--remove", "--who", "kim").out
    assert cli("label", f"{run}/tone", "--remove", "--who", "kim").code == 2
    assert cli("label", f"{run}/tone", "passed", "--remove").code == 2
    assert cli("label", f"{run}/tone").code == 2


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["tone", "tone"], 'a second criterion named "tone": its position tells it apart, and it is called "tone (2)"'),
        (["a", "  "], 'a criterion without a name: its position tells it apart, and it is called "criterion 2"'),
        (["a", "b"], ""),
    ],
)
def test_validate_says_that_names_do_not_tell_criteria_apart(
    cli: Any, tmp_path: Path, names: list[str], said: str
) -> None:
    checked = cli("validate", suite(tmp_path, [(one, MATCH) for one in names]))
    assert checked.code == 0
    assert (said in checked.out) if said else ("same-name" not in checked.out)


# Versions


WRITTEN = '\'{"metrics": [{"type": "TextMatch", "contains_ignore_case": "order"}]}\''
OTHERS = WRITTEN[:-1] + " // own words'"
STRICT = WRITTEN.replace("order", "nothing")


def test_a_version_is_restored_as_its_criterion_was_written(cli: Any, tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        folder.mkdir()
    cli("run", suite(first, [("about it", OTHERS), ("again", WRITTEN)], test="theirs"))
    plain = suite(second, [("about it", WRITTEN)], test="mine")
    before = plain.read_bytes()
    cli("run", plain)
    suite(second, [("about it", STRICT)], test="mine")
    cli("run", plain)
    told = json.loads(cli("criterion", "mine/about it", "--json").out)
    assert [one["runs"] for one in told["versions"]] == [1, 1]
    assert not any("own words" in one["text"] for one in told["versions"])
    old = told["versions"][1]["hash"]
    assert "own words" in cli("criterion", "theirs/about it", "--json").out
    assert cli("criterion", "mine/about it", "--restore", old).code == 0
    assert plain.read_bytes() == before
    # Within one test, too: the same content, written otherwise.
    told = json.loads(cli("criterion", "theirs/again", "--json").out)
    assert "own words" not in told["versions"][0]["text"]


def test_a_criterion_that_was_renamed_says_so_and_mixes_nothing(cli: Any, tmp_path: Path) -> None:
    path = suite(tmp_path, [("tone", MATCH), ("facts", MATCH)])
    cli("run", path)
    suite(tmp_path, [("facts", MATCH), ("voice", MATCH)])  # reordered, and one renamed
    cli("run", path)
    told = {name: json.loads(cli("criterion", f"order/{name}", "--json").out) for name in ("facts", "voice", "tone")}
    assert [(len(one["versions"]), one["versions"][0]["runs"]) for one in told.values()] == [(1, 2), (1, 1), (1, 1)]
    assert {name: one["was_named"] for name, one in told.items()} == {"facts": "", "voice": "tone", "tone": ""}
    assert "renamed: it was tone before" in cli("criterion", "order/voice").out
    lines = json.loads(cli("trends", "--json").out)["criteria"]
    assert {one["criterion"]: one["n"] for one in lines} == {"facts": 2, "voice": 1, "tone": 1}


def test_trends_have_a_line_for_each_criterion(cli: Any, tmp_path: Path) -> None:
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        cli("run", suite(folder, [("same", MATCH), ("same", MATCH), ("other", MATCH)]), "--repeat", 2)
    told = json.loads(cli("trends", "--json").out)["criteria"]
    assert sorted((Path(one["file"]).parent.name, one["criterion"], one["n"]) for one in told) == [
        (place, name, 2) for place in ("one", "two") for name in ("other", "same", "same (2)")
    ]
    shown = cli("trends").out
    assert "order / same (2) (" in shown, "two suites of one name: their files tell them apart"


# Addresses

ODD = (
    "a/b",
    'say "hi"',
    "it's",
    "größer als 5 €",
    "tone",
    "tone",
    "Tone",
    "2",
    "50 % off",
    "a b",
    "日本語",
    "#x",
    "x\ty",
)


def test_an_address_opens_its_criterion_whatever_it_is_called(cli: Any, tmp_path: Path) -> None:
    cli("run", suite(tmp_path, [(one, MATCH) for one in ODD]))
    run = newest(cli)
    names = list(outcomes(cli, run))
    assert names == [*ODD[:5], "tone (2)", *ODD[6:]]
    for number, name in enumerate(names, 1):
        copied = address_of_criterion(run, names, name)
        for address in (copied, f"{run}/{number}", f"{run}/{quote(copied.partition('/')[2], safe='')}"):
            assert start_at(Invocation(lambda start: 0), address).criterion == name, address
        (told,) = json.loads(cli("why", copied, "--json").out)["criteria"]
        assert told["result"]["criterion"] == name
    assert address_of_criterion(run, names, "2") == f"{run}/8", "a name that is a number goes by its position"
    assert start_at(Invocation(lambda start: 0), f"{run}/größer").criterion == "größer als 5 €"
    with pytest.raises(AgentevalError, match="there is no criterion 'nothing'"):
        start_at(Invocation(lambda start: 0), f"{run}/nothing")


def test_an_address_opens_a_criterion_that_judged_no_run_yet(cli: Any, tmp_path: Path) -> None:
    cli("run", suite(tmp_path, [("tone", MATCH)]))
    suite(tmp_path, [("new one", MATCH), ("tone", MATCH)])
    run = newest(cli)
    assert start_at(Invocation(lambda start: 0), f"{run}/new one").criterion == "new one"


def test_labels_are_in_what_is_written(cli: Any, tmp_path: Path) -> None:
    cli("run", suite(tmp_path, [("tone", HUMAN), ("about it", MATCH)]))
    run = newest(cli)
    cli("label", f"{run}/tone", "failed", "2", "--who", "kim", "--comment", "too <b>rude</b>")
    cli("label", run, "passed", "--who", "lee", "--comment", "fine")
    told = cli("show", run, "--json").json("run")["labels"]
    assert [(one["criterion"], one["passed"], one["rating"], one["comment"], one["who"]) for one in told] == [
        ("tone", False, 2, "too <b>rude</b>", "kim"),
        (None, True, None, "fine", "lee"),
    ]
    assert told == json.loads(cli("show", "last", "--json").out)["runs"][0]["labels"]
    line = "label of tone by kim: failed, 2 of 5: too <b>rude</b>"
    assert line in cli("show", run).out
    assert line in cli("why", run).out
    assert cli("why", f"{run}/tone", "--json").json("why")["labels"] == told
    assert [one["who"] for one in json.loads(cli("why", f"{run}/2", "--json").out)["labels"]] == ["lee"]
    files = {name: tmp_path / f"report.{name}" for name in ("json", "html", "junit", "md", "csv")}
    assert cli("report", *(part for name, path in files.items() for part in (f"--{name}", path))).code == 0
    texts = {name: path.read_text("utf-8") for name, path in files.items()}
    for name, text in texts.items():
        assert "rude" in text, name
        assert "fine" in text, name
        assert "<b>rude" not in text or name in ("json", "csv", "md"), name
    assert json.loads(texts["json"])["runs"][0]["labels"] == told
    exported = cli("export", run, "--format", "agenteval")
    assert json.loads(exported.out)["labels"] == told


# Criteria that change over time


def test_trends_break_where_a_criterion_changed(cli: Any, tmp_path: Path) -> None:
    path = suite(tmp_path, [("tone", WRITTEN), ("facts", WRITTEN)])
    cli("run", path)
    cli("run", path)
    cli("run", suite(tmp_path, [("facts", WRITTEN), ("voice", WRITTEN)]))  # renamed and reordered: judged alike
    cli("run", suite(tmp_path, [("facts", STRICT), ("voice", WRITTEN)]))
    cli("run", suite(tmp_path, [("voice", WRITTEN), ("new", WRITTEN)]))
    told = cli("trends", "--by", "execution", "--json").json("trends")
    found = [(one["bin"], one["criterion"], one["kind"]) for one in told["breaks"]]
    assert found == [(3, "facts", "changed"), (4, "facts", "removed"), (4, "new", "added")]
    changed = told["breaks"][0]
    assert changed["old"] != changed["new"]
    assert (changed["test"], changed["suite"], changed["file"]) == ("order", "Orders", str(path))
    shown = cli("trends", "--by", "execution").out
    assert 'criterion "facts" of order changed' in shown
    assert 'criterion "new" of order was added: judged differently from here' in shown
    assert "judged differently" not in cli("trends", "--window", "1m", "--test", "order", "--json").out


def test_compare_says_which_verdicts_are_not_comparable(cli: Any, tmp_path: Path) -> None:
    path = suite(tmp_path, [("tone", WRITTEN), ("facts", WRITTEN)])
    cli("run", path, "--set-baseline")
    cli("run", suite(tmp_path, [("facts", WRITTEN), ("voice", WRITTEN)]))
    same = cli("compare", "baseline", "last", "--json").json("compare")
    assert (same["notes"], same["tests"][0]["comparable"]) == ([], True), "renamed and reordered only"
    names = {one["criterion"]: (one["was_name"], one["comparable"]) for one in same["tests"][0]["criteria"]}
    assert names == {"facts": ("", True), "voice": ("tone", True)}
    assert "not comparable" not in cli("compare", "baseline", "last", "--all").out
    done = cli("run", suite(tmp_path, [("facts", STRICT), ("voice", WRITTEN)]), "--no-regressions")
    said = 'judged differently than before, and counted all the same: order: criterion "facts"'
    assert done.code == 1, "the gate counts it, and says so"
    assert said in done.out
    note = 'not comparable: 1 test is judged differently than before (order: criterion "facts" edited);'
    assert note in cli("compare", "baseline", "last").out
    told = cli("compare", "baseline", "last", "--json").json("compare")
    assert told["notes"] == [note + " figures and gates still count these verdicts"]
    (test,) = told["tests"]
    assert (test["state"], test["comparable"], test["attribution"]["who"]) == ("worse", False, "criterion")
    assert {one["criterion"]: one["comparable"] for one in test["criteria"]} == {"facts": False, "voice": True}
    assert json.loads(cli("show", "last", "--json").out)["baseline"]["not_comparable"] == ["order"]
    assert "Judged differently than before, and counted all the same: order: criterion" in cli("report").out
    # Two versions compared on purpose say nothing of the sort.
    old = json.loads(cli("criterion", "order/facts", "--json").out)["versions"][1]["hash"]
    assert "judged differently" not in cli("criterion", "order/facts", "--compare", old, "current").out


def test_a_history_is_graded_with_the_criteria_of_today(cli: Any, tmp_path: Path) -> None:
    path = suite(tmp_path, [("tone", STRICT), ("facts", WRITTEN)])
    cli("run", path, "--repeat", 2)
    cli("run", suite(tmp_path, [("tone", WRITTEN), ("facts", WRITTEN)]))
    stored = cli("trends", "--by", "execution", "--json").json("trends")
    assert [one["passed"] for one in stored["series"][0]["bins"]] == [0, 1]
    assert (stored["regraded"], len(stored["breaks"])) == (None, 1)
    told = cli("trends", "--by", "execution", "--regrade", "--json").json("trends")
    assert [one["passed"] for one in told["series"][0]["bins"]] == [2, 1]
    assert (told["breaks"], told["causes"]) == ([], [])
    assert told["regraded"] == {"runs": 3, "changed": 2, "errors": 0, "left_out": 0, "cut": False}
    assert {one["criterion"]: (one["passed"], one["n"]) for one in told["criteria"]} == {
        "tone": (3, 3),
        "facts": (3, 3),
    }
    assert cli("trends", "--by", "execution", "--json").json("trends") == {
        **stored,
        "until": ANY,
        "since": ANY,
        "criteria_since": ANY,
    }
    # A stricter criterion fails what passed, and its causes are those of today; another test's runs stay out of it.
    suite(tmp_path, [("tone", STRICT)])
    said = cli("trends", "--by", "execution", "--regrade").out
    assert said.startswith("graded with today's criteria: 3 runs, 1 has a different verdict\n")
    told = cli("trends", "--regrade", "--json").json("trends")
    assert [(one["runs"], one["tests"]) for one in told["causes"]] == [(3, 1)]
    suite(tmp_path, [("tone", STRICT)], test="another")
    told = cli("trends", "--regrade", "--json").json("trends")
    assert (told["regraded"]["left_out"], told["series"]) == (3, [])
    suite(tmp_path, [("tone", "{metrics: [{type: Judge, criteria: Kind}]}")])
    told = cli("trends", "--regrade", "--json").json("trends")
    assert (told["regraded"]["errors"], told["series"][0]["errors"]) == (3, 3), "nobody is asked"
    assert cli("trends", "--regrade", "--alert-below", "0.5").code == 2
