"""`agenteval docs`: the documentation, in the terminal."""

from __future__ import annotations

import posixpath
from itertools import groupby

import click

from agenteval_tui.cli import completed_values
from agenteval_tui.cli.doc_pages import DocPage, find_page, page_names, pages
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.cli.markdown_text import text_lines

_WIDEST = 100  # columns of text; longer lines are hard to read


@click.command("docs")
@click.argument("page", default="", shell_complete=completed_values.choice(page_names))
@click.option("--url", is_flag=True, help="Print the page's address for a browser instead of the page.")
@click.option("--markdown", is_flag=True, help="Print the page as Markdown.")
@common_options
@pass_invocation
def command(invocation: Invocation, page: str, url: bool, markdown: bool) -> int:
    """Read the documentation of this version. Without PAGE: list the pages.

    The name of a folder, such as `coming-from`, lists its pages. The last part of a name is enough: `agenteval docs
    TextMatch` is `agenteval docs metrics/TextMatch`. Use a pager for long pages: `agenteval docs keys | less`.

    With --url: print the page's address on the project's site, or the file on this machine if the package names no
    site.
    """
    if not page and not url and not markdown:
        _list(invocation)
        return 0
    folder = page.strip().removeprefix("docs/").rstrip("/").casefold()
    if (
        folder
        and not url
        and not markdown
        and (there := [doc_page for doc_page in pages() if doc_page.name.startswith(f"{folder}/")])
    ):
        width = max(len(doc_page.name) for doc_page in there)
        for listed_page in there:
            invocation.out.line(f"{listed_page.name:<{width}}  ", (listed_page.title, "dim"))
        return 0
    doc_page = find_page(page or "index")
    if url:
        invocation.out.line(doc_page.address())
    elif markdown:
        invocation.out.line(doc_page.text().rstrip("\n"))
    else:
        _print(invocation, doc_page)
    return 0


def _list(invocation: Invocation) -> None:
    out = invocation.out
    there = pages()
    width = max(len(page.name) for page in there if page.section)
    for section, group in groupby((page for page in there if page.section), lambda page: page.section):
        out.line((section, "bold"))
        for page in group:
            out.line(f"  {page.name:<{width}}  ", (page.title, "dim"))
    metrics = [page.name for page in there if not page.section and page.name.startswith("metrics/")]
    out.line()
    out.line("`agenteval docs PAGE` prints a page, `agenteval docs PAGE --url` its address.")
    if metrics:
        out.line(f"Each of the {len(metrics)} metrics has a page too: `agenteval docs {metrics[0]}`.")


def _print(invocation: Invocation, page: DocPage) -> None:
    by_name = {page.name: page for page in pages()}
    folder = posixpath.dirname(page.name)

    def place(target: str) -> str:
        """Where a reader of the terminal finds what a link leads to."""
        if "://" in target or target.startswith("mailto:"):
            return target
        name = posixpath.normpath(posixpath.join(folder, target.partition("#")[0]))
        name = name.removesuffix(".md").removesuffix("/README")
        return f"agenteval docs {name}" if target.partition("#")[0] and name in by_name else ""

    for line, style in text_lines(page.text(), min(invocation.out.width, _WIDEST), place):
        invocation.out.line((line, style))
