"""The documentation as a whole: every page is in the menu, and every link of it leads to a file.

`make docs` builds the site with warnings as errors, and looks at anchors too; this says the same of files at once, and
of pictures, which it does not look at.
"""

from __future__ import annotations

import re
from pathlib import Path

from agenteval_tui.cli.commands.docs import find_page, pages
from agenteval_tui.cli.verbs import own_verbs

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [path for path in sorted(DOCS.rglob("*.md")) if "site" not in path.relative_to(DOCS).parts]
LINK = re.compile(r"!?\[[^\]]*\]\((?!\w+:|#)([^)\s#]+)(?:#[^)\s]*)?\)")


def test_every_page_is_in_the_menu() -> None:
    """Those of single metrics are linked from theirs."""
    listed = {page.path for page in pages() if page.section}
    assert [page.name for page in pages() if page.path not in listed and not page.name.startswith("metrics/")] == []
    assert all(path.is_file() for path in listed)


def test_every_link_leads_to_a_file() -> None:
    for page in [*PAGES, ROOT / "README.md"]:
        without_code = re.sub(r"(?ms)^```.*?^```", "", page.read_text("utf-8"))
        for target in LINK.findall(without_code):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"


def test_a_page_of_the_site_links_only_to_what_the_site_has() -> None:
    """Not to a file beside docs/: the site does not have it, and neither has the wheel."""
    for page in PAGES:
        without_code = re.sub(r"(?ms)^```.*?^```", "", page.read_text("utf-8"))
        for target in LINK.findall(without_code):
            assert (page.parent / target).resolve().is_relative_to(DOCS), f"{page.relative_to(ROOT)}: {target}"


def test_every_command_that_is_named_is_one() -> None:
    verbs = {*own_verbs()}
    for page in [*PAGES, ROOT / "README.md"]:
        text = page.read_text("utf-8")
        for verb in re.findall(r"(?:`|\$ )agenteval ([a-z][\w-]*)(?=[\s`])", text):
            assert verb in verbs | NOT_VERBS, f"{page.relative_to(ROOT)}: agenteval {verb}"
        for name in re.findall(r"agenteval docs ([a-z][\w/-]*)", text):
            assert find_page(name), f"{page.relative_to(ROOT)}: agenteval docs {name}"


NOT_VERBS = frozenset(("errors",))
"""The command that a page shows how to add."""
