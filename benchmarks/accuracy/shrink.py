"""How well `agenteval shrink` finds planted triggers, and with how many questions, beside failmin and plain ddmin.

    python -m benchmarks.accuracy.shrink ../shared/data/tau_bench/FILE.json [--cases 60]

A case is a recorded conversation with one to three trigger words: the simulated agent fails, with the cause to
reproduce, if all triggers are present. With noise, it fails in 9 of 10 answers with the triggers, and in 1 of 50
without. In half of the rows the agent has twelve tools, including the tools that the conversation calls, and one more
trigger: a certain tool, or a word in a tool's description.
The column for failmin needs failmin (`pip install failmin`).
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.base import ToolSpec
from agenteval_tui.extensions.shrink.case import Case
from agenteval_tui.extensions.shrink.shrink import Count, Shrinker
from agenteval_tui.runs.plan.conversation import Conversation
from agenteval_tui.transcripts.codec import from_openai_messages

MOST_QUESTIONS = 20_000
TOOLS = 12
_SAID = "Looks up the {} of a customer. Give the id that the customer named, never one that was made up."


class Planted:
    """A case with triggers. `hit` is one answer of the simulated agent."""

    def __init__(self, conversation: Conversation, triggers: int, noise: bool, seed: int, tools: bool = False) -> None:
        self.random = random.Random(seed)
        self.specs = tools_for(conversation) if tools else []
        self.tool = ""
        self.words = [f"zq{seed}x{number}" for number in range(triggers)]
        for word in self.words:
            conversation = self._plant(conversation, word)
        if tools:
            self._plant_tool(seed)
        self.case = Case(conversation, tools=self.specs)
        self.noise = noise
        self.questions = 0
        self.answers = 0

    def fails(self, conversation: Conversation) -> bool:
        """Whether all triggers are present."""
        calls = conversation.tool_calls
        text = " ".join([one.content for one in conversation.messages if one.tool_call is None])
        text += " ".join(f"{call.arguments!r} {call.result}" for call in calls)
        changes = conversation.tools
        offered = self.specs if changes is None else changes.offered(self.specs)
        text += " ".join(spec.description for spec in offered)
        there = not self.tool or any(spec.name == self.tool for spec in offered)
        return there and all(word in text for word in self.words)

    def hit(self, conversation: Conversation) -> bool:
        """One answer: whether the failure was reproduced."""
        self.answers += 1
        chance = (0.9 if self.noise else 1.0) if self.fails(conversation) else (0.02 if self.noise else 0.0)
        return self.random.random() < chance

    def minimal(self, removed: frozenset[int]) -> bool:
        """Whether removing any single remaining part removes the failure. Uses the truth, not answers."""
        whole = self.case.conversation(removed)
        for part in self.case.parts:
            if part.level and part.id not in removed:
                found = self.case.conversation(self.case.without(removed, [part.id]))
                if found is not None and found != whole and self.fails(found):
                    return False
        return True

    def recovered(self, removed: frozenset[int]) -> bool:
        """Whether the rest contains all triggers."""
        found = self.case.conversation(removed)
        return found is not None and self.fails(found)

    def _plant(self, conversation: Conversation, word: str) -> Conversation:
        messages, calls = list(conversation.messages), list(conversation.tool_calls)
        at = self.random.choice([n for n, one in enumerate(messages) if one.content.strip()])
        message = messages[at]
        if message.tool_call is None:
            messages[at] = replace(message, content=self._into(message.content, word))
        else:
            call = calls[message.tool_call]
            calls[message.tool_call] = replace(call, result=self._into_result(call.result or "", word))
            messages[at] = replace(message, content=calls[message.tool_call].result or "")
        return Conversation(tuple(messages), tuple(calls))

    def _plant_tool(self, seed: int) -> None:
        at = self.random.randrange(len(self.specs))
        spec = self.specs[at]
        if seed % 2:
            self.tool = spec.name
            return
        self.words.append(f"zq{seed}t")
        self.specs[at] = replace(spec, description=self._into(spec.description, self.words[-1]))

    def _into(self, text: str, word: str) -> str:
        words = text.split(" ")
        words.insert(self.random.randrange(len(words) + 1), word)
        return " ".join(words)

    def _into_result(self, text: str, word: str) -> str:
        try:
            value = json.loads(text)
        except ValueError:
            return self._into(text, word)
        places: list[tuple[Any, Any]] = []

        def walk(node: Any) -> None:
            for key, inner in list(node.items() if isinstance(node, dict) else enumerate(node)):
                if isinstance(inner, dict | list):
                    walk(inner)
                elif isinstance(inner, str):
                    places.append((node, key))

        if isinstance(value, dict | list):
            walk(value)
        if not places:
            return self._into(text, word)
        node, key = self.random.choice(places)
        node[key] = self._into(node[key], word)
        return json.dumps(value)


def tools_for(conversation: Conversation) -> list[ToolSpec]:
    """Twelve tools, or more if the conversation calls more."""
    called = list(dict.fromkeys(call.name for call in conversation.tool_calls))
    names = [*called, *(f"get_part_{number}" for number in range(TOOLS - len(called)))]
    schema = {
        "type": "object",
        "properties": {"id": {"type": "string"}, "all": {"type": "boolean"}},
        "required": ["id"],
    }
    return [ToolSpec(name, _SAID.format(name), schema) for name in names]


def ours(planted: Planted) -> frozenset[int]:
    """The result of `agenteval shrink`."""
    known: dict[str, list[bool]] = {}

    def ask(conversation: Conversation, n: int) -> Count:
        found = known.setdefault(repr(conversation), [])
        while len(found) < n:
            found.append(planted.hit(conversation))
        return Count(sum(found[:n]), n)

    result = Shrinker(planted.case.original, ask, tools=planted.specs).run()
    planted.questions = result.questions
    return result.removed


def events(case: Case) -> list[tuple[int, list[int]]]:
    """The removable parts, each with its parent."""
    removable = [part for part in case.parts if part.level]
    return [(part.id, [one.id for one in removable if one is not part and part in one.walk()]) for part in removable]


def by_failmin(planted: Planted) -> frozenset[int]:
    """The result of failmin's dependency-aware ddmin. Each removable part is an event."""
    from failmin.api import minimize
    from failmin.core.models import RunResult, Trace, TraceEvent

    listed = events(planted.case)
    trace = Trace(tuple(TraceEvent(str(i), "part", dependencies=tuple(map(str, above))) for i, above in listed))
    every = {i for i, _ in listed}

    def replay(candidate: Any) -> Any:
        kept = {int(event.id) for event in candidate.events}
        removed = frozenset(every - kept)
        planted.questions += 1
        if planted.questions > MOST_QUESTIONS:
            raise TimeoutError
        found = planted.case.conversation(removed)
        return RunResult(output=found is not None and planted.hit(found))

    runs = {"runs": 5, "threshold": 0.8} if planted.noise else {}
    found = minimize(trace, replay, lambda result: bool(result.output), **runs)
    return frozenset(every - {int(event.id) for event in found.minimal.events})


