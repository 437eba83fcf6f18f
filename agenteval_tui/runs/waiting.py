"""The runs that wait for their turn, in plan order, with a limit for each agent and no more repetitions than needed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from agenteval_tui.runs.plan import RunPlan
from agenteval_tui.runs.stopping import Repetitions


@dataclass(slots=True)
class _Line:
    """What waits for one agent: a heap of (position, run id); entries whose run was taken away, or back, are passed
    over."""

    limit: int | None
    cut: int | None = None
    ready: list[tuple[int, str]] = field(default_factory=list)
    count: int = 0
    busy: int = 0
    until: float = 0.0

    def room(self, wanted: int, clock: Callable[[], float]) -> int:
        if self.until and clock() < self.until:
            return 0
        limit = self.limit
        if self.cut is not None and (limit is None or self.cut < limit):
            limit = self.cut
        return wanted if limit is None else min(wanted, max(0, limit - self.busy))


class WaitingRuns:
    """Gives out runs in plan order, never more of one agent at once than its limit allows.

    `limits` holds the greatest number of runs at once by agent hash; agents that are not in it have none. Of runs
    that are in `repetitions` (by id) no more are on their way at once than are needed.
    """

    def __init__(
        self,
        runs: Iterable[RunPlan],
        limits: Mapping[str, int],
        repetitions: Mapping[str, Repetitions] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._repetitions = repetitions or {}
        self._lines: dict[str, _Line] = {}
        self._waiting: dict[str, tuple[int, RunPlan]] = {}
        self._taken: dict[str, int] = {}
        # By identity of the repetitions: all of them, and those that are not needed yet.
        self._members: dict[int, list[str]] = {}
        self._later: dict[int, deque[str]] = {}
        self._held: set[str] = set()  # the same again, all together
        for position, run in enumerate(runs):
            name = run.ref.run
            self._waiting[name] = (position, run)
            line = self._lines.get(run.agent.hash)
            if line is None:
                line = self._lines[run.agent.hash] = _Line(limits.get(run.agent.hash))
            group = self._repetitions.get(name) if self._repetitions else None
            if group is None:
                line.ready.append((position, name))
                line.count += 1
            else:
                self._members.setdefault(id(group), []).append(name)
                self._later.setdefault(id(group), deque()).append(name)
                self._held.add(name)
        for line in self._lines.values():
            heapify(line.ready)
        for group in {id(one): one for one in self._repetitions.values()}.values():
            self._feed(group)

    def __len__(self) -> int:
        return len(self._waiting)

    def ready(self) -> int:
        """How many runs could begin now, were there no other limit."""
        return sum([line.room(line.count, self._clock) for line in self._lines.values()])

    def take(self) -> RunPlan | None:
        """The next run that may begin; None when none waits or all their agents are busy. Give it back by `release`."""
        best: _Line | None = None
        for line in self._lines.values():
            while line.ready and (line.ready[0][1] not in self._waiting or line.ready[0][1] in self._held):
                heappop(line.ready)
            if line.ready and (best is None or line.ready[0][0] < best.ready[0][0]) and line.room(1, self._clock):
                best = line
        if best is None:
            return None
        position, name = heappop(best.ready)
        run = self._waiting.pop(name)[1]
        self._taken[name] = position
        best.count -= 1
        best.busy += 1
        return run

    def release(self, run: RunPlan) -> None:
        """The run has ended: it no longer keeps its agent busy."""
        del self._taken[run.ref.run]
        self._lines[run.agent.hash].busy -= 1
        group = self._repetitions.get(run.ref.run) if self._repetitions else None
        if group is not None:
            group.begun -= 1
            self._feed(group)

    def put_back(self, run: RunPlan) -> None:
        """A run that was taken waits again, at its old place: before all that came behind it."""
        line = self._lines[run.agent.hash]
        position = self._taken.pop(run.ref.run)
        line.busy -= 1
        self._waiting[run.ref.run] = (position, run)
        self._ready(line, position, run.ref.run)

    def busy(self, agent: str) -> int:
        """How many runs of the agent are on their way."""
        return self._lines[agent].busy

    def cut(self, agent: str, limit: int | None, until: float) -> None:
        """No more than `limit` runs of the agent at once for now (None: as many as ever), and none before `until`."""
        line = self._lines[agent]
        line.cut, line.until = limit, until

    def remove(self, run_id: str) -> RunPlan | None:
        """Take one run out of the line, wherever it stands; None when it does not wait."""
        found = self._waiting.pop(run_id, None)
        if found is None:
            return None
        run = found[1]
        group = self._repetitions.get(run_id) if self._repetitions else None
        if group is not None:
            if run_id in self._held:
                self._held.remove(run_id)
                self._later[id(group)].remove(run_id)
                return run
            group.begun -= 1
        self._lines[run.agent.hash].count -= 1
        if group is not None:
            self._feed(group)
        return run

    def not_needed(self, group: Repetitions) -> list[RunPlan]:
        """Take out all that wait of some repetitions, in plan order."""
        key = id(group)
        gone = []
        for name in self._members[key]:
            if name in self._held:
                self._held.remove(name)
                gone.append(self._waiting.pop(name)[1])
            elif (run := self.remove(name)) is not None:
                gone.append(run)
        self._later[key].clear()
        return gone

    def clear(self) -> list[RunPlan]:
        """Take all runs out; gives them in plan order."""
        left = sorted(self._waiting.values(), key=lambda item: item[0])
        self._waiting.clear()
        self._later = {key: deque() for key in self._later}
        self._held.clear()
        for line in self._lines.values():
            line.ready.clear()
            line.count = 0
        return [run for _, run in left]

    def _feed(self, group: Repetitions) -> None:
        """As many of the repetitions into the line as are needed; out of it again when fewer are."""
        later = self._later.get(id(group))
        if later is None:
            return
        wanted = group.wanted
        while later and group.begun < wanted:
            name = later.popleft()
            self._held.remove(name)
            position, run = self._waiting[name]
            group.begun += 1
            self._ready(self._lines[run.agent.hash], position, name)
        if group.begun > wanted:
            fed = [name for name in self._members[id(group)] if name in self._waiting and name not in self._held]
            for name in reversed(fed[-(group.begun - wanted) :]):
                later.appendleft(name)
                self._held.add(name)
                group.begun -= 1
                self._lines[self._waiting[name][1].agent.hash].count -= 1

    @staticmethod
    def _ready(line: _Line, position: int, name: str) -> None:
        heappush(line.ready, (position, name))
        line.count += 1
