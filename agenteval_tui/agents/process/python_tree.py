"""The tree of processes: Python code of the user's starts from the state right after its imports, each time.

    this process
      level 1     has imported what the project's modules import from outside of the project
        level 2   a fork of it, which has imported the project's modules
          a run   a fork of that, which ends with the run

A file of the project that changed makes level 2 anew, an installed package level 1 too. Functions of one module share
level 1. Where forks of level 2 would share something (`python_effects` finds it), each run has a process that did the
imports itself, and the next one is prepared ahead.

The levels of an event loop live as long as someone holds a `Lease`, and at most ten minutes without work.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import Struct, field
from msgspec.structs import replace

from agenteval_tui.agents.permission import Permission
from agenteval_tui.agents.process.errors import exit_description, with_last_words
from agenteval_tui.agents.process.project_environment import ProjectEnvironment
from agenteval_tui.agents.process.python_host import (
    CallError,
    HostError,
    PythonHost,
    RaisedError,
    host_argv,
    start_host,
)
from agenteval_tui.agents.process.python_start import StartWatch, held_error
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count

IDLE_S = 600.0
"""After that time without work, levels end."""
MOST_TREES = 8
MOST_MB = 4_000
"""The levels of trees without work end if there are more trees, or if all have more memory."""
_CHECK_S = 30.0
_TRIES = 3  # imports that failed are tried again so often, then only after a change
_CHECK_SHARE = 0.05  # of the time, for looking whether files have changed; a look may take
_CHECK_FREE_S = 0.001
_SPARES = os.cpu_count() or 1
_MANY_MODULES = 100
"""With this many imports in a run, starting a new second level takes less time than the imports."""

Step = tuple[str, str]
"""What level 2 does, and for which target: ("find agent", "agent:answer")."""
Signature = tuple[int, int, int]


class Root(Struct, frozen=True):
    """Where a tree starts. `steps`: what its second level prepares."""

    folder: Path
    env: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]
    interpreter: str | None = None
    path: tuple[Path, ...] = ()
    last: tuple[Path, ...] = ()

    @classmethod
    def of(cls, environment: ProjectEnvironment, env: Mapping[str, str], steps: tuple[Step, ...]) -> Root:
        """The root in the environment of a project, with the variables of `env`."""
        return cls(
            environment.folder,
            tuple(sorted(environment.variables(env).items())),
            steps,
            environment.program,
            environment.path,
            environment.last,
        )

    @property
    def is_of_agent(self) -> bool:
        """Whether an agent is run from it."""
        return any(step == "find agent" for step, _ in self.steps)

    def to_modules(self) -> Root:
        """What decides about the first level: the same root, with the modules of its targets alone."""
        return replace(self, steps=tuple((step, target.partition(":")[0]) for step, target in self.steps))


FirstKey = tuple[Root, Permission]


class Level(Struct, eq=False):
    """A process that others are forked from, or that serves itself where it must not be forked: `unsafe` says why, as
    (code, detail)."""

    host: PythonHost
    unsafe: tuple[tuple[str, Any], ...]
    printed: str = ""
    """What the imports printed."""
    outcomes: tuple[Mapping[str, Any], ...] = ()
    """What the steps returned or raised."""
    files: Mapping[str, Signature | None] = {}
    """What it read, as it was then."""
    mb: float = 0.0
    trees: int = 0
    """Those whose first level it is."""
    forks: int = 0
    """Processes that were forked from it and are in use."""
    gone: bool = False
    """Nothing more is forked from it."""

    @property
    def failure(self) -> RaisedError | None:
        """What the first step raised that did."""
        error = next((RaisedError.of(answer) for answer in self.outcomes if "raised" in answer), None)
        if error is not None:
            error.printed = self.printed
        return error

    def stale(self) -> bool:
        """Whether a file that it read has changed."""
        return any(signature(path) != last for path, last in self.files.items())

    def can_be_first(self) -> bool:
        """Whether a second level may still start from it."""
        return (bool(self.unsafe) or self.host.alive) and not self.stale()


def signature(path: str) -> Signature | None:
    """What changes with the content of a file; None: there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - thousands of times
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


