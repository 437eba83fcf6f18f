"""`agenteval docs`: the documentation, in the terminal."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from importlib import metadata
from itertools import groupby
from pathlib import Path

import click
import yaml
from msgspec import Struct

from agenteval_tui.cli import completed_values
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.cli.markdown_text import text_lines
from agenteval_tui.core import directories
from agenteval_tui.core.did_you_mean import closest
from agenteval_tui.core.errors import AgentevalError

_WIDEST = 100  # columns of text; longer lines are hard to read


HOME = "index"
_PACKAGE = "agenteval-tui"
_LABEL = "Documentation"


class DocPage(Struct, frozen=True):
    """A page. `name` is its path without the ending (`how-to/ci`; `metrics` for
    `metrics/README.md`), `section` the part of the site it is in ("" for
    pages that the site's menu does not list)."""

    name: str
    title: str
    section: str
    path: Path

    def text(self) -> str:
        """The page's Markdown."""
        return self.path.read_text(encoding="utf-8")

    def address(self) -> str:
        """Where a browser finds it: on the project's site, or, if the package names none, as a file."""
        site = site_address()
        if not site:
            return self.path.resolve().as_uri()
        return f"{site}/" if self.name == HOME else f"{site}/{self.name}/"


def pages() -> list[DocPage]:
    """All pages: those of the site's menu in its order, then the others by name."""
    folder = directories.bundled("docs")
    listed = [_page(folder, folder / file, section) for section, file in _menu(folder)]
    paths = {page.path for page in listed}
    others = (path for path in sorted(folder.rglob("*.md")) if path not in paths and "decisions" not in path.parts)
    return [*listed, *(_page(folder, path, "") for path in others)]


def page_names() -> list[str]:
    """The names of all pages."""
    return [page.name for page in pages()]


def find_page(name: str) -> DocPage:
    """The page that a person means by `name`: its whole name or the last part of it, in any case, with or without the
    ending. Raises `AgentevalError`, with near names, where there is no such page."""
    all_pages = pages()
    sought = name.strip().removeprefix("docs/").removesuffix(".md").rstrip("/").casefold()
    for page in all_pages:
        if page.name.casefold() == sought.removesuffix("/readme"):
            return page
    by_last = [page for page in all_pages if page.name.rpartition("/")[2].casefold() == sought]
    if len(by_last) == 1:
        return by_last[0]
    names = {word: page.name for page in reversed(all_pages) for word in (page.name.casefold(), _last(page))}
    near = [page.name for page in by_last] or [names[word] for word in filter(None, [closest(sought, names)])]
    fix = f"did you mean {' or '.join(near)}?" if near else "`agenteval docs` lists the pages"
    raise AgentevalError(f"there is no page {name!r}", fix=fix)


def site_address() -> str:
    """The address of the documentation site, from the package's metadata; "" where it names none."""
    try:
        urls = metadata.metadata(_PACKAGE).get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return ""
    addresses = dict(url.split(", ", 1) for url in urls)
    return str(addresses.get(_LABEL, "")).rstrip("/")


def _menu(folder: Path) -> Iterator[tuple[str, str]]:
    """(section, file) in the order of the menu."""
    nav = yaml.safe_load((folder / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    for entry in nav:
        for section, files in entry.items():
            yield from ((section, file) for file in ([files] if isinstance(files, str) else files))


def _page(folder: Path, path: Path, section: str) -> DocPage:
    with path.open(encoding="utf-8") as lines:
        title = next((line[2:].strip() for line in lines if line.startswith("# ")), path.stem)
    name = path.relative_to(folder).with_suffix("").as_posix().removesuffix("/README")
    return DocPage(name, title, section, path)


def _last(page: DocPage) -> str:
    return page.name.rpartition("/")[2].casefold()


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
        and (in_folder := [doc_page for doc_page in pages() if doc_page.name.startswith(f"{folder}/")])
    ):
        width = max(len(doc_page.name) for doc_page in in_folder)
        for listed_page in in_folder:
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
    all_pages = pages()
    width = max(len(page.name) for page in all_pages if page.section)
    for section, group in groupby((page for page in all_pages if page.section), lambda page: page.section):
        out.line((section, "bold"))
        for page in group:
            out.line(f"  {page.name:<{width}}  ", (page.title, "dim"))
    metrics = [page.name for page in all_pages if not page.section and page.name.startswith("metrics/")]
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
