"""What docstrings and comments name is there: `module.name` in backticks, and paths of files."""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest
from sources import modules, of_all_sources

ROOT = Path(__file__).resolve().parents[2]
NAME = re.compile(r"`((?:[A-Za-z_]\w*\.)+)([A-Za-z_]\w*)(?:\([^`]*\))?`")
# `name`: what it is.
EXPLAINED = re.compile(r"(?:\A|[.;:]\s+|\n\s*)`([a-z_]\w*)`: ")
FILE = re.compile(r"(?<![\w/.<-])((?:[\w-]+/)+[\w-]+\.(?:py|md|tcss))\b")
DEFINED = re.compile(
    r"^(?:class|def|async def) (\w+)|^(\w+)\s*[:=]|^ {4}(?:class|def|async def) (\w+)|^ {4}(\w+):", re.M
)
ENDINGS = {"py", "md", "json", "yaml", "yml", "tcss", "html", "gz"}
# Of other packages, names of groups of entry points, and keys that people write.
FOREIGN = {"agenteval", "axenox", "jsonschema", "FinishReason", "timeouts", "service", *sys.stdlib_module_names}


@pytest.fixture(scope="module")
def sources() -> dict[Path, str]:
    """The package's source files and their text."""
    return {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "agenteval_tui").rglob("*.py"))}


def test_a_module_that_is_named_has_what_is_named(sources: dict[Path, str]) -> None:
    """A module or a class that was renamed is easily forgotten in the sentences about it."""
    defined: dict[str, set[str]] = defaultdict(set)
    classes: set[str] = set()
    for path, text in sources.items():
        classes |= set(re.findall(r"class (\w+)", text))
        defined[path.stem] |= {name for found in DEFINED.findall(text) for name in found if name}
        defined[path.parent.name].add(path.stem)
    wrong = []
    for path, text in sources.items():
        spoken = set(re.findall(r"\w+", re.sub(r"`[^`\n]*`", "", text)))
        for owners, name in NAME.findall(text):
            parts = owners.split(".")[:-1]
            # A word of this module's code is one of its parameters or imports.
            if name in ENDINGS or parts[0] in FOREIGN or parts[-1] in spoken | classes:
                continue
            if name not in defined.get(parts[-1], ()):
                wrong.append(f"{path.relative_to(ROOT)} `{owners}{name}`")
    assert not wrong


@of_all_sources
def test_a_parameter_that_a_docstring_explains_is_there() -> None:
    """A parameter that was renamed is easily forgotten in the docstring."""
    wrong = []
    for path, nodes in modules().items():
        for function in nodes:
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            explained = EXPLAINED.findall(ast.get_docstring(function, clean=False) or "")
            if not explained:
                continue
            code = "\n".join(map(ast.unparse, (function.args, *function.body[1:])))
            wrong += [f"{path} {function.name} `{name}`" for name in explained if not re.search(rf"\b{name}\b", code)]
    assert not wrong


@of_all_sources
def test_each_docstring_is_one_of_something() -> None:
    """A constant that was removed easily leaves the sentence about it behind."""
    wrong = []
    for path, nodes in modules().items():
        for owner in nodes:
            body = getattr(owner, "body", None)
            statements = body if isinstance(body, list) else []
            own = isinstance(owner, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            for before, statement in pairwise([owner if own else None, *statements]):
                value = statement.value if isinstance(statement, ast.Expr) else None
                is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
                if is_text and before is not owner and not isinstance(before, ast.Assign | ast.AnnAssign):
                    wrong.append(f"{path}:{statement.lineno}")
    assert not wrong


# What a parameter is called by somebody who has no noun for it: renamed one by one, and forgotten in sentences.
VAGUE = {"one", "found", "said", "given", "made", "known", "wanted", "told", "asked", "shown", "seen", "got"}
# Values and keys of the data, and no parameters.
OF_DATA = {("Action", "asked"), ("NearMatch", "found")}


@of_all_sources
def test_a_vague_word_that_a_docstring_quotes_is_in_the_code() -> None:
    """Anywhere in the sentence, since few of these are explained by a colon."""
    wrong = set()
    for path, nodes in modules().items():
        for node in nodes:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            quoted = VAGUE & set(re.findall(r"`([a-z]+)`", ast.get_docstring(node, clean=False) or ""))
            if not quoted:
                continue
            parts = node.body[1:] if isinstance(node, ast.ClassDef) else [node.args, *node.body[1:]]
            code = "\n".join(map(ast.unparse, parts))
            wrong |= {(path, node.name, word) for word in quoted if not re.search(rf"\b{word}\b", code)}
    assert {(name, word) for _, name, word in wrong} == OF_DATA, wrong


def test_a_file_that_is_named_is_there(sources: dict[Path, str]) -> None:
    """By its path in the project, below one of the package's folders, or where Python imports it from."""
    folders = [path for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")]
    known = (
        "\n".join(f"/{path.relative_to(ROOT).as_posix()}" for folder in folders for path in folder.rglob("*.*")) + "\n"
    )
    wrong = [
        f"{path.relative_to(ROOT)} {name}"
        for path, text in sources.items()
        for name in FILE.findall(text)
        if not name.startswith("path/to/") and f"/{name}\n" not in known
        if not any(Path(folder, name).is_file() for folder in sys.path)
    ]
    assert not wrong
