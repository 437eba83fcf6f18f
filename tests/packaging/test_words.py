"""What people read is plain English: turns that read like a translation are found here, not by a reader.

Read: every text in the package that is not a docstring, the docstrings that people are shown (commands, and the classes
that the editor explains), the README and the documentation.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from sources import modules, of_all_sources

ROOT = Path(__file__).parents[2]
BANNED = re.compile(
    r"""
    (?<!there\ )(?<!There\ )\b(?:is|are|was|were)\ no\ (?!longer\b|more\b|such\b|way\b|one\b|doubt\b)[A-Za-z]+
    | \bin\ the\ midst\b
    | \botherwise\ than\b
    | \bof\ yours\b
    | \bstands?\ (?:in|at|behind|above|below|there|for\ itself)\b
    | \bwent\ away\b
    | \bgo(?:es)?\ on\b
    | \bwithout\ a\ word\b
    | \bmend(?:s|ed|ing)?\b
    | \bsaid\ so\b
    | \bwhat\ (?:ended|came|stands(?!\ out))\b
    | \bso\ many\b
    | \bcan't\ be\ made\b
    | \bis\ there\ (?:already|twice)\b
    | \bthere\ any\ more\b
    | \bthe\ right\ one\ is\b
    | \bcalled\ were\b
    | \bexpected\ are\b
    | \b(?:least|most)\ [^ ]+\ (?:is\ )?wanted\b
    | \bneed\ not\ be\b
    | \bwithout\ an\ end\b
    | \banew\b
    | \b(?:one|a\ \w+)\ a\ (?:line|branch|tool|run|message)\b
    | \bis\ told\ by\b
    | \bin\ the\ place\ of\b
    | \btell(?:s|ing)?\ of\b
    | \bthat\ (?:is|are)\ there\b
    | \bbegins?\ it\ again\b
    | \bare\ looked\ (?:for|at)\b
    | \bwhich\ cannot\ be\b
    | \boutside\ of\ the\b
    | \bfits\ more\ than\ one\b
    | \bhas\ to\ be\ asked\b
    | \bput\ right\b
    | \bdoes\ not\ run\ any\ more\b
    | \bother\ words\ (?:about|of)\b
    | \bof\ them\b
    | \b(?:is|are)\ told\b(?!\ apart)
    | \banother\ one\b
    | \bbegan\b
    | \bnobody\ [a-z]+
    | \b(?:process|step|test|list|line|app|history|table|thread|execution|package|criterion)(?:es|s)?
      \ of\ (?:its|their|your)\ own\b
    | \bgoes\ with\ (?:--|`)
    """,
    re.VERBOSE,
)
INSTEAD = 'write it as you would say it to a colleague: subject, verb, object (CONTRIBUTING.md, "Rules for English")'
SENTENCE = re.compile(r"\S\s\S")
BARE_KEY = re.compile(r"(?:^|[.:;] )(?!(?:I|A|a) (?!sets|adds))(?:\^?[A-Za-z1-9]|alt\+[a-z]|F\d+) (?:[a-z]+s|on)\b")
"""A sentence that begins with a key. A person can have other keys: `{suites.run}` stands for theirs."""
OWN_KEYS = ("screens/suggest.py", "screens/label.py", "screens/help.py")
"""Sheets, whose keys nobody can change, and `k tokens`."""
KEYS_THAT_ACT = re.compile(
    r"(?:\{[a-z]+\.[a-z_]+\}|(?<![\w-])(?:enter|esc|tab|space|F\d+|\^[a-z]))(?: again)? "
    r"(?!(?:is|as|was|has)\b)[a-z]+s\b"
)
"""A key does nothing by itself: people press it. "Press esc to clear the filter", not "esc clears the filter"."""
PAIR = 2
NOT_READ = {
    # Its words are the error's fingerprint.
    "agents/http/client.py": ", which nobody asked for",
    "history/open_database.py": "the process that ran it ended without a word",
    # Part of a prompt: other words would be another question, and ask every judge again.
    "grading/metrics/judge_question.py": "Length and politeness are no merit by themselves",
}


def texts() -> Iterator[tuple[str, str]]:
    """Where a text is, and the text."""
    for name, nodes in modules().items():
        left_out = NOT_READ.get(name, "")
        if left_out == "*":
            continue
        hidden = {id(text) for node in nodes for text in _docstrings(node, shown=_shown(name))}
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in hidden:
                text = node.value.replace(left_out, "") if left_out else node.value
                if SENTENCE.search(text):
                    yield f"{name}:{node.lineno}", text
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        # In quotes or backquotes are names: of options, of fields, of what programs print.
        prose = re.sub(r"`[^`\n]*`|\"[^\"\n]{1,20}\"", "…", path.read_text(encoding="utf-8"))
        yield path.relative_to(ROOT).as_posix(), prose


def _shown(name: str) -> bool:
    """Whether docstrings of classes and functions of this module are shown to people."""
    return name.startswith(("cli/commands/", "grading/metrics/", "grading/extractors/"))


def _docstrings(node: ast.AST, *, shown: bool) -> Iterator[ast.AST]:
    """The texts of a node that only developers read: its docstring, and those that follow an assignment."""
    body = getattr(node, "body", None)
    if not isinstance(body, list):
        return
    for one in body:
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
            is_shown = shown and (
                isinstance(node, ast.ClassDef)
                or (isinstance(node, ast.FunctionDef) and any("command" in ast.dump(d) for d in node.decorator_list))
            )
            if not is_shown or node.name.startswith("_"):  # type: ignore[attr-defined]
                yield one.value


def keys_that_act() -> Iterator[str]:
    """Where the app says what a key does, as if it did it by itself: `{suites.run} runs it`, `("esc", "clears it")`."""
    for name, nodes in modules().items():
        if not name.startswith(("tui/", "views/")):
            continue
        hidden = {id(text) for node in nodes for text in _docstrings(node, shown=False)}
        for node in nodes:
            said = "" if id(node) in hidden else _joined(node)
            if match := KEYS_THAT_ACT.search(said):
                yield f"{name}:{getattr(node, 'lineno', 0)}: {said[match.start() : match.end() + 30]}"


def _joined(node: ast.AST) -> str:
    """A text as it is read, with `{some.key}` for each value that is a key. A key and what it does, as a pair or as
    arguments of `empty_state`, are one text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            _joined(one) if isinstance(one, ast.Constant) else "{some.key}" if "key" in ast.unparse(one) else "…"
            for one in node.values
        )
    parts: list[ast.expr] = []
    if isinstance(node, ast.Tuple) and len(node.elts) == PAIR:
        parts = node.elts
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "empty_state":
        parts = node.args
    texts = [_joined(one) if isinstance(one, ast.Constant | ast.JoinedStr) else "…" for one in parts]
    return " ".join(texts)


@of_all_sources
def test_no_key_acts_by_itself() -> None:
    found = list(dict.fromkeys(keys_that_act()))
    assert not found, 'write "Press {suites.run} to run it", or an entry such as ("esc", "close"):\n' + "\n".join(found)


@pytest.mark.parametrize("text", ["{run.cancel} again stops it", "esc clears it", "F4 fixes it", "^t runs the test"])
def test_keys_that_act_are_found(text: str) -> None:
    assert KEYS_THAT_ACT.search(text)
    assert not KEYS_THAT_ACT.search("Press esc to clear it. The tab is open.")


@of_all_sources
def test_nothing_that_people_read_sounds_like_a_translation() -> None:
    every = list(texts())
    bare = [
        f"{where}: {text[match.start() : match.end() + 30]}"
        for where, text in every
        if where.startswith("tui/") and where.partition(":")[0].removeprefix("tui/") not in OWN_KEYS
        for match in BARE_KEY.finditer(text)
    ]
    assert not bare, "write {screen.action}, so that each person reads their own key:\n" + "\n".join(bare)
    found = [
        f"{where}: …{' '.join(text[max(0, match.start() - 40) : match.end() + 40].split())}…"
        for where, text in every
        for match in BANNED.finditer(text)
    ]
    assert not found, f"{len(found)} to write again; {INSTEAD}\n" + "\n".join(found)


@pytest.mark.parametrize(
    "text", ["this is no suite", "it went on", "are no tests", "one of them", "another one", "a process of its own"]
)
def test_the_list_finds_what_it_names(text: str) -> None:
    assert bool(BANNED.search(text)) == (text != "it went on")
    assert not BANNED.search("there is no suite here, and no one is no longer asked")


def test_no_option_is_called_by_the_type_of_its_value() -> None:
    """`--port N`, not `--port INTEGER RANGE`."""
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    assert not re.findall(r"`-[^`]* (?:INTEGER|FLOAT)\b[^`]*`", page)
