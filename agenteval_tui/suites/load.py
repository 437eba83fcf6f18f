"""Reading a suite: all that is right in it, and all that is wrong, with places in the file as it is on disk.

Reading on behind broken YAML: a syntax error should cost one test, and not hide the errors of the others.

YAML's parser gives up at its first error. But the tests of a suite are items of a list, each on lines of its own: each
can be parsed alone. Those that are broken are said, and blanked out of the text, so that the rest is read with all
its places as they are.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

from msgspec import Struct, field
from pydantic import BaseModel

from agenteval_tui.core.errors import AgentevalError, Problem, Severity
from agenteval_tui.suites import model
from agenteval_tui.suites.config_source import ConfigSource, source_of
from agenteval_tui.suites.decode import (
    WRONG,
    quoted,
    read_model,
    read_value,
    reader_of,
    type_label,
    union_tag,
    unknown_key,
)
from agenteval_tui.suites.discover import discover
from agenteval_tui.suites.files import BOM, decode_utf8, read_bytes, unreadable
from agenteval_tui.suites.slugs import ID, name_from, slug
from agenteval_tui.suites.yaml.line_index import LineIndex
from agenteval_tui.suites.yaml.tree import (
    MappingNode,
    Node,
    Report,
    ScalarNode,
    SequenceNode,
    compose,
    is_null,
    resolve,
)

MAX_PROBLEMS = 1000  # of one file: fix these first if there are more
_TESTS = re.compile(r"^tests[ \t]*:[ \t]*(?:#[^\n]*)?\r?$", re.MULTILINE)
_VISIBLE = re.compile(r"[^\r\n]")
Complaint = tuple[str, int, int, str, str | None]
"""What a report takes: code, start, end, message, fix."""


class LoadedSuite(Struct, frozen=True, eq=False):
    """A suite file as it was read. `suite` holds every valid test even if others are not; None when the file is not a
    suite at all. `text` is the file's text without a byte order mark, with its own line endings; `digest` is the
    SHA-256 of the file's bytes ("" for a file that can't be read).
    """

    path: Path
    key: str
    text: str
    digest: str
    suite: model.Suite | None
    problems: tuple[Problem, ...]
    places: LineIndex
    root: Node | None = None
    whole: bool = True  # False: a syntax error cut the tree short
    bom: bool = False
    test_nodes: dict[str, Node] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """No errors (warnings may be)."""
        return not any(problem.severity == "error" for problem in self.problems)

    @property
    def unreadable(self) -> bool:
        """The file could not be read at all; its only problem says why."""
        return not self.digest

    def node(self, test_id: str | None = None, criterion: int | None = None) -> Node:
        """The node of the suite, a test or a criterion (0-based). Raises `AgentevalError` when there is none."""
        if test_id is None:
            if self.root is None:
                raise AgentevalError("this suite is empty", where=str(self.path))
            return self.root
        node = self.test_nodes.get(test_id.casefold())
        if node is None:
            raise AgentevalError(f"there is no test {test_id} in this suite", where=str(self.path))
        if criterion is None:
            return node
        test = resolve(node)
        listed = test.get("criteria") if isinstance(test, MappingNode) else None
        items = resolve(listed) if listed is not None else None
        if not isinstance(items, SequenceNode) or not 0 <= criterion < len(items.items):
            raise AgentevalError(f"test {test_id} has no criterion {criterion + 1}", where=str(self.path))
        return items.items[criterion]

    def config_node(self, test_id: str, criterion: int) -> Node:
        """The node of a criterion's config_uxon."""
        real = resolve(self.node(test_id, criterion))
        node = real.get("config_uxon") if isinstance(real, MappingNode) else None
        if node is None:
            raise AgentevalError(f"criterion {criterion + 1} of {test_id} has no config_uxon", where=str(self.path))
        return node

    def line_of(self, test_id: str | None = None, criterion: int | None = None) -> int:
        """The 1-based line where the suite, a test or a criterion begins; 1 when there is none."""
        try:
            node = self.node(test_id, criterion)
        except AgentevalError:
            return 1
        return self.places.line_and_column(union_tag(node)[0])[0]

    def config_source(self, test_id: str, criterion: int) -> ConfigSource:
        """The text of a criterion's config_uxon as an editor shows it, with its places in the file."""
        return source_of(self.config_node(test_id, criterion), self.text, self.places)

    def encoded(self, text: str) -> bytes:
        """A text for this file as bytes, with a byte order mark where the file has one."""
        return (BOM if self.bom else b"") + text.encode("utf-8")

    def problem(
        self, code: str, start: int, end: int, message: str, fix: str | None = None, severity: Severity = "error"
    ) -> Problem:
        """A problem at the offsets `start`..`end` of this file's text."""
        return self.places.problem(self.path, code, start, end, message, fix, severity=severity)


