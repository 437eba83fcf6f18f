"""What the tests notice: breaks the code in one place at a time and runs the tests that go through that place.

    nice -n 15 .venv/bin/python benchmarks/mutants.py --mutants 160 --seed 1     # half an hour
    nice -n 15 .venv/bin/python benchmarks/mutants.py --commit 23bd94c           # another commit's code and tests
    nice -n 15 .venv/bin/python benchmarks/mutants.py --only agenteval_tui/runs/outbox.py

It works in a throw-away worktree of a commit. First each test runs once while the functions that it calls are noted
(kept in `--trace-file`). Then for each mutant of a seeded sample, as many of each package, the tests that call the
changed function run, the fastest first, up to the first failure. A line a mutant: killed or SURVIVED, and the change.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("grading", "history", "runs", "analysis")
MOST_S = 25.0  # recorded seconds of the tests that run for one mutant
LIMIT_S = 150  # then it hangs, and counts as killed
Mutant = tuple[int, str, str, str]
"""First line of the function, what was there (with its line), what is there now, the module's new source."""
_PAIRS = ((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn))
_OTHER: dict[type[ast.cmpop], type[ast.cmpop]] = {a: b for pair in _PAIRS for a, b in (pair, pair[::-1])}
_NAMES = {"max": "min", "min": "max", "any": "all", "all": "any"}
_REMOVED = (ast.AugAssign, ast.Raise, ast.Continue, ast.Break)
_SKIPPED = {"annotation", "returns", "decorator_list", "frozen", "slots", "strict"}  # no other behaviour


class Reached:
    """A pytest plugin: which functions (file:line) each test that passes goes through, and its seconds."""

    def __init__(self) -> None:
        self.tests: dict[str, tuple[float, list[str]]] = {}
        self._passed = False

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Look at each call while the test and its fixtures run."""
        seen: set[Any] = set()
        began, self._passed, here = time.monotonic(), False, f"{Path.cwd()}/"

        def look(frame: Any, event: str, argument: Any) -> None:
            seen.add(frame.f_code)

        threading.settrace(look)
        sys.settrace(look)
        yield
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        places = {f"{one.co_filename.removeprefix(here)}:{one.co_firstlineno}" for one in seen}
        if self._passed:
            self.tests[item.nodeid] = time.monotonic() - began, [one for one in places if one.startswith("agenteval")]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Only what passes can tell."""
        if report.when == "call":
            self._passed = report.passed


def mutants(source: str) -> Iterator[Mutant]:
    """Each change of a module."""
    whole, starts = source.encode(), [0]
    for line in whole.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def walk(node: Any, function: int) -> Iterator[Mutant]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            function = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
        for new in _changes(node):
            begin, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
            was = " ".join(whole[begin:end].decode().split())
            yield function, f"{node.lineno}: {was}", new, (whole[:begin] + new.encode() + whole[end:]).decode()
        for name, value in ast.iter_fields(node):
            if name in _SKIPPED or isinstance(node, ast.JoinedStr) or getattr(node, "arg", "") in _SKIPPED:
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and getattr(getattr(child, "test", None), "id", "") != "TYPE_CHECKING":
                    yield from walk(child, function)

    yield from walk(ast.parse(source), 0)


