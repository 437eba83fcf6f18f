"""What the tests notice: breaks the code in one place at a time and runs the tests that go through that place.

    nice -n 15 .venv/bin/python tests/mutants.py --mutants 160 --seed 1     # a quarter of an hour
    nice -n 15 .venv/bin/python tests/mutants.py --commit 23bd94c           # another commit's code and tests
    nice -n 15 .venv/bin/python tests/mutants.py --only agenteval_tui/runs/live_socket.py

It works in a throw-away worktree of a commit, in one session of pytest. First each test runs once while the functions
that it calls are noted (kept in `--trace-file`). Then for each mutant of a seeded sample, as many of each package, a
fork of the session puts the changed function in its place and runs the tests that call it, the fastest first, up to the
first failure. A line a mutant: killed or SURVIVED, and the change. What programs of tests do in processes of their own
is not looked at, and nothing outside of functions is changed.
"""

from __future__ import annotations

import argparse
import ast
import gc
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("grading", "history", "runs", "analysis")
MOST_S = 25.0  # recorded seconds of the tests that run for one mutant
LIMIT_S = 60.0  # then it hangs, and counts as killed
SURVIVED, KILLED, UNCHANGED = 0, 1, 4
Mutant = tuple[int, str, str, str]
"""First line of the function, what was there (with its line), what is there now, the module's new source."""
_PAIRS = ((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn))
_OTHER: dict[type[ast.cmpop], type[ast.cmpop]] = {a: b for pair in _PAIRS for a, b in (pair, pair[::-1])}
_NAMES = {"max": "min", "min": "max", "any": "all", "all": "any"}
_REMOVED = (ast.AugAssign, ast.Raise, ast.Continue, ast.Break)
_SKIPPED = {"annotation", "returns", "decorator_list", "frozen", "slots", "strict"}  # no other behaviour


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


class Session:
    """A plugin of pytest that runs the mutants in place of the tests."""

    def __init__(self, given: argparse.Namespace, trace: Path) -> None:
        self._given, self._trace, self._tree = given, trace, Path.cwd()
        self._failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Of the test that runs."""
        self._failed = self._failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Trace once, then a mutant after the other."""
        items = {one.nodeid: one for one in session.items}
        if not self._trace.exists():
            in_fork(lambda: self._reached(session.items), 3_600)
        tests = {name: one for name, one in json.loads(self._trace.read_text("utf-8")).items() if name in items}
        ended: dict[str, list[bool]] = defaultdict(list)
        given = self._given
        for file, (function, was, now, source) in sample(self._tree, given.mutants, given.seed, given.only):
            chosen = [items[name] for name in tests_of(tests, file, function, given.seconds)]
            code = in_fork(lambda file=file, source=source, chosen=chosen: self._try(file, source, chosen), LIMIT_S)  # type: ignore[misc]
            if code != UNCHANGED:
                ended[file.split("/")[1]].append(code != SURVIVED)
                said = "SURVIVED" if code == SURVIVED else "killed  "
                print(f"{said} {len(chosen):4} tests  {file}:{was}  ->  {now}", file=sys.stderr, flush=True)
        for package, all_of in {**ended, "all": [one for listed in ended.values() for one in listed]}.items():
            killed = f"{sum(all_of)} of {len(all_of)} killed ({sum(all_of) / max(len(all_of), 1):.0%})"
            print(f"{package}: {killed}", file=sys.stderr)
        return True

    def _run(self, items: list[pytest.Item]) -> Iterator[tuple[pytest.Item, bool]]:
        """Each test, and whether it passed. In a fork: files of its own, for folders are counted in each process."""
        with tempfile.TemporaryDirectory() as folder:
            if items:
                items[0].config._tmp_path_factory._basetemp = Path(folder)  # type: ignore[attr-defined]
            for one, following in zip(items, [*items[1:], None], strict=True):
                self._failed = False
                one.config.hook.pytest_runtest_protocol(item=one, nextitem=following)
                yield one, not self._failed

    def _reached(self, items: list[pytest.Item]) -> int:
        """Write down which functions (file:line) each test that passes goes through, and its seconds."""
        seen: set[CodeType] = set()
        found: dict[str, tuple[float, list[str]]] = {}

        def look(frame: Any, event: str, argument: Any) -> None:
            seen.add(frame.f_code)

        threading.settrace(look)
        began = time.monotonic()
        sys.settrace(look)
        for item, passed in self._run(items):
            sys.settrace(None)
            places = {f"{one.co_filename.removeprefix(f'{self._tree}/')}:{one.co_firstlineno}" for one in tuple(seen)}
            if passed:
                found[item.nodeid] = time.monotonic() - began, [one for one in places if one.startswith("agenteval")]
            seen.clear()
            began = time.monotonic()
            sys.settrace(look)
        sys.settrace(None)
        self._trace.write_text(json.dumps(found), "utf-8")
        return SURVIVED

    def _try(self, file: str, source: str, items: list[pytest.Item]) -> int:
        """Put the new code into the functions that there are, and run these tests up to the first that fails."""
        path = str(self._tree / file)
        made = {(one.co_qualname, one.co_firstlineno): one for one in _codes(compile(source, path, "exec"))}
        changed = False
        gc.unfreeze()  # frozen objects are not listed
        for one in [one for one in gc.get_objects() if type(one) is FunctionType and one.__code__.co_filename == path]:
            new = made.get((one.__code__.co_qualname, one.__code__.co_firstlineno), one.__code__)
            if new != one.__code__:
                one.__code__, changed = new, True
        if not changed:
            return UNCHANGED
        return SURVIVED if all(passed for _, passed in self._run(items)) else KILLED


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _codes(one)


def in_fork(work: Callable[[], int], limit_s: float) -> int:
    """What `work` gives in a process of its own; KILLED where it raises or takes too long."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        code = KILLED
        try:
            code = work()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return KILLED


def main() -> None:
    """Make the worktree, and start this file anew in it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=160)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--only", nargs="*", default=[], help="files, from the root of the project")
    parser.add_argument("--trace-file", type=Path, help="kept, and taken where it is there")
    parser.add_argument("--tests", nargs="*", default=[], help="files or folders; default: those of the packages")
    parser.add_argument("--seconds", type=float, default=MOST_S, help="of tests for one mutant")
    parser.add_argument("--tree", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.tree:
        session = Session(given, (given.trace_file or Path("..", "trace.json")).resolve())
        folders = given.tests or [f"tests/{one}" for one in PACKAGES]
        options = ["-q", "-m", "not e2e", "-p", "no:cacheprovider", "-p", "no:terminalreporter", "--capture=sys"]
        raise SystemExit(pytest.main([*folders, *options], plugins=[session]))
    git = ["git", "-C", str(ROOT), "worktree"]
    folder = Path(tempfile.mkdtemp())
    tree = folder / "tree"
    if given.trace_file:
        sys.argv += ["--trace-file", str(given.trace_file.resolve())]
    try:
        subprocess.run([*git, "add", "-q", "--detach", str(tree), given.commit], check=True)
        if (ROOT.parent / "shared").is_dir():
            (folder / "shared").symlink_to(ROOT.parent / "shared")
        command = [sys.executable, "-P", __file__, *sys.argv[1:], "--tree", str(tree)]
        subprocess.run(command, cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}, check=False)
    finally:
        subprocess.run([*git, "remove", "--force", str(tree)], check=False)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
