"""Agents of LlamaIndex with its own model for tests, and what they give."""

from __future__ import annotations

import os

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ThinkingBlock, ToolCallBlock
from llama_index.core.base.response.schema import Response
from llama_index.core.chat_engine.types import AgentChatResponse
from llama_index.core.llms import ChatMessage, ChatResponse, TextBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.tools import ToolOutput
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step

asked = []


def find(q: str) -> str:
    """Finds things."""
    return f'["{q}"]'


def bad(x: int) -> str:
    """Fails."""
    raise ValueError("no such x")


FIRST = [
    ThinkingBlock(content="hm"),
    TextBlock(text="let me see"),
    ToolCallBlock(tool_call_id="a", tool_name="find", tool_kwargs={"q": "socks"}),
    ToolCallBlock(tool_call_id="b", tool_name="bad", tool_kwargs={"x": 1}),
]
REASONED = (
    'Thought: let me see\nAction: find\nAction Input: {"q": "socks"}',
    "Thought: I can answer without using any more tools.\nAnswer: 3 pairs",
)


def used(number):
    return {"prompt_tokens": 10 * number, "completion_tokens": 7 - 3 * number + 1}


def answer(messages, **options):
    asked.append([[m.role.value, m.content or ""] for m in messages])
    if messages[-1].role.value == "tool":
        return ChatMessage(role="assistant", content="3 pairs", additional_kwargs=used(2))
    return ChatMessage(role="assistant", blocks=FIRST, additional_kwargs=used(1))


async def reasoned(number):
    for word in REASONED[number].split(" "):
        yield ChatMessage(role="assistant", content=word)


def model():
    return MockFunctionCallingLLM(response_generator=answer, is_chat_model=True)


def made(streaming):
    return FunctionAgent(name="shop", description="sells", tools=[find, bad], llm=model(), streaming=streaming)


agent = made(False)
streaming = made(True)
several = AgentWorkflow(agents=[made(True)])


async def result(prompt):
    return await agent.run(user_msg=prompt)


async def streamed(prompt):
    running = agent.run(user_msg=prompt)
    async for event in running.stream_events():
        yield event


def reason(messages, **options):
    seen = any("Observation:" in (m.content or "") for m in messages[1:])
    return ChatMessage(role="assistant", content=REASONED[seen])


reasoning = ReActAgent(
    name="shop", tools=[find], llm=MockFunctionCallingLLM(response_generator=reason, is_chat_model=True)
)


def chat_engine(prompt):
    source = ToolOutput(tool_name="find", content='["socks"]', raw_input={"q": "socks"}, raw_output=None)
    return AgentChatResponse(response="3 pairs", sources=[source])


class Looked(Event):
    found: str


class Own(Workflow):
    @step
    async def begin(self, event: StartEvent) -> Looked:
        return Looked(found="3 pairs of " + event.query)

    @step
    async def end(self, event: Looked) -> StopEvent:
        return StopEvent(result=event.found)


class Odd(StartEvent):
    size: int


class Wants(Workflow):
    @step
    async def begin(self, event: Odd) -> StopEvent:
        return StopEvent(result="never")


class Tells(Workflow):
    @step
    async def begin(self, event: StartEvent) -> StopEvent:
        return StopEvent(result={"answer": "3 pairs"})


class Ended(StopEvent):
    pairs: int


class EndsOwn(Workflow):
    @step
    async def begin(self, event: StartEvent) -> Ended:
        return Ended(pairs=3)


workflow = Own()
own_end = EndsOwn()
odd = Wants()
tells = Tells()


class Remembers(Workflow):
    @step
    async def begin(self, ctx: Context, event: StartEvent) -> StopEvent:
        customer = await ctx.store.get("customer", default="nobody")
        return StopEvent(result={"who": customer, "query": event.query, "deep": {"pairs": 3}})


remembers = Remembers()


def breaks(messages, **options):
    if messages[-1].role.value == "tool":
        raise RuntimeError("the model is gone")
    return ChatMessage(role="assistant", blocks=FIRST)


broken = FunctionAgent(
    name="shop",
    description="sells",
    tools=[find, bad],
    llm=MockFunctionCallingLLM(response_generator=breaks, is_chat_model=True),
    streaming=False,
)


def truth():
    """What the model was asked."""
    return {"asked": asked}


def handing():
    """An agent that hands over to another one, with a model on loopback."""
    from llama_index.llms.openai_like import OpenAILike

    llm = OpenAILike("m", api_base=os.environ["OPENAI_BASE_URL"], is_chat_model=True, is_function_calling_model=True)
    shop = FunctionAgent(name="shop", description="sells", tools=[find, bad], llm=llm, system_prompt="sell")
    desk = FunctionAgent(name="desk", description="greets", tools=[], llm=llm, can_handoff_to=["shop"])
    return AgentWorkflow([desk, shop], root_agent="desk")


async def message_alone(prompt):
    return (await agent.run(user_msg=prompt)).response


async def chat_response(prompt):
    return ChatResponse(message=await message_alone(prompt))


async def of_a_query_engine(prompt):
    return Response(response=str(await message_alone(prompt)), source_nodes=[])
