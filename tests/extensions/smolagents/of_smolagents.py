"""Agents of smolagents with models that answer from a script, and what they give."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

from smolagents import CodeAgent, Model, ToolCallingAgent, tool
from smolagents.models import (
    ChatMessage,
    ChatMessageStreamDelta,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    ChatMessageToolCallStreamDelta,
)
from smolagents.monitoring import TokenUsage


@tool
def find(q: str) -> str:
    """Finds things.

    Args:
        q: What.
    """
    return f'["{q}"]'


@tool
def bad(x: int) -> str:
    """Fails.

    Args:
        x: Anything.
    """
    raise ValueError("no such x")


STEPS = (
    ("let me see", [("a", "find", {"q": "socks"})]),
    ("", [("b", "bad", {"x": 1})]),
    ("", [("c", "final_answer", {"answer": "3 pairs"})]),
)
CODE = (
    "Thought: let me see\n<code>\nprint(find(q='socks'))\n</code>",
    "<code>\nbad(x=1)\n</code>",
    "<code>\nfinal_answer('3 pairs')\n</code>",
)


def calls_of(given):
    return [ChatMessageToolCall(ChatMessageToolCallFunction(arguments=a, name=n), i, "function") for i, n, a in given]


asked = []


class Scripted(Model):
    def generate(self, messages, **options):
        asked.append([(m.role.value, m.content) for m in messages])
        # What was called in this turn; of earlier turns there is "F", as the result.
        said = [str(m.content) for m in messages if m.role.value == "tool-response" and "F" not in str(m.content)]
        return self.answer(min(len(said), 2))

    def answer(self, number):
        text, calls = STEPS[number]
        said = SimpleNamespace(reasoning_content="hm" if not number else None)
        raw = SimpleNamespace(model="fake-1", choices=[SimpleNamespace(message=said, finish_reason="length")])
        usage = TokenUsage(input_tokens=10, output_tokens=number + 1)
        return ChatMessage("assistant", text, calls_of(calls), raw=raw, token_usage=usage)


class Streaming(Scripted):
    def generate_stream(self, messages, **options):
        whole = self.generate(messages)
        half = len(whole.content) // 2
        for part in (whole.content[:half], whole.content[half:]):
            yield ChatMessageStreamDelta(part)
        deltas = [
            ChatMessageToolCallStreamDelta(n, c.id, "function", c.function)
            for n, c in enumerate(whole.tool_calls or ())
        ]
        for delta in deltas:
            delta.function.arguments = json.dumps(delta.function.arguments)
        yield ChatMessageStreamDelta(None, deltas or None, whole.token_usage)


class Coding(Streaming):
    def answer(self, number):
        return ChatMessage("assistant", CODE[number], token_usage=TokenUsage(10, number + 1))


class AtOnce(Scripted):
    """Calls twice in one step, and never answers."""

    def answer(self, number):
        return ChatMessage("assistant", "", calls_of([("a", "find", {"q": "x"}), ("b", "find", {"q": "y"})]))


class Wordy(Streaming):
    """Streams many pieces, and never answers."""

    def generate_stream(self, messages, **options):
        for _ in range(200):
            yield ChatMessageStreamDelta("word ")
        yield from super().generate_stream(messages)

    def answer(self, number):
        calls = calls_of([("a", "find", {"q": "x"})])
        return ChatMessage("assistant", "hm", calls, token_usage=TokenUsage(10, 1))


agent = ToolCallingAgent([find, bad], Scripted(), verbosity_level=0)
streaming = ToolCallingAgent([find, bad], Streaming(), verbosity_level=0, stream_outputs=True)
coding = CodeAgent([find, bad], Coding(), verbosity_level=0)
coding_streamed = CodeAgent([find, bad], Coding(), verbosity_level=0, stream_outputs=True)


class Deep(Streaming):
    def answer(self, number):
        code = (
            "find('hats')\ntwice('caps')\nfind({'q': 'ties'})",
            "final_answer('done')",
        )[min(number, 1)]
        return ChatMessage("assistant", f"<code>\n{code}\n</code>", token_usage=TokenUsage(1, 1))


class Managing(Streaming):
    def answer(self, number):
        code = ("helper('socks')", "final_answer('done')")[min(number, 1)]
        return ChatMessage("assistant", f"<code>\n{code}\n</code>", token_usage=TokenUsage(1, 1))


class Echo(Model):
    """Answers a later turn with the names of the calls that it was told."""

    def generate(self, messages, **options):
        told = str([m.content for m in messages[1:]])
        if "and now?" in told:
            names = " ".join(re.findall(r"name\W+(\w+)", told))
            code = f"final_answer({names!r})"
        else:
            code = "final_answer('done')" if "Observation" in told else "print(find('socks'))"
        return ChatMessage("assistant", f"<code>\n{code}\n</code>", token_usage=TokenUsage(1, 1))


@tool
def twice(q: str) -> str:
    """Finds twice.

    Args:
        q: What.
    """
    return find(q) + find(q=q)


helper = ToolCallingAgent([find, bad], Scripted(), verbosity_level=0, name="helper", description="Finds.")
coding_deep = CodeAgent([find, twice], Deep(), verbosity_level=0)
coding_echo = CodeAgent([find], Echo(), verbosity_level=0)
coding_manager = CodeAgent([], Managing(), verbosity_level=0, managed_agents=[helper])
at_once = ToolCallingAgent([find, bad], AtOnce(), verbosity_level=0, max_steps=1)
wordy = ToolCallingAgent([find], Wordy(), verbosity_level=0, max_steps=2, stream_outputs=True)


def result(prompt):
    return agent.run(prompt, return_full_result=True)


def memory(prompt):
    agent.run(prompt)
    return agent.memory


def code_memory(prompt):
    coding.run(prompt)
    return coding.memory


def streamed(prompt):
    yield from agent.run(prompt, stream=True)


def steps_of_several(prompt):
    return at_once.run(prompt, return_full_result=True)


class Structured(Scripted):
    def generate(self, messages, **options):
        asked.append([(m.role.value, m.content) for m in messages])
        task = str(messages[1].content)
        answer = {"pairs": 3, "knows": "customer" in task and "C1" in task}
        call = ("c", "final_answer", {"answer": answer})
        return ChatMessage("assistant", "", calls_of([call]), token_usage=TokenUsage(1, 1))


structured = ToolCallingAgent(tools=[], model=Structured())


def truth():
    """What the framework reports of the same run, and what the model was asked in the last one that went before."""
    before = list(asked)
    used = agent.run("hello", return_full_result=True).token_usage
    return {"usage": [used.input_tokens, used.output_tokens], "asked": before}


def step_alone(prompt):
    agent.run(prompt)
    return agent.memory.steps[-1]


def final_alone(prompt):
    return list(agent.run(prompt, stream=True))[-1]


def text_alone(prompt):
    return agent.run(prompt)


def code_text_alone(prompt):
    return coding.run(prompt)
