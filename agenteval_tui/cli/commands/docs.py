"""`agenteval docs`: the documentation, its Markdown as lines for a terminal.

What is written between backquotes keeps them: a reader tells a command from a word by them.
"""

from __future__ import annotations

import posixpath
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from itertools import groupby
from pathlib import Path

import click
import yaml
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from msgspec import Struct

from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.cli.output import Style
from agenteval_tui.core import directories
from agenteval_tui.core.did_you_mean import closest
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.views.terminal import cells

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
@click.argument("page", default="", shell_complete=shell_completion.choice(page_names))
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


TextLine = tuple[str, Style]
_GAP = "  "
_SPACE = "\x1f"  # stands for a space at which no line may end
_TITLE = re.compile(r'\btitle="([^"]+)"')
_CODE = re.compile(r"`[^`]*`")
_SHORT = 30  # characters of cells that share a line
_PLAIN = ("", "meaning", "means", "what it does")  # columns whose cells are clear without their names
_LEAST = 16  # columns for the last cell of a row; with less, the row becomes a paragraph


def text_lines(markdown: str, width: int, place: Callable[[str], str]) -> Iterator[TextLine]:
    """The lines of a page. `place` says where a link's target is found by a reader of the terminal ("" for nowhere)."""
    tree = SyntaxTreeNode(MarkdownIt("commonmark").enable("table").parse(markdown))
    return _TextWriter(place).blocks(tree.children, max(width, 20))


class _TextWriter:
    def __init__(self, place: Callable[[str], str]) -> None:
        self._place = place

    def blocks(self, nodes: Sequence[SyntaxTreeNode], width: int) -> Iterator[TextLine]:
        first = True
        for node in nodes:
            lines = list(self._block(node, width))
            if lines and not first:
                yield "", ""
            yield from lines
            first = first and not lines

    def _block(self, node: SyntaxTreeNode, width: int) -> Iterator[TextLine]:
        if node.type == "heading":
            for line in _wrap(self._inline(node), width):
                yield line, "bold"
                if node.tag in ("h1", "h2"):
                    yield ("=" if node.tag == "h1" else "-") * cells(line), "dim"
        elif node.type == "paragraph":
            yield from ((line, "") for line in _wrap(self._inline(node), width))
        elif node.type in ("fence", "code_block"):
            if title := _TITLE.search(node.info or ""):
                yield f"{title[1]}:", ""  # the block is this file
            yield from ((f"    {line}".rstrip(), "") for line in node.content.rstrip("\n").split("\n"))
        elif node.type in ("bullet_list", "ordered_list"):
            yield from self._list(node, width)
        elif node.type == "blockquote":
            yield from ((f"> {line}".rstrip(), style) for line, style in self.blocks(node.children, width - 2))
        elif node.type == "table":
            yield from self._table(node, width)
        elif node.type == "hr":
            yield "-" * width, "dim"
        # What is left is HTML: comments of the scripts that make pages.

    def _list(self, node: SyntaxTreeNode, width: int) -> Iterator[TextLine]:
        start = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
        for number, item in enumerate(node.children):
            mark = "- " if start is None else f"{start + number}. "
            tight = all(child.type != "paragraph" or child.hidden for child in item.children)
            inner = width - len(mark)
            lines = (
                (line for child in item.children for line in self._block(child, inner))
                if tight
                else self.blocks(item.children, inner)
            )
            for at, (line, style) in enumerate(lines):
                yield f"{' ' * len(mark) if at else mark}{line}".rstrip(), style

    def _table(self, node: SyntaxTreeNode, width: int) -> Iterator[TextLine]:
        rows = [[self._inline(cell) for cell in row.children] for part in node.children for row in part.children]
        if not rows or not rows[0]:
            return
        widths = [max(cells(row[column]) for row in rows) for column in range(len(rows[0]))]
        before = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
        room = width - before
        if widths[-1] > room < max(_LEAST, width // 3):
            yield from self._rows_as_paragraphs(rows, width)
            return
        for number, row in enumerate(rows):
            if number == 0 and not any(row):
                continue
            lead = _GAP.join(_padded(cell, column) for cell, column in zip(row[:-1], widths[:-1], strict=True))
            for at, line in enumerate(_wrap(row[-1], room) or [""]):
                head = lead if at == 0 else " " * cells(lead)
                yield f"{head}{_GAP if len(row) > 1 else ''}{line}".rstrip(), "" if number else "bold"

    def _rows_as_paragraphs(self, rows: list[list[str]], width: int) -> Iterator[TextLine]:
        """The rows of a table that is too wide: the first cell, below it the others with their columns' names."""
        header = rows[0]
        for number, row in enumerate(rows[1:]):
            if number:
                yield "", ""
            yield from ((line, "bold") for line in _wrap(row[0], width))
            cells_of_row = [(name, cell) for name, cell in zip(header[1:], row[1:], strict=True) if cell]
            short = [f"{name}: {cell}" for name, cell in cells_of_row if _is_short(name, cell)]
            long = [
                cell if name in _PLAIN else f"{name}: {cell}"
                for name, cell in cells_of_row
                if not _is_short(name, cell)
            ]
            for text in (", ".join(short), *long):
                yield from ((f"    {line}", "") for line in _wrap(text, width - 4))

    def _inline(self, node: SyntaxTreeNode) -> str:
        return "".join(
            self._words(token) for child in node.children if child.type == "inline" for token in child.children
        )

    def _words(self, node: SyntaxTreeNode) -> str:
        if node.type == "text":
            return node.content
        if node.type == "code_inline":
            return f"`{node.content}`"
        if node.type in ("softbreak", "hardbreak"):
            return " "
        if node.type == "image":
            return f"[picture: {node.content}]"
        inner = "".join(self._words(child) for child in node.children)
        if node.type != "link":
            return inner
        place = self._place(str(node.attrs.get("href", "")))
        if inner.strip("`").endswith(".md") and place:
            return f"`{place}`"  # the file's name says nothing to who has no files
        return f"{inner} ({place})" if place and place != inner else inner


def _is_short(name: str, cell: str) -> bool:
    return name not in _PLAIN and len(cell) <= _SHORT and not cell.endswith(".")


def _wrap(text: str, width: int) -> list[str]:
    """Lines of a text. What is between backquotes stays on one line if it fits: it may be a command to copy."""
    width = max(width, 8)
    protected = _CODE.sub(lambda match: match[0] if len(match[0]) > width else match[0].replace(" ", _SPACE), text)
    lines = textwrap.wrap(protected, width, break_long_words=False, break_on_hyphens=False)
    return [line.replace(_SPACE, " ") for line in lines]


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cells(text))