class Start(Struct):
    """How long the levels of a tree took to start, in ms, and why its runs are not forks."""

    targets: tuple[str, ...]
    levels_ms: float = 0.0
    unsafe: tuple[tuple[str, Any], ...] = ()

    def remark(self) -> str:
        """Why its runs are not forks, and what would help; "" if they are."""
        reasons = list(dict.fromkeys(_reason(code, detail) for code, detail in self.unsafe))
        if not reasons:
            return ""
        if len(reasons) > _MOST_REASONS:
            reasons[_MOST_REASONS:] = [f"{count(len(reasons) - _MOST_REASONS, 'more reason')}"]
        fix = "with `reuse: true`, a process serves many runs"
        if any(code not in _OF_SYSTEM for code, _ in self.unsafe):
            fix += "; or do that in the function, and not when the module is imported"
        return f"{', '.join(self.targets)}: each run imports the modules again, because {', and '.join(reasons)}; {fix}"


_OF_SYSTEM = ("no_fork", "frameworks")
_MOST_REASONS = 2  # that are told


def _reason(code: str, detail: Any) -> str:
    match code:
        case "no_fork":
            return "this system can't fork"
        case "frameworks":
            return "frameworks of macOS are loaded, which a fork can't use"
        case "threads":
            return f"its imports leave threads running ({detail})"
        case "open":
            return f"its imports leave {detail} open"
        case "shared":
            return "its imports make memory that forks share, such as locks of multiprocessing"
        case "effect":
            what, path, place = detail
            return f"{place or 'an import'} {what}" + (f" ({path})" if path else "")
        case _:
            return f"the import of a package failed: {detail}"


