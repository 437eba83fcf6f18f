"""Crews and agents of CrewAI with a model that answers from a script, and what they give."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true", CREWAI_TRACING_ENABLED="false")
os.environ.setdefault("CREWAI_STORAGE_DIR", str(Path(tempfile.gettempdir()) / "agenteval-crewai"))

from crewai import Agent, BaseLLM, Crew, Task
from crewai.project import CrewBase
from crewai.tools import tool
from pydantic import BaseModel

asked = []


@tool("find")
def find(q: str) -> str:
    """Finds things."""
    return f'["{q}"]'


@tool("bad")
def bad(x: int) -> str:
    """Fails."""
    raise ValueError("no such x")


def call(key, name, arguments):
    return {"id": key, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


class Scripted(BaseLLM):
    def call(self, messages, tools=None, **options):
        asked.append([[m["role"], str(m.get("content"))] for m in messages])
        last = max(n for n, m in enumerate(messages) if m["role"] == "user")
        results = [m for m in messages[last:] if m["role"] == "tool"]
        self._track_token_usage_internal({"prompt_tokens": 10, "completion_tokens": 2})
        if not results:
            return [call("a", "find", {"q": "socks"})]
        if len(results) == 1:
            return [call("b", "bad", {"x": 1})]
        return "3 pairs"

    async def acall(self, messages, tools=None, **options):
        return self.call(messages, tools)

    def supports_function_calling(self):
        return True


def crew_of(description):
    clerk = Agent(role="clerk", goal="sell", backstory="none", tools=[find, bad], llm=Scripted(model="fake-1"))
    return Crew(agents=[clerk], tasks=[Task(description=description, expected_output="a number", agent=clerk)])


agent = Agent(role="clerk", goal="sell", backstory="none", tools=[find, bad], llm=Scripted(model="fake-1"))
crew = crew_of("Answer this: {prompt}")
deaf = crew_of("Count socks")


@CrewBase
class Shop:
    agents_config = {}  # noqa: RUF012
    tasks_config = {}  # noqa: RUF012

    def crew(self):
        return crew_of("Answer this: {prompt}")


of_class = Shop()


def result(prompt):
    return crew_of("Answer: {prompt}").kickoff(inputs={"prompt": prompt})


def lite(prompt):
    return agent.kickoff(prompt)


class Wordy(BaseLLM):
    """Calls tools in words."""

    def call(self, messages, tools=None, **options):
        if "Observation:" in str(messages[-1]["content"]) or len(messages) > 2:
            return "Thought: I now can give a great answer\nFinal Answer: 3 pairs"
        return 'Thought: let me see\nAction: find\nAction Input: {"q": "socks"}\n'

    async def acall(self, messages, tools=None, **options):
        return self.call(messages, tools)

    def supports_function_calling(self):
        return False


writer = Agent(role="clerk", goal="sell", backstory="none", tools=[find], llm=Wordy(model="fake-1"))
wordy = Crew(agents=[writer], tasks=[Task(description="Answer: {prompt}", expected_output="a number", agent=writer)])


def wordy_result(prompt):
    return wordy.kickoff(inputs={"prompt": prompt})


class Order(BaseModel):
    pairs: int
    customer: str


class Echo(BaseLLM):
    """Answers with what it was asked, as the object that the task declares."""

    def call(self, messages, tools=None, **options):
        text = str(messages[-1]["content"])
        return json.dumps({"pairs": 3, "customer": text.partition("for <")[2].partition(">")[0]})

    async def acall(self, messages, tools=None, **options):
        return self.call(messages, tools)

    def supports_function_calling(self):
        return False


seller = Agent(role="clerk", goal="sell", backstory="none", llm=Echo(model="fake-1"))
ordering = Crew(
    agents=[seller],
    tasks=[
        Task(
            description="Order socks for <{customer}>: {prompt}",
            expected_output="an order",
            agent=seller,
            output_json=Order,
        )
    ],
)


class Breaking(Scripted):
    def call(self, messages, tools=None, **options):
        said = super().call(messages, tools)
        if said == "3 pairs":
            raise RuntimeError("the model is gone")
        return said


def breaking_crew():
    clerk = Agent(
        role="clerk", goal="sell", backstory="none", tools=[find, bad], llm=Breaking(model="fake-1"), max_retry_limit=0
    )
    return Crew(agents=[clerk], tasks=[Task(description="{prompt}", expected_output="a number", agent=clerk)])


broken = breaking_crew()


def truth():
    """What the model was asked."""
    return {"asked": asked}


def task_alone(prompt):
    return result(prompt).tasks_output[-1]


def text_alone(prompt):
    return result(prompt).raw
