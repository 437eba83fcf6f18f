"""Recording the bundled agent: `python -m agenteval_tui.extensions.demo.shop.record` makes the samples' recordings.

The times in the recordings are those at pace 1 on a clock of their own, so that the same files come out everywhere.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from agenteval_tui.agents.base import AgentRequest, AgentSetup
from agenteval_tui.agents.recorder import Recorder
from agenteval_tui.core.directories import bundled
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import content_hash
from agenteval_tui.core.json_values import with_leaves
from agenteval_tui.extensions.demo.agent import DemoAgent
from agenteval_tui.extensions.demo.shop.assistant import VERSIONS
from agenteval_tui.suites.load import load_suite
from agenteval_tui.suites.model import Suite, Test
from agenteval_tui.suites.templates import render
from agenteval_tui.transcripts.codec import to_json
from agenteval_tui.transcripts.model import Message, Transcript

LABELLED = "labelled-runs.jsonl"
_LABELLED = "return-window", "shop/support", 8
"""A test of the first sample suite, the agent that it has there, and how many runs of it are recorded."""
_LABELS = {
    1: (True, "14 days is right for headphones"),
    3: (True, "right, and to the point"),
    7: (False, "30 days is not for electronics, and it did not look"),
}
"""What a person said of these repetitions: whether they are good, and why. The others are left to you."""


class _Clock:
    """Time that passes only in `sleep`."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def recorded_suite() -> Path:
    """The bundled suite that the recordings belong to."""
    return bundled("sample_suites") / "recorded" / "recorded.suite.yaml"


def record_suite(path: Path) -> dict[str, str]:
    """The recordings of every test of a suite with each version, and runs of the first suite that a person labelled:
    file name -> JSON lines. Writes nothing."""
    suite = load_suite(path).suite
    if suite is None:
        raise AgentevalError("this suite can't be read", where=str(path), fix="see `agenteval validate`")
    files = {f"demo-rules-{version}.jsonl": asyncio.run(_lines(suite, version)) for version in VERSIONS}
    return files | {LABELLED: asyncio.run(_labelled(path.parent.parent / "support.suite.yaml"))}


async def _lines(suite: Suite, version: str) -> str:
    lines = []
    for test in suite.tests:
        for repetition in range(1, (test.repeat or suite.defaults.repeat) + 1):
            transcript = await _record(test, version, repetition)
            item = {"test": test.id, "repetition": repetition, "transcript": _rounded(transcript)}
            lines.append(json.dumps(item, ensure_ascii=False) + "\n")
    return "".join(lines)


async def _labelled(path: Path) -> str:
    suite = load_suite(path).suite
    test_id, agent, many = _LABELLED
    test = next(test for test in suite.tests if test.id == test_id) if suite is not None else None
    if suite is None or test is None:
        raise AgentevalError("this suite can't be read", where=str(path), fix="see `agenteval validate`")
    lines = []
    for repetition in range(1, many + 1):
        transcript = await _record(test, str(suite.agents[agent].options["version"]), repetition)
        item: dict[str, Any] = {"test": test.id, "agent": agent, "repetition": repetition}
        if repetition in _LABELS:
            passed, comment = _LABELS[repetition]
            item["label"] = {"passed": passed, "comment": comment, "who": "Ada (sample)"}
        item["transcript"] = _rounded(transcript)
        lines.append(json.dumps(item, ensure_ascii=False) + "\n")
    return "".join(lines)


async def _record(test: Test, version: str, repetition: int) -> Transcript:
    clock = _Clock()
    setup = AgentSetup("recorded", {"kind": "demo", "version": version}, Path())
    agent = DemoAgent(setup, sleep=clock.sleep, clock=clock)
    messages = (Message("user", render(test.prompt or "", test.variables)),)
    seed = int(content_hash(["recorded", test.id, repetition])[:8], 16)
    recorder = Recorder(messages, clock)
    async for event in agent.run(AgentRequest(messages, test_id=test.id, repetition=repetition, seed=seed)):
        recorder.apply(event)
    return recorder.transcript()


def _rounded(transcript: Transcript) -> object:
    """Times to the microsecond: sums of floats have digits behind it that say nothing."""
    return with_leaves(to_json(transcript), lambda leaf: round(leaf, 3) if isinstance(leaf, float) else leaf)


def main() -> None:
    """Write the recordings beside the bundled suite."""
    path = recorded_suite()
    for name, text in record_suite(path).items():
        (path.parent / name).write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path.parent / name}: {text.count(chr(10))} recordings\n")


if __name__ == "__main__":
    main()
