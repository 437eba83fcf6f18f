"""The runs that wait for their turn, in plan order, with a limit for each agent and no more repetitions than needed."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from heapq import heapify, heappop, heappush

from msgspec import Struct, field

from agenteval_tui.runs.early_stopping import Repetitions
from agenteval_tui.runs.plan.model import RunPlan

_BEHIND = 1 << 40  # runs that may start only alone come after all others


class _Line(Struct):
    """What waits for one agent: a heap of (position, run id); entries whose run was taken, or put back, are skipped.
    `resting` is a heap of (when it may start, position, run id); `alone` are runs that start only when nothing else of
    the agent is in flight except runs that were put back like them.

    All runs in flight are one round, where the first started alone and the others joined it: `asking`, and `heard`
    are those of the round that were put back. A round ends when one of its runs is released, or another round starts.
    """

    limit: int | None
    cut: int | None = None
    ready: list[tuple[int, str]] = field(default_factory=list)
    resting: list[tuple[float, int, str]] = field(default_factory=list)
    rests: set[str] = field(default_factory=set)  # the names in `resting`
    alone: set[str] = field(default_factory=set)
    again: set[str] = field(default_factory=set)  # what was put back at any time
    asking: set[str] = field(default_factory=set)
    heard: list[str] = field(default_factory=list)
    together: bool = True  # whether others may join a round; not where one was released beside others
    count: int = 0
    busy: int = 0
    until: float = 0.0

    @property
    def startable(self) -> int:
        """How many of those that are ready may begin as far as the others are concerned."""
        alone = len(self.alone - self.rests)
        return self.count - alone or (alone if self.joinable else 0)

    @property
    def all_refused(self) -> bool:
        """Whether nothing is on its way but a round of runs that were put back before."""
        return self.together and len(self.asking & self.again) == self.busy

    @property
    def joinable(self) -> bool:
        """Whether what may begin only alone may begin: behind the first that was heard of a round comes the next one,
        or it would never end."""
        return not self.busy or (self.all_refused and not self.heard)

    def begin(self, name: str) -> None:
        """A run that was taken out is on its way."""
        if self.busy and not (name in self.again and self.all_refused):
            self.end_round()
        else:
            self.asking.add(name)
        self.busy += 1

    def end_round(self) -> None:
        """What is on its way and what was heard of it says nothing of the runs alone."""
        self.asking.clear()
        self.heard.clear()

    def leave(self, name: str) -> None:
        """A run that waits is taken out."""
        self.alone.discard(name)
        if name in self.rests:
            self.rests.remove(name)
        else:
            self.count -= 1

    def room(self, most: int, clock: Callable[[], float]) -> int:
        if self.until and clock() < self.until:
            return 0
        limit = self.limit
        # What is refused also alone is not refused for the number at once.
        refused = self.together and self.joinable and (self.busy or self.count == len(self.alone - self.rests))
        if self.cut is not None and not refused and (limit is None or self.cut < limit):
            limit = self.cut
        return most if limit is None else min(most, max(0, limit - self.busy))


def exclusive_of(run: RunPlan) -> str:
    """What only one run may use at a time, and this one uses; "": nothing."""
    return run.around.exclusive if run.around is not None else ""


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
        # All that is in `_later`, to be looked up by id.
        self._held: set[str] = set()  # the same again, all together
        # What only one run may use: how many use it, and the runs that wait for it.
        self._used: Counter[str] = Counter()
        self._blocked: dict[str, list[tuple[int, str]]] = {}
        self._last = 0
        for position, run in enumerate(runs):
            self._last = position
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
        for group in {id(repetition): repetition for repetition in self._repetitions.values()}.values():
            self._feed(group)

    def __len__(self) -> int:
        return len(self._waiting)

    def ready(self) -> int:
        """How many runs could begin now, were there no other limit."""
        for line in self._lines.values():
            self._rested(line)
        return sum([line.room(line.startable, self._clock) for line in self._lines.values()])

    def next(self) -> RunPlan | None:
        """The run that `take` would give."""
        best = self._best()
        return None if best is None else self._waiting[best.ready[0][1]][1]

    def take(self) -> RunPlan | None:
        """The next run that may begin; None when none waits or all their agents are busy. Give it back by `release`."""
        best = self._best()
        if best is None:
            return None
        position, name = heappop(best.ready)
        run = self._waiting.pop(name)[1]
        self._taken[name] = position
        best.leave(name)
        best.begin(name)
        if exclusive := exclusive_of(run):
            self._used[exclusive] += 1
        return run

    def _best(self) -> _Line | None:
        """The line whose first run is the next one."""
        best: _Line | None = None
        for line in self._lines.values():
            self._rested(line)
            while line.ready and (
                line.ready[0][1] not in self._waiting or line.ready[0][1] in self._held or self._blocks(line)
            ):
                heappop(line.ready)
            if line.ready and (best is None or line.ready[0][0] < best.ready[0][0]) and line.room(1, self._clock):
                if line.ready[0][1] in line.alone and not line.joinable:
                    continue  # it comes after all others: there is nothing else
                best = line
        return best

    def hold(self, exclusive: str) -> None:
        """Something beside runs uses what only one run may use."""
        self._used[exclusive] += 1

    def free(self, exclusive: str) -> None:
        """It is free again; what waits for it may start if nothing else uses it."""
        self._used[exclusive] -= 1
        if self._used[exclusive] <= 0:
            del self._used[exclusive]
            for position, name in self._blocked.pop(exclusive, ()):
                line = self._lines[self._waiting[name][1].agent.hash] if name in self._waiting else None
                if line is not None and name in line.rests:
                    line.rests.remove(name)
                    self._ready(line, position, name)

    def _blocks(self, line: _Line) -> bool:
        """Whether the first that is ready waits for what another run uses: then it rests until that is free."""
        position, name = line.ready[0]
        exclusive = exclusive_of(self._waiting[name][1])
        if not exclusive or exclusive not in self._used:
            return False
        if name not in line.rests:
            line.count -= 1
            line.rests.add(name)
        self._blocked.setdefault(exclusive, []).append((position, name))
        return True

    def release(self, run: RunPlan) -> None:
        """The run has ended: it no longer keeps its agent busy."""
        del self._taken[run.ref.run]
        if exclusive := exclusive_of(run):
            self.free(exclusive)
        line = self._lines[run.agent.hash]
        line.busy -= 1
        line.together = line.together and len(line.asking) + len(line.heard) < 2
        line.end_round()
        group = self._repetitions.get(run.ref.run) if self._repetitions else None
        if group is not None:
            group.begun -= 1
            self._feed(group)

    def put_back(self, run: RunPlan, *, rest_s: float = 0.0, alone: bool = False) -> None:
        """A run that was taken waits again, after all others of its agent: a different one shows whether there is room.
        It does not start for `rest_s` seconds, and, with `alone`, only when nothing else of its agent is in flight
        except runs that were also put back.
        """
        line, name = self._lines[run.agent.hash], run.ref.run
        del self._taken[name]
        if exclusive := exclusive_of(run):
            self.free(exclusive)
        line.busy -= 1
        line.again.add(name)
        self._last += 1
        position = self._last + _BEHIND * alone
        # An older entry of this run in the heap has another position, and is skipped when it comes up.
        self._waiting[name] = (position, run)
        if alone:
            line.alone.add(name)
        if rest_s > 0:
            line.rests.add(name)
            heappush(line.resting, (self._clock() + rest_s, position, name))
        else:
            self._ready(line, position, name)

    def busy(self, agent: str) -> int:
        """How many runs of the agent are on their way."""
        return self._lines[agent].busy

    def refused(self, run: RunPlan) -> tuple[str, ...]:
        """The server refused this run, which is given back after this.

        Gives the ids of the runs that were refused while nothing of the agent was on its way but them, this one among
        them; () while that is not known yet, or not so.
        """
        line, name = self._lines[run.agent.hash], run.ref.run
        if name not in line.asking:
            return ()
        line.asking.remove(name)
        line.heard.append(name)
        if line.asking:
            return ()
        heard = tuple(dict.fromkeys(line.heard))
        line.heard.clear()
        return heard

    def wake(self, run: RunPlan) -> None:
        """A run that rests has rested long enough."""
        line, name = self._lines[run.agent.hash], run.ref.run
        if name in line.rests:
            line.rests.remove(name)
            self._ready(line, self._waiting[name][0], name)

    def cut(self, agent: str, limit: int | None, until: float) -> None:
        """No more than `limit` runs of the agent at once for now (None: as many as ever), and none before `until`."""
        line = self._lines[agent]
        line.cut, line.until = limit, until

    def remove(self, run_id: str) -> RunPlan | None:
        """Take one run out of the line, wherever it stands; None when it does not wait."""
        waiting = self._waiting.pop(run_id, None)
        if waiting is None:
            return None
        run = waiting[1]
        group = self._repetitions.get(run_id) if self._repetitions else None
        if group is not None:
            if run_id in self._held:
                self._held.remove(run_id)
                self._later[id(group)].remove(run_id)
                return run
            group.begun -= 1
        self._lines[run.agent.hash].leave(run_id)
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
        remaining = sorted(self._waiting.values(), key=lambda item: item[0])
        self._waiting.clear()
        self._later = {key: deque() for key in self._later}
        self._held.clear()
        self._blocked.clear()
        for line in self._lines.values():
            line.ready.clear()
            line.resting.clear()
            line.rests.clear()
            line.alone.clear()
            line.count = 0
        return [run for _, run in remaining]

    def _feed(self, group: Repetitions) -> None:
        """As many of the repetitions into the line as are needed; out of it again when fewer are."""
        later = self._later.get(id(group))
        if later is None:
            return
        due = group.wanted
        while later and group.begun < due:
            name = later.popleft()
            self._held.remove(name)
            position, run = self._waiting[name]
            group.begun += 1
            self._ready(self._lines[run.agent.hash], position, name)
        if group.begun > due:
            fed = [name for name in self._members[id(group)] if name in self._waiting and name not in self._held]
            # The last ones leave, in an order that leaves `later` in plan order.
            for name in reversed(fed[-(group.begun - due) :]):
                later.appendleft(name)
                self._held.add(name)
                group.begun -= 1
                self._lines[self._waiting[name][1].agent.hash].leave(name)

    def _rested(self, line: _Line) -> None:
        """Runs that have rested long enough go back into the line."""
        while line.resting and line.resting[0][0] <= self._clock():
            _, position, name = heappop(line.resting)
            if name in line.rests and self._waiting[name][0] == position:
                line.rests.remove(name)
                self._ready(line, position, name)

    @staticmethod
    def _ready(line: _Line, position: int, name: str) -> None:
        heappush(line.ready, (position, name))
        line.count += 1
