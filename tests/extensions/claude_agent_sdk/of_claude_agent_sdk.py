"""Claude's agent SDK with the program that it brings, against a server on loopback (ANTHROPIC_BASE_URL)."""

from __future__ import annotations

from claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    create_sdk_mcp_server,
    query,
    tool,
)


@tool("find", "Finds things.", {"q": str})
async def find(args):
    return {"content": [{"type": "text", "text": f'["{args["q"]}"]'}]}


@tool("bad", "Fails.", {"x": int})
async def bad(args):
    raise ValueError("no such x")


def made(**more):
    return ClaudeAgentOptions(
        system_prompt="be kind",
        model="m",
        mcp_servers={"shop": create_sdk_mcp_server(name="shop", tools=[find, bad])},
        allowed_tools=["mcp__shop__find", "mcp__shop__bad"],
        setting_sources=[],
        **more,
    )


options = made(tools=[])
client = ClaudeSDKClient(made(tools=[]))
keeper = AgentDefinition(
    description="sells", prompt="sell", tools=["mcp__shop__find", "mcp__shop__bad"], model="inherit"
)
delegating = made(tools=["Agent"], agents={"keeper": keeper})
limited = made(tools=[], max_turns=1)


async def streamed(prompt):
    async for message in query(prompt=prompt, options=options):
        yield message


async def listed(prompt):
    return [message async for message in query(prompt=prompt, options=options)]


async def result(prompt):
    return (await listed(prompt))[-1]


async def truth():
    """What the SDK itself reports of the same run."""
    told = await result("hello")
    return {"usage": [told.usage["input_tokens"], told.usage["output_tokens"]], "cost": told.total_cost_usd}


async def answer_alone(prompt):
    return next(one for one in reversed(await listed(prompt)) if type(one).__name__ == "AssistantMessage")