def _changes(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Compare(left, ops, comparators):
            for at in range(len(ops)):
                others = [_OTHER[type(one)]() if n == at else one for n, one in enumerate(ops)]
                yield f"({ast.unparse(ast.Compare(left, others, comparators))})"
        case ast.BoolOp(op, values):
            yield f"({ast.unparse(ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values))})"
        case ast.UnaryOp(ast.Not(), operand):
            yield f"({ast.unparse(operand)})"
        case ast.Constant(bool(value)):
            yield str(not value)
        case ast.Constant(int(value) | float(value)):
            yield str(value + 1)
        case ast.IfExp(test, body, orelse):
            yield f"({ast.unparse(ast.IfExp(test, orelse, body))})"
        case ast.Return(ast.expr() as value) if ast.unparse(value) != "None":
            yield "return None"
        case ast.Expr(ast.Call() | ast.Await()):
            yield "pass"
        case ast.Name(name, ast.Load()) if name in _NAMES:
            yield _NAMES[name]
        case ast.Call(function, [one, other, *more], keywords) if ast.dump(one) != ast.dump(other):
            known = ast.unparse(function) in ("isinstance", "getattr", "setattr")
            if not known and not isinstance(one, ast.Starred) and not isinstance(other, ast.Starred):
                yield ast.unparse(ast.Call(function, [other, one, *more], keywords))
        case _ if isinstance(node, _REMOVED):
            yield "pass"


def sample(tree: Path, count: int, seed: int, only: list[str]) -> Iterator[tuple[str, Mutant]]:
    """As many mutants of each package (or of the files `only`), chosen by `seed`."""
    folders = [sorted((tree / "agenteval_tui" / one).rglob("*.py")) for one in PACKAGES]
    groups = [[tree / one for one in only]] if only else folders
    for paths in groups:
        found = [(str(path.relative_to(tree)), one) for path in paths for one in mutants(path.read_text("utf-8"))]
        yield from random.Random(seed).sample(found, min(count // len(groups), len(found)))


def tests_of(tests: dict[str, Any], file: str, function: int, most_s: float) -> list[str]:
    """The tests through the function, then those through its file (caches, shared fixtures); the fastest first."""
    ranked = []
    for name, (seconds, reached) in tests.items():
        if any(one.startswith(f"{file}:") for one in reached):
            ranked.append((f"{file}:{function}" not in reached, seconds, name))
    names, spent = [], 0.0
    for _, seconds, name in sorted(ranked):
        if spent + seconds <= most_s:
            names.append(name)
            spent += seconds
    return names


def survives(tree: Path, file: str, source: str, names: list[str], at: int, env: dict[str, str]) -> bool:
    """Whether these tests pass with this source. `at`: another second for each, or old byte code is taken for it."""
    path = tree / file
    before = path.read_text("utf-8")
    command = [sys.executable, "-P", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *names]
    try:
        path.write_text(source, "utf-8")
        os.utime(path, (at, at))
        done = subprocess.run(command, cwd=tree, env=env, capture_output=True, timeout=LIMIT_S, check=False)
        return not names or done.returncode == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        path.write_text(before, "utf-8")
        os.utime(path, (at + 5, at + 5))


def run(given: argparse.Namespace, tree: Path) -> None:
    """All of it in this tree."""
    env, trace = {**os.environ, "PYTHONPATH": str(tree)}, given.trace_file or tree.parent / "trace.json"
    if not trace.exists():
        command = [sys.executable, "-P", __file__, "--trace", str(trace)]
        subprocess.run(command, cwd=tree, env=env, stdout=subprocess.DEVNULL, check=True)
    tests = json.loads(trace.read_text("utf-8"))
    ended: dict[str, list[bool]] = defaultdict(list)
    for at, (file, (function, was, now, source)) in enumerate(sample(tree, given.mutants, given.seed, given.only), 1):
        names = tests_of(tests, file, function, given.seconds)
        killed = not survives(tree, file, source, names, at * 10, env)
        ended[file.split("/")[1]].append(killed)
        print(f"{'killed  ' if killed else 'SURVIVED'} {len(names):4} tests  {file}:{was}  ->  {now}", flush=True)
    for package, all_of in {**ended, "all": [one for listed in ended.values() for one in listed]}.items():
        print(f"{package}: {sum(all_of)} of {len(all_of)} killed ({sum(all_of) / len(all_of):.0%})")


def main() -> None:
    """Trace once, then a mutant after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=160)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--only", nargs="*", default=[], help="files, from the root of the project")
    parser.add_argument("--trace-file", type=Path, help="kept, and taken where it is there")
    parser.add_argument("--seconds", type=float, default=MOST_S, help="of tests for one mutant")
    parser.add_argument("--trace", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.trace:
        reached = Reached()
        folders = [f"tests/{one}" for one in PACKAGES]
        pytest.main([*folders, "-q", "-m", "not e2e", "-p", "no:cacheprovider"], plugins=[reached])
        given.trace.write_text(json.dumps(reached.tests), "utf-8")
        return
    git = ["git", "-C", str(ROOT), "worktree"]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        subprocess.run([*git, "add", "-q", "--detach", str(tree), given.commit], check=True)
        if (ROOT.parent / "shared").is_dir():
            Path(folder, "shared").symlink_to(ROOT.parent / "shared")
        try:
            run(given, tree)
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=False)


if __name__ == "__main__":
    main()
