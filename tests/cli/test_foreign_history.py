"""Whatever was said of runs and decided about them: no verb, in no format, gives a terminal or a reader orders."""

from __future__ import annotations

import csv
import html.parser
import io
import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from attacks import ATTACKS
from hostile_history import specs_of, write_history
from markdown_it import MarkdownIt

ACTS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\u061c\U000e0000-\U000e007f]"
)
WEB = (
    '</pre></details><script>alert(31337)</script><img src=x onerror=alert(31337)>" onmouseover="alert(31337)" x="\'',
    "--><b>31337</b>]]>&lt;i&gt; ![31337](http://31337/x.png) [click](javascript:31337) <http://31337> @31337\n"
    "# 31337\n| a | b |\n|--|--|\n```\n",
)
HARMLESS = ["31337 words", "31337 others"]
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


class Page(html.parser.HTMLParser):
    """The elements and comments of a page with their attributes, in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[tuple[str, Any]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parts.append((tag, attrs))

    def handle_endtag(self, tag: str) -> None:
        self.parts.append((f"/{tag}", ()))

    def handle_comment(self, data: str) -> None:
        self.parts.append(("comment", data))


@pytest.fixture
def told(cli: Any, tmp_path: Path) -> Any:
    """`told(name, texts)`: the command line on a history in which these texts stand in every place."""

    def make(name: str, texts: list[str]) -> Any:
        db = tmp_path / f"{name}.db"
        write_history(db, tmp_path / "words.suite.yaml", texts)
        return lambda *arguments: cli(*arguments, "--db", db)

    return make


def verbs(tmp_path: Path, text: str) -> Iterator[list[object]]:
    plain = [
        ["causes"],
        ["causes", "AFTER"],
        ["triage"],
        ["review", "--failures"],
        ["trends"],
        ["trends", "--by", "tag"],
        ["flaky"],
        ["quarantine", "list"],
        ["baseline", "list"],
        ["compare"],
        ["compare", "BEFORE", "AFTER"],
        ["why", "AFTER-000-1"],
        ["show", "AFTER-000-2"],
        ["judge-report"],
        ["db"],
        ["db", "check"],
        ["history", "--runs"],
        ["criterion", f"test-0/{specs_of(text, changed=True)[0].name}"],
    ]
    for arguments in plain:
        yield list(arguments)
        yield [*arguments, "--json"]
    for format in ("md", "html", "junit", "csv", "json"):
        yield ["report", "AFTER", f"--{format}", "-" if format == "json" else tmp_path / f"report.{format}"]
    # What a person gives, and gets to read again.
    for wrong in (["triage", text, "ignore"], ["compare", text], ["quarantine", "end", text], ["criterion", text]):
        yield [*wrong]
    yield ["db", "import", tmp_path / "\x1b[31337m\u202e.db"]


def test_no_verb_obeys_what_was_said_and_decided(told: Any, tmp_path: Path) -> None:
    texts = [text for name, text in ATTACKS.items() if name != "surrogate"]
    many = ["".join(texts[:17]), "".join(texts[17:])]
    run = told("hostile", many)
    shown = 0
    for arguments in verbs(tmp_path, many[0]):
        done = run(*arguments)
        assert "Traceback" not in done.err, arguments
        assert "No such option" not in done.err, done.err
        shown += "31337" in done.out + done.err
        if "--json" in arguments and done.out:
            json.loads(done.out)  # for programs: has every text as it came (in a terminal, as ASCII)
            continue
        found = ACTS.search(done.out + done.err)
        assert not found, (arguments, (done.out + done.err)[found.start() - 60 : found.end() + 60])
    assert shown > 30, "the harmless part is there"


def reports(run: Any, folder: Path) -> dict[str, str]:
    """A report in each format, with a baseline, causes and decisions."""
    folder.mkdir()
    files = {name: folder / f"report.{name}" for name in ("md", "html", "xml", "csv")}
    done = run(
        "report", "AFTER", "--md", files["md"], "--html", files["html"], "--junit", files["xml"], "--csv", files["csv"]
    )
    assert done.code == 0, done.err
    written = {name: path.read_bytes().decode("utf-8") for name, path in files.items()}
    return {**written, "compare": run("compare", "BEFORE", "AFTER", "--md").out}


@pytest.mark.parametrize("hostile", [list(WEB), ["".join(ATTACKS.values()), "=31337" + "".join(ATTACKS.values())]])
def test_no_reader_of_a_report_obeys(told: Any, tmp_path: Path, hostile: list[str]) -> None:
    ours = reports(told("harmless", HARMLESS), tmp_path / "harmless")
    theirs = reports(told("hostile", hostile), tmp_path / "hostile")
    page = Page(theirs["html"])
    assert page.parts == Page(ours["html"]).parts, "no element is theirs"
    for name in ("md", "compare"):
        assert kinds(theirs[name]) == kinds(ours[name]), "no markup is theirs"
    tree, plain = ElementTree.fromstring(theirs["xml"]), ElementTree.fromstring(ours["xml"])
    assert [(one.tag, sorted(one.attrib)) for one in tree.iter()] == [
        (one.tag, sorted(one.attrib)) for one in plain.iter()
    ]
    rows = list(csv.reader(io.StringIO(theirs["csv"], newline="")))
    assert len(rows) == 7
    assert len({len(row) for row in rows}) == 1
    assert not [cell for row in rows for cell in row if cell.startswith(FORMULA)]
    for name, text in theirs.items():
        assert "31337" in text
        assert not ACTS.search(text.replace("\r\n", "\n")), name


def kinds(text: str) -> list[str]:
    """What Markdown makes of it: all but words."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    found = [one for token in tokens for one in (token, *(token.children or ()))]
    return [one.type for one in found if one.type not in ("text", "softbreak", "hardbreak", "code_inline", "inline")]


def test_a_history_with_ids_of_somebody_else_is_no_way_into_a_report(told: Any, tmp_path: Path) -> None:
    """It may be opened as it is; what this program gives itself may be anything there."""
    run = told("theirs", HARMLESS)
    run("history")
    with sqlite3.connect(tmp_path / "theirs.db") as direct:
        direct.execute("UPDATE executions SET uid = 'AFTER--><b>31337</b>' WHERE uid = 'AFTER'")
        direct.execute("UPDATE runs SET uid = '=31337(\"<b>\")' || uid, status = '<b>31337' WHERE uid LIKE 'AFTER%1'")
    direct.close()
    written = reports(run, tmp_path / "written")
    assert not re.search("<b>31337", "".join(written[name] for name in ("html", "md", "xml")))
    ElementTree.fromstring(written["xml"])
    assert not [cell for row in csv.reader(io.StringIO(written["csv"])) for cell in row if cell.startswith(FORMULA)]