def load_suite(path: Path | str) -> LoadedSuite:
    """Read a suite file. Raises `AgentevalError` only if the file can't be read at all (absent, no permission, no
    regular file, too large, not UTF-8); whatever is wrong inside is in `problems`.
    """
    path = Path(path)
    return load_bytes(read_bytes(path), path)


def load_suites(paths: Iterable[Path | str], *, keep_unreadable: bool = False) -> list[LoadedSuite]:
    """All suites in these files and folders. Raises `AgentevalError` when a path does not exist or a file can't be
    read; with `keep_unreadable` such a file is a suite without tests, whose only problem says why.
    """
    return [_load_found(path) if keep_unreadable else load_suite(path) for path in discover(paths)]


def _load_found(path: Path) -> LoadedSuite:
    try:
        return load_suite(path)
    except AgentevalError as error:
        return LoadedSuite(
            path,
            key=str(path.resolve()),
            text="",
            digest="",
            suite=None,
            problems=(unreadable(path, error),),
            places=LineIndex(""),
        )


def load_bytes(data: bytes, path: Path) -> LoadedSuite:
    """Read a suite from a file's bytes. Raises `AgentevalError` when they are not UTF-8."""
    return _load(decode_utf8(data, path), path, hashlib.sha256(data).hexdigest(), data.startswith(BOM))


def load_text(text: str, path: Path | str) -> LoadedSuite:
    """Read a suite from a text, as if it stood in `path` (which need not exist). Never raises."""
    bom = text.startswith("\ufeff")
    data = text.encode("utf-8", "surrogatepass")
    return _load(text.removeprefix("\ufeff"), Path(path), hashlib.sha256(data).hexdigest(), bom)


def tree_of(text: str, report: Report) -> tuple[Node | None, bool, bool]:
    """(the tree of a suite's text, whether all of it is in the tree, whether broken tests were left out and the rest is
    there)."""
    # Gathered first: if the text is read again without its broken tests, what was said of the whole does not count.
    complaints: list[Complaint] = []
    root, whole = compose(text, lambda *complaint: complaints.append(complaint))
    cut = False
    if not whole and any(complaint[0] == "syntax" for complaint in complaints):
        recovered = without_broken_tests(text)
        if recovered is not None:
            rest: list[Complaint] = []
            other, cut = compose(recovered[0], lambda *complaint: rest.append(complaint))
            # Only where that reads to the end: else the mistake is elsewhere, and the parser's own place is the best.
            if cut:
                root, complaints = other, recovered[1] + rest
    for complaint in complaints:
        report(*complaint)
    return root, whole, cut


def _load(text: str, path: Path, digest: str, bom: bool) -> LoadedSuite:
    places = LineIndex(text)
    problems: list[tuple[int, Problem]] = []

    def report(code: str, start: int, end: int, message: str, fix: str | None) -> None:
        if len(problems) < MAX_PROBLEMS:
            problems.append((start, places.problem(path, code, start, end, message, fix)))

    suite = None
    root, whole, cut = tree_of(text, report)
    reading = _Reading(path, report, half=not whole and not cut, cut=cut)
    if root is not None and not is_null(root):
        suite = reading.suite(root)
    elif whole:
        report("empty", 0, 0, "this file is empty", "a suite needs `tests:`; compare with a sample suite")
    return LoadedSuite(
        path=path,
        key=str(path.resolve()),
        text=text,
        digest=digest,
        suite=suite,
        problems=tuple(problem for _, problem in sorted(problems, key=lambda pair: pair[0])),
        places=places,
        root=root,
        whole=whole,
        bom=bom,
        test_nodes=reading.test_nodes,
    )


_HEADER_MODELS: dict[str, type[BaseModel]] = {"defaults": model.Defaults, "gate": model.Gate}
"""The keys at the top of a suite whose value is an object."""
_AROUND = ("services", *model.HOOKS, "workdir", "exclusive", "state")
"""The keys at the top of a suite for what its runs need around them."""