class Tree:
    """The levels for one root. `host` gives a process in the state after the imports, for one user."""

    def __init__(self, root: Root, permission: Permission, firsts: dict[FirstKey, Level]) -> None:
        self.root = root
        self._firsts = firsts
        self._key: FirstKey = (root.to_modules(), permission)
        self.start = Start(tuple(dict.fromkeys(target for _, target in root.steps)))
        self.used = time.monotonic()
        self._permission = permission
        self._first: Level | None = None
        self._second: Level | None = None
        self._making: asyncio.Task[Level] | None = None  # the second level, while it imports
        # Processes for one run each, where the second level must not be forked; they are made ahead of their runs.
        self._spares: deque[asyncio.Task[Level]] = deque()
        self._in_use = 0  # processes that runs have
        self._waiting = 0  # runs that wait for `_making`: the last of them may cancel it
        self._failed = 0  # imports in succession that failed
        self._checked = 0.0  # when the files were looked at last, by time.monotonic(), and how long that took
        self._check_took = 0.0
        self._ending: set[asyncio.Task[Any]] = set()
        self._late: dict[str, None] = {}  # what runs imported late, in the order in which they did (`learn`)
        self._learns = True  # until a module that was imported ahead made forks unsafe
        self._learned_much = False  # the second level is to be made anew, for the sake of `_late`

    @property
    def busy(self) -> bool:
        """Whether a process of it is in use."""
        return bool(self._in_use) or self._making is not None

    @property
    def mb(self) -> float:
        """The memory of its levels. They share most of it."""
        return max((level.mb for level in (self._first, self._second) if level is not None), default=0.0)

    @property
    def files(self) -> frozenset[str]:
        """The project's files that its levels have read."""
        return frozenset(self._second.files) if self._second is not None else frozenset()

    async def outcomes(self) -> tuple[Mapping[str, Any], ...]:
        """What the steps returned or raised. Raises `AgentevalError`, `HostError` and `RaisedError` like `host`, but
        for what a step raised."""
        return (await self._level()).outcomes

    def learn(self, modules: Iterable[str], number: int) -> None:
        """Modules of packages that a run imported while it was called: the next second level has them already. The next
        run gets a new one if they brought many modules with them: `number`, all in all."""
        if self._learns and not self._late.keys() >= (late := dict.fromkeys(modules)).keys():
            self._late.update(late)
            self._learned_much |= number >= _MANY_MODULES

    def look_again(self) -> None:
        """Look whether files have changed before the next process is made, however long the last look took."""
        self._checked = self._check_took = 0.0

    async def host(self, env: Mapping[str, str] | None = None, *, ahead: bool = True) -> PythonHost:
        """A process for one use. End it after use. `env` are more variables, of this process alone: it then
        imports the project's modules itself. `ahead`: more will be wanted; where they can't be forked, they are
        prepared.

        Raises `AgentevalError` when it can't be started, `RaisedError` for what a step raised, `HostError` when the
        process ended.
        """
        # Each time: a fork starts no program, so nothing later would ask.
        self._permission.require_start(host_argv(self.root.interpreter, self.root.path, self.root.last))
        self._in_use += 1
        self.used = time.monotonic()
        try:
            if env:
                # Modules may read these variables at import, and level 2 has imported them without.
                level = await self._alone(env)
            else:
                level = await self._level()
                if level.failure is not None:
                    raise level.failure
                if not level.unsafe:
                    # Before the fork is handed out: a save that makes the level stale meanwhile must not end it.
                    level.forks += 1
                    fork = level.host.new_fork(lambda: self._released(level))
                    fork.printed = level.printed
                    return fork
                level = await self._spare(ahead)
            if (failure := level.failure) is not None:
                self._end(level)
                raise failure
        except BaseException:
            self._in_use -= 1
            raise
        leave_level = level.host.release  # a fork counts at the level that it was forked from

        def release() -> None:
            self._given_back()
            if leave_level is not None:
                leave_level()

        level.host.release = release
        return level.host

    async def close(self) -> None:
        """End its levels."""
        making, self._making = self._making, None
        if making is not None:
            making.cancel()
            await asyncio.gather(making, return_exceptions=True)
        self._drop_spares()
        second, self._second = self._second, None
        self._end_forked(second)
        self._leave_first()
        while self._ending:
            await asyncio.gather(*self._ending, return_exceptions=True)

    # Levels

    async def _level(self) -> Level:
        """The second level, made when there is none or it is out of date."""
        second = self._second
        if second is not None and self._is_current(second):
            return second
        # Runs that start at once wait for the same imports.
        if self._making is None:
            self._making = asyncio.create_task(self._make())
            self._making.add_done_callback(self._made)
        making = self._making
        self._waiting += 1
        try:
            # One of them that is cancelled must not cancel the imports of the others.
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            if self._waiting == 1 and not making.done():  # nobody waits for it any more
                self._drop(making)
                self._making = None
            raise
        finally:
            self._waiting -= 1

    def _made(self, task: asyncio.Task[Level]) -> None:
        if self._making is task:
            self._making = None
        if not task.cancelled():
            task.exception()  # whoever waits for it is told

    def _is_current(self, level: Level) -> bool:
        # A level that serves a run itself, or whose import failed, ends without being out of date: what it found still
        # holds.
        if not level.host.alive and not level.unsafe and level.failure is None:
            return False
        if self._learned_much:
            return False
        # An import may fail for a reason that passes.
        if level.failure is not None and self._failed < _TRIES:
            return False
        now = time.monotonic()
        # Looking at thousands of files takes its time: a look that took long is followed by a longer pause, so that all
        # looks together take at most the share above.
        if now - self._checked < (self._check_took - _CHECK_FREE_S) / _CHECK_SHARE:
            return True
        stale = level.stale() or (self._first is not None and self._first.stale())
        self._checked = time.monotonic()
        self._check_took = self._checked - now
        if stale:
            self._failed = 0
        return not stale

    async def _make(self) -> Level:
        began = time.monotonic()
        old, self._second = self._second, None
        self._learned_much = False
        self._end_forked(old)
        self._drop_spares()
        level = await self._prepared(await self._source(), late=tuple(self._late))
        if level.unsafe and self._late:
            # It may be they that leave a thread, or open something: then each run imports them itself, as before.
            self._late.clear()
            self._learns = False
            self._end(level)
            level = await self._alone()
        self._second = level
        failure = level.failure
        # An import that hung is not tried again: each time it would take until the limit of `python_start`.
        tries = 0 if failure is None else _TRIES if "ImportTimeout" in failure.kinds else 1
        self._failed = self._failed + tries if tries else 0
        self._checked, self._check_took = time.monotonic(), 0.0
        self.start.levels_ms += (time.monotonic() - began) * 1000
        self.start.unsafe = level.unsafe
        # It stays as the answer to the next runs, without its process.
        if level.failure is not None:
            self._end(level)
        elif level.unsafe:
            # It serves one of the runs itself.
            self._spares.append(asyncio.create_task(_already(level)))
        return level

    async def _source(self) -> Level:
        """The first level, made when there is none or it is out of date."""
        if self._first is not None and self._first.can_be_first():
            return self._first
        self._leave_first()
        # Another tree, of another function of the same module, may have made it.
        shared = self._firsts.get(self._key)
        if shared is not None and shared.can_be_first():
            return self._begin_with(shared)
        host = await self._started()
        try:
            targets = [target for _, target in self.root.steps]
            answer = await _asked(host, self.root.folder, "outside", targets=targets)
            first = await _level_of(host, answer, answer["places"])
        except CallError as error:
            # The module that wants the import will say what is wrong.
            await host.end()
            if not host.spoke:
                raise self._no_python(host, error) from None
            if isinstance(error, RaisedError) and "ImportTimeout" in error.kinds:
                error.printed = host.program.stderr
                raise
            return self._begin_with(Level(host, (("import", str(error)),)))
        except BaseException:
            await host.end()
            raise
        # What it found stays known; each run then makes all imports itself.
        if first.unsafe:
            await host.end()
        return self._begin_with(first)

    def _begin_with(self, first: Level) -> Level:
        if first is not self._first:
            self._leave_first()
            first.trees += 1
            self._first = first
            if first.files:  # else nothing would say that it is out of date
                self._firsts[self._key] = first
        return first

    def _leave_first(self) -> None:
        """The last tree of a first level ends it."""
        first, self._first = self._first, None
        if first is not None:
            first.trees -= 1
            if not first.trees:
                if self._firsts.get(self._key) is first:
                    del self._firsts[self._key]
                self._end_forked(first)

    async def _started(self, env: Mapping[str, str] | None = None) -> PythonHost:
        root = self.root
        return await start_host(
            root.folder,
            {**dict(root.env), **(env or {})},
            permission=self._permission,
            interpreter=root.interpreter,
            path=root.path,
            last=root.last,
        )

    async def _prepared(self, first: Level, env: Mapping[str, str] | None = None, late: tuple[str, ...] = ()) -> Level:
        """A process in which the project's modules are imported: a fork of the first level, if it may be forked."""
        # A fork goes on from what its first level printed; one that starts anew prints that itself.
        before = "" if first.unsafe else first.printed
        if first.unsafe:
            host = await self._started(env)
        else:
            first.forks += 1
            host = first.host.new_fork(lambda: self._left(first), level=True)
        try:
            answer = await _asked(
                host, self.root.folder, "prepare", steps=self.root.steps, env=dict(env or {}), late=late
            )
            level = await _level_of(host, answer, [*answer["files"], *answer["folders"]])
        except CallError as error:
            if isinstance(error, HostError):
                error.program = host.program
            await host.end()
            error.printed = before + host.program.stderr
            raise
        except BaseException:
            await host.end()
            raise
        # Where the first level may not be forked, this process has made its imports itself: what is unsafe about them
        # holds here, too.
        level.unsafe = (*first.unsafe, *level.unsafe)
        level.printed = level.host.printed = before + level.printed
        return level

    def _no_python(self, host: PythonHost, error: CallError) -> AgentevalError:
        """What is said of a program that never answered: it is no Python, or can't run our part of the process."""
        program = host_argv(self.root.interpreter, ())[0]
        waited_s = getattr(error, "waited_s", None)
        ended = f"it gave no sign for {waited_s:g} s" if waited_s else f"it {exit_description(host.program.returncode)}"
        sentence = with_last_words(
            f"{program} doesn't run as a Python: {ended}", host.program.stderr, dict(self.root.env)
        )
        return AgentevalError(sentence, fix="make the environment again, or name another Python: `python: PATH`")

    # Processes for one run each

    async def _spare(self, ahead: bool) -> Level:
        task = self._spares.popleft() if self._spares else self._new_spare()
        # At most one for each run in progress and for each processor: more would only wait.
        while ahead and len(self._spares) < min(self._in_use, _SPARES):
            self._spares.append(self._new_spare())
        try:
            level = await task
        except asyncio.CancelledError:
            self._drop(task)
            raise
        # It was prepared a while ago.
        if level.stale() or not level.host.alive:
            self._end(level)
            return await self._alone()
        return level

    def _new_spare(self) -> asyncio.Task[Level]:
        return asyncio.create_task(self._alone())

    async def _alone(self, env: Mapping[str, str] | None = None) -> Level:
        """A process that makes the imports of the project for one run."""
        return await self._prepared(await self._source(), env)

    def _drop_spares(self) -> None:
        while self._spares:
            self._drop(self._spares.popleft())

    def _drop(self, task: asyncio.Task[Level]) -> None:
        if not task.done():
            task.cancel()
            self._ending.add(task)  # its process is ended before the tree is
            task.add_done_callback(self._ending.discard)
        elif not task.cancelled() and task.exception() is None:
            self._end(task.result())

    # Ends

    def _given_back(self) -> None:
        self._in_use -= 1
        self.used = time.monotonic()

    def _released(self, level: Level) -> None:
        self._given_back()
        self._left(level)

    def _left(self, level: Level) -> None:
        level.forks -= 1
        if level.gone and not level.forks:
            self._end(level)

    def _end_forked(self, level: Level | None) -> None:
        """End a level, unless it serves a run itself, or has ended."""
        if level is not None and not level.unsafe and level.failure is None:
            self._end(level)

    def _end(self, level: Level) -> None:
        """End a level as soon as nothing that was forked from it is in use."""
        level.gone = True
        if not level.forks:
            task = asyncio.create_task(level.host.end(politely=True))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)