def by_ddmin(planted: Planted) -> frozenset[int]:
    """The result of Zeller's ddmin over words, values and tools. With noise, each question gets five answers, too."""
    leaves = [
        part.id
        for part in planted.case.parts
        if part.level and (part.kind == "tool" or not any(one.level for one in part.parts))
    ]
    known: dict[frozenset[int], bool] = {}

    def fails(kept: Sequence[int]) -> bool:
        removed = frozenset(set(leaves) - set(kept))
        if removed not in known:
            planted.questions += 1
            if planted.questions > MOST_QUESTIONS:
                raise TimeoutError
            found = planted.case.conversation(removed)
            if found is None:
                known[removed] = False
            elif planted.noise:
                known[removed] = sum(planted.hit(found) for _ in range(5)) >= 4
            else:
                known[removed] = planted.hit(found)
        return known[removed]

    kept, n = leaves, 2
    while len(kept) >= 2:
        size = -(-len(kept) // n)
        chunks = [kept[start : start + size] for start in range(0, len(kept), size)]
        for chunk in chunks:
            if fails(chunk):
                kept, n = chunk, 2
                break
        else:
            for number in range(len(chunks)):
                rest = [one for other, chunk in enumerate(chunks) if other != number for one in chunk]
                if fails(rest):
                    kept, n = rest, max(n - 1, 2)
                    break
            else:
                if n >= len(kept):
                    break
                n = min(len(kept), n * 2)
    return frozenset(set(leaves) - set(kept))


WAYS: dict[str, Callable[[Planted], frozenset[int]]] = {
    "agenteval": ours,
    "failmin 0.2": by_failmin,
    "ddmin": by_ddmin,
}


def conversations(path: Path) -> list[Conversation]:
    """The starts of recorded conversations, up to a message that the agent answers."""
    found = []
    for run in json.loads(path.read_text("utf-8")):
        transcript = from_openai_messages(run["traj"])
        messages = list(transcript.messages[1:])  # the policy alone has 5,000 words
        while messages and messages[-1].role not in ("user", "tool"):
            messages.pop()
        if len(messages) > 3:
            found.append(Conversation(tuple(messages), transcript.tool_calls))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--ways", nargs="*", default=list(WAYS))
    given = parser.parse_args()
    listed = conversations(given.file)
    print("| | trigger | noise | recovered | 1-minimal | questions, median | answers, mean | gave up |")
    print("|---|---|---|---|---|---|---|---|")
    for tools, noise in ((False, False), (False, True), (True, False), (True, True)):
        for way in given.ways:
            rows = []
            lost = 0
            for number in range(given.cases):
                planted = Planted(listed[number * 7 % len(listed)], 1 + number % 3, noise, number, tools)
                try:
                    removed = WAYS[way](planted)
                except (TimeoutError, ValueError):  # failmin: the failure was not reproduced in 4 of 5 answers
                    lost += 1
                    continue
                rows.append((planted.recovered(removed), planted.minimal(removed), planted.questions, planted.answers))
            good = len(rows) or 1
            kind = "words and tools" if tools else "words"
            print(
                f"| {way} | {kind} | {'yes' if noise else 'no'} | {sum(r[0] for r in rows) / good:.0%} | "
                f"{sum(r[0] and r[1] for r in rows) / good:.0%} | {median(r[2] for r in rows) if rows else 0:.0f} | "
                f"{mean(r[3] for r in rows) if rows else 0:.0f} | {lost} |",
                flush=True,
            )


if __name__ == "__main__":
    began = time.process_time()
    main()
    print(f"{time.process_time() - began:.0f} s of processor time")
