"""Agents of Google's ADK with a model that answers from a script, and what they give."""

from __future__ import annotations

from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

asked = []


def find(q: str) -> str:
    """Finds things."""
    return f'["{q}"]'


def bad(x: int) -> dict:
    """Fails."""
    return {"error": "no such x"}


def part(**fields):
    return types.Part(**fields)


def call(key, name, arguments):
    return part(function_call=types.FunctionCall(id=key, name=name, args=arguments))


USED = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=10, candidates_token_count=4, thoughts_token_count=1, cached_content_token_count=3
)
LATER_USED = types.GenerateContentResponseUsageMetadata(prompt_token_count=20, candidates_token_count=2)


class Scripted(BaseLlm):
    model: str = "fake-1"

    async def generate_content_async(self, llm_request, stream=False):
        said = [
            (one.role, [next(iter(p.model_dump(exclude_none=True))) for p in one.parts]) for one in llm_request.contents
        ]
        asked.append([*said, (llm_request.contents[-1].parts[-1].text or "", [])])
        if llm_request.contents[-1].parts[-1].function_response is None:
            parts = [part(text="hm", thought=True), part(text="let me see")]
            calls = [call("a", "find", {"q": "socks"}), call("b", "bad", {"x": 1})]
            about = {"usage_metadata": USED}
        else:
            parts, calls = [part(text="3 "), part(text="pairs")], []
            about = {"usage_metadata": LATER_USED, "finish_reason": types.FinishReason.MAX_TOKENS}
        if stream:
            for one in parts:
                yield LlmResponse(content=types.Content(role="model", parts=[one]), partial=True)
        whole = types.Content(role="model", parts=[*parts, *calls])
        yield LlmResponse(content=whole, model_version="fake-1", **about)


def made():
    return LlmAgent(name="shop", model=Scripted(), instruction="be kind", tools=[find, bad])


agent = made()
sequence = SequentialAgent(name="all", sub_agents=[made()])


class Silent(BaseLlm):
    model: str = "silent"

    async def generate_content_async(self, llm_request, stream=False):
        yield LlmResponse(error_code="SAFETY", error_message="refused")


class Drawing(BaseLlm):
    model: str = "drawing"

    async def generate_content_async(self, llm_request, stream=False):
        image = types.Part.from_bytes(data=b"x", mime_type="image/png")
        yield LlmResponse(content=types.Content(role="model", parts=[image, part(text="here")]))


refusing = LlmAgent(name="refusing", model=Silent())
drawing = LlmAgent(name="drawing", model=Drawing())
runner = InMemoryRunner(agent=made(), app_name="shop")


async def events(prompt):
    own = InMemoryRunner(agent=made(), app_name="shop")
    session = await own.session_service.create_session(app_name="shop", user_id="u")
    message = types.Content(role="user", parts=[part(text=prompt)])
    async for event in own.run_async(user_id="u", session_id=session.id, new_message=message):
        yield event


async def listed(prompt):
    return [event async for event in events(prompt)]


class Repeating(BaseLlm):
    model: str = "repeating"

    async def generate_content_async(self, llm_request, stream=False):
        said = llm_request.config.system_instruction + " / " + llm_request.contents[-1].parts[-1].text
        yield LlmResponse(content=types.Content(role="model", parts=[part(text=said)]))


class Breaking(Scripted):
    async def generate_content_async(self, llm_request, stream=False):
        if llm_request.contents[-1].parts[-1].function_response is not None:
            raise RuntimeError("the model is gone")
        async for one in super().generate_content_async(llm_request, stream):
            yield one


keyed = LlmAgent(name="keyed", model=Repeating(), instruction="You serve {customer}.", output_key="said")
broken = LlmAgent(name="broken", model=Breaking(), tools=[find, bad])


def truth():
    """What the model was asked."""
    return {"asked": asked}


async def event_alone(prompt):
    return (await listed(prompt))[-1]


async def content_alone(prompt):
    return (await listed(prompt))[-1].content


async def text_alone(prompt):
    return (await listed(prompt))[-1].content.parts[0].text