async def _already(level: Level) -> Level:
    return level


async def _asked(host: PythonHost, folder: Path, do: str, **fields: Any) -> Mapping[str, Any]:
    """What a level answers. If its imports take too long, it says where it is, and is ended."""
    watch = StartWatch(host.program)
    try:
        answer = await host.call(do, "", **fields)
        assert isinstance(answer, dict)
        return answer
    except HostError as error:
        if watch.had_to_kill:
            held = held_error("ImportTimeout", "its import did not end in time", host.program.stderr, folder)
            if held.traceback is not None and held.traceback.exceptions[0].frames:  # it is a Python
                raise held from None
        error.waited_s = watch.expired_s
        raise
    finally:
        watch.close()


async def _level_of(host: PythonHost, answer: Mapping[str, Any], read: Sequence[str]) -> Level:
    await asyncio.sleep(0)  # what was printed before the answer is there to be read
    return Level(
        host,
        tuple((str(code), detail) for code, detail in answer["unsafe"]),
        host.program.stderr,
        tuple(answer.get("outcomes", ())),
        {path: signature(path) for path in read},
        float(answer["kb"]) / 1024,
    )


class Lease:
    """The right to trees in the running event loop. The last one that is closed ends them all."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._trees = _of_loop.setdefault(loop, _Trees())
        self._trees.leases += 1
        self._mine: dict[Root, Tree] = {}
        self._closed = False

    def tree(self, root: Root, permission: Permission) -> Tree:
        """The tree of that root. Keep it only as long as a process is needed."""
        tree = self._mine[root] = self._trees.tree(root, permission)
        return tree

    @property
    def used(self) -> tuple[Tree, ...]:
        """The trees that were asked for with this lease."""
        return tuple(self._mine.values())

    async def close(self) -> None:
        """Give it back."""
        if not self._closed:
            self._closed = True
            self._trees.leases -= 1
            if not self._trees.leases:
                await self._trees.close()


class _Trees(Struct, eq=False, weakref=True):
    leases: int = 0
    trees: dict[tuple[Root, Permission], Tree] = field(default_factory=dict)
    firsts: dict[FirstKey, Level] = field(default_factory=dict)
    starts: dict[tuple[Root, Permission], Start] = field(default_factory=dict)
    timer: asyncio.TimerHandle | None = None
    ending: set[asyncio.Task[None]] = field(default_factory=set)

    def tree(self, root: Root, permission: Permission) -> Tree:
        key = (root, permission)
        tree = self.trees.pop(key, None) or Tree(root, permission, self.firsts)
        self.trees[key] = tree  # the one that was used last is the last
        self.starts.setdefault(key, tree.start)
        self._end_some()
        if self.timer is None:
            self.timer = asyncio.get_running_loop().call_later(_CHECK_S, self._check)
        return tree

    async def close(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        for tree in self.trees.values():
            self._close(tree)
        self.trees.clear()
        self.starts.clear()
        while self.ending:
            await asyncio.gather(*self.ending, return_exceptions=True)

    def _end_some(self) -> None:
        newest = next(reversed(self.trees))
        for key, tree in list(self.trees.items()):
            if len(self.trees) <= MOST_TREES and sum(each.mb for each in self.trees.values()) <= MOST_MB:
                return
            if key != newest and not tree.busy:
                self._close(self.trees.pop(key))

    def _check(self) -> None:
        self.timer = None
        now = time.monotonic()
        for key, tree in list(self.trees.items()):
            if not tree.busy and now - tree.used > IDLE_S:
                self._close(self.trees.pop(key))
        if self.trees:
            self.timer = asyncio.get_running_loop().call_later(_CHECK_S, self._check)

    def _close(self, tree: Tree) -> None:
        task = asyncio.create_task(tree.close())
        self.ending.add(task)
        task.add_done_callback(self.ending.discard)


_of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, _Trees] = WeakKeyDictionary()


def function_files() -> frozenset[str]:
    """The project's files that functions beside agents have read, such as metrics, in the running event loop."""
    trees = _of_loop.get(asyncio.get_running_loop())
    functions = () if trees is None else [tree for tree in trees.trees.values() if not tree.root.is_of_agent]
    return frozenset().union(*(tree.files for tree in functions))


def starts() -> tuple[Start, ...]:
    """What was started in the running event loop, for as long as someone holds a lease."""
    trees = _of_loop.get(asyncio.get_running_loop())
    return () if trees is None else tuple(trees.starts.values())
