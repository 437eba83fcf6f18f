"""One call of a Python agent in the foreground, as `agenteval debug` makes it: what it shows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from agenteval_tui.agents.base import AgentRequest
from agenteval_tui.agents.process import python_debug
from agenteval_tui.agents.process.framework_readers import reader_files
from agenteval_tui.agents.process.protocol import request_document
from agenteval_tui.transcripts.model import Message

from .conftest import skip_without

MESSAGES = [
    {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "find", "arguments": '{"q": "socks"}'}}],
    },
    {"role": "tool", "tool_call_id": "1", "content": "3 pairs"},
    {"role": "assistant", "content": "There are 3."},
]


def shown(folder: Path, target: str) -> str:
    job = {
        "folder": str(folder),
        "path": [],
        "last": [],
        "target": target,
        "request": request_document(AgentRequest((Message("user", "Hello?"),)), {}),
        "how": {},
        "listen": None,
        "readers": reader_files(),
    }
    file = folder / "job.json"
    file.write_text(json.dumps(job), "utf-8")
    done = subprocess.run(
        [sys.executable, "-P", python_debug.__file__, file], cwd=folder, capture_output=True, text=True
    )
    assert (done.returncode, file.exists()) == (0, False), done.stderr
    return done.stdout


def test_what_a_tool_gave_is_shown(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(f"def agent(prompt):\n    return {MESSAGES!r}\n", "utf-8")
    lines = shown(tmp_path, "bot:agent").split("\n")
    assert [line for line in lines if line] == ["I look.", '-> find {"q": "socks"}', "<- 3 pairs", "There are 3."]


def test_what_is_told_again_is_not_taken_for_more(tmp_path: Path) -> None:
    events = [{"type": "text", "text": "There are 3."}, {"type": "restart"}, {"type": "text", "text": "There are 4."}]
    (tmp_path / "bot.py").write_text(f"def agent(prompt):\n    yield from {events}\n", "utf-8")
    lines = [line for line in shown(tmp_path, "bot:agent").split("\n") if line]
    assert lines == ["There are 3.", "-- the whole conversation, as it is in the end:", "There are 4."]


AGENTS = """
from agents import Agent, ModelResponse, Usage, function_tool, set_tracing_disabled
from agents.models.interface import Model
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

set_tracing_disabled(True)

class Fake(Model):
    calls = 0
    async def get_response(self, *args, **named):
        self.calls += 1
        if self.calls == 1:
            call = ResponseFunctionToolCall(arguments="{}", call_id="c", name="find", type="function_call")
            return ModelResponse([call], Usage(), None)
        text = ResponseOutputText(text="sorry", type="output_text", annotations=[])
        message = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
        return ModelResponse([message], Usage(), None)
    def stream_response(self, *args, **named):
        raise NotImplementedError

@function_tool
def find() -> str:
    raise ValueError("db down")

agent = Agent("shop", model=Fake(), tools=[find])
"""


def test_what_a_tool_raised_is_shown_where_the_framework_caught_it(tmp_path: Path) -> None:
    skip_without("agents")
    (tmp_path / "bot.py").write_text(AGENTS, "utf-8")
    lines = shown(tmp_path, "bot:agent").split("\n")
    line = 1 + next(n for n, text in enumerate(AGENTS.splitlines()) if "db down" in text)
    assert f"   it raised ValueError: db down (bot.py:{line})" in lines
