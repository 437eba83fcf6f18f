"""Whether a decision about a cause still holds, computed a second time from docs/triage.md and the list of runs."""

from __future__ import annotations

import math
import random
import tempfile
from pathlib import Path

from failing import SUITE, make
from tally import Tally

from agenteval_tui.analysis.causes import execution_scope, group_failures
from agenteval_tui.analysis.triage import decide, statuses
from agenteval_tui.core.ids import now_ms
from agenteval_tui.history import quarantines
from agenteval_tui.history.store import Store

KINDS = ("accept", "fix", "quarantine", "label", "ignore")
CODES = {
    "its date has passed": "date",
    "is no longer in quarantine": "quarantine ended",
    "the criterion was changed": "criterion changed",
    "it is in ": "other tests",
    "it grew from ": "grew",
}
Runs = dict[str, list[str]]


def wilson_low(failed: int, runs: int) -> float:
    z, share = 1.959963984540054, failed / runs
    half = z * math.sqrt(share * (1 - share) / runs + z * z / (4 * runs * runs))
    return (share + z * z / (2 * runs) - half) / (1 + z * z / runs)


def expected(kind: str, before: Runs, after: Runs, *, changed: bool, fresh: bool, over: bool, ended: set[str]) -> str:
    """Why the decision no longer holds; "": it does. `fresh`: the runs after began after the decision."""
    decided = {test for test, runs in before.items() if "text" in runs}
    failing = {test for test, runs in after.items() if "text" in runs}
    if over:
        return "date"
    if kind == "quarantine" and ended & failing & decided:
        return "quarantine ended"
    if not fresh or not failing:
        return ""
    if changed and kind != "quarantine":
        return "criterion changed"
    if failing - decided:
        return "other tests"
    if kind in ("accept", "ignore"):
        then, now = ([what for test in decided for what in side.get(test, [])] for side in (before, after))
        if wilson_low(now.count("text"), len(now)) > then.count("text") / len(then):
            return "grew"
    return ""


def some(dice: random.Random, tests: list[str]) -> Runs:
    share = dice.choice([0.1, 0.3, 0.6, 1.0])
    return {
        test: ["text" if dice.random() < share else "" for _ in range(dice.choice([1, 3, 8, 12]))] for test in tests
    }


def compare(count: int, seed: int) -> Tally:
    """So many decisions, each with an execution before it and one that is looked at later."""
    dice, tally = random.Random(seed), Tally()
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder, "h.db")) as store:
        number = 0
        while tally.cases < count:
            number += 1
            tests = [f"t{number}{letter}" for letter in "abc"]
            before, after = some(dice, dice.sample(tests, dice.randint(1, 2))), some(dice, tests[: dice.randint(1, 3)])
            if not any("text" in runs for runs in before.values()):
                continue
            began = now_ms()
            make(store, f"B{number:05}", started_ms=began - 90_000, **before)
            (group,) = group_failures(store, execution_scope(store)).groups
            kind = dice.choice(KINDS)
            until = began + 600_000 if kind == "quarantine" or dice.random() < 0.3 else None
            decide(store, group, kind, until_ms=until, who="kim")
            fresh, changed = dice.random() < 0.8, dice.random() < 0.25
            started = began + (60_000 if fresh else -60_000)
            make(store, f"N{number:05}", version="v2" if changed else "v1", started_ms=started, **after)
            ended: set[str] = set()
            if kind == "quarantine" and dice.random() < 0.4:
                ended = {dice.choice([test for test, runs in before.items() if "text" in runs])}
                for test in ended:
                    quarantines.end(store, SUITE, test, group.cause.criterion).result()
            over = until is not None and dice.random() < 0.3
            looked = until + 1 if over and until is not None else began + 120_000
            found = statuses(store, group_failures(store, execution_scope(store)), looked).get(group.cause.signature)
            if found is None:
                continue  # neither here nor in what it is compared with
            said = next((code for words, code in CODES.items() if words in found.open_again), found.open_again)
            wanted = expected(kind, before, after, changed=changed, fresh=fresh, over=over, ended=ended)
            tally.same(said == wanted, (kind, before, after, changed, fresh, over, ended), found.open_again, wanted)
    return tally