class _Reading:
    """One pass over a suite's tree. Each test and agent is checked by itself, so that one error costs one test."""

    def __init__(self, path: Path, report: Report, *, half: bool, cut: bool) -> None:
        self.path = path
        self.report = report
        self.half = half  # YAML breaks off somewhere: the missing rest is not an error
        self.cut = cut  # broken tests were left out
        self.test_nodes: dict[str, Node] = {}

    def suite(self, root: Node) -> model.Suite | None:
        top = resolve(root)
        if not isinstance(top, MappingNode):
            self.report(
                "wrong-type",
                root.start,
                min(root.end, root.start + 1),
                f"a suite must be an object, not {type_label(root)}",
                "write `name:` and `tests:` at its top",
            )
            return None
        fields = list(model.Suite.model_fields)
        values: dict[str, Any] = {}
        tests: list[model.Test] = []
        for key, node in top.pairs.items():
            if key.text == "tests":
                tests = self._tests(key, node)
            elif key.text == "agents":
                values["agents"] = self._agents(node)
            elif key.text in fields:
                self._header(key, node, values)
            else:
                unknown_key(key, "a suite", [field for field in fields if top.get(field) is None], fields, self.report)
        if not self.half and top.get("tests") is None:
            start, end = union_tag(top)
            self.report("missing-required", start, end, "this suite has no tests", "add `tests:` with a list below it")
        # Every value was read by its type already; to check them again would build the largest of the models.
        suite = model.Suite.model_construct(**values)
        suite.name = suite.name or name_from(self.path)
        suite.tests = tests
        return suite

    def _header(self, key: ScalarNode, node: Node, values: dict[str, Any]) -> None:
        info = model.Suite.model_fields[key.text]
        if is_null(node):
            return  # as if the key were not there: a person may have begun to write it
        of_model = _HEADER_MODELS.get(key.text)
        if of_model is not None:
            read = read_model(of_model, node, key.text, self.report)
            if read is not None:
                values[key.text] = read
            return
        if key.text in _AROUND:
            value = read_value(cast(Any, info.annotation), node, key.text, self.report)
            for complaint in model.hook_complaints({key.text: value}):
                self.report(complaint.code, node.start, node.end, complaint.message, complaint.fix or None)
                value = WRONG
        else:
            value = reader_of(cast(Any, info.annotation))(node, key.text, self.report)
        if value is not WRONG and not (isinstance(value, list) and WRONG in value):
            values[key.text] = value

    def _agents(self, node: Node) -> dict[str, model.AgentConfig]:
        return read_agents(node, self.report)

    def _tests(self, key: ScalarNode, node: Node) -> list[model.Test]:
        listed = resolve(node)
        if is_null(node) or (isinstance(listed, SequenceNode) and not listed.items):
            if self.half or self.cut:
                return []
            self.report(
                "missing-required", key.start, key.end, "this suite has no tests", "write a list below `tests:`"
            )
            return []
        if not isinstance(listed, SequenceNode):
            self.report(
                "wrong-type",
                node.start,
                min(node.end, node.start + 1),
                f"tests must be a list, not {type_label(node)}",
                "start every test with `- `",
            )
            return []
        tests = []
        for number, item in enumerate(listed.items, 1):
            # Where YAML breaks off, the item before is often only half of what was meant: it is not blamed.
            half = self.half and item is listed.items[-1]
            test = self._test(item, number, _drop if half else self.report)
            if test is not None:
                tests.append(test)
        return tests

    def _test(self, item: Node, number: int, report: Report) -> model.Test | None:
        # What it is called is only said where something is wrong: then it is read once more.
        test = read_model(model.Test, item, "", _drop)
        if test is None:
            read_model(model.Test, item, test_label(item, number), report)
        identity = self._identity(item, number, report)
        if identity is None or test is None:
            return None
        test.id, name = identity
        test.name = test.name.strip() or name
        return test

    def _identity(self, item: Node, number: int, report: Report) -> tuple[str, str] | None:
        """(id, name) of a test. The id is claimed: a second test with it is wrong even if the first one is."""
        node = resolve(item)
        if not isinstance(node, MappingNode):
            return None
        id_node, name_node = node.get("id"), node.get("name")
        own_id, name = _text_of(id_node), (_text_of(name_node) or "").strip()
        start, end = union_tag(item)
        if id_node is not None and own_id:
            start, end = id_node.start, id_node.end
            if not ID.fullmatch(own_id):
                report(
                    "wrong-value",
                    start,
                    end,
                    f'"{own_id}" can\'t be an id: it may hold letters, digits, "-", "_" and "."',
                    f"write {slug(own_id) or 'another id'}",
                )
                return None
        elif name:
            own_id = slug(name)
            if not own_id:
                label = test_label(item, number)
                report("missing-required", start, end, f"the name of {label} gives no id", "add `id: ...`")
                return None
        else:
            # One of another type was reported when the test was read.
            if all(node is None or isinstance(resolve(node), ScalarNode) for node in (id_node, name_node)):
                report("missing-required", start, end, f"{test_label(item, number)} has no name", "add `name: ...`")
            return None
        assert own_id is not None
        # People name tests on a command line, where ids are found whatever their case.
        folded = own_id.casefold()
        if folded in self.test_nodes:
            origin = "" if id_node is not None and _text_of(id_node) else " (made from its name)"
            report(
                "duplicate-id",
                start,
                end,
                f'there is a test with the id "{own_id}"{origin} above',
                "give this test another `id`",
            )
            return None
        self.test_nodes[folded] = item
        return own_id, name or own_id


