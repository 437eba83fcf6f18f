"""`agenteval docs`: every page is listed, found by what a person would type, and reads well in a terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agenteval_tui.cli.commands import docs
from agenteval_tui.cli.commands.docs import find_page, pages, text_lines
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.views.terminal import cells

ROOT = Path(__file__).resolve().parents[2]

PAGE = """\
# A page

A paragraph with `code`, **weight** and a [link](other.md#part) that is long enough for two lines.

- one
- two
  with more

    1. inner

| option | value | default | meaning |
|---|---|---|---|
| `short` | text | | What it does, in a sentence that does not fit into what is left of the line. |

```yaml title="a.suite.yaml"
agent:   kept   as it is
```

<!-- made by a script -->
> quoted

![A picture](there.svg) and a [place](https://example.com/).
"""


def shown(width: int) -> list[str]:
    place = {"other.md#part": "agenteval docs other", "https://example.com/": "https://example.com/"}
    return [line for line, _ in text_lines(PAGE, width, lambda target: place.get(target, ""))]


def test_a_page_reads_well_in_a_terminal() -> None:
    lines = shown(60)
    assert lines[:2] == ["A page", "======"]
    assert "A paragraph with `code`, weight and a link (agenteval docs" in lines
    assert lines[lines.index("- one") :][:4] == ["- one", "- two with more", "", "  1. inner"]
    assert lines[lines.index("a.suite.yaml:") + 1] == "    agent:   kept   as it is"
    assert "> quoted" in lines
    assert "[picture: A picture] and a place (https://example.com/)." in lines
    assert not any("<!--" in line for line in lines)
    (row,) = (line for line in lines if line.startswith("`short`"))
    assert row == "`short`  text            What it does, in a sentence that"
    assert all(cells(line) <= 60 for line in lines)


def test_a_table_that_is_too_wide_becomes_paragraphs() -> None:
    lines = shown(36)
    at = lines.index("`short`")
    assert lines[at + 1 : at + 3] == ["    value: text", "    What it does, in a sentence that"]
    wide = "| matcher | accepts | fits |\n|---|---|---|\n| `$any` | Anything, whatever it may be at all. | `17` |\n"
    assert [line for line, _ in text_lines(wide, 30, lambda target: "")] == [
        "`$any`", "    fits: `17`", "    accepts: Anything,", "    whatever it may be at all.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "name"),
    [("agents", "agents"), ("docs/agents.md", "agents"), ("TextMatch", "metrics/TextMatch"), ("METRICS/", "metrics")],
)
def test_a_page_is_found_by_what_a_person_types(asked: str, name: str) -> None:
    assert find_page(asked).name == name


def test_a_page_that_is_not_there_suggests_near_names() -> None:
    with pytest.raises(AgentevalError, match="there is no page 'agnets'") as near:
        find_page("agnets")
    assert near.value.fix == "did you mean agents?"
    with pytest.raises(AgentevalError) as far:
        find_page("zzz")
    assert far.value.fix == "`agenteval docs` lists the pages"


def test_the_command_lists_prints_and_gives_addresses(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = cli("docs").out
    assert all(f"  {page.name} " in listed for page in pages() if page.section)
    printed = cli("docs", "agents").out
    assert printed.startswith("Agents\n======\n")
    assert "`agenteval docs network`" in printed
    assert cli("docs", "agents", "--markdown").out == (ROOT / "docs" / "agents.md").read_text("utf-8")
    assert cli("docs", "agents", "--url").out == (ROOT / "docs" / "agents.md").as_uri() + "\n"
    monkeypatch.setattr(docs, "site_address", lambda: "https://docs.example")
    assert cli("docs", "agents", "--url").out == "https://docs.example/agents/\n"
    assert cli("docs", "metrics", "--url").out == "https://docs.example/metrics/\n"
    unknown = cli("docs", "agnets")
    assert (unknown.code, unknown.out) == (2, "")


def test_every_page_is_printed_within_the_width_and_has_a_title() -> None:
    for page in pages():
        assert re.match(r"(?s)(<!--.*?-->\s*)?# \S", page.text()), page.name
        for line, _ in text_lines(page.text(), 80, lambda target: ""):
            # Code keeps its lines, and a long name can't be broken.
            assert cells(line) <= 80 or line.startswith(("    ", "> ")) or " " not in line.strip("-| ."), (
                page.name,
                line,
            )


def test_what_the_program_says_names_commands_and_no_files_of_the_checkout() -> None:
    """Who installed a wheel has no docs/ folder: a text names `agenteval docs PAGE`, and that page exists."""
    package = ROOT / "agenteval_tui"
    for path in package.rglob("*.py"):
        text = path.read_text("utf-8")
        if "docs" not in text:
            continue
        code = "\n".join(line.partition("  # ")[0] for line in text.splitlines() if not line.lstrip().startswith("#"))
        # Docstrings are for developers, but for those of commands, which are their help.
        shown = path.parent.name == "commands"
        without_docstrings = re.sub(r'^"""(?s:.*?)"""' if shown else r'"""(?s:.*?)"""', "", code)
        assert not re.search(r"docs/(?!decisions/)[\w/-]+\.(md|json)", without_docstrings), path
        for page in re.findall(r"agenteval docs ([a-z][\w/-]*)", code):
            assert find_page(page), (path, page)
