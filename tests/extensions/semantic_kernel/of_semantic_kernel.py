"""Agents of Semantic Kernel against a server on loopback, and what they give."""

from __future__ import annotations

import os
from typing import Annotated

from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.contents import ChatHistory
from semantic_kernel.functions import kernel_function


class Shop:
    @kernel_function(description="Finds things.")
    def find(self, q: Annotated[str, "what"]) -> str:
        return f'["{q}"]'

    @kernel_function(description="Fails.")
    def bad(self, x: Annotated[int, "which"]) -> str:
        raise ValueError("no such x")


def made():
    client = AsyncOpenAI(base_url=os.environ["OPENAI_BASE_URL"], api_key="x")
    service = OpenAIChatCompletion(ai_model_id="m", async_client=client)
    return ChatCompletionAgent(service=service, name="shop", instructions="be kind", plugins=[Shop()])


agent = made()


async def streamed(prompt):
    told = []

    async def tell(message):
        told.append(message)

    async for item in made().invoke(messages=prompt, on_intermediate_message=tell):
        for message in told:
            yield message
        yield item.message


async def history(prompt):
    response = await made().get_response(messages=prompt)
    return ChatHistory(messages=[message async for message in response.thread.get_messages()])


async def message(prompt):
    return (await made().get_response(messages=prompt)).message


async def results(prompt):
    """As the results of a concurrent orchestration."""
    return [await message(prompt), await message(prompt)]


async def response(prompt):
    return await made().get_response(messages=prompt)


async def truth():
    """What Semantic Kernel itself reports of the same run."""
    told = (await history("hello")).messages
    items = [item for message in told for item in message.items]
    calls = [[item.function_name, item.arguments] for item in items if item.content_type == "function_call"]
    return {"calls": calls, "last": told[-1].content}


async def only_answers(prompt):
    async for item in made().invoke_stream(messages=prompt):
        yield item.message