def _drop(*_: Any) -> None:
    """A report that is dropped."""


def test_label(item: Node, number: int) -> str:
    """How problems call a test: by its id or name, else by its number."""
    node = resolve(item)
    if isinstance(node, MappingNode):
        for key in ("id", "name"):
            text = _text_of(node.get(key))
            if text and text.strip():
                return f"test {quoted(text.strip())}"
    return f"test {number}"


def _text_of(node: Node | None) -> str | None:
    if node is None or is_null(node):
        return None
    real = resolve(node)
    return real.text if isinstance(real, ScalarNode) else None


def read_agents(node: Node, report: Report) -> dict[str, model.AgentConfig]:
    """`agents:` of a suite or of agents.yaml; those that are right."""
    if is_null(node):
        return {}
    real = resolve(node)
    if not isinstance(real, MappingNode):
        report(
            "wrong-type",
            node.start,
            min(node.end, node.start + 1),
            f"agents must be an object, not {type_label(node)}",
            "write `name: {kind: ...}`",
        )
        return {}
    agents = {}
    for key, entry in real.pairs.items():
        if isinstance(config := resolve(entry), MappingNode) and (secret := config.key("api_key")) is not None:
            report(
                "secret",
                secret.start,
                secret.end,
                "never write a key into a file",
                "write `api_key_env: NAME_OF_THE_ENVIRONMENT_VARIABLE`",
            )
            continue
        agent = read_model(model.AgentConfig, entry, f"agent {quoted(key.text)}", report)
        if agent is not None:
            agents[key.text] = agent
    return agents


# Reading on behind broken YAML: a syntax error should cost one test, and not hide the errors of the others


def without_broken_tests(text: str) -> tuple[str, list[Complaint]] | None:
    """The text with its broken tests blanked out (as long as it was), and what is wrong in them.

    None when the mistake is not inside of a single test.
    """
    complaints: list[Complaint] = []
    parts: list[str] = []
    done = 0
    for start, end in _items(text):
        syntax_errors = _syntax_errors(text[start:end])
        if syntax_errors:
            complaints.extend(
                (code, start + at, start + to, message, fix) for code, at, to, message, fix in syntax_errors
            )
            # Blanks in their place keep all offsets behind them as they are in the file.
            parts += [text[done:start], _VISIBLE.sub(" ", text[start:end])]
            done = end
    return ("".join([*parts, text[done:]]), complaints) if complaints else None


def _syntax_errors(item: str) -> list[Complaint]:
    complaints: list[Complaint] = []
    compose(item, lambda *complaint: complaints.append(complaint))
    # An item can't know an anchor of another test: that is not its error.
    return [complaint for complaint in complaints if complaint[0] == "syntax"]


def _items(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of every item of the block list `tests:`, whole lines."""
    header = _TESTS.search(text)
    if header is None:
        return
    begun: int | None = None
    indent: int | None = None
    at = header.end() + 1
    while at < len(text):
        line_end = text.find("\n", at)
        following = len(text) if line_end < 0 else line_end + 1
        line = text[at:following]
        bare = line.strip()
        if bare and not bare.startswith("#"):
            column = len(line) - len(line.lstrip(" "))
            is_item = line.lstrip(" ").startswith(("- ", "-\n", "-\r"))
            # The first item says how far all of them are indented.
            if indent is None:
                if not is_item:
                    return
                indent = column
            if column == indent and is_item:
                if begun is not None:
                    yield begun, at
                begun = at
            elif column < indent or (column == 0 and indent == 0):
                break  # the list is over: another key of the suite
        at = following
    if begun is not None:
        yield begun, min(at, len(text))
