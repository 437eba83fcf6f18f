"""What may be named of openai-agents: run contexts, factories, models that can't stream, MCP servers, hand-offs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from agents import Agent as OpenAIAgent
from agents import ModelResponse, RunContextWrapper, Usage
from agents.mcp import MCPServerStdio
from agents.models.interface import Model
from of_named import Deps
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText


class Once(Model):
    async def get_response(self, system_instructions, *positional, **named):
        text = ResponseOutputText(text=system_instructions or "", type="output_text", annotations=[])
        said = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *positional, **named):
        raise NotImplementedError("no stream")


def _instructions(ctx: RunContextWrapper[Deps], agent: Any) -> str:
    return repr(ctx.context)


openai = OpenAIAgent[Deps](name="a", instructions=_instructions, model=Once())


def make_openai():
    return OpenAIAgent(name="a", instructions=_instructions, model=Once())


class Repeats(Once):
    async def get_response(self, *positional, **named):
        return await super().get_response(json.dumps(positional[1] if len(positional) > 1 else named["input"]))


class CallsTool(Once):
    """Calls the first tool that it is offered, or hands over, then says what the tool gave."""

    async def get_response(
        self, system_instructions, input, model_settings, tools, output_schema, handoffs, *more, **named
    ):
        results = [item["output"] for item in input if item.get("type") == "function_call_output"]
        if results and not handoffs and tools and "found" in str(results):
            return await super().get_response(json.dumps(results))
        name = handoffs[0].tool_name if handoffs else tools[0].name
        arguments = "{}" if handoffs else '{"item": "socks"}'
        call = ResponseFunctionToolCall(arguments=arguments, call_id="c" + name, name=name, type="function_call")
        return ModelResponse(output=[call], usage=Usage(), response_id=None)


SHOP = str(Path(__file__).with_name("shop_server.py"))


def _shop():
    return MCPServerStdio({"command": sys.executable, "args": [SHOP]}, name="shop")


with_server = OpenAIAgent(name="a", model=CallsTool(), mcp_servers=[_shop()])


_second = OpenAIAgent(name="second", model=CallsTool(), mcp_servers=[_shop()])


hands_over = OpenAIAgent(name="first", model=CallsTool(), handoffs=[_second])


repeating = OpenAIAgent(name="a", model=Repeats())
